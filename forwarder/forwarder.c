/* SPDX-License-Identifier: Apache-2.0 */
/* All exporters on one loop: who gets a profile, when each is looked after, when all is sent. */
#define LOG_AREA "forwarder"
#include "forwarder/forwarder.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/stats.h"
#include "forwarder/file_sink.h"
#include "forwarder/series.h"

#define NS_PER_MS ((uint64_t)1000000)

/* An exporter, with its channel, or the folder that files go to. */
struct outlet {
	struct exporter *exporter;    /* NULL for EXPORTER_FILE */
	struct grpc_channel *channel; /* likewise */
	struct file_sink *file_sink;  /* NULL for all others */
	const struct exporter_config *config;
	struct exporter_counts written; /* of file_sink */
	struct error *write_error;	/* the first one of the window */
};

struct flush {
	void (*done)(void *context, bool is_empty);
	void *context;
	uint64_t deadline_ns; /* monotonic */
};

struct forwarder {
	struct forwarder_config config;
	const struct clock *clock;
	struct outlet *outlets;
	size_t n_outlets;
	uv_timer_t timer;
	struct flush flush; /* done is NULL when nobody waits */
};

static uint64_t now_ns(const struct forwarder *forwarder)
{
	return forwarder->clock->monotonic_ns(forwarder->clock->context);
}

static struct grpc_call *call_channel(void *context, const struct grpc_request *request)
{
	return grpc_channel_call(context, request);
}

static void cancel_call(void *context, struct grpc_call *call)
{
	(void)context;
	grpc_call_cancel(call);
}

static void tick(uv_timer_t *timer);

/* Sleeps until the first exporter has something to do. */
static void arm(struct forwarder *forwarder)
{
	uint64_t now = now_ns(forwarder), wake = UINT64_MAX;
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		if (!forwarder->outlets[i].exporter)
			continue;
		uint64_t at = exporter_wake_ns(forwarder->outlets[i].exporter);
		wake = at < wake ? at : wake;
	}
	if (forwarder->flush.done && forwarder->flush.deadline_ns < wake)
		wake = forwarder->flush.deadline_ns;
	if (wake == UINT64_MAX) {
		uv_timer_stop(&forwarder->timer);
		return;
	}
	uint64_t delay_ms = wake > now ? (wake - now + NS_PER_MS - 1) / NS_PER_MS : 1;
	uv_timer_start(&forwarder->timer, tick, delay_ms, 0);
}

static bool is_idle(const struct forwarder *forwarder)
{
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		const struct exporter *exporter = forwarder->outlets[i].exporter;
		if (exporter && !exporter_is_idle(exporter))
			return false;
	}
	return true;
}

static void check_flush(struct forwarder *forwarder)
{
	if (!forwarder->flush.done)
		return;
	bool is_empty = is_idle(forwarder);
	if (!is_empty && now_ns(forwarder) < forwarder->flush.deadline_ns)
		return;
	struct flush flush = forwarder->flush;
	forwarder->flush = (struct flush){0};
	flush.done(flush.context, is_empty);
}

static void tick(uv_timer_t *timer)
{
	struct forwarder *forwarder = timer->data;
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		if (forwarder->outlets[i].exporter)
			exporter_run(forwarder->outlets[i].exporter);
	}
	check_flush(forwarder);
	arm(forwarder);
}

/* Soon, but not inside of whatever exporter this comes from. */
static void arm_now(struct forwarder *forwarder)
{
	uv_timer_start(&forwarder->timer, tick, 0, 0);
}

static void happened(void *context, const struct exporter_event *event)
{
	struct forwarder *forwarder = context;
	if (forwarder->config.on_event)
		forwarder->config.on_event(forwarder->config.context, event);
	arm_now(forwarder);
}

static struct error *open_outlet(struct forwarder *forwarder, uv_loop_t *loop,
				 const struct exporter_config *config, struct outlet *outlet)
{
	outlet->config = config;
	if (config->kind == EXPORTER_FILE)
		return file_sink_open(config, &outlet->file_sink);
	const struct backend *backend = backend_of_kind(config->kind);
	struct remote_config remote = config->remote;
	if (!remote.default_port)
		remote.default_port = backend->default_port;
	if (backend->is_compressed)
		remote.gzip = false;
	struct error *err = grpc_channel_new(loop, forwarder->clock, &remote, &outlet->channel);
	if (err)
		return err;
	const struct exporter_options options = {
		.config = config,
		.spool_directory = forwarder->config.spool_directory,
		.spool = forwarder->config.spool,
		.clock = forwarder->clock,
		.link = {call_channel, cancel_call, outlet->channel},
		.on_event = happened,
		.context = forwarder,
	};
	return exporter_new(&options, &outlet->exporter);
}

struct error *forwarder_new(uv_loop_t *loop, const struct forwarder_config *config,
			    struct forwarder **out)
{
	struct forwarder *forwarder = mem_zalloc(1, sizeof(*forwarder));
	forwarder->config = *config;
	forwarder->clock = config->clock ? config->clock : &clock_system;
	forwarder->outlets = mem_zalloc(config->n_exporters, sizeof(*forwarder->outlets));
	uv_timer_init(loop, &forwarder->timer);
	forwarder->timer.data = forwarder;
	struct error *err = NULL;
	for (size_t i = 0; !err && i < config->n_exporters; i++) {
		err = open_outlet(forwarder, loop, &config->exporters[i],
				  &forwarder->outlets[forwarder->n_outlets++]);
		err = error_wrap(err, "%s", exporter_shown(&config->exporters[i]));
	}
	if (err) {
		forwarder_close(forwarder);
		return err;
	}
	arm_now(forwarder);
	*out = forwarder;
	return NULL;
}

static void closed(uv_handle_t *timer)
{
	struct forwarder *forwarder = timer->data;
	mem_free(forwarder->outlets);
	mem_free(forwarder);
}

void forwarder_close(struct forwarder *forwarder)
{
	if (!forwarder)
		return;
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		struct outlet *outlet = &forwarder->outlets[i];
		exporter_free(outlet->exporter);
		if (outlet->channel)
			grpc_channel_close(outlet->channel);
		file_sink_close(outlet->file_sink);
		error_free(outlet->write_error);
	}
	uv_timer_stop(&forwarder->timer);
	uv_close((uv_handle_t *)&forwarder->timer, closed);
}

static void write_file(struct outlet *outlet, const struct outgoing_profile *outgoing)
{
	struct exporter_counts *counts = &outlet->written;
	const struct file_sink_counts *files = file_sink_get_counts(outlet->file_sink);
	uint64_t n_written = files->n_written, n_bytes = files->n_bytes;
	uint64_t n_samples = series_count_samples(outgoing->profile);
	struct error *err = file_sink_put(outlet->file_sink, outgoing);
	if (err) {
		counts->queue.lost_requests[SPOOL_LOSS_DISK]++;
		counts->queue.lost_profiles[SPOOL_LOSS_DISK]++;
		counts->queue.lost_samples[SPOOL_LOSS_DISK] += n_samples;
		stats_add(STAT_QUEUE_DROPPED_DISK, 1);
		snprintf(counts->last_error, sizeof(counts->last_error), "%s", error_text(err));
	} else if (files->n_written > n_written) {
		stats_add(STAT_EXPORTER_SENT_BYTES, files->n_bytes - n_bytes);
		counts->sent_requests++;
		counts->sent_profiles++;
		counts->sent_samples += n_samples;
		stats_add(STAT_EXPORTER_SENT_PROFILES, 1);
		stats_add(STAT_EXPORTER_SENT_SAMPLES, n_samples);
	}
	counts->is_failing = err;
	if (outlet->write_error)
		error_free(err);
	else
		outlet->write_error = err;
}

void forwarder_put(struct forwarder *forwarder, const struct outgoing_profile *outgoing)
{
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		struct outlet *outlet = &forwarder->outlets[i];
		if (outlet->file_sink)
			write_file(outlet, outgoing);
		else
			exporter_put(outlet->exporter, outgoing);
	}
}

struct error *forwarder_commit(struct forwarder *forwarder)
{
	struct error *first = NULL;
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		struct outlet *outlet = &forwarder->outlets[i];
		outlet->written.is_last_lost = outlet->write_error != NULL;
		struct error *err = outlet->file_sink ? TAKE(outlet->write_error)
						      : exporter_commit(outlet->exporter);
		/* Full and waiting is what the caller can do something about. */
		if (err == error_again || !first) {
			error_free(first);
			first = err;
		} else {
			error_free(err);
		}
	}
	arm_now(forwarder);
	return first;
}

void forwarder_flush(struct forwarder *forwarder, uint64_t timeout_ns,
		     void (*done)(void *context, bool is_empty), void *context)
{
	forwarder->flush = (struct flush){done, context, now_ns(forwarder) + timeout_ns};
	arm_now(forwarder);
}

void forwarder_refresh(struct forwarder *forwarder)
{
	for (size_t i = 0; i < forwarder->n_outlets; i++) {
		if (forwarder->outlets[i].channel)
			grpc_channel_refresh(forwarder->outlets[i].channel);
	}
}

size_t forwarder_n_exporters(const struct forwarder *forwarder)
{
	return forwarder->n_outlets;
}

void forwarder_get_counts(const struct forwarder *forwarder, size_t exporter,
			  struct exporter_counts *out)
{
	const struct outlet *outlet = &forwarder->outlets[exporter];
	if (outlet->exporter) {
		exporter_get_counts(outlet->exporter, out);
		return;
	}
	*out = outlet->written;
	out->exporter = outlet->config->name;
	out->sent_bytes = file_sink_get_counts(outlet->file_sink)->n_bytes;
}
