/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the records of several CPUs in order of time, in a bounded window. Records arrive in
 * chunks, one CPU after the other; a round ends when every CPU had its turn.
 *
 *            round 1              round 2              round 3
 *   cpu 0    a(10) b(30)          e(50) f(80)          h(90)
 *   cpu 1    c(20) d(40)          g(35)                i(70)
 *                   max 40 ┘             max 80 ┘             max 90 ┘
 *   released        nothing              <= 40: a c b g d     <= 80: e i f      (rest: flush)
 *
 * The guarantee: when each record that is added after a round's end is younger than that round's
 * predecessor's maximum (g(35) may come late by one round, not by two), the sink sees times that
 * never fall. So a round's end releases what is not younger than the maximum at the round's end
 * before it; perf's FINISHED_ROUND promises exactly this much. Equal times keep their order of
 * arrival.
 *
 * Records without a time (0, or all ones) are not ordered: they go out at once, before everything
 * that is pending.
 *
 * When no round ends before a bound is reached, the older half goes out. A record older than what
 * went out before goes out with the next release and is counted (STAT_RECORDS_OUT_OF_ORDER).
 *
 * Order of calls: reorder_init; per drain reorder_set_sink, then reorder_add … reorder_round …,
 * then reorder_emit; at the end reorder_flush; reorder_fini. An object of one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"

/*
 * A piece of memory with records in it, owned by whoever fills it; usually the first member of a
 * larger struct. It has to stay as it is while records of it wait. Zeroed, then bytes and release
 * set and is_open = true, it is ready.
 */
struct reorder_block {
	size_t bytes;	 /* what it occupies, counted against the window's bound while held */
	uint32_t n_held; /* records that wait or are with the sink right now */
	bool is_open;	 /* the owner still needs it: it is not released however few are held */
	/* Called once when it is closed and no record of it is held: free it or fill it anew. */
	void (*release)(struct reorder_block *block);
};

/* The owner needs it no more; may call release right away. */
static inline void reorder_block_close(struct reorder_block *block)
{
	block->is_open = false;
	if (block->n_held == 0)
		block->release(block);
}

enum { REORDER_BATCH_RECORDS = 512 };

struct reorder_entry;
struct reorder_run;

struct reorder {
	struct reorder_entry *entries; /* in order of arrival; runs are ranges of it */
	size_t n_entries;
	size_t entries_capacity;
	struct reorder_run *runs; /* stretches of rising time, oldest arrival first */
	size_t n_runs;
	size_t runs_capacity;
	uint32_t *heap; /* indices into runs, least head time on top */
	size_t heap_capacity;
	uint64_t max_time_ns;	   /* of all that was added */
	uint64_t round_limit_ns;   /* max_time_ns at the last round's end */
	uint64_t released_time_ns; /* greatest time that went out */
	size_t held_bytes;	   /* of the blocks with pending records */
	size_t max_bytes;
	size_t max_records;
	perf_record_sink_fn sink;
	void *sink_context;
	size_t n_batch;
	struct perf_record batch[REORDER_BATCH_RECORDS];
	struct reorder_block *batch_blocks[REORDER_BATCH_RECORDS];
};

/* max_bytes bounds the blocks that are held, max_records (at least 2) the records pending. */
void reorder_init(struct reorder *reorder, size_t max_bytes, size_t max_records);
/* Lets go of all blocks; what is pending is lost. */
void reorder_fini(struct reorder *reorder);

/* Who gets the records from here on; it is called from within the functions below. */
void reorder_set_sink(struct reorder *reorder, perf_record_sink_fn sink, void *context);

/*
 * Takes a copy of record; its bytes must stay valid while block is held. block may be NULL for
 * bytes that outlive the reorder. Errors here and below come from the sink, and cost the batch
 * that it refused.
 */
struct error *reorder_add(struct reorder *reorder, const struct perf_record *record,
			  struct reorder_block *block) MUST_USE;
/* As reorder_add, but the record goes out at once whatever its time. */
struct error *reorder_pass(struct reorder *reorder, const struct perf_record *record,
			   struct reorder_block *block) MUST_USE;
/* Every CPU had its turn. */
struct error *reorder_round(struct reorder *reorder) MUST_USE;
/* Hands over what was released but waits for a full batch. */
struct error *reorder_emit(struct reorder *reorder) MUST_USE;
/* Releases and hands over everything. */
struct error *reorder_flush(struct reorder *reorder) MUST_USE;
