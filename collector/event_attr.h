/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event's name as -e takes it, to perf_event_attr. Pure: whatever has to be asked of the host
 * (tracepoint ids, libpfm4) comes through a table.
 *
 *	cycles instructions …          hardware       cpu-clock page-faults …   software
 *	L1-dcache-load-misses …        cache          r1a8                      raw
 *	sched:sched_switch             tracepoint     mem:0x1000[/len][:rwx]    breakpoint
 *	anything else                  libpfm4
 * each with modifiers behind a colon: u k h (levels), G H (guest, host), I (no idle), p pp ppp
 * (precise), D (pinned), e (exclusive).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_abi.h"
#include "collector/pfm_event.h"

enum { EVENT_ATTR_MAX_EVENTS = 32, EVENT_ATTR_MAX_NAME = 128 };

struct event_attr {
	struct perf_event_attr attr; /* which event and which levels; how to sample is set apart */
	char name[EVENT_ATTR_MAX_NAME];
};

struct event_attr_list {
	struct event_attr events[EVENT_ATTR_MAX_EVENTS];
	uint32_t n;
};

struct event_attr_host {
	struct error *(*tracepoint_id)(const char *system, const char *name, uint64_t *out);
	void (*tracepoint_names)(struct buf *names);
	bool (*pfm_encode)(const char *name, struct pfm_event *out);
};
extern const struct event_attr_host event_attr_host_system;

/* E105 with near names when one is unknown. */
struct error *event_attr_parse(const char *text, const struct event_attr_host *host,
			       struct event_attr_list *out) MUST_USE;

struct event_attr_sampling {
	uint32_t frequency_hz; /* 0 = not given */
	uint64_t period;       /* not 0: by count */
};
enum { EVENT_ATTR_DEFAULT_HZ = 99 };

/*
 * What all our sampling events have in common: sample_type, read_format, clock, frequency or
 * period. Tracepoints and breakpoints are taken one by one unless a frequency was asked for.
 */
void event_attr_set_sampling(struct perf_event_attr *attr,
			     const struct event_attr_sampling *sampling);
/* The event that carries the side band: no samples, everything else the kernel tells of tasks. */
void event_attr_set_side_band(struct perf_event_attr *attr);
/* A ring's owner: nothing at all, but the ring's watermark. */
void event_attr_set_keeper(struct perf_event_attr *attr, uint32_t wakeup_bytes);
/* cpu-clock in place of attr, same levels and rate. */
void event_attr_set_fallback(struct perf_event_attr *attr);
bool event_attr_is_cycles(const struct perf_event_attr *attr);
/* cpu-clock and task-clock, which count nanoseconds. */
bool event_attr_is_clock(const struct perf_event_attr *attr);
