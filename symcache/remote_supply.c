/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/remote_supply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "symcache/fetch_folder.h"
#include "symcache/server_list.h"

#define LOG_AREA "symcache"
#include "base/log.h"

#define NS_PER_S ((uint64_t)1000000000)

enum {
	ID_MIN_BYTES = 8,  /* shorter ones name too many files */
	ID_MAX_BYTES = 63, /* as debuginfod_find_debuginfo(3) takes */
	MAX_TRIES = 2,	   /* of a fetch that the fetcher process lost */
	DEFAULT_ABSENT_S = 600,
	DEFAULT_ALL_S = 180,
};

static_assert((int)SERVER_LIST_MAX == (int)SYMCACHE_FETCH_SERVERS_MAX,
	      "one report for each server");

enum wish_state { WISH_WAITS, WISH_RUNS, WISH_OVER };

/* A file that is wanted. */
struct wish {
	struct wish *next;
	struct remote_supply *supply;
	struct build_id id;
	enum fetcher_kind kind;
	enum wish_state state;
	remote_supply_done_fn done;
	void *context;
	struct fetch_work work;
	uint32_t servers[SERVER_LIST_MAX]; /* of the order, as indices of the list */
	uint32_t n_servers, n_tries;
};

struct remote_supply {
	struct server_list servers;
	struct fetch_folder *folder;
	struct fetcher *fetcher;
	const struct clock *clock;
	uint64_t absent_ns, all_ns;
	uint64_t deadline_ns; /* monotonic; 0 = nothing was fetched yet */
	bool retry_failures;
	bool is_over; /* the time for all fetches is */
	bool is_handing_over;
	struct wish *first, **end;
	uint64_t n_wanted, n_over;
	struct symcache_fetch_report report; /* but for the servers */
};

static uint64_t now_ns(const struct remote_supply *supply)
{
	return supply->clock->monotonic_ns(supply->clock->context);
}

static uint32_t seconds_or(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

struct error *remote_supply_new(const struct remote_supply_config *config,
				struct remote_supply **out)
{
	const struct symcache_debuginfod *debuginfod = config->debuginfod;
	const struct fetcher_config fetcher = {.answer_s = debuginfod->answer_s,
					       .whole_s = debuginfod->whole_s,
					       .max_bytes = debuginfod->max_file_bytes};
	const struct fetch_folder_config folder = {.store_path = config->store_path,
						   .max_bytes = config->max_kept_bytes,
						   .clock = config->clock};
	struct remote_supply *supply = mem_zalloc(1, sizeof(*supply));
	supply->clock = config->clock ? config->clock : &clock_system;
	supply->absent_ns = seconds_or(debuginfod->absent_s, DEFAULT_ABSENT_S) * NS_PER_S;
	supply->all_ns = seconds_or(debuginfod->all_s, DEFAULT_ALL_S) * NS_PER_S;
	supply->retry_failures = config->retry_failures;
	supply->end = &supply->first;
	struct error *err = server_list_init(&supply->servers, debuginfod->urls, supply->clock);
	if (!err)
		err = fetch_folder_open(&folder, &supply->folder);
	if (err) {
		remote_supply_free(supply);
		return err;
	}
	if (!supply->retry_failures)
		fetch_folder_load_pauses(supply->folder, &supply->servers);
	supply->report.answer_s = seconds_or(debuginfod->answer_s, FETCHER_ANSWER_S);
	supply->fetcher = fetcher_new(&fetcher);
	*out = supply;
	return NULL;
}

void remote_supply_free(struct remote_supply *supply)
{
	if (!supply)
		return;
	fetcher_free(supply->fetcher);
	while (supply->first) {
		struct wish *wish = supply->first;
		supply->first = wish->next;
		if (wish->state == WISH_RUNS)
			fetch_folder_end_work(supply->folder, &wish->work);
		mem_free(wish);
	}
	fetch_folder_close(supply->folder);
	mem_free(supply);
}

pid_t remote_supply_get_pid(const struct remote_supply *supply)
{
	return fetcher_get_pid(supply->fetcher);
}

bool remote_supply_may_ask(const struct build_id *id)
{
	return id->kind == BUILD_ID_GNU && id->size >= ID_MIN_BYTES && id->size <= ID_MAX_BYTES;
}

/* Records pad build-ids to 20 bytes, which no file's own has. */
static struct build_id without_padding(struct build_id id)
{
	static const uint8_t sizes[] = {8, 16};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t n = sizes[i];
		while (n < id.size && !id.bytes[n])
			n++;
		if (id.size > sizes[i] && n == id.size) {
			id.size = sizes[i];
			break;
		}
	}
	return id;
}

int remote_supply_find(struct remote_supply *supply, const struct build_id *id,
		       enum fetcher_kind kind, char **path_out)
{
	const struct build_id key = without_padding(*id);
	return remote_supply_may_ask(id) ? fetch_folder_find(supply->folder, &key, kind, path_out)
					 : -1;
}

bool remote_supply_is_idle(const struct remote_supply *supply)
{
	return !supply->first;
}

void remote_supply_progress(const struct remote_supply *supply, uint64_t *done_out,
			    uint64_t *all_out)
{
	*done_out = supply->n_over;
	*all_out = supply->n_wanted;
}

void remote_supply_want(struct remote_supply *supply, const struct build_id *id,
			enum fetcher_kind kind, remote_supply_done_fn done, void *context)
{
	if (!remote_supply_may_ask(id)) {
		done(context, -1, NULL);
		return;
	}
	if (!supply->first && !supply->is_handing_over) {
		supply->deadline_ns = 0;
		supply->is_over = false;
	}
	struct wish *wish = mem_zalloc(1, sizeof(*wish));
	*wish = (struct wish){.supply = supply,
			      .id = without_padding(*id),
			      .kind = kind,
			      .done = done,
			      .context = context,
			      .work = {.fd = -1}};
	*supply->end = wish;
	supply->end = &wish->next;
	supply->n_wanted++;
}

/* ---- what came of a fetch ---- */

static void describe(const struct remote_supply *supply, enum fetcher_outcome outcome,
		     const char *text, char out[SERVER_REASON_BYTES])
{
	if (outcome == FETCHER_LATE && !*text)
		snprintf(out, SERVER_REASON_BYTES, "did not answer in %us",
			 supply->report.answer_s);
	else if (outcome == FETCHER_LATE)
		snprintf(out, SERVER_REASON_BYTES, "was too slow");
	else
		snprintf(out, SERVER_REASON_BYTES, "failed: %s", text);
}

static void blame(struct wish *wish, uint32_t place, const char *reason)
{
	struct remote_supply *supply = wish->supply;
	uint32_t server = wish->servers[place < wish->n_servers ? place : 0];
	log_debug("debuginfod server=%s %s", supply->servers.items[server].url, reason);
	if (server_list_note_failure(&supply->servers, server, reason))
		fetch_folder_save_pauses(supply->folder, &supply->servers);
}

static void note_outcomes(struct wish *wish, const struct fetcher_report_message *report)
{
	struct remote_supply *supply = wish->supply;
	for (uint32_t i = 0; i < wish->n_servers; i++) {
		char reason[SERVER_REASON_BYTES];
		switch ((enum fetcher_outcome)report->outcomes[i]) {
		case FETCHER_NOT_THERE:
			server_list_note_answer(&supply->servers, wish->servers[i]);
			break;
		case FETCHER_TROUBLE:
		case FETCHER_LATE:
			describe(supply, report->outcomes[i], report->texts[i], reason);
			blame(wish, i, reason);
			break;
		case FETCHER_SILENT:
		case FETCHER_OUTCOME_N:
			break;
		}
	}
}

static void end_wish(struct wish *wish)
{
	fetch_folder_end_work(wish->supply->folder, &wish->work);
	wish->state = WISH_OVER;
}

static void take_file(struct wish *wish, const struct fetcher_report_message *report)
{
	struct remote_supply *supply = wish->supply;
	struct error *err = fetch_folder_take(supply->folder, &wish->work, report->path, &wish->id,
					      wish->kind, report->stated_bytes);
	if (!err) {
		server_list_note_answer(
			&supply->servers,
			wish->servers[report->server < wish->n_servers ? report->server : 0]);
		return;
	}
	/* A server that sends something else is as bad as one that fails. */
	if (error_get_code(err) == ERROR_BAD_DATA)
		blame(wish, report->server, error_text(err));
	else
		log_debug("fetched file not kept reason=\"%s\"", error_text(err));
	supply->report.n_failed++;
	error_free(err);
}

static void on_fetched(void *context, const struct fetcher_result *result)
{
	struct wish *wish = context;
	struct remote_supply *supply = wish->supply;
	struct symcache_fetch_report *report = &supply->report;
	switch (result->verdict) {
	case FETCHER_FOUND:
		take_file(wish, result->report);
		break;
	case FETCHER_ABSENT:
		note_outcomes(wish, result->report);
		report->n_absent++;
		/* Servers that were left out might have it. */
		if (wish->n_servers == supply->servers.n)
			fetch_folder_note_absent(supply->folder, &wish->id, wish->kind,
						 server_list_hash(&supply->servers),
						 supply->absent_ns);
		break;
	case FETCHER_TOO_LARGE:
		report->n_too_large++;
		break;
	case FETCHER_FAILED:
		note_outcomes(wish, result->report);
		report->n_failed++;
		break;
	case FETCHER_LOST:
		if (!supply->is_over && wish->n_tries < MAX_TRIES) {
			fetch_folder_end_work(supply->folder, &wish->work);
			wish->state = WISH_WAITS;
			return;
		}
		report->n_given_up++;
		break;
	case FETCHER_NO_LIBRARY:
		report->has_no_library = true;
		report->n_given_up++;
		break;
	case FETCHER_NOT_CONFINED:
		report->is_not_confined = true;
		report->n_given_up++;
		break;
	}
	end_wish(wish);
}

/* ---- starting ---- */

/* Those that are not paused, and their URLs. */
static void choose_servers(struct wish *wish, char urls[FETCHER_WIRE_URLS_BYTES])
{
	const struct server_list *servers = &wish->supply->servers;
	size_t n = 0;
	wish->n_servers = 0;
	urls[0] = 0;
	for (uint32_t i = 0; i < servers->n; i++) {
		if (server_list_is_paused(servers, i))
			continue;
		n += (size_t)snprintf(urls + n, FETCHER_WIRE_URLS_BYTES - n, "%s%s", n ? " " : "",
				      servers->items[i].url);
		wish->servers[wish->n_servers++] = i;
	}
}

static void start_fetch(struct wish *wish)
{
	struct remote_supply *supply = wish->supply;
	char urls[FETCHER_WIRE_URLS_BYTES];
	struct error *err = fetch_folder_begin_work(supply->folder, &wish->work);
	if (err) {
		log_debug("nothing fetched reason=\"%s\"", error_text(err));
		error_free(err);
		supply->report.n_given_up++;
		wish->state = WISH_OVER;
		return;
	}
	if (!supply->deadline_ns)
		supply->deadline_ns = now_ns(supply) + supply->all_ns;
	choose_servers(wish, urls);
	wish->state = WISH_RUNS;
	wish->n_tries++;
	const struct fetcher_order order = {
		.id = wish->id,
		.kind = wish->kind,
		.urls = urls,
		.n_servers = wish->n_servers,
		.folder = wish->work.fd,
		.done = on_fetched,
		.context = wish,
	};
	fetcher_start(supply->fetcher, &order);
}

static bool is_being_fetched(const struct wish *wish)
{
	for (const struct wish *other = wish->supply->first; other; other = other->next) {
		if (other != wish && other->state == WISH_RUNS && other->kind == wish->kind &&
		    build_id_equal(&other->id, &wish->id))
			return true;
	}
	return false;
}

/*
 * While a server that may be asked has failed lately, those that run are waited for: they may
 * pause it.
 */
static bool may_start(const struct remote_supply *supply)
{
	bool is_doubtful = false;
	for (uint32_t i = 0; i < supply->servers.n; i++)
		is_doubtful |= supply->servers.items[i].n_failures != 0;
	return fetcher_has_place(supply->fetcher) &&
	       !(is_doubtful && fetcher_n_running(supply->fetcher));
}

/* False when nothing more can be started now. */
static bool advance(struct wish *wish)
{
	struct remote_supply *supply = wish->supply;
	int fd = fetch_folder_find(supply->folder, &wish->id, wish->kind, NULL);
	if (fd >= 0) {
		close(fd);
		wish->state = WISH_OVER;
	} else if (supply->report.has_no_library || supply->report.is_not_confined ||
		   supply->is_over) {
		supply->report.n_given_up++;
		wish->state = WISH_OVER;
	} else if (server_list_are_all_paused(&supply->servers)) {
		supply->report.n_paused++;
		wish->state = WISH_OVER;
	} else if (!supply->retry_failures &&
		   fetch_folder_is_absent(supply->folder, &wish->id, wish->kind,
					  server_list_hash(&supply->servers))) {
		supply->report.n_absent++;
		wish->state = WISH_OVER;
	} else if (!may_start(supply)) {
		return false;
	} else if (!is_being_fetched(wish)) {
		start_fetch(wish);
	}
	return true;
}

static void start_what_waits(struct remote_supply *supply)
{
	for (struct wish *wish = supply->first; wish; wish = wish->next) {
		if (wish->state == WISH_WAITS && !advance(wish))
			return;
	}
}

/* Takes the wish. */
static void hand_over(struct wish *wish)
{
	struct remote_supply *supply = wish->supply;
	char *path = NULL;
	int fd = fetch_folder_find(supply->folder, &wish->id, wish->kind, &path);
	supply->report.n_found += fd >= 0;
	supply->is_handing_over = true;
	wish->done(wish->context, fd, path);
	supply->is_handing_over = false;
	mem_free(path);
	mem_free(wish);
}

/* Whether there was one. */
static bool hand_over_next(struct remote_supply *supply)
{
	for (struct wish **link = &supply->first; *link; link = &(*link)->next) {
		struct wish *wish = *link;
		if (wish->state != WISH_OVER)
			continue;
		*link = wish->next;
		if (supply->end == &wish->next)
			supply->end = link;
		supply->n_over++;
		hand_over(wish);
		return true;
	}
	return false;
}

void remote_supply_cancel(struct remote_supply *supply)
{
	supply->is_over = true;
	fetcher_cancel(supply->fetcher);
	start_what_waits(supply); /* gives all up */
	while (hand_over_next(supply))
		;
}

void remote_supply_step(struct remote_supply *supply, uint32_t wait_ms)
{
	uint64_t left_ms = UINT32_MAX;
	start_what_waits(supply);
	if (hand_over_next(supply)) {
		while (hand_over_next(supply))
			;
		return;
	}
	if (supply->deadline_ns) {
		uint64_t now = now_ns(supply);
		left_ms = now < supply->deadline_ns ? (supply->deadline_ns - now) / 1000000 : 0;
		if (!left_ms && !supply->is_over) {
			remote_supply_cancel(supply);
			supply->report.is_out_of_time = true;
			return;
		}
	}
	fetcher_step(supply->fetcher, left_ms < wait_ms ? (uint32_t)left_ms : wait_ms);
}

void remote_supply_get_report(const struct remote_supply *supply, struct symcache_fetch_report *out)
{
	*out = supply->report;
	out->n_servers = 0;
	for (uint32_t i = 0; i < supply->servers.n; i++) {
		const struct server *server = &supply->servers.items[i];
		uint32_t paused_s = server_list_pause_s(&supply->servers, i);
		if (!server->n_all_failures && !paused_s)
			continue;
		struct symcache_fetch_trouble *trouble = &out->servers[out->n_servers++];
		char host[SERVER_URL_BYTES];
		server_list_host(&supply->servers, i, host);
		snprintf(trouble->host, sizeof(trouble->host), "%.*s",
			 (int)sizeof(trouble->host) - 1, host);
		snprintf(trouble->reason, sizeof(trouble->reason), "%s", server->reason);
		trouble->paused_s = paused_s;
		trouble->is_new = server->n_all_failures != 0;
	}
}
