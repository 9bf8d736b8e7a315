/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_AREA "delivery"
#include "pipeline/delivery.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "base/stats.h"
#include "pipeline/push_profile.h"
#include "pipeline/thread_privileges.h"

enum {
	MAX_WINDOWS = 8,
	MAX_WISHES = 8,
	MAX_SERIES_LABELS = 32,
	BLOCKED_RETRY_MS = 1000,
	ENDING_LOOK_MS = 50,
};

/* What the forward thread is asked for beside windows. */
enum wish_kind { WISH_REFRESH, WISH_LOG_STATE, WISH_STATE, WISH_END };

struct wish {
	enum wish_kind kind;
	uint64_t deadline_ns;	   /* WISH_END */
	struct agent_query *query; /* WISH_STATE */
};

struct delivery {
	struct delivery_config config;
	pthread_t thread;
	bool has_thread;
	/* All threads. */
	struct mailbox *windows, *wishes;
	uv_async_t wake;
	/* Producer. */
	struct log_every dropped;
	/* Forward thread. */
	uv_loop_t loop;
	uv_timer_t timer;
	struct forwarder *forwarder;
	uint64_t deadline_ns;	       /* of the end, 0 = nobody wants it yet */
	bool is_ending;		       /* all windows came */
	struct delivery_counts counts; /* exporters: filled at the end */
	struct log_every failed;
};

static uint64_t now_ns(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

/* --- windows --- */

static void put_series(struct delivery *delivery, const struct window_series *series)
{
	const struct delivery_config *config = &delivery->config;
	struct key_value labels[MAX_SERIES_LABELS + 1];
	size_t n = 0;
	/* What the configuration says comes first, so that it wins. */
	for (size_t i = 0; i < config->n_labels && i < MAX_SERIES_LABELS; i++)
		labels[n++] = config->labels[i];
	labels[n++] = (struct key_value){"service_name", series->service};
	const struct outgoing_profile outgoing = {
		.profile = series->profile,
		.name = push_profile_name(series->profile),
		.labels = labels,
		.n_labels = n,
	};
	forwarder_put(delivery->forwarder, &outgoing);
	delivery->counts.n_profiles++;
}

/* False while a spool has no room and wants to be waited for. */
static bool commit(struct delivery *delivery)
{
	struct error *err = forwarder_commit(delivery->forwarder);
	bool was_blocked = delivery->counts.is_blocked;
	delivery->counts.is_blocked = err == error_again;
	if (delivery->counts.is_blocked && !was_blocked)
		log_warn("a spool is full and blocks: windows wait");
	if (!err || delivery->counts.is_blocked)
		return !err;
	uint64_t n_held;
	if (log_every_allows(&delivery->failed, now_ns(), &n_held))
		log_warn("window not wholly kept repeats=%" PRIu64 " err=\"%s\"", n_held,
			 error_text(err));
	error_free(err);
	return true;
}

static bool put_window(struct delivery *delivery, struct finished_window *window)
{
	for (size_t i = 0; i < window->n_series; i++)
		put_series(delivery, &window->series[i]);
	delivery->counts.n_windows++;
	delivery->counts.n_samples += window->n_samples;
	finished_window_free(window);
	return commit(delivery);
}

/* --- the end --- */

/* Whether nothing more comes of waiting for that exporter. */
static bool is_settled(const struct exporter_counts *counts)
{
	return !counts->n_active && (!counts->queue.requests || counts->is_failing);
}

static bool is_all_settled(const struct delivery *delivery)
{
	struct exporter_counts counts;
	for (size_t i = 0; i < forwarder_n_exporters(delivery->forwarder); i++) {
		forwarder_get_counts(delivery->forwarder, i, &counts);
		if (!is_settled(&counts))
			return false;
	}
	return true;
}

static void update_counts(struct delivery *delivery)
{
	for (size_t i = 0; i < delivery->counts.n_exporters; i++)
		forwarder_get_counts(delivery->forwarder, i, &delivery->counts.exporters[i]);
}

static void close_all(struct delivery *delivery)
{
	update_counts(delivery);
	forwarder_close(TAKE(delivery->forwarder));
	uv_close((uv_handle_t *)&delivery->timer, NULL);
	uv_close((uv_handle_t *)&delivery->wake, NULL);
}

static void look_for_end(uv_timer_t *timer)
{
	struct delivery *delivery = timer->data;
	if (is_all_settled(delivery) || now_ns() >= delivery->deadline_ns)
		close_all(delivery);
	else
		uv_timer_start(timer, look_for_end, ENDING_LOOK_MS, 0);
}

/* --- the loop --- */

static void log_exporter(const struct exporter_counts *counts)
{
	log_info("exporter name=%s sent_samples=%" PRIu64 " sent_profiles=%" PRIu64
		 " waiting_samples=%" PRIu64 " waiting_bytes=%" PRIu64 " lost_samples=%" PRIu64
		 " is_failing=%d err=\"%s\"",
		 counts->exporter, counts->sent_samples, counts->sent_profiles,
		 counts->queue.samples, counts->queue.bytes, delivery_counts_lost(counts),
		 counts->is_failing, counts->last_error);
}

static void log_state(struct delivery *delivery)
{
	update_counts(delivery);
	log_info("delivery windows=%" PRIu64 " profiles=%" PRIu64 " samples=%" PRIu64
		 " is_blocked=%d",
		 delivery->counts.n_windows, delivery->counts.n_profiles,
		 delivery->counts.n_samples, delivery->counts.is_blocked);
	for (size_t i = 0; i < delivery->counts.n_exporters; i++)
		log_exporter(&delivery->counts.exporters[i]);
}

static void answer(struct delivery *delivery, struct agent_query *query)
{
	struct statvfs disk;
	update_counts(delivery);
	delivery_counts_copy(&delivery->counts, &query->state.delivery);
	query->state.has_storage = statvfs(delivery->config.spool_directory, &disk) == 0;
	if (query->state.has_storage)
		query->state.storage_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	agent_query_answer(query);
}

static void serve_wishes(struct delivery *delivery)
{
	void *item;
	while (mailbox_take(delivery->wishes, 0, &item) && item) {
		const struct wish *wish = item;
		if (wish->kind == WISH_REFRESH)
			forwarder_refresh(delivery->forwarder);
		else if (wish->kind == WISH_LOG_STATE)
			log_state(delivery);
		else if (wish->kind == WISH_STATE)
			answer(delivery, wish->query);
		else
			delivery->deadline_ns = wish->deadline_ns;
		mem_free(item);
	}
}

static void drop_window(struct finished_window *window)
{
	stats_add(STAT_WINDOWS_DROPPED, 1);
	stats_add(STAT_WINDOW_SAMPLES_DROPPED, window->n_samples);
	finished_window_free(window);
}

/* A spool that blocks would hold up the end for good. */
static void give_up_windows(struct delivery *delivery)
{
	void *window;
	while (mailbox_take(delivery->windows, 0, &window) && window)
		drop_window(window);
	log_warn("windows dropped at the end: a spool is full and blocks");
	close_all(delivery);
}

static void serve_windows(uv_timer_t *timer)
{
	struct delivery *delivery = timer->data;
	bool is_free = !delivery->counts.is_blocked || commit(delivery);
	while (is_free) {
		void *window;
		delivery->is_ending = !mailbox_take(delivery->windows, 0, &window);
		if (delivery->is_ending) {
			/* The wish for the end came before, maybe behind the last look. */
			serve_wishes(delivery);
			look_for_end(timer);
		}
		if (!window)
			return;
		is_free = put_window(delivery, window);
	}
	delivery->is_ending = delivery->deadline_ns && now_ns() >= delivery->deadline_ns;
	if (delivery->is_ending)
		give_up_windows(delivery);
	else
		uv_timer_start(timer, serve_windows, BLOCKED_RETRY_MS, 0);
}

static void woken(uv_async_t *wake)
{
	struct delivery *delivery = wake->data;
	if (!delivery->forwarder)
		return;
	serve_wishes(delivery);
	if (!delivery->is_ending)
		serve_windows(&delivery->timer);
}

static void *run(void *context)
{
	struct delivery *delivery = context;
	thread_privileges_reduce(THREAD_OTHER);
	uv_run(&delivery->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* --- the other threads' side --- */

/* Signals are the main thread's business. */
static struct error *start_thread(struct delivery *delivery)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int rc = pthread_create(&delivery->thread, NULL, run, delivery);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return error_number(error_errno(rc, "cannot start the forward thread"), 117);
	delivery->has_thread = true;
	pthread_setname_np(delivery->thread, "forward");
	return NULL;
}

static struct error *open_loop(struct delivery *delivery)
{
	const struct delivery_config *config = &delivery->config;
	int rc = uv_loop_init(&delivery->loop);
	if (rc)
		return error_number(error_errno(-rc, "loop of the forward thread"), 107);
	uv_timer_init(&delivery->loop, &delivery->timer);
	uv_async_init(&delivery->loop, &delivery->wake, woken);
	delivery->timer.data = delivery->wake.data = delivery;
	const struct forwarder_config forwarder = {
		.exporters = config->exporters,
		.n_exporters = config->n_exporters,
		.spool_directory = config->spool_directory,
		.spool = config->spool,
	};
	struct error *err = forwarder_new(&delivery->loop, &forwarder, &delivery->forwarder);
	return err && !error_get_number(err) ? error_number(err, 401) : err;
}

static void close_loop(struct delivery *delivery)
{
	uv_close((uv_handle_t *)&delivery->timer, NULL);
	uv_close((uv_handle_t *)&delivery->wake, NULL);
	if (delivery->forwarder)
		forwarder_close(TAKE(delivery->forwarder));
	uv_run(&delivery->loop, UV_RUN_DEFAULT);
}

struct error *delivery_open(const struct delivery_config *config, struct delivery **out)
{
	struct delivery *delivery = mem_zalloc(1, sizeof(*delivery));
	struct delivery_counts *counts = &delivery->counts;
	delivery->config = *config;
	delivery->dropped.interval_ns = delivery->failed.interval_ns = LOG_REPEAT_NS;
	delivery->windows = mailbox_new(config->max_windows ? config->max_windows : MAX_WINDOWS);
	delivery->wishes = mailbox_new(MAX_WISHES);
	delivery_counts_init(counts, config->n_exporters);
	struct error *err = open_loop(delivery);
	for (size_t i = 0; !err && i < config->n_exporters; i++) {
		forwarder_get_counts(delivery->forwarder, i, &counts->exporters[i]);
		counts->earlier_samples[i] = counts->exporters[i].queue.samples;
	}
	if (!err)
		err = start_thread(delivery);
	if (err) {
		close_loop(delivery);
		delivery_close(delivery);
		return err;
	}
	*out = delivery;
	return NULL;
}

void delivery_put(struct delivery *delivery, struct finished_window *window)
{
	if (mailbox_put(delivery->windows, window)) {
		uv_async_send(&delivery->wake);
		return;
	}
	uint64_t n_held;
	if (log_every_allows(&delivery->dropped, now_ns(), &n_held))
		log_warn("window dropped, the forward thread does not keep up samples=%" PRIu64
			 " repeats=%" PRIu64,
			 window->n_samples, n_held);
	drop_window(window);
}

static struct wish *wish_new(enum wish_kind kind, uint64_t deadline_ns)
{
	struct wish *wish = mem_alloc(sizeof(*wish));
	*wish = (struct wish){.kind = kind, .deadline_ns = deadline_ns};
	return wish;
}

static void free_wish(void *item)
{
	struct wish *wish = item;
	agent_query_free(wish->query);
	mem_free(wish);
}

/* One that finds no room is one of many that are the same. */
static void wish_for(struct delivery *delivery, enum wish_kind kind)
{
	struct wish *wish = wish_new(kind, 0);
	if (!mailbox_put(delivery->wishes, wish))
		mem_free(wish);
	uv_async_send(&delivery->wake);
}

void delivery_refresh(struct delivery *delivery)
{
	wish_for(delivery, WISH_REFRESH);
}

void delivery_query(struct delivery *delivery, struct agent_query *query)
{
	struct wish *wish = wish_new(WISH_STATE, 0);
	wish->query = query;
	if (!mailbox_put(delivery->wishes, wish))
		free_wish(wish);
	uv_async_send(&delivery->wake);
}

void delivery_log_state(struct delivery *delivery)
{
	wish_for(delivery, WISH_LOG_STATE);
}

void delivery_finish(struct delivery *delivery, uint64_t deadline_ns)
{
	if (!delivery->has_thread)
		return;
	struct wish *wish = wish_new(WISH_END, deadline_ns);
	/* The wish first: who finds the windows closed finds the deadline too. */
	if (!mailbox_put_wait(delivery->wishes, wish))
		mem_free(wish);
	mailbox_close(delivery->windows);
	uv_async_send(&delivery->wake);
	pthread_join(delivery->thread, NULL);
	delivery->has_thread = false;
}

void delivery_get_counts(struct delivery *delivery, struct delivery_counts *out)
{
	*out = delivery->counts;
	delivery->counts.exporters = NULL;
	delivery->counts.earlier_samples = NULL;
}

void delivery_close(struct delivery *delivery)
{
	if (!delivery)
		return;
	delivery_finish(delivery, 0);
	uv_loop_close(&delivery->loop);
	mailbox_free(delivery->windows, NULL);
	mailbox_free(delivery->wishes, free_wish);
	delivery_counts_fini(&delivery->counts);
	mem_free(delivery);
}
