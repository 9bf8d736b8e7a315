/* SPDX-License-Identifier: Apache-2.0 */
/* Live sampling to pprof or perf.data. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/output.h"
#include "pipeline/process_log.h"
#include "pipeline/recording.h"

enum {
	MAX_PIDS = 4096,
	MAX_FREQUENCY_HZ = 1000000,
	CHILD_PATIENCE_MS = 5000, /* for a command that was told to stop */
	NO_CYCLES = 108,	  /* of explain.c */
	NO_EXEC_WATCH = 110,
};

static const char default_output[] = "perfpipe.pb.gz";

enum option_id {
	OPTION_ALL = 1,
	OPTION_PID,
	OPTION_CGROUP,
	OPTION_FREQUENCY,
	OPTION_PERIOD,
	OPTION_EVENT,
	OPTION_DURATION,
	OPTION_OUTPUT,
	OPTION_RING_SIZE,
	OPTION_PROCESSES,
	OPTION_USER_ONLY,
	OPTION_EXCLUDE_SELF,
};

static const struct cli_option options[] = {
	{OPTION_ALL, "all", NULL, "the whole host; with a command, while it runs", 'a', true},
	{OPTION_PID, "pid", "PID,...", "these processes, their threads and later children", 'p',
	 true},
	{OPTION_CGROUP, "cgroup", "PATH", "a cgroup and all below it", 'G', true},
	{OPTION_FREQUENCY, "frequency", "HZ", "samples per second and CPU (default 99)", 'F', true},
	{OPTION_DURATION, "duration", "SEC", "stop after that time: 10, 0.5, 90s, 5m", 'd', true},
	{OPTION_OUTPUT, "output", "FILE",
	 "x.pb.gz or x.pb: pprof; x.data: perf.data; - is\nstandard output (default "
	 "perfpipe.pb.gz)",
	 'o', true},
	{OPTION_EVENT, "event", "EVENT,...", "what to sample (default cycles, else cpu-clock)", 'e',
	 false},
	{OPTION_PERIOD, "count", "N", "a sample every N events instead of a frequency", 'c', false},
	{OPTION_RING_SIZE, "ring-size", "SIZE",
	 "ring buffer of each CPU: 512K, 4M; without unit\nin pages", 'm', false},
	{OPTION_PROCESSES, "processes", "FILE", "a JSON line for every program that was started", 0,
	 false},
	{OPTION_USER_ONLY, "user-only", NULL, "no kernel frames and no time in the kernel", 0,
	 false},
	{OPTION_EXCLUDE_SELF, "exclude-self", NULL, "without perfpipe's own samples", 0, false},
};

struct record_options {
	struct conversion_options conversion;
	struct collector_live_options live;
	pid_t *pids;
	const char *output, *processes;
	uint64_t duration_ns;
	bool is_all, has_frequency;
	int n_targets;
};

static struct error *add_pids(struct record_options *record, const char *list)
{
	char word[32];
	size_t n = record->live.n_pids;
	while (cli_next_word(&list, word, sizeof(word))) {
		uint64_t pid;
		struct error *err = cli_parse_number("--pid", word, 1, INT32_MAX, &pid);
		if (err)
			return err;
		if (n == MAX_PIDS)
			return cli_usage("--pid takes at most %d processes; use --cgroup or --all",
					 MAX_PIDS);
		record->pids = mem_realloc(record->pids, n + 1, sizeof(*record->pids));
		record->pids[n++] = (pid_t)pid;
	}
	record->live.pids = record->pids;
	record->live.n_pids = n;
	return NULL;
}

static struct error *set_frequency(struct record_options *record, const char *value)
{
	uint64_t hz = 0;
	struct error *err = cli_parse_number("--frequency", value, 1, MAX_FREQUENCY_HZ, &hz);
	record->live.frequency_hz = (uint32_t)hz;
	record->has_frequency = true;
	return err;
}

static struct error *set_ring_size(struct record_options *record, const char *value)
{
	bool has_unit = false;
	struct error *err =
		cli_parse_size("--ring-size", value, &record->live.ring_bytes, &has_unit);
	if (!err && !has_unit)
		record->live.ring_bytes *= (uint64_t)sysconf(_SC_PAGESIZE);
	return err;
}

static struct error *set_target(struct record_options *record, int id, const char *value)
{
	if (id == OPTION_ALL && !record->is_all) {
		record->is_all = true;
		record->n_targets++;
	}
	if (id == OPTION_PID) {
		record->n_targets += record->live.n_pids == 0;
		return add_pids(record, value);
	}
	if (id == OPTION_CGROUP) {
		if (record->live.cgroup)
			return cli_usage("--cgroup can be given once");
		record->live.cgroup = value;
		record->n_targets++;
	}
	return NULL;
}

static struct error *set(void *context, int id, const char *value)
{
	struct record_options *record = context;
	switch (id) {
	case OPTION_ALL:
	case OPTION_PID:
	case OPTION_CGROUP:
		return set_target(record, id, value);
	case OPTION_FREQUENCY:
		return set_frequency(record, value);
	case OPTION_PERIOD:
		return cli_parse_number("--count", value, 1, INT64_MAX, &record->live.period);
	case OPTION_EVENT:
		record->live.events = value;
		break;
	case OPTION_DURATION:
		return cli_parse_duration("--duration", value, &record->duration_ns);
	case OPTION_OUTPUT:
		record->output = value;
		break;
	case OPTION_RING_SIZE:
		return set_ring_size(record, value);
	case OPTION_PROCESSES:
		record->processes = value;
		break;
	case OPTION_USER_ONLY:
		record->live.is_user_only = true;
		break;
	case OPTION_EXCLUDE_SELF:
		record->live.exclude_self = true;
		break;
	default:
		return conversion_options_set(&record->conversion, id, value);
	}
	return NULL;
}

const struct cli_spec cmd_record_spec = {
	.command = "record",
	.usage = "[OPTIONS] [-a | -p PID,... | -G CGROUP] [--] [COMMAND ...]",
	.summary =
		"Samples a command, processes, a cgroup or the whole host, and writes a profile.",
	.examples =
		"  perfpipe record -- git gc                      a command and what it starts\n"
		"  perfpipe record -a -d 10                       the whole host for ten seconds\n"
		"  perfpipe record -p 1234 -F 999 -o p.pb.gz      a process until Ctrl-C\n"
		"  perfpipe record -G system.slice/nginx.service -d 1m\n"
		"  perfpipe record -a -o perf.data -- make        for perf report\n",
	.notes = "The exit status is the command's own. Ctrl-C writes what was taken.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT,
	.takes_command = true,
};

static struct error *choose_scope(struct record_options *record, char **command)
{
	if (record->n_targets > 1)
		return cli_usage("--all, --pid and --cgroup exclude each other");
	if (record->has_frequency && record->live.period)
		return cli_usage("--frequency and --count exclude each other");
	if (record->is_all) {
		record->live.scope = COLLECTOR_SYSTEM;
	} else if (record->live.n_pids) {
		record->live.scope = COLLECTOR_PIDS;
	} else if (record->live.cgroup) {
		record->live.scope = COLLECTOR_CGROUP;
	} else if (command) {
		record->live.scope = COLLECTOR_COMMAND;
		record->live.command = command;
	} else {
		return cli_usage("nothing to sample: name a command, or use -a, -p or -G");
	}
	return NULL;
}

/* Everything that is open during a recording. */
struct session {
	const struct record_options *options;
	const struct cli *cli;
	struct output output, processes;
	struct record_source *source;
	struct conversion conversion;
	struct perf_file_writer *writer; /* x.data only */
	struct process_log *log;
	struct pipeline *pipeline;
	struct recording recording;
	uint64_t n_samples; /* that came out of the pipeline */
};

static struct error *open_outputs(struct session *session)
{
	struct error *err = output_open(&session->output, session->options->output);
	if (err || !session->options->processes)
		return err;
	/* Text may go to a terminal. */
	const char *path = session->options->processes;
	if (strcmp(path, "-") == 0)
		path = "/dev/stdout";
	return output_open(&session->processes, path);
}

/* The command gets the default of SIGPIPE, not ours. */
static struct error *open_source(struct session *session)
{
	signal(SIGPIPE, SIG_DFL);
	struct error *err = collector_open_live(&session->options->live, &session->source);
	signal(SIGPIPE, SIG_IGN);
	return err;
}

/* Whether what is known of programs at their start goes into any output. */
static bool shows_execs(const struct record_options *record)
{
	return record->processes ||
	       record->conversion.labels & (CONVERTER_LABEL_CMDLINE | CONVERTER_LABEL_CGROUP);
}

static void state_degradations(const struct session *session)
{
	const struct collector_live_state *state = collector_live_state(session->source);
	const struct message *message = &session->cli->message;
	for (size_t i = 0; i < state->n_warnings; i++) {
		const struct collector_warning *warning = &state->warnings[i];
		/* Nobody asked for cycles, so this is how things are and no reason to warn. */
		if (warning->number == NO_CYCLES && !session->options->live.events)
			message_note(message, "%s [W%d]", warning->text, warning->number);
		else if (warning->number == NO_EXEC_WATCH && !shows_execs(session->options))
			message_detail(message, "%s [W%d]", warning->text, warning->number);
		else
			message_warning(message, warning->number, warning->text, warning->why);
	}
	message_detail(message, "%" PRIu32 " CPUs, %" PRIu32 " rings of %" PRIu64 " KiB",
		       state->n_cpus, state->n_rings, state->ring_bytes >> 10);
}

static struct error *count_samples(void *context, const struct perf_record *records, size_t n)
{
	struct session *session = context;
	for (size_t i = 0; i < n; i++)
		session->n_samples += records[i].type == PERF_RECORD_SAMPLE;
	return NULL;
}

static struct error *open_pipeline(struct session *session)
{
	const struct perf_source_info *info = record_source_info(session->source);
	struct pipeline_config config = {.is_threaded = true};
	if (output_form_of(session->options->output) == OUTPUT_PERF_DATA) {
		struct error *err =
			perf_file_writer_open(session->output.writer.fd, info, &session->writer);
		if (err)
			return err;
		config.sinks[config.n_sinks++] = (struct pipeline_sink){.add = perf_file_writer_add,
									.context = session->writer};
		config.sinks[config.n_sinks++] =
			(struct pipeline_sink){.add = count_samples, .context = session};
	} else {
		conversion_open(&session->conversion, &session->options->conversion, info);
		config.sinks[config.n_sinks++] = conversion_sink(&session->conversion);
	}
	if (session->options->processes) {
		session->log = process_log_new(session->processes.writer.fd,
					       session->options->live.scope == COLLECTOR_CGROUP
						       ? PROCESS_LOG_TARGET
						       : PROCESS_LOG_ALL);
		config.sinks[config.n_sinks++] =
			(struct pipeline_sink){.add = process_log_add, .context = session->log};
	}
	return pipeline_open(&config, &session->pipeline);
}

static struct error *sample(struct session *session)
{
	struct progress progress;
	bool is_beside = session->options->live.scope != COLLECTOR_COMMAND;
	progress_begin(&progress, session->cli->has_progress && !session->cli->command,
		       PROGRESS_SECONDS, "recording");
	struct recording_options how = {
		.duration_ns = session->options->duration_ns,
		.companion = is_beside ? session->cli->command : NULL,
		.progress = &progress,
	};
	struct error *err =
		recording_run(session->source, session->pipeline, &how, &session->recording);
	progress_end(&progress);
	struct error *sink_err = pipeline_finish(session->pipeline);
	if (err)
		error_free(sink_err);
	return err ? err : sink_err;
}

static void state_interruption(const struct session *session)
{
	const struct recording *recording = &session->recording;
	if (recording->end == RECORDING_INTERRUPTED)
		message_note(&session->cli->message,
			     "stopped by %s after %.1f s; writing what was taken",
			     strsignal(recording->signal), (double)recording->duration_ns / 1e9);
	else if (recording->end == RECORDING_TARGET_GONE)
		message_note(&session->cli->message, "the target is gone after %.1f s",
			     (double)recording->duration_ns / 1e9);
}

static void state_result(const struct session *session)
{
	const struct message *message = &session->cli->message;
	double seconds = (double)session->recording.duration_ns / 1e9;
	if (session->n_samples == 0)
		message_warning(message, 114, "nothing was sampled: the profile is empty", NULL);
	message_note(message, "wrote %s: %" PRIu64 " samples in %.1f s",
		     output_shown(session->options->output), session->n_samples, seconds);
	if (!session->log)
		return;
	uint64_t n_none, n_cut;
	process_log_count_gaps(session->log, &n_none, &n_cut);
	message_note(message, "wrote %s: %" PRIu64 " programs started",
		     output_shown(session->options->processes), process_log_count(session->log));
	if (n_none || n_cut)
		message_note(message,
			     "arguments of %" PRIu64 " programs are missing, of %" PRIu64
			     " cut: they ended too soon, or their arguments are too long",
			     n_none, n_cut);
}

static struct error *write_profile(struct session *session)
{
	struct profile *profile;
	struct error *err = conversion_finish(&session->conversion, session->cli,
					      pipeline_get_losses(session->pipeline), &profile);
	if (err)
		return err;
	session->n_samples = converter_get_totals(session->conversion.converter)->written;
	profile->time_nanos = (int64_t)session->recording.begin_wall_ns;
	profile->duration_nanos = (int64_t)session->recording.duration_ns;
	bool is_plain = output_form_of(session->options->output) == OUTPUT_PPROF;
	err = output_write_profile(&session->output, profile, is_plain);
	profile_free(profile);
	return err;
}

static struct error *write_all(struct session *session)
{
	struct error *err =
		session->writer ? perf_file_writer_finish(session->writer) : write_profile(session);
	if (!err)
		err = output_commit(&session->output);
	if (!err && session->log)
		err = process_log_finish(session->log);
	if (!err && session->log)
		err = output_commit(&session->processes);
	if (!err)
		state_result(session);
	return err;
}

static struct error *record(struct session *session)
{
	struct error *err = open_outputs(session);
	if (!err)
		err = open_source(session);
	if (err)
		return err;
	state_degradations(session);
	err = open_pipeline(session);
	if (!err)
		err = sample(session);
	if (err)
		return err;
	state_interruption(session);
	return write_all(session);
}

static void close_session(struct session *session)
{
	pipeline_close(session->pipeline);
	conversion_close(&session->conversion);
	perf_file_writer_close(session->writer);
	process_log_free(session->log);
	record_source_close(session->source);
	output_close(&session->processes);
	output_close(&session->output);
}

/* A command that was interrupted ends soon; one whose time is merely up goes on in peace. */
static int command_exit_code(struct session *session)
{
	struct recording *recording = &session->recording;
	if (!recording->child)
		return EXIT_CODE_DONE;
	bool is_interrupted = recording->end == RECORDING_INTERRUPTED;
	if (!recording->has_exited && !is_interrupted)
		message_note(&session->cli->message, "waiting for %s to end",
			     session->cli->command[0]);
	recording_wait(recording, is_interrupted ? CHILD_PATIENCE_MS : -1);
	if (recording->has_exited)
		return recording->exit_code;
	return is_interrupted ? EXIT_CODE_SIGNAL + recording->signal : EXIT_CODE_FAILED;
}

int cmd_record(int argc, char **argv)
{
	struct record_options record_options = {.output = default_output};
	record_options.live.watch_execs = true;
	conversion_options_init(&record_options.conversion);
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_record_spec, argc, argv, &record_options, &cli, &exit_code)) {
		mem_free(record_options.pids);
		return exit_code;
	}
	struct session session = {.options = &record_options, .cli = &cli};
	struct error *err = choose_scope(&record_options, cli.command);
	if (!err)
		err = record(&session);
	exit_code = err ? message_error(&cli.message, err) : command_exit_code(&session);
	close_session(&session);
	mem_free(record_options.pids);
	return exit_code;
}
