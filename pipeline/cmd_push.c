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
#include "pipeline/json_text.h"
#include "pipeline/profile_input.h"
#include "pipeline/progress.h"
#include "pipeline/push_profile.h"
#include "pipeline/push_target.h"
#include "pipeline/spool_place.h"

enum option_id {
	OPTION_TO = 1,
	OPTION_LABEL,
	OPTION_NAME,
	OPTION_WAIT,
	OPTION_TOKEN_FILE,
	OPTION_CA_FILE,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_SERVER_NAME,
	OPTION_SKIP_VERIFY,
	OPTION_HEADER,
	OPTION_TENANT,
	OPTION_USER,
	OPTION_PASSWORD_FILE,
	OPTION_TIMEOUT,
	OPTION_DROP_LABEL,
	OPTION_MAX_MESSAGE,
	OPTION_SPOOL,
	OPTION_ALLOW_TOKEN_IN_CLEAR,
};

enum { FILES_MAX = 4096, TARGETS_MAX = 8, LISTED_MAX = 32, NAME_TRIES = 16 };
#define NS_PER_S ((uint64_t)1000000000)

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
	{OPTION_TOKEN_FILE, "token-file", "FILE", "bearer token", 0, true},
	{OPTION_CA_FILE, "ca-file", "FILE", "certificates to trust (default: the system's)", 0,
	 true},
	{OPTION_NAME, "name", "NAME",
	 "__name__ of the profiles (default: process_cpu for\nCPU profiles, memory, mutex, …)", 0,
	 false},
	{OPTION_CERT, "cert", "FILE", "client certificate (mTLS), with --key", 0, false},
	{OPTION_KEY, "key", "FILE", "its private key", 0, false},
	{OPTION_SERVER_NAME, "server-name", "NAME", "name in the server's certificate", 0, false},
	{OPTION_SKIP_VERIFY, "skip-verify", NULL, "take any certificate", 0, false},
	{OPTION_HEADER, "header", "KEY=VALUE", "sent with each request; may be repeated", 0, false},
	{OPTION_TENANT, "tenant", "ID", "X-Scope-OrgID", 0, false},
	{OPTION_USER, "user", "NAME", "basic authentication, with --password-file", 0, false},
	{OPTION_PASSWORD_FILE, "password-file", "FILE", "its password", 0, false},
	{OPTION_ALLOW_TOKEN_IN_CLEAR, "allow-token-in-clear", NULL,
	 "send token or password over plaintext to other\nhosts", 0, false},
	{OPTION_TIMEOUT, "timeout", "SECONDS", "of one request (default 10)", 0, false},
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
	char *trouble; /* what the server or our client said last; NULL = nothing */
	int number;    /* of explain.c */
	bool is_empty; /* no samples: nothing to send */
	bool is_lost;  /* could not even be kept */
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
	struct remote_config remote; /* what all targets share */
	struct request_limits limits;
	struct key_value labels[LISTED_MAX], headers[LISTED_MAX];
	size_t n_labels, n_headers;
	const char *drop_labels[LISTED_MAX];
	size_t n_drop_labels;
	const char *name, *spool;
	bool has_wait;

	const struct cli *cli;
	struct push_file files[FILES_MAX];
	size_t n_files;
	uv_loop_t loop;
	uv_signal_t signals[2];
	bool is_interrupted;
	struct forwarder *forwarder;
	struct hash_map windows[TARGETS_MAX]; /* sequence → file */
	bool has_failed[TARGETS_MAX];	      /* some request has to be tried again */
	uint64_t n_earlier;		      /* delivered of what earlier runs left */
};

static struct error *set_pair(struct key_value *pairs, size_t *n, const char *option,
			      const char *value)
{
	const char *equals = strchr(value, '=');
	if (!equals || equals == value)
		return cli_usage("%s \"%s\" is not KEY=VALUE", option, value);
	if (*n == LISTED_MAX)
		return cli_usage("%s can be given %d times", option, LISTED_MAX);
	/* Kept as long as the program runs, as words of argv are. */
	pairs[(*n)++] = (struct key_value){
		.key = mem_format("%.*s", (int)(equals - value), value),
		.value = equals + 1,
	};
	return NULL;
}

static struct error *add_target(struct push *push, const char *url)
{
	if (push->n_targets == TARGETS_MAX)
		return cli_usage("--to can be given %d times", TARGETS_MAX);
	push->urls[push->n_targets] = url;
	return push_target_parse(url, &push->targets[push->n_targets++]);
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
		return set_pair(push->labels, &push->n_labels, "--label", value);
	case OPTION_NAME:
		push->name = value;
		return NULL;
	case OPTION_WAIT:
		push->has_wait = true;
		return NULL;
	case OPTION_TOKEN_FILE:
		push->remote.bearer_token_file = value;
		return NULL;
	case OPTION_CA_FILE:
		push->remote.tls.ca_file = value;
		return NULL;
	case OPTION_CERT:
		push->remote.tls.cert_file = value;
		return NULL;
	case OPTION_KEY:
		push->remote.tls.key_file = value;
		return NULL;
	case OPTION_SERVER_NAME:
		push->remote.tls.server_name = value;
		return NULL;
	case OPTION_SKIP_VERIFY:
		push->remote.tls.skip_verify = true;
		return NULL;
	case OPTION_HEADER:
		return set_pair(push->headers, &push->n_headers, "--header", value);
	case OPTION_TENANT:
		push->remote.tenant_id = value;
		return NULL;
	case OPTION_USER:
		push->remote.username = value;
		return NULL;
	case OPTION_PASSWORD_FILE:
		push->remote.password_file = value;
		return NULL;
	case OPTION_ALLOW_TOKEN_IN_CLEAR:
		push->remote.allow_token_in_clear = true;
		return NULL;
	case OPTION_TIMEOUT:
		return cli_parse_duration("--timeout", value, &push->remote.timeout_ns);
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
	.shared = {conversion_file_options, conversion_symbol_options},
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
	outcome->number = event->result->error_number;
	if (event->answer.verdict == BACKEND_RETRY_AUTH)
		outcome->number = 302;
}

static void happened(void *context, const struct exporter_event *event)
{
	struct push *push = context;
	size_t target = find_target(push, event->exporter);
	push->has_failed[target] |= event->kind == EXPORTER_RETRYING;
	const uint64_t *file = hash_map_get(&push->windows[target], event->sequence);
	if (!file) {
		push->n_earlier += event->kind == EXPORTER_DELIVERED;
		return;
	}
	uint64_t index = *file;
	struct outcome *outcome = &push->files[index].outcomes[target];
	switch (event->kind) {
	case EXPORTER_DELIVERED:
		outcome->n_waiting--;
		outcome->n_delivered++;
		outcome->n_samples += event->summary.n_samples;
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
	}
}

/* --- reading and spooling --- */

static struct error *put_profile(struct push *push, struct push_file *file, struct profile *profile)
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
		uint64_t n_lost = 0;
		for (int loss = 0; loss < SPOOL_LOSS_N; loss++)
			n_lost += after.queue.lost_requests[loss] -
				  before[i].queue.lost_requests[loss];
		outcome->is_lost =
			after.unencodable_profiles > before[i].unencodable_profiles || n_lost > 0;
		outcome->n_waiting = after.queue.requests - before[i].queue.requests;
		outcome->n_delivered = after.sent_requests - before[i].sent_requests;
		outcome->n_samples = after.sent_samples - before[i].sent_samples;
		outcome->is_empty =
			!outcome->n_waiting && !outcome->n_delivered && !outcome->is_lost;
		if (outcome->n_waiting)
			*hash_map_put(&push->windows[i], after.last_sequence, NULL) =
				(uint64_t)(file - push->files);
	}
	return err;
}

static struct error *read_file(struct push *push, struct push_file *file)
{
	struct profile *profile;
	struct error *err = profile_input_read(&push->conversion, file->path, push->cli, &profile);
	if (err)
		return err;
	err = put_profile(push, file, profile);
	file->is_read = true;
	profile_free(profile);
	return err;
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
	while (!push->is_interrupted && !is_finished(push)) {
		uv_run(&push->loop, UV_RUN_ONCE);
		uint64_t done, total;
		count_done(push, &done, &total);
		progress_update(&progress, done, total);
	}
	progress_end(&progress);
}

static void interrupted(uv_signal_t *handle, int signum)
{
	struct push *push = handle->data;
	/* The second one ends the program: what is in the spool stays there. */
	if (push->is_interrupted)
		_exit(128 + signum);
	push->is_interrupted = true;
}

/* --- verdicts --- */

enum verdict { VERDICT_DELIVERED, VERDICT_EMPTY, VERDICT_SPOOLED, VERDICT_REFUSED, VERDICT_LOST };
static const char *const verdict_names[] = {
	[VERDICT_DELIVERED] = "delivered", [VERDICT_EMPTY] = "empty", [VERDICT_SPOOLED] = "spooled",
	[VERDICT_REFUSED] = "refused",	   [VERDICT_LOST] = "lost",
};

static enum verdict judge(const struct outcome *outcome)
{
	if (outcome->is_lost)
		return VERDICT_LOST;
	if (outcome->n_rejected)
		return VERDICT_REFUSED;
	if (outcome->n_waiting)
		return VERDICT_SPOOLED;
	return outcome->is_empty ? VERDICT_EMPTY : VERDICT_DELIVERED;
}

static void print_text(const struct push *push, const struct push_file *file, size_t target)
{
	const struct outcome *outcome = &file->outcomes[target];
	enum verdict verdict = judge(outcome);
	printf("%s: %s", conversion_input_shown(file->path), verdict_names[verdict]);
	switch (verdict) {
	case VERDICT_DELIVERED:
		printf(" to %s: %" PRIu64 " samples in %" PRIu64 " request%s\n", push->urls[target],
		       outcome->n_samples, outcome->n_delivered,
		       outcome->n_delivered == 1 ? "" : "s");
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
		printf(" by %s: %" PRIu64 " of %" PRIu64 " requests, kept in %s/rejected: %s\n",
		       push->urls[target], outcome->n_rejected,
		       outcome->n_rejected + outcome->n_delivered + outcome->n_waiting, push->spool,
		       outcome->trouble ? outcome->trouble : "");
		break;
	case VERDICT_LOST:
		printf(": it could not be kept for %s\n", push->urls[target]);
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
	       ", \"rejected_requests\": %" PRIu64 ", \"trouble\": ",
	       verdict_names[judge(outcome)], outcome->n_delivered, outcome->n_samples,
	       outcome->n_waiting, outcome->n_rejected);
	json_text_write(stdout, outcome->trouble);
	fputs("}\n", stdout);
}

/* The worst that happened to any file as an error; NULL when all was delivered. */
static struct error *sum_up(const struct push *push)
{
	uint64_t n_auth = 0, n_refused = 0, n_spooled = 0;
	const struct outcome *auth = NULL, *refused = NULL, *spooled = NULL;
	const char *url = NULL;
	for (size_t i = 0; i < push->n_files; i++) {
		for (size_t t = 0; t < push->n_targets; t++) {
			const struct outcome *outcome = &push->files[i].outcomes[t];
			if (!push->files[i].is_read)
				continue;
			enum verdict verdict = judge(outcome);
			bool is_auth = verdict == VERDICT_SPOOLED && outcome->number == 302;
			n_auth += is_auth;
			n_refused += verdict == VERDICT_REFUSED;
			n_spooled += verdict == VERDICT_SPOOLED;
			if (is_auth && !auth)
				auth = outcome, url = push->urls[t];
			if (verdict == VERDICT_REFUSED && !refused)
				refused = outcome, url = auth ? url : push->urls[t];
			if (verdict == VERDICT_SPOOLED && !spooled)
				spooled = outcome, url = auth || refused ? url : push->urls[t];
		}
	}
	if (auth)
		return error_number(error_new(ERROR_DENIED, "%s: %s; %" PRIu64 " files are spooled",
					      url, auth->trouble, n_auth),
				    302);
	if (refused)
		return error_number(error_new(ERROR_BAD_DATA,
					      "%s: %" PRIu64 " files were refused: %s", url,
					      n_refused, refused->trouble),
				    303);
	if (!spooled)
		return NULL;
	const char *trouble = spooled->trouble;
	return error_number(error_new(ERROR_UNAVAILABLE, "%s: %s; %" PRIu64 " files are spooled",
				      url, trouble ? trouble : "not all was delivered in time",
				      n_spooled),
			    spooled->number ? spooled->number : 305);
}

/* --- the run --- */

static void print_verdicts(const struct push *push)
{
	for (size_t i = 0; i < push->n_files; i++) {
		for (size_t t = 0; t < push->n_targets && push->files[i].is_read; t++) {
			if (push->cli->format == CLI_FORMAT_JSON)
				print_json(push, &push->files[i], t);
			else
				print_text(push, &push->files[i], t);
		}
	}
	if (push->n_earlier)
		message_note(&push->cli->message,
			     "%" PRIu64 " requests of earlier runs were delivered as well",
			     push->n_earlier);
}

static struct error *open_forwarder(struct push *push)
{
	const struct forwarder_config config = {
		.exporters = push->targets,
		.n_exporters = push->n_targets,
		.spool_directory = push->spool,
		.on_event = happened,
		.context = push,
	};
	/* Another push to the same place has its spool: take the next one. */
	struct error *err = NULL;
	for (unsigned i = 2; i < NAME_TRIES; i++) {
		err = forwarder_new(&push->loop, &config, &push->forwarder);
		if (!err || error_get_code(err) != ERROR_UNAVAILABLE)
			break;
		uv_run(&push->loop, UV_RUN_NOWAIT);
		for (size_t t = 0; t < push->n_targets; t++)
			push_target_rename(&push->targets[t], i);
		error_free(err);
		err = NULL;
	}
	if (!push->forwarder && !err)
		err = error_new(ERROR_UNAVAILABLE, "%s: %d others push to the same place",
				push->spool, NAME_TRIES);
	bool is_usage = err && error_get_code(err) == ERROR_USAGE;
	return err && !error_get_number(err) ? error_number(err, is_usage ? 1 : 401) : err;
}

static struct error *deliver(struct push *push, int *exit_code_out)
{
	struct error *err = open_forwarder(push);
	if (err)
		return err;
	/* A file that cannot be read keeps none of the others. */
	for (size_t i = 0; i < push->n_files && !push->is_interrupted; i++) {
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
	push->remote.headers = push->headers;
	push->remote.n_headers = push->n_headers;
	push->remote.gzip = true;
	if (!push->remote.bearer_token_file)
		push->remote.bearer_token = getenv("PERFPIPE_BEARER_TOKEN");
	for (size_t i = 0; i < push->n_targets; i++) {
		struct exporter_config *target = &push->targets[i];
		const char *endpoint = target->remote.endpoint;
		bool insecure = target->remote.insecure;
		target->remote = push->remote;
		target->remote.endpoint = endpoint;
		target->remote.insecure = insecure;
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
	static const int signums[] = {SIGINT, SIGTERM};
	for (size_t i = 0; i < ARRAY_LEN(signums); i++) {
		uv_signal_init(&push->loop, &push->signals[i]);
		push->signals[i].data = push;
		uv_signal_start(&push->signals[i], interrupted, signums[i]);
		uv_unref((uv_handle_t *)&push->signals[i]);
	}
	struct error *err = deliver(push, exit_code_out);
	for (size_t i = 0; i < ARRAY_LEN(signums); i++)
		uv_close((uv_handle_t *)&push->signals[i], NULL);
	uv_run(&push->loop, UV_RUN_DEFAULT);
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
	for (size_t i = 0; i < push->n_headers; i++)
		mem_free((void *)push->headers[i].key);
	mem_free(push);
	return exit_code;
}
