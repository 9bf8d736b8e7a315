/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for delivery and what was refused: lists, contents, another try, removal. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "forwarder/forwarder.h"
#include "pipeline/command.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"
#include "pipeline/output.h"
#include "pipeline/spool_place.h"
#include "proto/pprof_read.h"

enum option_id {
	OPTION_SPOOL = 1,
	OPTION_EXPORTER,
	OPTION_ALL,
	OPTION_OUTPUT,
	OPTION_WAITING,
	OPTION_REFUSED,
	OPTION_DAMAGED,
};

enum { WORDS_MAX = 256 };

static const struct cli_option options[] = {
	{OPTION_SPOOL, "spool", "DIR",
	 "the spool (default /var/lib/perfpipe/spool for\nroot, else "
	 "~/.local/state/perfpipe/spool)",
	 0, true},
	{OPTION_EXPORTER, "exporter", "NAME", "of this exporter only", 0, true},
	{OPTION_ALL, "all", NULL, "for retry and drop: all that fits the other options", 0, true},
	{OPTION_OUTPUT, "output", "FILE", "for cat: write the profiles as one pprof file", 'o',
	 true},
	{OPTION_WAITING, "waiting", NULL, "what waits for delivery", 0, false},
	{OPTION_REFUSED, "refused", NULL, "what a server refused for good", 0, false},
	{OPTION_DAMAGED, "damaged", NULL, "what was found damaged", 0, false},
};

struct spool_options {
	const char *action;
	const char *words[WORDS_MAX];
	size_t n_words;
	const char *spool, *exporter, *output;
	bool is_all;
	unsigned kinds; /* bits 1 << enum spool_list_kind; 0 = all */
};

static struct error *set(void *context, int id, const char *value)
{
	struct spool_options *spool = context;
	switch (id) {
	case CLI_POSITIONAL:
		if (!spool->action) {
			spool->action = value;
			return NULL;
		}
		if (spool->n_words == WORDS_MAX)
			return cli_usage("spool takes %d words", WORDS_MAX);
		spool->words[spool->n_words++] = value;
		return NULL;
	case OPTION_SPOOL:
		spool->spool = value;
		return NULL;
	case OPTION_EXPORTER:
		spool->exporter = value;
		return NULL;
	case OPTION_ALL:
		spool->is_all = true;
		return NULL;
	case OPTION_OUTPUT:
		spool->output = value;
		return NULL;
	default:
		spool->kinds |= 1u << (id - OPTION_WAITING);
		return NULL;
	}
}

const struct cli_spec cmd_spool_spec = {
	.command = "spool",
	.usage = "[OPTIONS] ls | cat ID... | retry ID...|--all | drop ID...|--all",
	.summary = "Shows and tends profiles that wait for delivery or were refused.",
	.examples =
		"  perfpipe spool ls                       what waits, what was refused and why\n"
		"  perfpipe spool cat 2a -o p.pb.gz        the profiles of one file\n"
		"  perfpipe spool retry --all              send what was refused once more\n"
		"  perfpipe spool drop --waiting --exporter pyroscope/lab --all\n",
	.notes = "ID is the first column of ls, or the path of a file. A running perfpipe may\n"
		 "use the spool at the same time: it takes in what is retried and counts what is\n"
		 "dropped.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static const char *const kind_texts[] = {
	[SPOOL_LIST_WAITING] = "waiting",
	[SPOOL_LIST_REFUSED] = "refused",
	[SPOOL_LIST_DAMAGED] = "damaged",
};

struct run {
	const struct spool_options *options;
	const struct cli *cli;
	const char *directory;
	uint64_t now_ns;
	uint64_t n_found, n_done;
	uint64_t bytes, profiles, samples;
	bool is_used[WORDS_MAX]; /* words that named something */
	struct profile *profile; /* of cat -o */
	struct error *(*act)(struct run *run, const struct spool_list_entry *entry);
};

/* Whether a word names the entry: by its number or by its path. */
static bool is_named(struct run *run, const struct spool_list_entry *entry)
{
	char id[24];
	snprintf(id, sizeof(id), "%" PRIx64, entry->name.sequence);
	bool is_any = false;
	for (size_t i = 0; i < run->options->n_words; i++) {
		const char *word = run->options->words[i];
		if (strcmp(word, id) != 0 && strcmp(word, entry->path) != 0)
			continue;
		run->is_used[i] = true;
		is_any = true;
	}
	return is_any;
}

static struct error *found(void *context, const struct spool_list_entry *entry)
{
	struct run *run = context;
	const struct spool_options *wanted = run->options;
	bool is_kind = !wanted->kinds || wanted->kinds & 1u << entry->kind;
	if (!is_kind || (wanted->n_words && !is_named(run, entry)))
		return NULL;
	run->n_found++;
	return run->act(run, entry);
}

static struct error *
for_each(struct run *run, struct error *(*act)(struct run *run, const struct spool_list_entry *))
{
	run->act = act;
	struct error *err = spool_list_walk(run->directory, run->options->exporter, found, run);
	if (err)
		return error_get_code(err) == ERROR_NO_ENTRY ? error_number(err, 402) : err;
	for (size_t i = 0; i < run->options->n_words; i++) {
		if (!run->is_used[i])
			return error_number(error_new(ERROR_NO_ENTRY,
						      "nothing in %s is named \"%s\"",
						      run->directory, run->options->words[i]),
					    402);
	}
	return NULL;
}

/* --- ls --- */

static void print_age(uint64_t age_ns)
{
	uint64_t s = age_ns / 1000000000;
	if (s < 120)
		printf("%5" PRIu64 " s", s);
	else if (s < 7200)
		printf("%5" PRIu64 " m", s / 60);
	else if (s < 172800)
		printf("%5" PRIu64 " h", s / 3600);
	else
		printf("%5" PRIu64 " d", s / 86400);
}

static struct error *list_text(struct run *run, const struct spool_list_entry *entry)
{
	const struct spool_name *name = &entry->name;
	if (run->n_found == 1)
		printf("%8s %-8s %-28s %9s %9s %11s %11s %7s  %s\n", "id", "state", "exporter",
		       "requests", "profiles", "samples", "bytes", "age", "reason");
	uint64_t age = run->now_ns > name->enqueued_ns ? run->now_ns - name->enqueued_ns : 0;
	printf("%8" PRIx64 " %-8s %-28s %4" PRIu32 "/%-4" PRIu32 " %9" PRIu32 " %11" PRIu64
	       " %11" PRIu64 " ",
	       name->sequence, kind_texts[entry->kind], entry->exporter,
	       name->n_requests - entry->n_over, name->n_requests, name->n_profiles,
	       name->n_samples, name->bytes);
	print_age(age);
	struct buf reason;
	buf_init(&reason, SPOOL_FILE_MAX_NOTE + 1);
	if (entry->kind == SPOOL_LIST_REFUSED)
		spool_list_reason(entry->path, &reason);
	/* What a server said may hold anything. */
	fputs("  ", stdout);
	for (size_t i = 0; i + 1 < reason.size; i++)
		putchar(reason.data[i] < 0x20 || reason.data[i] == 0x7f ? ' ' : reason.data[i]);
	putchar('\n');
	buf_fini(&reason);
	return NULL;
}

static struct error *list_json(struct run *run, const struct spool_list_entry *entry)
{
	const struct spool_name *name = &entry->name;
	struct buf reason;
	buf_init(&reason, SPOOL_FILE_MAX_NOTE + 1);
	if (entry->kind == SPOOL_LIST_REFUSED)
		spool_list_reason(entry->path, &reason);
	printf("%s\n  {\"id\": \"%" PRIx64 "\", \"state\": \"%s\", \"exporter\": ",
	       run->n_found == 1 ? "" : ",", name->sequence, kind_texts[entry->kind]);
	json_text_write(stdout, entry->exporter);
	printf(", \"requests\": %" PRIu32 ", \"waiting_requests\": %" PRIu32
	       ", \"profiles\": %" PRIu32 ", \"samples\": %" PRIu64 ", \"bytes\": %" PRIu64
	       ", \"enqueued_ns\": %" PRIu64 ", \"path\": ",
	       name->n_requests, name->n_requests - entry->n_over, name->n_profiles,
	       name->n_samples, name->bytes, name->enqueued_ns);
	json_text_write(stdout, entry->path);
	fputs(", \"reason\": ", stdout);
	json_text_write(stdout, entry->kind == SPOOL_LIST_REFUSED ? (char *)reason.data : NULL);
	putchar('}');
	buf_fini(&reason);
	return NULL;
}

static struct error *run_ls(struct run *run)
{
	if (run->cli->format != CLI_FORMAT_JSON) {
		struct error *err = for_each(run, list_text);
		if (!err && !run->n_found)
			message_note(&run->cli->message, "nothing waits in %s", run->directory);
		return err;
	}
	fputs("{\"schema_version\": 1, \"spool\": ", stdout);
	json_text_write(stdout, run->directory);
	fputs(", \"files\": [", stdout);
	struct error *err = for_each(run, list_json);
	fputs("]}\n", stdout);
	return err;
}

/* --- cat --- */

static struct error *print_profile(void *context, const char *series, const uint8_t *pprof,
				   size_t n_pprof)
{
	struct run *run = context;
	struct profile *profile;
	struct error *err = pprof_read(pprof, n_pprof, NULL, &profile, NULL);
	if (err)
		return err;
	char time_text[40] = "";
	time_t seconds = (time_t)(profile->time_nanos / 1000000000);
	struct tm tm;
	if (gmtime_r(&seconds, &tm))
		strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (run->cli->format != CLI_FORMAT_JSON) {
		printf("  %s  %s  %" PRIu32 " rows, %zu bytes\n", series, time_text,
		       profile->samples.n, n_pprof);
	} else {
		printf("%s\n  {\"series\": ", run->n_done ? "," : "");
		json_text_write(stdout, series);
		printf(", \"time\": \"%s\", \"rows\": %" PRIu32 ", \"bytes\": %zu}", time_text,
		       profile->samples.n, n_pprof);
	}
	run->n_done++;
	if (run->options->output && run->profile) {
		profile_free(profile);
		return cli_usage("there are several profiles; choose one file of ls with one "
				 "profile, or leave out -o");
	}
	if (run->options->output)
		run->profile = TAKE(profile);
	profile_free(profile);
	return NULL;
}

static struct error *cat_file(struct run *run, const struct spool_list_entry *entry)
{
	CLEANUP(cleanup_fd)
	int fd = open(entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_number(error_errno(errno, "%s", entry->path), 402);
	struct spool_index index;
	struct error *err = spool_file_read_index(fd, &index);
	if (err)
		return error_number(error_wrap(err, "%s", entry->path), 403);
	const struct backend *backend = index.content < EXPORTER_KIND_N
						? backend_of_kind((enum exporter_kind)index.content)
						: NULL;
	if (run->cli->format != CLI_FORMAT_JSON)
		printf("%s (%s)\n", entry->path, backend ? backend->content : "unknown content");
	for (uint32_t i = 0; i < index.n && !err; i++) {
		struct buf message;
		buf_init(&message, (size_t)SPOOL_FILE_MAX_MESSAGE);
		err = spool_file_read(fd, &index, i, NULL, &message);
		if (!err && backend)
			err = backend->profiles(message.data, message.size, print_profile, run);
		buf_fini(&message);
	}
	spool_index_fini(&index);
	return err && !error_get_number(err) ? error_number(error_wrap(err, "%s", entry->path), 403)
					     : err;
}

static struct error *run_cat(struct run *run)
{
	const char *output_path = run->options->output;
	struct output output = {0};
	struct error *err = output_path ? output_open(&output, output_path, true) : NULL;
	if (!err && run->cli->format == CLI_FORMAT_JSON)
		fputs("{\"schema_version\": 1, \"profiles\": [", stdout);
	if (!err)
		err = for_each(run, cat_file);
	if (!err && run->cli->format == CLI_FORMAT_JSON)
		fputs("]}\n", stdout);
	if (!err && run->profile)
		err = output_write_profile(&output, run->profile,
					   output_form_of(output_path) == OUTPUT_PPROF);
	if (!err && run->profile)
		err = output_commit(&output);
	profile_free(run->profile);
	output_close(&output);
	return err;
}

/* --- retry, drop --- */

static struct error *check_choice(const struct run *run)
{
	if (run->options->n_words || run->options->is_all)
		return NULL;
	return cli_usage("spool %s: which? An ID of ls, or --all", run->options->action);
}

static struct error *retry_file(struct run *run, const struct spool_list_entry *entry)
{
	if (entry->kind != SPOOL_LIST_REFUSED)
		return NULL;
	struct error *err = spool_list_retry(run->directory, entry);
	run->n_done += !err;
	return err;
}

static struct error *run_retry(struct run *run)
{
	struct error *err = check_choice(run);
	if (!err)
		err = for_each(run, retry_file);
	if (!err)
		message_note(&run->cli->message,
			     "%" PRIu64 " refused requests wait again; the next push to the same "
			     "place, or the running perfpipe, sends them",
			     run->n_done);
	return err;
}

static struct error *drop_file(struct run *run, const struct spool_list_entry *entry)
{
	struct error *err = spool_list_drop(entry);
	if (err)
		return err;
	run->n_done++;
	run->bytes += entry->name.bytes;
	run->profiles += entry->name.n_profiles;
	return NULL;
}

static struct error *run_drop(struct run *run)
{
	struct error *err = check_choice(run);
	if (!err)
		err = for_each(run, drop_file);
	if (!err)
		message_note(&run->cli->message,
			     "dropped %" PRIu64 " files, %" PRIu64 " profiles, %" PRIu64 " bytes",
			     run->n_done, run->profiles, run->bytes);
	return err;
}

static const struct action {
	const char *name;
	struct error *(*run)(struct run *run);
} actions[] = {{"ls", run_ls}, {"cat", run_cat}, {"retry", run_retry}, {"drop", run_drop}};

static struct error *run(const struct spool_options *spool, const struct cli *cli)
{
	const char *names[ARRAY_LEN(actions)];
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		names[i] = actions[i].name;
	if (!spool->action)
		return cli_usage("what to do? ls, cat, retry or drop");
	size_t index;
	struct error *err =
		cli_parse_choice("spool", spool->action, names, ARRAY_LEN(actions), &index);
	if (err)
		return err;
	CLEANUP(cleanup_mem) char *own_place = spool->spool ? NULL : spool_place_default();
	struct run run = {
		.options = spool,
		.cli = cli,
		.directory = spool->spool ? spool->spool : own_place,
		.now_ns = clock_system.wall_ns(clock_system.context),
	};
	return actions[index].run(&run);
}

int cmd_spool(int argc, char **argv)
{
	struct spool_options spool = {0};
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_spool_spec, argc, argv, &spool, &cli, &exit_code))
		return exit_code;
	struct error *err = run(&spool, &cli);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
