/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named counters that any thread may raise and any thread may read. Each is registered by its
 * declaration in stats.c's table; reading gives a snapshot that is exact once the writers rest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* X(enumerator, name as shown, what it counts) */
#define STATS_LIST(X)                                                                              \
	X(STAT_RECORDS_READ, "records_read", "records handed to the converter")                    \
	X(STAT_RECORDS_UNKNOWN, "records_unknown", "records of a type this version does not know") \
	X(STAT_RECORDS_MALFORMED, "records_malformed",                                             \
	  "records whose fields do not fit their size")                                            \
	X(STAT_RECORDS_OUT_OF_ORDER, "records_out_of_order",                                       \
	  "records older than what was already passed")                                            \
	X(STAT_SAMPLES_TAKEN, "samples_taken", "SAMPLE records read")                              \
	X(STAT_SAMPLES_WRITTEN, "samples_written", "samples that are in a profile")                \
	X(STAT_SAMPLES_MALFORMED, "samples_malformed",                                             \
	  "samples whose fields do not fit their size")                                            \
	X(STAT_SAMPLES_NO_EVENT, "samples_no_event", "samples of no known event")                  \
	X(STAT_SAMPLES_FILTERED, "samples_filtered", "samples left out on request")                \
	X(STAT_SAMPLES_LOST, "samples_lost",                                                       \
	  "samples the kernel could not write (LOST_SAMPLES, or LOST)")                            \
	X(STAT_EVENTS_LOST, "events_lost", "records the kernel could not write (LOST)")            \
	X(STAT_THROTTLED, "throttled", "times the kernel throttled an event")                      \
	X(STAT_USER_STACKS_UNWOUND, "user_stacks_unwound", "copied user stacks unwound")           \
	X(STAT_USER_STACKS_CUT, "user_stacks_cut",                                                 \
	  "copied user stacks unwound, but not to the thread's start")                             \
	X(STAT_USER_STACKS_SHORT, "user_stacks_short", "copied user stacks that ended too early")  \
	X(STAT_USER_STACKS_SKIPPED, "user_stacks_skipped", "copied user stacks not unwound")       \
	X(STAT_MAPS_EVICTED, "maps_evicted", "mappings forgotten because of a bound")              \
	X(STAT_PROCESSES_EVICTED, "processes_evicted", "processes forgotten because of a bound")   \
	X(STAT_SAMPLES_PACKED, "samples_packed", "samples in windows that ended")                  \
	X(STAT_WINDOWS_EARLY, "windows_early", "windows that ended early for want of memory")      \
	X(STAT_WINDOWS_DROPPED, "windows_dropped",                                                 \
	  "windows dropped because the forward thread could not keep up")                          \
	X(STAT_WINDOW_SAMPLES_DROPPED, "window_samples_dropped", "samples in those windows")       \
	X(STAT_MAILBOX_DROPPED, "mailbox_dropped", "items dropped because a mailbox was full")     \
	X(STAT_EXPORTER_SENT_PROFILES, "exporter_sent_profiles", "profiles that servers took")     \
	X(STAT_EXPORTER_SENT_SAMPLES, "exporter_sent_samples", "samples in them")                  \
	X(STAT_EXPORTER_SENT_BYTES, "exporter_sent_bytes", "bytes of the requests that they took") \
	X(STAT_EXPORTER_REQUESTS, "exporter_requests", "requests answered or failed, each try")    \
	X(STAT_EXPORTER_REQUEST_NS, "exporter_request_ns", "time that they took, added up")        \
	X(STAT_EXPORTER_UNENCODABLE, "exporter_unencodable_profiles",                              \
	  "profiles that could not become requests")                                               \
	/* In the order of enum backend_reason. */                                                 \
	X(STAT_EXPORTER_FAILED_OTHER, "exporter_send_failed_other",                                \
	  "profiles in requests that failed, each try")                                            \
	X(STAT_EXPORTER_FAILED_TIMEOUT, "exporter_send_failed_timeout", "likewise: no answer")     \
	X(STAT_EXPORTER_FAILED_UNAVAILABLE, "exporter_send_failed_unavailable",                    \
	  "likewise: server not reached or not ready")                                             \
	X(STAT_EXPORTER_FAILED_TLS, "exporter_send_failed_tls", "likewise: no trusted connection") \
	X(STAT_EXPORTER_FAILED_AUTH, "exporter_send_failed_auth", "likewise: credentials refused") \
	X(STAT_EXPORTER_FAILED_REJECTED, "exporter_send_failed_rejected", "likewise: refused")     \
	X(STAT_EXPORTER_FAILED_TOO_OLD, "exporter_send_failed_too_old", "likewise: too old")       \
	X(STAT_EXPORTER_FAILED_TOO_LARGE, "exporter_send_failed_too_large", "likewise: too large") \
	X(STAT_EXPORTER_FAILED_RATE_LIMITED, "exporter_send_failed_rate_limited",                  \
	  "likewise: too many for the server")                                                     \
	/* In the order of enum spool_loss. */                                                     \
	X(STAT_QUEUE_DROPPED_FULL, "queue_dropped_full", "profiles dropped: no room")              \
	X(STAT_QUEUE_DROPPED_EXPIRED, "queue_dropped_expired", "profiles dropped: too old")        \
	X(STAT_QUEUE_DROPPED_CORRUPT, "queue_dropped_corrupt", "profiles in damaged files")        \
	X(STAT_QUEUE_DROPPED_REJECTED, "queue_dropped_rejected",                                   \
	  "profiles set aside: refused for good")                                                  \
	X(STAT_QUEUE_DROPPED_DISK, "queue_dropped_disk", "profiles that could not be written")     \
	X(STAT_QUEUE_DROPPED_REMOVED, "queue_dropped_removed",                                     \
	  "profiles whose files were removed by hand")

enum stats_counter {
#define STATS_ENUM(id, name, what) id,
	STATS_LIST(STATS_ENUM)
#undef STATS_ENUM
		STAT_N,
};

void stats_add(enum stats_counter counter, uint64_t n);
uint64_t stats_get(enum stats_counter counter);
const char *stats_name(enum stats_counter counter);
/* For tests. */
void stats_reset(void);
