/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One exporter: its spool, what of it is under way, and when to try again. It knows no sockets and
 * no loop: calls go out through a link, and whoever runs it looks at exporter_wake_ns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"
#include "forwarder/exporter_config.h"
#include "forwarder/grpc_channel.h"
#include "forwarder/spool.h"

struct exporter;

enum exporter_event_kind {
	EXPORTER_DELIVERED,
	EXPORTER_RETRYING, /* failed for now; next try in delay_ns */
	EXPORTER_SPLIT,	   /* too large; goes out in parts */
	EXPORTER_REJECTED, /* for good */
	EXPORTER_LOST,	   /* dropped by a bound, damaged or removed while it waited */
};

/* What happened to a request, told as it happens. Texts are borrowed for the call. */
struct exporter_event {
	const char *exporter;
	enum exporter_event_kind kind;
	uint64_t sequence;	 /* of the window that the request belongs to */
	uint64_t parts_sequence; /* EXPORTER_SPLIT: of the window that holds the parts */
	uint32_t n_parts;
	uint64_t n_lost; /* EXPORTER_LOST: requests; summary is of all of them, result NULL */
	struct request_summary summary;
	struct backend_answer answer;
	const struct grpc_result *result;
	const char *text; /* "INVALID_ARGUMENT: why", or what comes with a success; may be "" */
	uint64_t delay_ns;
};
typedef void (*exporter_event_fn)(void *context, const struct exporter_event *event);

/* How calls are made: grpc_channel_call and grpc_call_cancel, or a test's. */
struct exporter_link {
	struct grpc_call *(*call)(void *context, const struct grpc_request *request);
	void (*cancel)(void *context, struct grpc_call *call);
	void *context;
};

struct exporter_options {
	const struct exporter_config *config; /* borrowed until exporter_free */
	const char *spool_directory;
	struct spool_limits spool; /* max_age is taken from config */
	const struct clock *clock; /* borrowed */
	struct exporter_link link;
	exporter_event_fn on_event; /* may be NULL */
	void *context;
};

/* What messages call it. */
const char *exporter_shown(const struct exporter_config *config);

/* Not for EXPORTER_FILE. Sends nothing before exporter_run. */
struct error *exporter_new(const struct exporter_options *options, struct exporter **out) MUST_USE;
/* Cancels what is under way; it stays in the spool. */
void exporter_free(struct exporter *exporter);

/* Encodes into the window that is open, opened by the first put. */
void exporter_put(struct exporter *exporter, const struct outgoing_profile *outgoing);
/*
 * Ends the window: durable without an error. ERROR_AGAIN: no room and the spool blocks; the window
 * stays open. Otherwise what is lost was counted.
 */
struct error *exporter_commit(struct exporter *exporter) MUST_USE;

/* Tends the spool and starts what may be started now. */
void exporter_run(struct exporter *exporter);
/* When exporter_run has something to do at the latest (monotonic). */
uint64_t exporter_wake_ns(const struct exporter *exporter);
/* Nothing waits and nothing is under way. */
bool exporter_is_idle(const struct exporter *exporter);

enum { EXPORTER_DURATION_BUCKETS = 10, EXPORTER_ERROR_BYTES = 512 };
/* Upper bounds of the buckets in milliseconds; what is longer is in n only. */
extern const uint32_t exporter_duration_bounds_ms[EXPORTER_DURATION_BUCKETS];

/* For metrics and `status`; product.md's exporter_… and queue_…; base/stats has the sums over all
 * exporters. */
struct exporter_counts {
	const char *exporter;
	struct spool_counts queue;
	uint64_t queue_capacity_bytes;
	/* Of the window committed last: its number, its requests (0 when it was empty or lost), and
	 * whether any of it could not be kept. */
	uint64_t last_sequence, last_requests;
	bool is_last_lost;
	uint32_t n_active; /* requests under way */
	uint64_t sent_profiles, sent_samples, sent_bytes, sent_requests;
	/* Of partial successes, not in sent_…; samples only where all of a request was refused. */
	uint64_t refused_profiles, refused_samples;
	uint64_t unencodable_profiles, unencodable_samples; /* never became requests */
	uint64_t failed_profiles[BACKEND_REASON_N];	    /* attempts */
	uint64_t requests[GRPC_CODE_N];
	uint64_t durations[EXPORTER_DURATION_BUCKETS], n_durations, sum_durations_ns;
	uint64_t last_success_ns; /* wall clock, 0 = never */
	bool is_failing;
	char last_error[EXPORTER_ERROR_BYTES];
};
void exporter_get_counts(const struct exporter *exporter, struct exporter_counts *out);
