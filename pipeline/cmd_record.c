/* SPDX-License-Identifier: Apache-2.0 */
/* Live sampling to pprof or perf.data. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/interruption.h"
#include "pipeline/live_options.h"
#include "pipeline/output.h"
#include "pipeline/process_log.h"
#include "pipeline/recording.h"
#include "pipeline/snapshot.h"
#include "pipeline/stack_growth.h"

enum {
	CHILD_PATIENCE_MS = 5000, /* for a command that was told to stop */
	NO_CYCLES = 108,	  /* of explain.c */
	NO_EXEC_WATCH = 110,
};

static const char default_output[] = "perfpipe.pb.gz";

enum option_id {
	OPTION_DURATION = 1,
	OPTION_OUTPUT,
	OPTION_PROCESSES,
	OPTION_CALL_GRAPH,
};

static const struct cli_option options[] = {
	{OPTION_DURATION, "duration", "SEC", "stop after that time: 10, 0.5, 90s, 5m", 'd', true},
	{OPTION_OUTPUT, "output", "FILE",
	 "x.pb.gz or x.pb: pprof; x.data: perf.data; - is\nstandard output (default "
	 "perfpipe.pb.gz)",
	 'o', true},
	{OPTION_CALL_GRAPH, "call-graph", "HOW",
	 "callers by frame pointers (fp, the default), by a\ncopy of the stack (dwarf[,SIZE]), "
	 "by the better one\n(auto[,SIZE]), or none",
	 'g', false},
	{OPTION_PROCESSES, "processes", "FILE", "a JSON line for every program that was started", 0,
	 false},
};

struct record_options {
	struct conversion_options conversion;
	struct live_options target;
	const char *output, *processes;
	uint64_t duration_ns;
	bool grows_stacks; /* no size was asked for, and somebody looks at the stacks */
};

/* "dwarf,8K" */
static struct error *set_call_graph(struct record_options *record, const char *value)
{
	static const char *const names[] = {"fp", "dwarf", "auto", "none"};
	static const enum collector_call_graph values[] = {
		COLLECTOR_CALL_GRAPH_FP, COLLECTOR_CALL_GRAPH_DWARF, COLLECTOR_CALL_GRAPH_AUTO,
		COLLECTOR_CALL_GRAPH_NONE};
	char word[32];
	size_t index;
	struct error *err = NULL;
	if (!cli_next_word(&value, word, sizeof(word)))
		return cli_usage("--call-graph is one of fp, dwarf[,SIZE], auto[,SIZE] and none");
	err = cli_parse_choice("--call-graph", word, names, ARRAY_LEN(names), &index);
	if (err)
		return err;
	record->target.live.call_graph = values[index];
	record->target.live.stack_bytes = 0;
	if (!cli_next_word(&value, word, sizeof(word)))
		return NULL;
	bool has_unit, has_stack = values[index] == COLLECTOR_CALL_GRAPH_DWARF ||
				   values[index] == COLLECTOR_CALL_GRAPH_AUTO;
	uint64_t bytes;
	if (!has_stack || cli_next_word(&value, (char[32]){0}, 32))
		return cli_usage("--call-graph %s takes no more words", names[index]);
	err = cli_parse_size("--call-graph", word, &bytes, &has_unit);
	/* 64K is what everybody writes for the largest. */
	if (!err && bytes == 64 << 10)
		bytes = COLLECTOR_STACK_BYTES_MAX;
	if (!err && (bytes > COLLECTOR_STACK_BYTES_MAX || bytes % 8 || !bytes))
		err = cli_usage("--call-graph %s,%s: a copied stack has 8 to %d bytes, a multiple "
				"of 8",
				names[index], word, COLLECTOR_STACK_BYTES_MAX);
	record->target.live.stack_bytes = (uint32_t)bytes;
	return err;
}

static struct error *set(void *context, int id, const char *value)
{
	struct record_options *record = context;
	switch (id) {
	case OPTION_DURATION:
		return cli_parse_duration("--duration", value, &record->duration_ns);
	case OPTION_OUTPUT:
		record->output = value;
		break;
	case OPTION_CALL_GRAPH:
		return set_call_graph(record, value);
	case OPTION_PROCESSES:
		record->processes = value;
		break;
	default:
		return id >= LIVE_ALL ? live_options_set(&record->target, id, value)
				      : conversion_options_set(&record->conversion, id, value);
	}
	return NULL;
}

/*
 * In a file they are for perf to unwind, which wants more; else they grow with what they lack.
 * Those of commands and pids begin at the default: where the host lets nobody sample whole CPUs
 * they stay as they are.
 */
static void set_stacks(struct record_options *record)
{
	bool is_file = output_form_of(record->output) == OUTPUT_PERF_DATA;
	bool has_stacks = record->target.live.call_graph == COLLECTOR_CALL_GRAPH_DWARF ||
			  record->target.live.call_graph == COLLECTOR_CALL_GRAPH_AUTO;
	bool is_of_tasks = record->target.live.scope == COLLECTOR_PIDS ||
			   record->target.live.scope == COLLECTOR_COMMAND;
	record->target.live.has_data_maps = is_file && has_stacks;
	record->grows_stacks = has_stacks && !is_file && !record->target.live.stack_bytes;
	if (record->grows_stacks && !is_of_tasks)
		record->target.live.stack_bytes = STACK_GROWTH_FIRST_BYTES;
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
		"  perfpipe record -a -o perf.data -- make        for perf report\n"
		"  perfpipe record -g dwarf -- ./server           callers of code without frame "
		"pointers\n",
	.notes =
		"The exit status is the command's own. Ctrl-C writes what was taken, a second one\n"
		"ends at once. SIGUSR2 writes what was taken since the last such signal to\n"
		"FILE.YYYYMMDDhhmmsscc, and goes on. With -o - the command's output goes to "
		"standard error.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {live_options_table, conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT,
	.takes_command = true,
};

/*
 * The command's executable as mapping records name it, so that pprof takes it for the main program;
 * NULL when it is not found. The caller owns it.
 */
static char *find_executable(const char *name)
{
	char real[PATH_MAX];
	if (strchr(name, '/'))
		return realpath(name, real) ? mem_copy_string(real) : NULL;
	const char *folders = getenv("PATH");
	while (folders && *folders) {
		size_t n = strcspn(folders, ":");
		char *path = mem_format("%.*s/%s", (int)n, folders, name);
		bool is_found = access(path, X_OK) == 0 && realpath(path, real);
		mem_free(path);
		if (is_found)
			return mem_copy_string(real);
		folders += n + (folders[n] == ':');
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
	struct snapshots snapshots;
	uint64_t n_samples; /* that came out of the pipeline, since the last snapshot */
	uint64_t n_lost_records, n_lost_samples;
	size_t n_warnings; /* of the source that were said */
	bool has_stdout;   /* one of our outputs goes there */
};

static struct error *open_outputs(struct session *session)
{
	const char *processes = session->options->processes;
	if (processes && output_is_same_path(session->options->output, processes))
		return cli_usage("--output and --processes are the same file: %s",
				 output_shown(processes));
	struct error *err = output_open(&session->output, session->options->output, true);
	if (!err && processes)
		err = output_open(&session->processes, processes, false);
	if (err)
		return err;
	session->has_stdout = output_is_standard(&session->output) ||
			      (processes && output_is_standard(&session->processes));
	return NULL;
}

/*
 * The command gets the defaults of SIGPIPE and SIGXFSZ, not ours, and standard error for its output
 * where ours goes to standard output.
 */
static struct error *open_source(struct session *session)
{
	int own_stdout = -1;
	if (session->has_stdout) {
		own_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (own_stdout < 0)
			return error_number(error_errno(errno, "standard output"), 107);
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	struct error *err = collector_open_live(&session->options->target.live, &session->source);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (own_stdout >= 0) {
		dup2(own_stdout, STDOUT_FILENO);
		close(own_stdout);
	}
	return err;
}

/* Whether what is known of programs at their start goes into any output. */
static bool shows_execs(const struct record_options *record)
{
	return record->processes ||
	       record->conversion.labels & (CONVERTER_LABEL_CMDLINE | CONVERTER_LABEL_CGROUP);
}

/* More may have come since the last time. */
static void state_degradations(struct session *session)
{
	const struct collector_live_state *state = collector_live_state(session->source);
	const struct message *message = &session->cli->message;
	for (; session->n_warnings < state->n_warnings; session->n_warnings++) {
		size_t i = session->n_warnings;
		const struct collector_warning *warning = &state->warnings[i];
		/* Nobody asked for cycles, so this is how things are and no reason to warn. */
		if (warning->number == NO_CYCLES && !session->options->target.live.events)
			message_note(message, "%s [W%d]", warning->text, warning->number);
		else if (warning->number == NO_EXEC_WATCH && !shows_execs(session->options))
			message_detail(message, "%s [W%d]", warning->text, warning->number);
		else
			message_warning_with_fix(message, warning->number, warning->text,
						 warning->why, warning->fix);
	}
}

static void detail_rings(const struct session *session)
{
	const struct collector_live_state *state = collector_live_state(session->source);
	message_detail(&session->cli->message,
		       "%" PRIu32 " CPUs, %" PRIu32 " rings of %" PRIu64 " KiB", state->n_cpus,
		       state->n_rings, state->ring_bytes >> 10);
}

/* Where no list of programs says it. */
static void state_execs(const struct session *session)
{
	const struct collector_live_state *state = collector_live_state(session->source);
	const struct message *message = &session->cli->message;
	if (state->n_execs_seen)
		message_detail(message,
			       "%" PRIu64 " programs started: arguments of %" PRIu64
			       " came with their exec, of %" PRIu64 " from /proc, of %" PRIu64
			       " from nowhere",
			       state->n_execs_seen, state->n_execs_argv_record,
			       state->n_execs_argv_proc, state->n_execs_argv_none);
	if (state->n_execs_argv_none && !session->log &&
	    session->options->conversion.labels & CONVERTER_LABEL_CMDLINE)
		message_note(message,
			     "%" PRIu64 " of %" PRIu64
			     " programs that started have no cmdline label: they ended too soon",
			     state->n_execs_argv_none, state->n_execs_seen);
}

/* The number at that byte of a record. */
static uint64_t number_at(const struct perf_record *record, size_t offset)
{
	struct cursor c = cursor_make(record->bytes, record->size, false);
	cursor_skip(&c, offset);
	return cursor_u64(&c);
}

static struct error *write_perf_data(void *context, const struct perf_record *records, size_t n)
{
	struct session *session = context;
	for (size_t i = 0; i < n; i++) {
		session->n_samples += records[i].type == PERF_RECORD_SAMPLE;
		if (records[i].type == PERF_RECORD_LOST)
			session->n_lost_records += number_at(&records[i], 16);
		else if (records[i].type == PERF_RECORD_LOST_SAMPLES)
			session->n_lost_samples += number_at(&records[i], 8);
	}
	return output_failed(session->options->output,
			     perf_file_writer_add(session->writer, records, n));
}

static struct error *open_pipeline(struct session *session)
{
	const struct perf_source_info *info = record_source_info(session->source);
	struct pipeline_config config = {.is_threaded = true};
	if (output_form_of(session->options->output) == OUTPUT_PERF_DATA) {
		struct error *err =
			perf_file_writer_open(session->output.writer.fd, info, &session->writer);
		if (err)
			return output_failed(session->options->output, err);
		config.sinks[config.n_sinks++] =
			(struct pipeline_sink){.add = write_perf_data, .context = session};
	} else {
		conversion_open(&session->conversion, &session->options->conversion, info);
		config.sinks[config.n_sinks++] = conversion_sink(&session->conversion);
	}
	if (session->options->processes) {
		session->log = process_log_new(
			session->processes.writer.fd,
			session->options->target.live.scope == COLLECTOR_CGROUP ? PROCESS_LOG_TARGET
										: PROCESS_LOG_ALL);
		config.sinks[config.n_sinks++] =
			(struct pipeline_sink){.add = process_log_add, .context = session->log};
	}
	return pipeline_open(&config, &session->pipeline);
}

/* --- snapshots --- */

/* A snapshot_write_fn: the records so far become the part, and the next file begins. */
static struct error *write_part_perf_data(void *context, struct output *spare,
					  struct snapshot_part *part)
{
	struct session *session = context;
	file_writer_set_path(&session->output.writer, part->path);
	struct error *err = perf_file_writer_finish(session->writer);
	perf_file_writer_close(TAKE(session->writer));
	if (!err)
		err = output_commit(&session->output);
	if (err)
		return output_failed(part->path, err);
	part->n_samples = session->n_samples;
	session->n_samples = 0;
	struct output committed = session->output;
	session->output = *spare;
	*spare = committed;
	return output_failed(session->output.path,
			     perf_file_writer_open(session->output.writer.fd,
						   record_source_info(session->source),
						   &session->writer));
}

/* A snapshot_write_fn. Names come from where the last part left them. */
static struct error *write_part_profile(void *context, struct output *spare,
					struct snapshot_part *part)
{
	struct session *session = context;
	struct converter *converter = session->conversion.converter;
	uint64_t n_before = session->n_samples;
	struct profile *profile;
	file_writer_set_path(&spare->writer, part->path);
	struct error *err = converter_finish(converter, NULL, NULL, &profile);
	if (err)
		return err;
	session->n_samples = converter_get_totals(converter)->written;
	part->n_samples = session->n_samples - n_before;
	profile->time_nanos = (int64_t)part->begin_wall_ns;
	profile->duration_nanos = (int64_t)part->duration_ns;
	err = output_write_profile(spare, profile,
				   output_form_of(session->options->output) == OUTPUT_PPROF);
	profile_free(profile);
	return err ? err : output_commit(spare);
}

static bool is_perf_data(const struct session *session)
{
	return output_form_of(session->options->output) == OUTPUT_PERF_DATA;
}

/* The next file has to tell by itself what runs, and its ids are written where they may not move.
 */
static void take_snapshot(void *context)
{
	struct session *session = context;
	if (!snapshots_take(&session->snapshots) || !is_perf_data(session))
		return;
	collector_live_hold_cpus(session->source, true);
	struct error *err = collector_live_describe_anew(session->source);
	if (err)
		message_note(&session->cli->message, "names may be missing from here on: %s",
			     error_text(err));
	error_free(err);
}

static void settle_snapshot(void *context)
{
	struct session *session = context;
	collector_live_hold_cpus(session->source, false);
	snapshots_settle(&session->snapshots);
}

static struct error *sample(struct session *session)
{
	struct progress progress;
	bool is_beside = session->options->target.live.scope != COLLECTOR_COMMAND;
	progress_begin(&progress, session->cli->has_progress && !session->cli->command,
		       PROGRESS_TIME, "recording");
	struct recording_options how = {
		.grows_stacks = session->options->grows_stacks,
		.duration_ns = session->options->duration_ns,
		.companion = is_beside ? session->cli->command : NULL,
		.is_output_on_stdout = session->has_stdout,
		.progress = &progress,
		.snapshot = take_snapshot,
		.snapshot_back = settle_snapshot,
		.context = session,
	};
	snapshots_open(&session->snapshots, &session->cli->message, session->pipeline,
		       &session->output,
		       is_perf_data(session) ? write_part_perf_data : write_part_profile, session);
	struct error *err =
		recording_run(session->source, session->pipeline, &how, &session->recording);
	progress_end(&progress);
	struct error *sink_err = pipeline_finish(session->pipeline);
	settle_snapshot(session);
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
	else if (recording->end == RECORDING_TARGET_GONE &&
		 session->options->target.live.scope != COLLECTOR_COMMAND)
		message_note(&session->cli->message, "the target is gone after %.1f s",
			     (double)recording->duration_ns / 1e9);
}

/* Of what the output itself holds: since the last snapshot, if there was one. */
static uint64_t last_part_ns(const struct session *session)
{
	uint64_t before_ns = session->snapshots.begin_wall_ns - session->recording.begin_wall_ns;
	return session->snapshots.n_parts ? session->recording.duration_ns - before_ns
					  : session->recording.duration_ns;
}

static void state_result(const struct session *session)
{
	const struct message *message = &session->cli->message;
	const struct snapshots *snapshots = &session->snapshots;
	double seconds = (double)last_part_ns(session) / 1e9;
	if (session->n_samples == 0 && snapshots->n_samples == 0)
		message_warning(message, 114, "nothing was sampled: the profile is empty", NULL);
	if (snapshots->n_parts)
		message_note(message, "samples in snapshots: %" PRIu64 ", in %" PRIu64 " files",
			     snapshots->n_samples, snapshots->n_parts);
	message_note(message, "wrote %s: %" PRIu64 " samples in %.1f s",
		     output_shown(session->options->output), session->n_samples, seconds);
}

static void state_processes(const struct session *session)
{
	const struct message *message = &session->cli->message;
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
	session->n_samples = converter_get_totals(session->conversion.converter)->written -
			     session->snapshots.n_samples;
	profile->time_nanos =
		(int64_t)(session->snapshots.n_parts ? session->snapshots.begin_wall_ns
						     : session->recording.begin_wall_ns);
	profile->duration_nanos = (int64_t)last_part_ns(session);
	bool is_plain = output_form_of(session->options->output) == OUTPUT_PPROF;
	err = output_write_profile(&session->output, profile, is_plain);
	profile_free(profile);
	return err;
}

static struct error *finish_perf_data(struct session *session)
{
	struct converter_totals totals = {.taken = session->n_samples,
					  .lost_events = session->n_lost_records,
					  .lost_samples = session->n_lost_samples};
	conversion_warn_of_losses(session->cli, &totals, pipeline_get_losses(session->pipeline));
	return output_failed(session->options->output, perf_file_writer_finish(session->writer));
}

static struct error *write_output(struct session *session)
{
	struct error *err = session->writer ? finish_perf_data(session) : write_profile(session);
	if (!err)
		err = output_commit(&session->output);
	if (!err)
		state_result(session);
	return err;
}

static struct error *write_processes(struct session *session)
{
	if (!session->log)
		return NULL;
	struct error *err =
		output_failed(session->options->processes, process_log_finish(session->log));
	if (!err)
		err = output_commit(&session->processes);
	if (!err)
		state_processes(session);
	return err;
}

/* The one does not go without the other. */
static struct error *write_all(struct session *session)
{
	struct error *err = write_output(session);
	struct error *processes_err = write_processes(session);
	if (!err)
		return processes_err;
	if (processes_err)
		(void)!message_error(&session->cli->message, processes_err);
	return err;
}

static struct error *open_all(struct session *session)
{
	struct error *err = interruption_open();
	if (!err)
		err = open_outputs(session);
	if (!err)
		err = open_source(session);
	if (err)
		return err;
	state_degradations(session);
	detail_rings(session);
	err = open_pipeline(session);
	if (err || !interruption_signal())
		return err;
	session->recording.signal = interruption_signal();
	return error_new(ERROR_CANCELLED,
			 "stopped by %s before anything was sampled: nothing is written",
			 strsignal(session->recording.signal));
}

static struct error *record(struct session *session)
{
	struct error *err = open_all(session);
	if (!err)
		err = sample(session);
	if (err)
		return err;
	state_interruption(session);
	state_degradations(session);
	state_execs(session);
	return write_all(session);
}

static void close_session(struct session *session)
{
	pipeline_close(session->pipeline);
	snapshots_close(&session->snapshots);
	conversion_close(&session->conversion);
	perf_file_writer_close(session->writer);
	process_log_free(session->log);
	record_source_close(session->source);
	output_close(&session->processes);
	output_close(&session->output);
}

/*
 * Whatever became of the recording, the command is ours: it is waited for, and its status is known.
 * One that was told to stop ends soon.
 */
static void wait_for_command(struct session *session)
{
	struct recording *recording = &session->recording;
	if (!recording->child || recording->has_exited)
		return;
	const char *name = session->cli->command[0];
	if (!interruption_signal())
		message_note(&session->cli->message, "waiting for %s to end", name);
	recording_wait(recording, CHILD_PATIENCE_MS);
	if (!recording->has_exited)
		message_note(&session->cli->message, "%s goes on as process %d", name,
			     (int)recording->child);
}

static int command_exit_code(const struct session *session)
{
	const struct recording *recording = &session->recording;
	if (!recording->child)
		return EXIT_CODE_DONE;
	if (recording->has_exited)
		return recording->exit_code;
	return recording->signal ? EXIT_CODE_SIGNAL + recording->signal : EXIT_CODE_FAILED;
}

static int exit_code_of(struct session *session, struct error *err)
{
	const struct recording *recording = &session->recording;
	if (!err) {
		wait_for_command(session);
		return command_exit_code(session);
	}
	bool is_cancelled = error_get_code(err) == ERROR_CANCELLED;
	int exit_code = message_error(&session->cli->message, err);
	wait_for_command(session);
	if (recording->has_exited)
		message_note(&session->cli->message, "%s ended with status %d",
			     session->cli->command[0], recording->exit_code);
	return is_cancelled && recording->signal ? EXIT_CODE_SIGNAL + recording->signal : exit_code;
}

int cmd_record(int argc, char **argv)
{
	struct record_options record_options = {.output = default_output};
	record_options.target.live.watch_execs = true;
	conversion_options_init(&record_options.conversion);
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_record_spec, argc, argv, &record_options, &cli, &exit_code)) {
		live_options_fini(&record_options.target);
		return exit_code;
	}
	struct session session = {.options = &record_options, .cli = &cli};
	char *executable = cli.command ? find_executable(cli.command[0]) : NULL;
	struct error *err = live_options_choose(&record_options.target, cli.command);
	set_stacks(&record_options);
	if (!err)
		err = conversion_options_check(&record_options.conversion);
	if (!err && record_options.target.live.scope == COLLECTOR_COMMAND)
		record_options.conversion.main_path = executable;
	if (!err)
		err = record(&session);
	exit_code = exit_code_of(&session, err);
	interruption_close();
	close_session(&session);
	mem_free(executable);
	live_options_fini(&record_options.target);
	return exit_code;
}
