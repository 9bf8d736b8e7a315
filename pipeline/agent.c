/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_AREA "agent"
#include "pipeline/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "pipeline/interruption.h"
#include "pipeline/live_poll.h"
#include "pipeline/service_notify.h"
#include "pipeline/status_server.h"
#include "pipeline/thread_privileges.h"
#include "pipeline/window_clock.h"

#define NS_PER_S  ((uint64_t)1000000000)
#define NS_PER_MS ((uint64_t)1000000)
#define DRAIN_NS  (100 * NS_PER_MS)
/* How often a target that is not there is looked for. */
#define TARGET_NS NS_PER_S
/* The service manager has no more patience than 20 s. */
#define END_NS	   (18 * NS_PER_S)
#define SUMMARY_NS (3600 * NS_PER_S)
enum {
	MAX_LAST_DRAINS = 64,
	NO_PROCESS = 102,
	NO_CGROUP = 104,
	NO_CYCLES = 108,
	DEFAULT_HZ = 99,
	MAX_QUERIES = 64
};

/* Our own descriptors, ahead of the source's. */
enum { FD_SIGNAL, FD_RELOAD, FD_STATE, FD_CALL, FD_FAILURE, FD_QUERY, FD_OWN_N };

/* What is done with the sum of windows that a query wants, at the end of a window. */
enum sum_step { SUM_KEEP, SUM_BEGIN, SUM_END };

struct agent {
	const struct agent_options *options;
	struct symcache *cache;
	struct delivery *delivery;
	struct live_poll fds;
	/* While there is a target. */
	struct record_source *source;
	struct sampler *sampler; /* the convert thread's while pipeline is there */
	struct pipeline *pipeline;
	struct window_clock windows;
	struct sampler_moment cut; /* of the call that is under way, as the next */
	enum sum_step sum_step;
	size_t n_warnings;  /* of the source that were said */
	uint64_t n_drained; /* records of the newest drain */

	bool was_sampling;    /* at least once */
	uint64_t target_ns;   /* when to look for the target again */
	uint64_t alive_ns;    /* when to tell the watchdog */
	uint64_t summary_ns;  /* when to sum up */
	uint64_t n_unwritten; /* samples that no pipeline had room for */
	struct log_every lagging;

	struct wake_box *queries;
	struct status_server *server;
	/* A query for a profile, NULL = there is none; and what is next for it. */
	struct agent_query *wanted;
	enum sum_step wanted_step;
	uint64_t wanted_ns; /* when SUM_END is due */
	uint64_t reload_wall_ns;
	char target[AGENT_STATE_TEXT_BYTES];
};

static uint64_t now_ns(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

static struct sampler_moment now(void)
{
	return (struct sampler_moment){
		.monotonic_ns = now_ns(),
		.wall_ns = clock_system.wall_ns(clock_system.context),
	};
}

/* --- windows --- */

/* A pipeline_call_fn. */
static struct error *cut(void *context)
{
	struct agent *agent = context;
	struct error *err = sampler_cut(agent->sampler, agent->cut);
	if (!err && agent->sum_step == SUM_BEGIN)
		sampler_begin_sum(agent->sampler);
	if (!err && agent->sum_step == SUM_END)
		agent->wanted->profile = sampler_end_sum(agent->sampler);
	return err;
}

/* The window ends behind what was drained until now. */
static void end_window(struct agent *agent, enum sum_step sum_step)
{
	if (pipeline_is_calling(agent->pipeline)) {
		uint64_t n_held, at_ns = now_ns();
		if (at_ns > agent->windows.due_ns + NS_PER_S &&
		    log_every_allows(&agent->lagging, at_ns, &n_held))
			log_warn("window is late: the one before is still being named "
				 "repeats=%" PRIu64,
				 n_held);
		return;
	}
	agent->cut = now();
	agent->sum_step = sum_step;
	window_clock_begin(&agent->windows);
	pipeline_call(agent->pipeline, cut, agent);
}

/* --- the source --- */

/* More may have come since the last time. */
static void log_warnings(struct agent *agent)
{
	const struct collector_live_state *state = collector_live_state(agent->source);
	for (; agent->n_warnings < state->n_warnings; agent->n_warnings++) {
		const struct collector_warning *warning = &state->warnings[agent->n_warnings];
		/* Nobody asked for cycles, so this is how things are and no reason to warn. */
		bool is_usual = warning->number == NO_CYCLES && !agent->options->live.events;
		log_line(is_usual ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, LOG_AREA,
			 "%s code=W%d reason=\"%s\"",
			 is_usual ? "event chosen" : "sampling is degraded", warning->number,
			 warning->text);
	}
}

static struct error *count_and_feed(void *context, const struct perf_record *records, size_t n)
{
	struct agent *agent = context;
	agent->n_drained += n;
	return pipeline_feed(agent->pipeline, records, n);
}

/* is_gone_out: the target ended. */
static struct error *drain(struct agent *agent, bool *is_gone_out)
{
	agent->n_drained = 0;
	struct error *err = record_source_drain(agent->source, count_and_feed, agent);
	*is_gone_out = err && error_get_code(err) == ERROR_NO_ENTRY;
	if (*is_gone_out) {
		error_free(err);
		err = NULL;
	}
	pipeline_flush(agent->pipeline);
	return err;
}

/* A pipeline_call_fn. */
static struct error *reduce_privileges(void *context)
{
	(void)context;
	thread_privileges_reduce(THREAD_CONVERT);
	return NULL;
}

static struct error *open_source(struct agent *agent)
{
	const struct agent_options *options = agent->options;
	struct error *err = collector_open_live(&options->live, &agent->source);
	if (err)
		return err;
	agent->n_warnings = 0;
	log_warnings(agent);
	agent->sampler = sampler_open(&options->sampler, record_source_info(agent->source),
				      agent->cache, agent->delivery);
	const struct pipeline_config config = {
		.sinks = {sampler_sink(agent->sampler)},
		.n_sinks = 1,
		.is_threaded = true,
	};
	err = pipeline_open(&config, &agent->pipeline);
	if (err)
		return err;
	pipeline_call(agent->pipeline, reduce_privileges, NULL);
	err = collector_live_start(agent->source);
	window_clock_init(&agent->windows, &clock_system, options->window_ns);
	return err;
}

static void close_source(struct agent *agent)
{
	if (agent->pipeline)
		agent->n_unwritten += pipeline_get_losses(agent->pipeline).samples;
	pipeline_close(TAKE(agent->pipeline));
	sampler_close(TAKE(agent->sampler));
	record_source_close(TAKE(agent->source));
}

/* What the kernel wrote until the stop is the end of the last window. */
static struct error *end_sampling(struct agent *agent)
{
	struct error *err = collector_live_stop(agent->source);
	for (int i = 0; i < MAX_LAST_DRAINS && !err; i++) {
		bool is_gone;
		err = drain(agent, &is_gone);
		if (agent->n_drained == 0)
			break;
	}
	struct error *sink_err = pipeline_finish(agent->pipeline);
	if (!sink_err)
		sink_err = sampler_cut(agent->sampler, now());
	close_source(agent);
	if (err)
		error_free(sink_err);
	return err ? err : sink_err;
}

/* --- queries --- */

static void fill_state(const struct agent *agent, struct agent_state *state)
{
	state->is_sampling = agent->source;
	state->window_ns = agent->options->window_ns;
	state->reload_wall_ns = agent->reload_wall_ns;
	state->n_unread_samples = agent->n_unwritten;
	memcpy(state->target, agent->target, sizeof(state->target));
	uint32_t hz = agent->options->live.frequency_hz;
	if (!agent->options->live.period)
		state->frequency_hz = hz ? hz : DEFAULT_HZ;
	if (!agent->source)
		return;
	const struct collector_live_state *live = collector_live_state(agent->source);
	state->n_cpus = live->n_cpus;
	state->n_rings = live->n_rings;
	state->n_unread_samples += pipeline_get_losses(agent->pipeline).samples;
	for (size_t i = 0; i < live->n_warnings && i < AGENT_STATE_NOTES; i++) {
		struct agent_note *note = &state->degraded[state->n_degraded++];
		note->number = live->warnings[i].number;
		snprintf(note->text, sizeof(note->text), "%s", live->warnings[i].text);
	}
}

static void refuse_profile(struct agent_query *query, const char *why)
{
	snprintf(query->why, sizeof(query->why), "%s", why);
	agent_query_answer(query);
}

static void want_profile(struct agent *agent, struct agent_query *query)
{
	if (!agent->source) {
		refuse_profile(query, agent->target);
	} else if (agent->wanted) {
		refuse_profile(query, "another profile is being made");
	} else {
		agent->wanted = query;
		agent->wanted_step = SUM_BEGIN;
	}
}

/* What was summed up is given up with the next one. */
static void give_up_profile(struct agent *agent, const char *why)
{
	if (agent->wanted)
		refuse_profile(TAKE(agent->wanted), why);
}

static void serve_queries(struct agent *agent)
{
	for (struct agent_query *query;
	     agent->queries && (query = wake_box_take(agent->queries));) {
		switch (query->kind) {
		case AGENT_QUERY_STATE:
			fill_state(agent, &query->state);
			delivery_query(agent->delivery, query);
			break;
		case AGENT_QUERY_PROFILE:
			want_profile(agent, query);
			break;
		case AGENT_QUERY_CANCEL:
			agent_query_free(query);
			agent->wanted_ns = now_ns();
			break;
		}
	}
}

/* Goes on with the profile that is wanted, where the convert thread is free for it. */
static void serve_profile(struct agent *agent)
{
	if (!agent->wanted || pipeline_is_calling(agent->pipeline))
		return;
	if (agent->wanted_step == SUM_BEGIN) {
		end_window(agent, SUM_BEGIN);
		agent->wanted_ns = now_ns() + agent->wanted->duration_ns;
		agent->wanted_step = SUM_END;
	} else if (agent->wanted_step == SUM_END && now_ns() >= agent->wanted_ns) {
		end_window(agent, SUM_END);
		agent->wanted_step = SUM_KEEP;
	} else if (agent->wanted_step == SUM_KEEP) {
		agent_query_answer(TAKE(agent->wanted));
	}
}

/* --- targets that come and go --- */

static void tell_waiting(struct agent *agent, const char *why)
{
	snprintf(agent->target, sizeof(agent->target), "%s", why);
	log_info("waiting for the target reason=\"%s\"", why);
	service_notify("READY=1\nSTATUS=waiting for the target: %.200s", why);
}

static bool is_missing(const struct error *err)
{
	return error_get_number(err) == NO_PROCESS || error_get_number(err) == NO_CGROUP;
}

/* Errors: only before anything was sampled, of what will not mend itself. */
static struct error *look_for_target(struct agent *agent)
{
	bool is_first = !agent->target_ns;
	agent->target_ns = now_ns() + TARGET_NS;
	struct error *err = open_source(agent);
	if (!err) {
		agent->was_sampling = true;
		const struct collector_live_state *state = collector_live_state(agent->source);
		log_info("sampling cpus=%" PRIu32 " rings=%" PRIu32 " ring_bytes=%" PRIu64,
			 state->n_cpus, state->n_rings, state->ring_bytes);
		service_notify("READY=1\nSTATUS=sampling");
		return NULL;
	}
	close_source(agent);
	if (!agent->was_sampling && !is_missing(err))
		return err;
	if (is_first)
		tell_waiting(agent, error_text(err));
	error_free(err);
	return NULL;
}

static void lose_target(struct agent *agent)
{
	struct error *err = end_sampling(agent);
	if (err)
		log_warn("the last window is not whole err=\"%s\"", error_text(err));
	error_free(err);
	give_up_profile(agent, "the target ended");
	agent->target_ns = now_ns() + TARGET_NS;
	tell_waiting(agent, "it ended");
}

/* --- the loop --- */

static void list_fds(struct agent *agent)
{
	bool is_sampling = agent->pipeline;
	live_poll_set(&agent->fds, FD_SIGNAL, interruption_fd());
	live_poll_set(&agent->fds, FD_RELOAD, interruption_reload_fd());
	live_poll_set(&agent->fds, FD_STATE, interruption_snapshot_fd());
	live_poll_set(&agent->fds, FD_CALL, is_sampling ? pipeline_call_fd(agent->pipeline) : -1);
	live_poll_set(&agent->fds, FD_FAILURE,
		      is_sampling ? pipeline_failure_fd(agent->pipeline) : -1);
	live_poll_set(&agent->fds, FD_QUERY, agent->queries ? wake_box_fd(agent->queries) : -1);
	live_poll_set_source(&agent->fds, agent->source);
}

static uint64_t patience_ns(const struct agent *agent)
{
	uint64_t wait_ns = agent->source ? window_clock_wait_ns(&agent->windows) : DRAIN_NS;
	return wait_ns < DRAIN_NS ? wait_ns : DRAIN_NS;
}

static void reload(struct agent *agent)
{
	service_notify("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000);
	delivery_refresh(agent->delivery);
	agent->reload_wall_ns = clock_system.wall_ns(clock_system.context);
	log_info("credentials and certificates are read again");
	service_notify("READY=1");
}

static void log_state(struct agent *agent)
{
	log_info("state sampling=%d samples_taken=%" PRIu64 " samples_lost=%" PRIu64
		 " windows_early=%" PRIu64 " windows_dropped=%" PRIu64,
		 agent->source != NULL, stats_get(STAT_SAMPLES_TAKEN), stats_get(STAT_SAMPLES_LOST),
		 stats_get(STAT_WINDOWS_EARLY), stats_get(STAT_WINDOWS_DROPPED));
	delivery_log_state(agent->delivery);
}

static void do_what_is_due(struct agent *agent)
{
	uint64_t at_ns = now_ns(), watchdog_ns = service_notify_watchdog_ns();
	if (watchdog_ns && at_ns >= agent->alive_ns) {
		service_notify("WATCHDOG=1");
		agent->alive_ns = at_ns + watchdog_ns / 3;
	}
	if (at_ns >= agent->summary_ns) {
		agent->summary_ns = at_ns + SUMMARY_NS;
		log_state(agent);
	}
	if (interruption_takes_reload())
		reload(agent);
	if (interruption_takes_snapshot())
		log_state(agent);
	serve_queries(agent);
}

static struct error *sample(struct agent *agent)
{
	bool is_gone;
	struct error *err = drain(agent, &is_gone);
	if (err)
		return err;
	log_warnings(agent);
	if (live_poll_is_ready(&agent->fds, FD_FAILURE))
		return pipeline_finish(agent->pipeline);
	if (is_gone || collector_live_is_target_gone(agent->source))
		lose_target(agent);
	else
		serve_profile(agent);
	/* Takes note of a call that is back, which is what its descriptor is readable for. */
	if (agent->pipeline)
		(void)pipeline_is_calling(agent->pipeline);
	if (agent->source && window_clock_wait_ns(&agent->windows) == 0)
		end_window(agent, SUM_KEEP);
	return NULL;
}

static struct error *step(struct agent *agent)
{
	list_fds(agent);
	(void)live_poll_wait(&agent->fds, patience_ns(agent));
	do_what_is_due(agent);
	if (interruption_signal())
		return NULL;
	if (agent->source)
		return sample(agent);
	return now_ns() >= agent->target_ns ? look_for_target(agent) : NULL;
}

/* --- the end --- */

/* Where every sample went; silence about a gap would be the worst of all. */
static void account(struct agent *agent)
{
	struct delivery_counts counts;
	delivery_get_counts(agent->delivery, &counts);
	uint64_t left_out = stats_get(STAT_SAMPLES_MALFORMED) + stats_get(STAT_SAMPLES_NO_EVENT) +
			    stats_get(STAT_SAMPLES_FILTERED);
	uint64_t packed = stats_get(STAT_SAMPLES_PACKED);
	uint64_t dropped = stats_get(STAT_WINDOW_SAMPLES_DROPPED);
	int64_t missing = (int64_t)(stats_get(STAT_SAMPLES_TAKEN) - left_out - packed);
	missing += (int64_t)(packed - dropped - counts.n_samples);
	log_info("samples taken=%" PRIu64 " left_out=%" PRIu64 " dropped_before_conversion=%" PRIu64
		 " dropped_windows=%" PRIu64 " for_delivery=%" PRIu64 " missing=%" PRId64,
		 stats_get(STAT_SAMPLES_TAKEN) + agent->n_unwritten, left_out, agent->n_unwritten,
		 dropped, counts.n_samples, missing);
	for (size_t i = 0; i < counts.n_exporters; i++) {
		const struct exporter_counts *exporter = &counts.exporters[i];
		log_info("delivered exporter=%s earlier_samples=%" PRIu64 " sent_samples=%" PRIu64
			 " waiting_samples=%" PRIu64 " lost_samples=%" PRIu64 " missing=%" PRId64,
			 exporter->exporter, counts.earlier_samples[i], exporter->sent_samples,
			 exporter->queue.samples, delivery_counts_lost(exporter),
			 delivery_counts_missing(&counts, i));
	}
	delivery_counts_fini(&counts);
}

static struct error *end(struct agent *agent, struct error *err)
{
	if (interruption_signal())
		log_info("ending signal=%s", strsignal(interruption_signal()));
	service_notify("STOPPING=1\nSTATUS=delivering what is left");
	uint64_t deadline_ns = now_ns() + END_NS;
	if (agent->source && !err)
		err = end_sampling(agent);
	close_source(agent);
	give_up_profile(agent, "perfpipe ends");
	if (agent->delivery) {
		delivery_finish(agent->delivery, deadline_ns);
		account(agent);
	}
	/* Behind all threads that may hold one of its queries. */
	status_server_close(agent->server);
	wake_box_close(agent->queries, agent_query_free);
	return err;
}

static struct error *open_server(struct agent *agent)
{
	struct error *err = wake_box_open(MAX_QUERIES, &agent->queries);
	return err ? err
		   : status_server_open(agent->options->http_address, agent->queries,
					&agent->server);
}

static struct error *begin(struct agent *agent)
{
	service_notify_open();
	struct error *err = interruption_open_daemon();
	if (err)
		return err;
	/* Starts processes, so before threads. */
	agent->cache = symcache_new(&agent->options->symbols);
	/* Behind them, which take off more, under a user of their own. */
	thread_privileges_forbid_new();
	thread_privileges_reduce(THREAD_COLLECT);
	err = delivery_open(&agent->options->delivery, &agent->delivery);
	if (!err)
		err = look_for_target(agent);
	if (!err && agent->options->http_address)
		err = open_server(agent);
	interruption_insist();
	return err;
}

struct error *agent_run(const struct agent_options *options)
{
	struct agent agent = {
		.options = options,
		.lagging = {.interval_ns = LOG_REPEAT_NS},
		.summary_ns = now_ns() + SUMMARY_NS,
	};
	live_poll_init(&agent.fds, FD_OWN_N);
	struct error *err = begin(&agent);
	while (!err && !interruption_signal())
		err = step(&agent);
	err = end(&agent, err);
	delivery_close(agent.delivery);
	symcache_free(agent.cache);
	live_poll_fini(&agent.fds);
	interruption_close();
	service_notify_close();
	return err;
}
