/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples whose user call chain comes later (kernel 6.18 and newer): the chain ends with
 * PERF_CONTEXT_USER_DEFERRED and a cookie, and a CALLCHAIN_DEFERRED record of the same thread and
 * cookie brings the user part, for every sample that waits for it. That may be seconds later, when
 * the thread slept in its system call. Bounded: when so many wait the oldest sample is finished
 * with what it has.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/perf_record.h"

enum { DEFERRED_MAX = 4096 };

struct deferred_sample {
	struct perf_record record; /* bytes owned */
	uint64_t cookie;
	uint32_t tid;
};

struct deferred_table {
	struct deferred_sample items[DEFERRED_MAX]; /* ring; bytes NULL = taken out */
	uint32_t keys[DEFERRED_MAX]; /* of items, from tid and cookie, so that a search reads little
				      */
	uint32_t first, n;	     /* holes between waiting ones included */
	uint32_t n_waiting;
};

/* Gets a waiting sample: with the user part, or NULL and 0 when that will not come. */
typedef void (*deferred_finish_fn)(void *context, const struct perf_record *record,
				   const uint8_t *chain, uint64_t n_chain);

void deferred_fini(struct deferred_table *table);
/* Copies the record. */
void deferred_add(struct deferred_table *table, const struct perf_record *record, uint32_t tid,
		  uint64_t cookie, deferred_finish_fn finish, void *context);
/* All that wait for this thread and cookie, oldest first. */
void deferred_complete(struct deferred_table *table, uint32_t tid, uint64_t cookie,
		       const uint8_t *chain, uint64_t n_chain, deferred_finish_fn finish,
		       void *context);
/* All that still wait. */
void deferred_flush(struct deferred_table *table, deferred_finish_fn finish, void *context);
