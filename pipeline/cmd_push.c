/* SPDX-License-Identifier: Apache-2.0 */
/* Existing profiles to a backend: put into a spool, delivered, and a verdict for each file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/log.h"
#include "base/mem.h"
#include "forwarder/forwarder.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/interruption_watch.h"
#include "pipeline/json_text.h"
#include "pipeline/profile_input.h"
#include "pipeline/progress.h"
#include "pipeline/push_profile.h"
#include "pipeline/push_target.h"
#include "pipeline/remote_options.h"
#include "pipeline/spool_place.h"

enum option_id {
	OPTION_TO = 1,
	OPTION_LABEL,
	OPTION_NAME,
	OPTION_WAIT,
	OPTION_DROP_LABEL,
	OPTION_MAX_MESSAGE,
	OPTION_SPOOL,
};

enum { FILES_MAX = 4096, TARGETS_MAX = 8, LISTED_MAX = 32 };

static const struct cli_option options[] = {
	{OPTION_TO, "to", "URL",
	 "parca://HOST:PORT, pyroscope://… or otlp://… (TLS),\nparca+insecure://… (plaintext), "
	 "file:///DIR; may be\nrepeated",
	 0, true},
	{OPTION_LABEL, "label", "KEY=VALUE",
	 "of the series; service_name is derived when it is\nnot given; may be repeated", 'l',
	 true},
	{OPTION_WAIT, "wait", NULL,
	 "keep trying until all is delivered or refused\n(default: one try, the rest stays in the "
	 "spool)",
	 'w', true},
	{OPTION_NAME, "name", "NAME",
	 "__name__ of the profiles (default: process_cpu for\nCPU profiles, memory, mutex, …)", 0,
	 false},
	{OPTION_DROP_LABEL, "drop-label", "KEY",
	 "add samples up without this label; may be repeated", 0, false},
	{OPTION_MAX_MESSAGE, "max-message", "SIZE",
	 "largest request, unpacked, as 4M (default: what\nthat kind of server takes)", 0, false},
	{OPTION_SPOOL, "spool", "DIR",
	 "where undelivered profiles wait (default\n/var/lib/perfpipe/spool for root, else\n"
	 "~/.local/state/perfpipe/spool)",
	 0, false},
};

/* What became of a file at one target. */
struct outcome {
	uint64_t n_waiting; /* requests not yet delivered or refused */
	uint64_t n_delivered, n_samples, n_rejected;
	uint64_t n_lost;	     /* requests dropped, damaged or removed while they waited */
	uint64_t n_refused_profiles; /* of requests that were delivered otherwise */
	char *trouble;		     /* what the server or our client said last; NULL = nothing */
	int number;		     /* of explain.c */
	bool is_empty;		     /* no samples: nothing to send */
	bool is_lost;		     /* could not even be kept */
};

struct push_file {
	const char *path;
	bool is_read;
	struct outcome outcomes[TARGETS_MAX];
};

struct push {
	struct conversion_options conversion;
	struct exporter_config targets[TARGETS_MAX];
	const char *urls[TARGETS_MAX];
	size_t n_targets;
	struct remote_options remote; /* what all targets share */
	struct request_limits limits;
	struct key_value labels[LISTED_MAX];
	size_t n_labels;
	const char *drop_labels[LISTED_MAX];
	size_t n_drop_labels;
	const char *name, *spool;
	bool has_wait;

	const struct cli *cli;
	struct push_file files[FILES_MAX];
	size_t n_files;
	uv_loop_t loop;
	struct forwarder *forwarder;
	struct hash_map windows[TARGETS_MAX]; /* sequence → file */
	bool has_failed[TARGETS_MAX];	      /* some request has to be tried again */
	/* Requests that earlier runs left: delivered, and dropped. */
	uint64_t n_earlier, n_earlier_lost;
};

static struct error *add_target(struct push *push, const char *url)
{
	if (push->n_targets == TARGETS_MAX)
		return cli_usage("--to can be given %d times", TARGETS_MAX);
	struct exporter_config *target = &push->targets[push->n_targets];
	push->urls[push->n_targets++] = url;
	struct error *err = push_target_parse(url, target);
	for (size_t i = 0; !err && i + 1 < push->n_targets; i++) {
		if (strcmp(push->targets[i].name, target->name) == 0)
			err = cli_usage("--to \"%s\" is given twice", url);
	}
	return err;
}

static struct error *add_file(struct push *push, const char *path)
{
	if (push->n_files == FILES_MAX)
		return cli_usage("push takes %d files at a time", FILES_MAX);
	push->files[push->n_files++].path = path;
	return NULL;
}

static struct error *set(void *context, int id, const char *value)
{
	struct push *push = context;
	bool has_unit;
	switch (id) {
	case CLI_POSITIONAL:
		return add_file(push, value);
	case OPTION_TO:
		return add_target(push, value);
	case OPTION_LABEL:
		return remote_options_add_pair(push->labels, &push->n_labels, LISTED_MAX, "--label",
					       value);
	case OPTION_NAME:
		push->name = value;
		return NULL;
	case OPTION_WAIT:
		push->has_wait = true;
		return NULL;
	case OPTION_DROP_LABEL:
		if (push->n_drop_labels == LISTED_MAX)
			return cli_usage("--drop-label can be given %d times", LISTED_MAX);
		push->drop_labels[push->n_drop_labels++] = value;
		return NULL;
	case OPTION_MAX_MESSAGE:
		return cli_parse_size("--max-message", value, &push->limits.max_message_bytes,
				      &has_unit);
	case OPTION_SPOOL:
		push->spool = value;
		return NULL;
	default:
		if (remote_options_has(id))
			return remote_options_set(&push->remote, id, value);
		return conversion_options_set(&push->conversion, id, value);
	}
}

const struct cli_spec cmd_push_spec = {
	.command = "push",
	.usage = "[OPTIONS] FILE... --to URL",
	.summary = "Sends pprof or perf.data files to a profiling backend.",
	.examples = "  perfpipe push p.pb.gz --to parca://parca.example:7070 --label env=prod\n"
		    "  perfpipe push *.pb.gz --to pyroscope+insecure://localhost:4040\n"
		    "  perfpipe push perf.data --to otlp://collector:4317 --ca-file ca.pem --wait\n"
		    "  perfpipe push p.pb.gz --to parca://grpc.polarsignals.com:443 \\\n"
		    "      --token-file token --header projectid=…\n",
	.notes = "A profile counts as taken once it is on disk in the spool: what cannot be\n"
		 "delivered now stays there (exit 75), and the next push to the same place\n"
		 "delivers it. perfpipe spool shows what waits and what was refused.\n"
		 "PERFPIPE_BEARER_TOKEN is used when no --token-file is given.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {remote_options_table, conversion_file_options, conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

/* --- what happens to requests --- */

static size_t find_target(const struct push *push, const char *name)
{
	size_t i = 0;
	while (strcmp(push->targets[i].name, name) != 0)
		i++;
	return i;
}

static void note_trouble(struct outcome *outcome, const struct exporter_event *event)
{
	mem_free(outcome->trouble);
	outcome->trouble = mem_copy_string(event->text);
	outcome->number = event->result ? event->result->error_number : 0;
	if (event->answer.verdict == BACKEND_RETRY_AUTH)
		outcome->number = 302;
}

/* What comes with a success is worth telling; what failed before is over with the last request. */
static void note_success(struct outcome *outcome, const struct exporter_event *event)
{
	if (outcome->n_rejected)
		return;
	if (event->text[0]) {
		note_trouble(outcome, event);
	} else if (!outcome->n_waiting && !outcome->n_refused_profiles) {
		mem_free(TAKE(outcome->trouble));
		outcome->number = 0;
	}
	outcome->n_refused_profiles += event->answer.n_refused;
}

static void happened(void *context, const struct exporter_event *event)
{
	struct push *push = context;
	size_t target = find_target(push, event->exporter);
	push->has_failed[target] |= event->kind == EXPORTER_RETRYING;
	const uint64_t *file = hash_map_get(&push->windows[target], event->sequence);
	if (!file) {
		push->n_earlier += event->kind == EXPORTER_DELIVERED;
		push->n_earlier_lost += event->n_lost;
		return;
	}
	uint64_t index = *file;
	struct outcome *outcome = &push->files[index].outcomes[target];
	switch (event->kind) {
	case EXPORTER_DELIVERED:
		outcome->n_waiting--;
		outcome->n_delivered++;
		outcome->n_samples += event->summary.n_samples;
		note_success(outcome, event);
		break;
	case EXPORTER_RETRYING:
		note_trouble(outcome, event);
		break;
	case EXPORTER_SPLIT:
		outcome->n_waiting += event->n_parts - 1;
		*hash_map_put(&push->windows[target], event->parts_sequence, NULL) = index;
		break;
	case EXPORTER_REJECTED:
		outcome->n_waiting--;
		outcome->n_rejected++;
		note_trouble(outcome, event);
		break;
	case EXPORTER_LOST:
		outcome->n_waiting -= event->n_lost;
		outcome->n_lost += event->n_lost;
		mem_free(outcome->trouble);
		outcome->trouble = mem_format("dropped while it waited: %s", event->text);
		outcome->number = 0;
		break;
	}
}

/* --- reading and spooling --- */

static void put_profile(struct push *push, struct push_file *file, struct profile *profile)
{
	push_profile_complete(profile, file->path);
	struct key_value labels[LISTED_MAX + 1];
	size_t n_labels = push->n_labels;
	memcpy(labels, push->labels, n_labels * sizeof(*labels));
	char service[PUSH_PROFILE_SERVICE_BYTES];
	bool has_service = false;
	for (size_t i = 0; i < n_labels; i++)
		has_service |= strcmp(labels[i].key, "service_name") == 0;
	if (!has_service) {
		push_profile_service(profile, service);
		labels[n_labels++] = (struct key_value){"service_name", service};
	}
	const struct outgoing_profile outgoing = {
		.profile = profile,
		.name = push->name ? push->name : push_profile_name(profile),
		.labels = labels,
		.n_labels = n_labels,
	};
	struct exporter_counts before[TARGETS_MAX], after;
	for (size_t i = 0; i < push->n_targets; i++)
		forwarder_get_counts(push->forwarder, i, &before[i]);
	forwarder_put(push->forwarder, &outgoing);
	struct error *err = forwarder_commit(push->forwarder);
	for (size_t i = 0; i < push->n_targets; i++) {
		forwarder_get_counts(push->forwarder, i, &after);
		struct outcome *outcome = &file->outcomes[i];
		outcome->is_lost = after.is_last_lost;
		if (err && outcome->is_lost) {
			outcome->trouble = mem_copy_string(error_text(err));
			outcome->number = error_get_number(err);
		}
		outcome->n_waiting = after.last_requests;
		/* Into files at once. */
		outcome->n_delivered = after.sent_requests - before[i].sent_requests;
		outcome->n_samples = after.sent_samples - before[i].sent_samples;
		outcome->is_empty =
			!outcome->n_waiting && !outcome->n_delivered && !outcome->is_lost;
		if (outcome->n_waiting)
			*hash_map_put(&push->windows[i], after.last_sequence, NULL) =
				(uint64_t)(file - push->files);
	}
	error_free(err);
}

static struct error *read_file(struct push *push, struct push_file *file)
{
	struct profile *profile;
	struct error *err = profile_input_read(&push->conversion, file->path, push->cli, &profile);
	if (err)
		return err;
	put_profile(push, file, profile);
	file->is_read = true;
	profile_free(profile);
	return NULL;
}

/* --- waiting --- */

/* Nothing more can come of it now. */
static bool is_finished(const struct push *push)
{
	for (size_t i = 0; i < push->n_targets; i++) {
		struct exporter_counts counts;
		forwarder_get_counts(push->forwarder, i, &counts);
		bool may_go_on = counts.queue.requests && (push->has_wait || !push->has_failed[i]);
		if (counts.n_active || may_go_on)
			return false;
	}
	return true;
}

static void count_done(const struct push *push, uint64_t *done, uint64_t *total)
{
	*done = *total = 0;
	for (size_t i = 0; i < push->n_files; i++) {
		for (size_t t = 0; t < push->n_targets; t++) {
			const struct outcome *outcome = &push->files[i].outcomes[t];
			*done += outcome->n_delivered + outcome->n_rejected;
			*total += outcome->n_delivered + outcome->n_rejected + outcome->n_waiting;
		}
	}
}

static void wait_for_answers(struct push *push)
{
	struct progress progress;
	progress_begin(&progress, push->cli->has_progress, PROGRESS_COUNT, "delivering");
	while (!interruption_signal() && !is_finished(push)) {
		uv_run(&push->loop, UV_RUN_ONCE);
		uint64_t done, total;
		count_done(push, &done, &total);
		progress_update(&progress, done, total);
	}
	progress_end(&progress);
}

/* --- verdicts --- */

enum verdict {
	VERDICT_UNREAD,
	VERDICT_DELIVERED,
	VERDICT_EMPTY,
	VERDICT_SPOOLED,
	VERDICT_REFUSED,
	VERDICT_LOST
};
static const char *const verdict_names[] = {
	[VERDICT_UNREAD] = "unread",   [VERDICT_DELIVERED] = "delivered", [VERDICT_EMPTY] = "empty",
	[VERDICT_SPOOLED] = "spooled", [VERDICT_REFUSED] = "refused",	  [VERDICT_LOST] = "lost",
};

static enum verdict judge(const struct push_file *file, size_t target)
{
	const struct outcome *outcome = &file->outcomes[target];
	if (!file->is_read)
		return VERDICT_UNREAD;
	if (outcome->is_lost || outcome->n_lost)
		return VERDICT_LOST;
	if (outcome->n_rejected || outcome->n_refused_profiles)
		return VERDICT_REFUSED;
	if (outcome->n_waiting)
		return VERDICT_SPOOLED;
	return outcome->is_empty ? VERDICT_EMPTY : VERDICT_DELIVERED;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_text(const struct push *push, const struct push_file *file, size_t target)
{
	const struct outcome *outcome = &file->outcomes[target];
	enum verdict verdict = judge(file, target);
	printf("%s: %s", conversion_input_shown(file->path), verdict_names[verdict]);
	switch (verdict) {
	case VERDICT_UNREAD:
		printf(": nothing was sent to %s\n", push->urls[target]);
		break;
	case VERDICT_DELIVERED:
		printf(" to %s: %" PRIu64 " samples in %" PRIu64 " request%s%s%s\n",
		       push->urls[target], outcome->n_samples, outcome->n_delivered,
		       plural(outcome->n_delivered), outcome->trouble ? "; it says: " : "",
		       outcome->trouble ? outcome->trouble : "");
		break;
	case VERDICT_EMPTY:
		printf(": it has no samples, so nothing is sent to %s\n", push->urls[target]);
		break;
	case VERDICT_SPOOLED:
		printf(" for %s: %" PRIu64 " of %" PRIu64 " requests wait%s%s\n",
		       push->urls[target], outcome->n_waiting,
		       outcome->n_waiting + outcome->n_delivered, outcome->trouble ? ": " : "",
		       outcome->trouble ? outcome->trouble : "");
		break;
	case VERDICT_REFUSED:
		if (!outcome->n_rejected)
			printf(" by %s: %" PRIu64 " profiles of requests that it took: %s\n",
			       push->urls[target], outcome->n_refused_profiles, outcome->trouble);
		else
			printf(" by %s: %" PRIu64 " of %" PRIu64
			       " requests, kept in %s/rejected: %s\n",
			       push->urls[target], outcome->n_rejected,
			       outcome->n_rejected + outcome->n_delivered + outcome->n_waiting,
			       push->spool, outcome->trouble ? outcome->trouble : "");
		break;
	case VERDICT_LOST:
		if (outcome->is_lost)
			printf(": it could not be kept for %s\n", push->urls[target]);
		else
			printf(": %" PRIu64 " request%s for %s: %s\n", outcome->n_lost,
			       plural(outcome->n_lost), push->urls[target], outcome->trouble);
		break;
	}
}

static void print_json(const struct push *push, const struct push_file *file, size_t target)
{
	const struct outcome *outcome = &file->outcomes[target];
	fputs("{\"schema_version\": 1, \"file\": ", stdout);
	json_text_write(stdout, file->path);
	fputs(", \"to\": ", stdout);
	json_text_write(stdout, push->urls[target]);
	printf(", \"verdict\": \"%s\", \"delivered_requests\": %" PRIu64
	       ", \"delivered_samples\": %" PRIu64 ", \"waiting_requests\": %" PRIu64
	       ", \"rejected_requests\": %" PRIu64 ", \"lost_requests\": %" PRIu64
	       ", \"refused_profiles\": %" PRIu64 ", \"trouble\": ",
	       verdict_names[judge(file, target)], outcome->n_delivered, outcome->n_samples,
	       outcome->n_waiting, outcome->n_rejected, outcome->n_lost,
	       outcome->n_refused_profiles);
	json_text_write(stdout, outcome->trouble);
	fputs("}\n", stdout);
}

/* The files of the worst verdict that there is, and what of the first of them. */
struct sum {
	uint64_t n;
	const struct outcome *first;
	const char *url;
};

static void add_to_sum(struct sum *sum, const struct outcome *outcome, const char *url)
{
	if (!sum->n++) {
		sum->first = outcome;
		sum->url = url;
	}
}

/* The worst that happened to any file as an error; NULL when all was delivered. */
static struct error *sum_up(const struct push *push)
{
	struct sum auth = {0}, refused = {0}, lost = {0}, spooled = {0}, unread = {0};
	for (size_t i = 0; i < push->n_files * push->n_targets; i++) {
		const struct push_file *file = &push->files[i / push->n_targets];
		size_t target = i % push->n_targets;
		const struct outcome *outcome = &file->outcomes[target];
		enum verdict verdict = judge(file, target);
		struct sum *sum = verdict == VERDICT_REFUSED ? &refused
				  : verdict == VERDICT_LOST  ? &lost
				  : verdict != VERDICT_SPOOLED
					  ? (verdict == VERDICT_UNREAD ? &unread : NULL)
				  : outcome->number == 302 ? &auth
							   : &spooled;
		if (sum)
			add_to_sum(sum, outcome, push->urls[target]);
	}
	if (auth.n)
		return error_number(error_new(ERROR_DENIED, "%s: %s; %" PRIu64 " file%s spooled",
					      auth.url, auth.first->trouble, auth.n,
					      auth.n == 1 ? " is" : "s are"),
				    302);
	if (refused.n)
		return error_number(error_new(ERROR_BAD_DATA, "%s: %" PRIu64 " file%s refused: %s",
					      refused.url, refused.n,
					      refused.n == 1 ? " was" : "s were",
					      refused.first->trouble),
				    303);
	if (lost.n) {
		const char *trouble = lost.first->trouble;
		return error_number(error_new(ERROR_IO, "%s: %s; %" PRIu64 " file%s not kept",
					      lost.url, trouble ? trouble : "it could not be kept",
					      lost.n, lost.n == 1 ? " was" : "s were"),
				    lost.first->number ? lost.first->number : 404);
	}
	if (spooled.n) {
		const char *trouble = spooled.first->trouble;
		return error_number(error_new(ERROR_UNAVAILABLE,
					      "%s: %s; %" PRIu64 " file%s spooled", spooled.url,
					      trouble ? trouble : "not all was delivered in time",
					      spooled.n, spooled.n == 1 ? " is" : "s are"),
				    spooled.first->number ? spooled.first->number : 305);
	}
	if (unread.n && interruption_signal())
		return error_number(error_new(ERROR_CANCELLED,
					      "interrupted; %" PRIu64 " file%s not sent",
					      unread.n / push->n_targets,
					      unread.n / push->n_targets == 1 ? " was" : "s were"),
				    305);
	return NULL;
}

/* --- the run --- */

static void print_verdicts(const struct push *push)
{
	for (size_t i = 0; i < push->n_files; i++) {
		for (size_t t = 0; t < push->n_targets; t++) {
			if (push->cli->format == CLI_FORMAT_JSON)
				print_json(push, &push->files[i], t);
			else
				print_text(push, &push->files[i], t);
		}
	}
	if (push->n_earlier)
		message_note(&push->cli->message,
			     "%" PRIu64 " request%s of earlier runs %s delivered as well",
			     push->n_earlier, plural(push->n_earlier),
			     push->n_earlier == 1 ? "was" : "were");
	if (push->n_earlier_lost) {
		CLEANUP(cleanup_mem)
		char *text = mem_format("%" PRIu64 " request%s of earlier runs %s dropped from %s",
					push->n_earlier_lost, plural(push->n_earlier_lost),
					push->n_earlier_lost == 1 ? "was" : "were", push->spool);
		message_warning(&push->cli->message, 401, text, NULL);
	}
}

static struct error *open_forwarder(struct push *push)
{
	const struct forwarder_config config = {
		.exporters = push->targets,
		.n_exporters = push->n_targets,
		.spool_directory = push->spool,
		.spool = {.is_shared = true},
		.on_event = happened,
		.context = push,
	};
	struct error *err = forwarder_new(&push->loop, &config, &push->forwarder);
	bool is_usage = err && error_get_code(err) == ERROR_USAGE;
	return err && !error_get_number(err) ? error_number(err, is_usage ? 1 : 401) : err;
}

static struct error *deliver(struct push *push, int *exit_code_out)
{
	struct error *err = open_forwarder(push);
	if (err)
		return err;
	/* A file that cannot be read keeps none of the others. */
	for (size_t i = 0; i < push->n_files && !interruption_signal(); i++) {
		struct error *file_error = read_file(push, &push->files[i]);
		if (file_error) {
			int exit_code = message_error(&push->cli->message, file_error);
			*exit_code_out = *exit_code_out ? *exit_code_out : exit_code;
		}
		uv_run(&push->loop, UV_RUN_NOWAIT);
	}
	wait_for_answers(push);
	forwarder_close(push->forwarder);
	print_verdicts(push);
	return sum_up(push);
}

static void complete_targets(struct push *push)
{
	for (size_t i = 0; i < push->n_targets; i++) {
		struct exporter_config *target = &push->targets[i];
		remote_options_apply(&push->remote, &target->remote);
		target->shown = push->urls[i];
		target->limits = push->limits;
		target->drop_labels = push->drop_labels;
		target->n_drop_labels = push->n_drop_labels;
		hash_map_init(&push->windows[i]);
	}
}

static struct error *run(struct push *push, int *exit_code_out)
{
	if (!push->n_files)
		return cli_usage("push takes the files to send");
	if (!push->n_targets)
		return cli_usage("--to URL says where to send them");
	char *own_place CLEANUP(cleanup_mem) = NULL;
	if (!push->spool)
		push->spool = own_place = spool_place_default();
	complete_targets(push);
	if (!push->cli->message.is_verbose)
		log_set_level(LOG_LEVEL_ERROR);
	uv_loop_init(&push->loop);
	struct interruption_watch watch;
	struct error *err = interruption_watch_open(&watch, &push->loop);
	if (!err) {
		err = deliver(push, exit_code_out);
		interruption_watch_close(&watch);
	}
	uv_run(&push->loop, UV_RUN_DEFAULT);
	interruption_close();
	uv_loop_close(&push->loop);
	return err;
}

int cmd_push(int argc, char **argv)
{
	struct push *push = mem_zalloc(1, sizeof(*push));
	struct cli cli;
	int exit_code = EXIT_CODE_DONE;
	conversion_options_init(&push->conversion);
	push->cli = &cli;
	if (cli_read(&cmd_push_spec, argc, argv, push, &cli, &exit_code)) {
		struct error *err = run(push, &exit_code);
		int code = err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
		exit_code = exit_code ? exit_code : code;
	}
	for (size_t t = 0; t < push->n_targets; t++) {
		for (size_t i = 0; i < push->n_files; i++)
			mem_free(push->files[i].outcomes[t].trouble);
		hash_map_fini(&push->windows[t]);
		push_target_fini(&push->targets[t]);
	}
	for (size_t i = 0; i < push->n_labels; i++)
		mem_free((void *)push->labels[i].key);
	remote_options_fini(&push->remote);
	mem_free(push);
	return exit_code;
}
