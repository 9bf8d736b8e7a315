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
	X(STAT_USER_STACKS_SKIPPED, "user_stacks_skipped", "copied user stacks not unwound")       \
	X(STAT_MAPS_EVICTED, "maps_evicted", "mappings forgotten because of a bound")              \
	X(STAT_PROCESSES_EVICTED, "processes_evicted", "processes forgotten because of a bound")   \
	X(STAT_SAMPLES_PACKED, "samples_packed", "samples in windows that ended")                  \
	X(STAT_WINDOWS_EARLY, "windows_early", "windows that ended early for want of memory")      \
	X(STAT_WINDOWS_DROPPED, "windows_dropped",                                                 \
	  "windows dropped because the forward thread could not keep up")                          \
	X(STAT_WINDOW_SAMPLES_DROPPED, "window_samples_dropped", "samples in those windows")       \
	X(STAT_MAILBOX_DROPPED, "mailbox_dropped", "items dropped because a mailbox was full")

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
