/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/symbols_upload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/cleanup.h"
#include "base/hash_seed.h"
#include "base/log.h"
#include "base/mem.h"
#include "forwarder/debuginfo_wire.h"
#include "forwarder/forwarder.h"
#include "pipeline/interruption_watch.h"
#include "pipeline/json_text.h"
#include "pipeline/progress.h"
#include "pipeline/push_target.h"
#include "pipeline/symbols_fetch.h"

#define NS_PER_MS ((uint64_t)1000000)
#define NS_PER_S  ((uint64_t)1000000000)
#define RETRY_NS  (5 * NS_PER_S)
enum { OFFERED_MAX = 8 /* each holds a descriptor */ };

enum verdict {
	VERDICT_WAITING, /* nothing is known yet */
	VERDICT_UPLOADED,
	VERDICT_KNOWN,
	VERDICT_LATER,
	VERDICT_REFUSED,
	VERDICT_MISSING,
};
static const char *const verdict_names[] = {
	[VERDICT_WAITING] = "later", [VERDICT_UPLOADED] = "uploaded", [VERDICT_KNOWN] = "known",
	[VERDICT_LATER] = "later",   [VERDICT_REFUSED] = "refused",   [VERDICT_MISSING] = "missing",
};

struct item {
	const char *word;
	const struct module *module;
	char *path; /* of the file that is sent; NULL before */
	char *trouble;
	uint64_t n_bytes;
	enum verdict verdict;
	int number;
	bool is_auth, is_offered, has_failed;
};

struct run {
	const struct symbols_upload *upload;
	struct symcache *cache;
	struct item *items;
	size_t n_offered; /* of items, in order */
	struct debuginfo_upload *uploader;
	struct grpc_channel *channel;
	uv_loop_t loop;
	uv_timer_t timer;
	struct progress progress;
	bool is_over;
};

/* ---- what words stand for ---- */

static void note_trouble(struct item *item, const char *text)
{
	char *copy = mem_copy_string(text);
	mem_free(item->trouble);
	item->trouble = copy;
}

static void miss(struct item *item, const char *why, int number)
{
	item->verdict = VERDICT_MISSING;
	item->number = number;
	note_trouble(item, why);
}

static void find_module(struct run *run, struct item *item)
{
	struct build_id id;
	bool is_id = symbols_fetch_is_id(item->word) && build_id_parse(item->word, &id);
	if (is_id && access(item->word, F_OK) < 0) {
		item->module = symcache_module(run->cache,
					       &(struct module_query){.path = "", .build_id = id});
		return;
	}
	item->module = symbols_fetch_open_file(run->cache, item->word);
	enum module_state state = module_get_state(item->module);
	if (state == MODULE_OK || state == MODULE_OK_TRUSTED)
		return;
	bool is_absent = state == MODULE_NOT_FOUND || state == MODULE_DENIED;
	miss(item, module_state_text(state), is_absent ? 613 : 622);
}

/* The first item of that build-id. */
static struct item *find_item(const struct run *run, const struct build_id *id)
{
	for (size_t i = 0; i < run->upload->n_words; i++) {
		struct item *item = &run->items[i];
		if (item->verdict != VERDICT_MISSING &&
		    build_id_equal(module_get_build_id(item->module), id))
			return item;
	}
	return NULL;
}

static const struct item *first_of(const struct run *run, const struct item *item)
{
	const struct item *first = item->verdict == VERDICT_MISSING
					   ? NULL
					   : find_item(run, module_get_build_id(item->module));
	return first ? first : item;
}

/* ---- uploading ---- */

static void happened(void *context, const struct debuginfo_event *event)
{
	struct run *run = context;
	struct item *item = find_item(run, event->id);
	item->n_bytes = event->n_bytes;
	item->number = event->error_number;
	item->is_auth = event->is_auth;
	note_trouble(item, event->text);
	switch (event->kind) {
	case DEBUGINFO_EVENT_UPLOADED:
		item->verdict = VERDICT_UPLOADED;
		break;
	case DEBUGINFO_EVENT_KNOWN:
		item->verdict = VERDICT_KNOWN;
		break;
	case DEBUGINFO_EVENT_REFUSED:
		item->verdict = VERDICT_REFUSED;
		break;
	case DEBUGINFO_EVENT_FAILED:
		item->has_failed = true;
		break;
	}
}

static void offer(struct run *run, struct item *item)
{
	int fd;
	item->is_offered = true;
	const struct build_id *id = module_get_build_id(item->module);
	if (first_of(run, item) != item)
		return;
	struct error *err = build_id_is_set(id) ? symcache_open_source(run->cache, item->module,
								       &fd, &item->path)
						: error_no_entry;
	if (err)
		miss(item,
		     err == error_no_entry ? "no file of it is on this host" : error_text(err),
		     613);
	else
		debuginfo_upload_offer(run->uploader, id, fd);
	error_free(err);
}

/* Whether an item still needs the uploader. */
static bool is_pending(struct run *run, struct item *item)
{
	const struct build_id *id = module_get_build_id(item->module);
	if (!item->is_offered || item->verdict != VERDICT_WAITING || first_of(run, item) != item)
		return false;
	bool is_given_up = debuginfo_upload_state(run->uploader, id) != DEBUGINFO_PENDING;
	if (is_given_up || (item->has_failed && !run->upload->has_wait)) {
		debuginfo_upload_withdraw(run->uploader, id);
		item->verdict = VERDICT_LATER;
	}
	return item->verdict == VERDICT_WAITING;
}

static void tick(uv_timer_t *timer)
{
	struct run *run = timer->data;
	size_t n_pending = 0, n_words = run->upload->n_words;
	for (size_t i = 0; i < run->n_offered; i++)
		n_pending += is_pending(run, &run->items[i]);
	progress_update(&run->progress, run->n_offered - n_pending, n_words);
	while (run->n_offered < n_words && n_pending < OFFERED_MAX) {
		struct item *item = &run->items[run->n_offered++];
		if (item->verdict != VERDICT_MISSING)
			offer(run, item);
		n_pending += is_pending(run, item);
	}
	debuginfo_upload_tick(run->uploader);
	if (!n_pending && run->n_offered == n_words)
		run->is_over = true;
}

static void work(struct run *run)
{
	enum { TICK_MS = 20 };
	uv_timer_init(&run->loop, &run->timer);
	run->timer.data = run;
	uv_timer_start(&run->timer, tick, 0, TICK_MS);
	progress_begin(&run->progress, run->upload->cli->has_progress, PROGRESS_COUNT, "uploading");
	while (!run->is_over && !interruption_signal())
		uv_run(&run->loop, UV_RUN_ONCE);
	progress_end(&run->progress);
	uv_close((uv_handle_t *)&run->timer, NULL);
}

static struct error *upload_all(struct run *run, const struct remote_config *remote)
{
	struct remote_config own = *remote;
	own.default_port = backend_of_kind(EXPORTER_PARCA)->default_port;
	/* What is worth compressing in debug files is so already, or the server does it. */
	own.gzip = false;
	struct error *err = grpc_channel_new(&run->loop, &clock_system, &own, &run->channel);
	if (err)
		return err;
	struct debuginfo_wire wire = {.loop = &run->loop, .channel = run->channel, .remote = &own};
	const struct debuginfo_upload_config config = {
		.transport = debuginfo_wire_transport(&wire),
		.jitter_ns = 1, /* who runs a command waits for it */
		.seed = hash_seed_make(),
		.retry_ns = RETRY_NS,
		.timeout_ns = own.timeout_ns,
		.on_event = happened,
		.context = run,
	};
	run->uploader = debuginfo_upload_new(&config);
	work(run);
	debuginfo_upload_free(run->uploader);
	grpc_channel_close(run->channel);
	uv_run(&run->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* ---- verdicts ---- */

static void print_text(const struct run *run, const struct item *item, const struct item *first,
		       const char *hex)
{
	const char *url = run->upload->url;
	const char *trouble = first->trouble && *first->trouble ? first->trouble : NULL;
	printf("%s: %s", item->word, verdict_names[first->verdict]);
	switch (first->verdict) {
	case VERDICT_UPLOADED:
		printf(" to %s: build-id %s, %" PRIu64 " bytes of %s\n", url, hex, first->n_bytes,
		       first->path);
		break;
	case VERDICT_KNOWN:
		printf(" to %s: build-id %s\n", url, hex);
		break;
	case VERDICT_REFUSED:
		printf(" by %s: build-id %s: %s\n", url, hex,
		       trouble ? trouble : "no reason given");
		break;
	case VERDICT_MISSING:
		printf(": %s\n", trouble);
		break;
	case VERDICT_WAITING:
	case VERDICT_LATER:
		printf(": not uploaded to %s: %s\n", url, trouble ? trouble : "interrupted");
		break;
	}
}

static void print_json(const struct run *run, const struct item *item, const struct item *first,
		       const char *hex)
{
	fputs("{\"schema_version\": 1, \"file\": ", stdout);
	json_text_write(stdout, item->word);
	printf(", \"build_id\": \"%s\", \"source\": ", hex);
	json_text_write(stdout, first->path);
	fputs(", \"to\": ", stdout);
	json_text_write(stdout, run->upload->url);
	printf(", \"verdict\": \"%s\", \"uploaded_bytes\": %" PRIu64 ", \"trouble\": ",
	       verdict_names[first->verdict], first->n_bytes);
	json_text_write(stdout, first->trouble && *first->trouble ? first->trouble : NULL);
	fputs("}\n", stdout);
}

static void print_verdicts(const struct run *run)
{
	for (size_t i = 0; i < run->upload->n_words; i++) {
		const struct item *item = &run->items[i];
		const struct item *first = first_of(run, item);
		char hex[BUILD_ID_HEX_BYTES];
		build_id_format(module_get_build_id(item->module), hex);
		if (run->upload->cli->format == CLI_FORMAT_JSON)
			print_json(run, item, first, hex);
		else
			print_text(run, item, first, hex);
	}
}

/* How bad it is, for the one that becomes the error. */
static int badness(const struct item *item)
{
	if (item->verdict == VERDICT_LATER || item->verdict == VERDICT_WAITING)
		return item->is_auth ? 4 : 1;
	return item->verdict == VERDICT_REFUSED ? 3 : item->verdict == VERDICT_MISSING ? 2 : 0;
}

static struct error *sum_up(const struct run *run)
{
	const struct item *worst = NULL;
	size_t n = 0;
	for (size_t i = 0; i < run->upload->n_words; i++) {
		const struct item *item = first_of(run, &run->items[i]);
		if (!badness(item))
			continue;
		n++;
		if (!worst || badness(item) > badness(worst))
			worst = item;
	}
	if (!worst)
		return NULL;
	const char *url = run->upload->url;
	const char *trouble = worst->trouble ? worst->trouble : "interrupted";
	CLEANUP(cleanup_mem)
	char *others = n > 1 ? mem_format("; %zu of %zu failed", n, run->upload->n_words)
			     : mem_copy_string("");
	switch (badness(worst)) {
	case 4:
		return error_number(error_new(ERROR_DENIED, "%s: %s%s", url, trouble, others), 302);
	case 3:
		return error_number(error_new(ERROR_BAD_DATA, "%s: %s: %s%s", url, worst->word,
					      trouble, others),
				    306);
	case 2:
		return error_number(
			error_new(ERROR_NO_ENTRY, "%s: %s%s", worst->word, trouble, others),
			worst->number);
	default:
		return error_number(error_new(ERROR_UNAVAILABLE, "%s: %s%s", url, trouble, others),
				    worst->number && worst->number != 305 ? worst->number : 307);
	}
}

/* ---- the run ---- */

static struct error *choose_place(const struct symbols_upload *upload, struct exporter_config *out)
{
	if (!upload->url)
		return cli_usage("symbols upload: --to parca://HOST:PORT says where to");
	struct error *err = push_target_parse(upload->url, out);
	if (!err && out->kind != EXPORTER_PARCA)
		err = cli_usage("--to \"%s\": debug information goes to parca://HOST:PORT",
				upload->url);
	remote_options_apply(upload->remote, &out->remote);
	return err;
}

struct error *symbols_upload_run(const struct symbols_upload *upload)
{
	struct exporter_config target = {0};
	struct error *err = choose_place(upload, &target);
	if (err) {
		push_target_fini(&target);
		return err;
	}
	if (!upload->cli->message.is_verbose)
		log_set_level(LOG_LEVEL_ERROR);
	struct run run = {
		.upload = upload,
		.cache = symcache_new(&upload->config),
		.items = mem_zalloc(upload->n_words, sizeof(struct item)),
	};
	for (size_t i = 0; i < upload->n_words; i++) {
		run.items[i].word = upload->words[i];
		find_module(&run, &run.items[i]);
	}
	uv_loop_init(&run.loop);
	struct interruption_watch watch;
	err = interruption_watch_open(&watch, &run.loop);
	if (!err) {
		err = upload_all(&run, &target.remote);
		interruption_watch_close(&watch);
	}
	uv_run(&run.loop, UV_RUN_DEFAULT);
	interruption_close();
	uv_loop_close(&run.loop);
	if (!err) {
		print_verdicts(&run);
		err = sum_up(&run);
	}
	for (size_t i = 0; i < upload->n_words; i++) {
		mem_free(run.items[i].path);
		mem_free(run.items[i].trouble);
	}
	mem_free(run.items);
	symcache_free(run.cache);
	push_target_fini(&target);
	return err && !error_get_number(err) && error_get_code(err) == ERROR_USAGE
		       ? error_number(err, 1)
		       : err;
}
