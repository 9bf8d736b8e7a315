/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of converter: records in, profiles out.
 *
 * Order of calls: converter_new; converter_feed for every batch of records, in the order that the
 * source gives; converter_finish → a profile; converter_free. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"
#include "converter/jit_table.h"
#include "converter/survey.h"
#include "converter/user_stack.h"
#include "proto/profile.h"
#include "symcache/symcache.h"

struct converter;

/*
 * Sample labels, in the order in which they are written. comm is what perf calls comm, the name of
 * the thread; process is the name of the thread's process.
 */
enum converter_label {
	CONVERTER_LABEL_COMM = 1 << 0, /* string */
	CONVERTER_LABEL_PID = 1 << 1,  /* number */
	CONVERTER_LABEL_TID = 1 << 2,  /* number */
	CONVERTER_LABEL_THREAD = 1
				 << 3, /* string, the thread's name once more under a plainer key */
	CONVERTER_LABEL_PROCESS = 1 << 4, /* string */
	CONVERTER_LABEL_CPU = 1 << 5,	  /* number */
	CONVERTER_LABEL_CGROUP = 1 << 6,  /* string, path; where the records carry it */
	CONVERTER_LABEL_CMDLINE =
		1 << 7, /* string, words joined by spaces; where an exec was watched */
	CONVERTER_LABEL_DEFAULT = CONVERTER_LABEL_COMM | CONVERTER_LABEL_PID,
};
enum { CONVERTER_LABEL_N = 8 };
/* Name of label 1 << i, i < CONVERTER_LABEL_N. */
const char *converter_label_name(unsigned i);

struct converter_config {
	uint32_t labels;       /* set of enum converter_label */
	const char *event;     /* keep only this event, single-event form; NULL = all */
	const char *main_path; /* executable to list first, NULL = the most sampled one */
	bool may_wait;	       /* feeding may wait until the unwind tables of a process are made */
};

/* source and cache are borrowed and outlive the converter; source may still grow (pipe mode). */
struct converter *converter_new(const struct converter_config *config,
				const struct perf_source_info *source, struct symcache *cache);
void converter_free(struct converter *converter);

/* A perf_record_sink_fn; context is the converter. Trouble with single records is counted, not
 * returned. */
struct error *converter_feed(void *context, const struct perf_record *records, size_t n) MUST_USE;

/* What became of everything that was fed. taken = written + no_event + malformed + filtered. */
struct converter_totals {
	uint64_t taken;
	uint64_t written;
	uint64_t malformed;
	uint64_t no_event;
	uint64_t filtered;
	uint64_t lost_events, lost_samples; /* never added up: they overlap */
	uint64_t throttled;
	struct user_stack_totals user_stacks;
	uint64_t unknown_records, malformed_records;
	uint64_t frames[SYMBOL_REASON_N]; /* distinct locations by outcome */
	uint64_t n_locations;
	struct jit_totals jit; /* of the last window */
};

/*
 * Names every distinct address and gives the profile of all that was fed since the last call. The
 * caller owns it. ERROR_NO_ENTRY when --event names no event of the source (the text lists them).
 * A source without samples gives a profile without samples. progress (may be NULL) is called with
 * done and total while names are looked up.
 */
struct error *converter_finish(struct converter *converter,
			       void (*progress)(void *, uint64_t, uint64_t), void *progress_context,
			       struct profile **out) MUST_USE;
const struct converter_totals *converter_get_totals(const struct converter *converter);
/* Bytes that the window which is open takes, for budgets. Cheap. */
size_t converter_window_bytes(const struct converter *converter);
