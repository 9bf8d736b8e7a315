/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging by natural runs: records lie in order of arrival, cut into stretches of rising time (one
 * CPU's chunk is one stretch). A release merges the stretches' heads through a heap and takes from
 * the top for as long as no other head is due, so ordered input costs a compare and a copy each.
 */
#include "collector/reorder.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

enum { FIRST_ENTRIES = 4096, FIRST_RUNS = 64 };

struct reorder_entry {
	struct perf_record record;
	struct reorder_block *block;
};

/* Entries [begin, end) of rising time. */
struct reorder_run {
	size_t begin;
	size_t end;
};

void reorder_init(struct reorder *reorder, size_t max_bytes, size_t max_records)
{
	assert(max_records >= 2 && max_records < UINT32_MAX);
	memset(reorder, 0, sizeof(*reorder));
	reorder->max_bytes = max_bytes;
	reorder->max_records = max_records;
}

static void hold(struct reorder *reorder, struct reorder_block *block)
{
	if (block && block->n_held++ == 0)
		reorder->held_bytes += block->bytes;
}

static void drop(struct reorder *reorder, struct reorder_block *block)
{
	if (!block || --block->n_held > 0)
		return;
	reorder->held_bytes -= block->bytes;
	if (!block->is_open)
		block->release(block);
}

static void drop_batch(struct reorder *reorder)
{
	for (size_t i = 0; i < reorder->n_batch; i++)
		drop(reorder, reorder->batch_blocks[i]);
	reorder->n_batch = 0;
}

void reorder_fini(struct reorder *reorder)
{
	drop_batch(reorder);
	for (size_t i = 0; i < reorder->n_runs; i++) {
		const struct reorder_run *run = &reorder->runs[i];
		for (size_t j = run->begin; j < run->end; j++)
			drop(reorder, reorder->entries[j].block);
	}
	mem_free(reorder->entries);
	mem_free(reorder->runs);
	mem_free(reorder->heap);
	memset(reorder, 0, sizeof(*reorder));
}

void reorder_set_sink(struct reorder *reorder, perf_record_sink_fn sink, void *context)
{
	reorder->sink = sink;
	reorder->sink_context = context;
}

struct error *reorder_emit(struct reorder *reorder)
{
	if (reorder->n_batch == 0)
		return NULL;
	struct error *err = reorder->sink(reorder->sink_context, reorder->batch, reorder->n_batch);
	drop_batch(reorder);
	return err;
}

/* The block is held already. */
static inline struct error *put(struct reorder *reorder, const struct perf_record *record,
				struct reorder_block *block)
{
	reorder->batch[reorder->n_batch] = *record;
	reorder->batch_blocks[reorder->n_batch++] = block;
	return reorder->n_batch == REORDER_BATCH_RECORDS ? reorder_emit(reorder) : NULL;
}

/* Which of two runs' heads is due first; of equal times the one that came first. */
static inline bool is_before(const struct reorder *reorder, uint32_t a, uint32_t b)
{
	uint64_t time_a = reorder->entries[reorder->runs[a].begin].record.time_ns;
	uint64_t time_b = reorder->entries[reorder->runs[b].begin].record.time_ns;
	return time_a < time_b || (time_a == time_b && a < b);
}

static void sift_down(struct reorder *reorder, size_t n, size_t at)
{
	uint32_t *heap = reorder->heap;
	uint32_t moving = heap[at];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= n)
			break;
		if (child + 1 < n && is_before(reorder, heap[child + 1], heap[child]))
			child++;
		if (!is_before(reorder, heap[child], moving))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moving;
}

static size_t build_heap(struct reorder *reorder)
{
	if (reorder->heap_capacity < reorder->n_runs) {
		reorder->heap_capacity = reorder->runs_capacity;
		reorder->heap =
			mem_realloc(reorder->heap, reorder->heap_capacity, sizeof(*reorder->heap));
	}
	size_t n = reorder->n_runs;
	for (size_t i = 0; i < n; i++)
		reorder->heap[i] = (uint32_t)i;
	for (size_t i = n / 2; i-- > 0;)
		sift_down(reorder, n, i);
	return n;
}

/* Closes the gaps that a release left, and joins runs that now follow one another. */
static void compact(struct reorder *reorder)
{
	size_t n_runs = 0;
	size_t n = 0;
	for (size_t i = 0; i < reorder->n_runs; i++) {
		struct reorder_run run = reorder->runs[i];
		size_t length = run.end - run.begin;
		if (length == 0)
			continue;
		memmove(&reorder->entries[n], &reorder->entries[run.begin],
			length * sizeof(*reorder->entries));
		if (n_runs &&
		    reorder->entries[n - 1].record.time_ns <= reorder->entries[n].record.time_ns)
			reorder->runs[n_runs - 1].end = n + length;
		else
			reorder->runs[n_runs++] =
				(struct reorder_run){.begin = n, .end = n + length};
		n += length;
	}
	reorder->n_runs = n_runs;
	reorder->n_entries = n;
}

/* Releases up to max records that are not younger than limit_ns. */
static struct error *release(struct reorder *reorder, uint64_t limit_ns, size_t max)
{
	size_t n_heap = build_heap(reorder);
	size_t n = 0;
	struct error *err = NULL;
	while (n_heap > 0 && n < max && !err) {
		uint32_t top = reorder->heap[0];
		struct reorder_run *run = &reorder->runs[top];
		/* The stretch ends where the second-best head, a child of the root, is due. */
		uint64_t stretch_ns = limit_ns;
		if (n_heap > 1) {
			size_t child =
				n_heap > 2 && is_before(reorder, reorder->heap[2], reorder->heap[1])
					? 2
					: 1;
			uint32_t next = reorder->heap[child];
			uint64_t next_ns =
				reorder->entries[reorder->runs[next].begin].record.time_ns;
			if (next < top && next_ns > 0)
				next_ns--;
			if (next_ns < stretch_ns)
				stretch_ns = next_ns;
		}
		size_t begin = run->begin;
		while (run->begin < run->end && n < max && !err) {
			const struct reorder_entry *entry = &reorder->entries[run->begin];
			if (entry->record.time_ns > stretch_ns)
				break;
			run->begin++;
			n++;
			if (reorder->released_time_ns < entry->record.time_ns)
				reorder->released_time_ns = entry->record.time_ns;
			err = put(reorder, &entry->record, entry->block);
		}
		if (run->begin == run->end)
			reorder->heap[0] = reorder->heap[--n_heap];
		else if (run->begin == begin)
			break; /* the least head is beyond the limit */
		sift_down(reorder, n_heap, 0);
	}
	if (n > 0)
		compact(reorder);
	return err;
}

/* Makes room below both bounds by passing on the older half, again and again if that is needed. */
static struct error *shrink(struct reorder *reorder)
{
	struct error *err = reorder_emit(reorder);
	while (!err && reorder->n_entries > 0 &&
	       (reorder->n_entries >= reorder->max_records ||
		reorder->held_bytes > reorder->max_bytes)) {
		err = release(reorder, UINT64_MAX, (reorder->n_entries + 1) / 2);
		if (!err)
			err = reorder_emit(reorder);
	}
	return err;
}

static void grow(struct reorder *reorder)
{
	size_t capacity = reorder->entries_capacity ? 2 * reorder->entries_capacity : FIRST_ENTRIES;
	reorder->entries = mem_realloc(reorder->entries, capacity, sizeof(*reorder->entries));
	reorder->entries_capacity = capacity;
}

static void begin_run(struct reorder *reorder)
{
	if (reorder->n_runs == reorder->runs_capacity) {
		reorder->runs_capacity =
			reorder->runs_capacity ? 2 * reorder->runs_capacity : FIRST_RUNS;
		reorder->runs =
			mem_realloc(reorder->runs, reorder->runs_capacity, sizeof(*reorder->runs));
	}
	reorder->runs[reorder->n_runs++] =
		(struct reorder_run){.begin = reorder->n_entries, .end = reorder->n_entries};
}

struct error *reorder_pass(struct reorder *reorder, const struct perf_record *record,
			   struct reorder_block *block)
{
	hold(reorder, block);
	struct error *err = put(reorder, record, block);
	if (UNLIKELY(!err && reorder->held_bytes > reorder->max_bytes))
		return shrink(reorder);
	return err;
}

struct error *reorder_add(struct reorder *reorder, const struct perf_record *record,
			  struct reorder_block *block)
{
	uint64_t time_ns = record->time_ns;
	if (time_ns == 0 || time_ns == UINT64_MAX)
		return reorder_pass(reorder, record, block);
	if (time_ns < reorder->released_time_ns)
		stats_add(STAT_RECORDS_OUT_OF_ORDER, 1);
	hold(reorder, block);
	if (reorder->n_entries == reorder->entries_capacity)
		grow(reorder);
	if (reorder->n_entries == 0 ||
	    reorder->entries[reorder->n_entries - 1].record.time_ns > time_ns)
		begin_run(reorder);
	reorder->entries[reorder->n_entries++] =
		(struct reorder_entry){.record = *record, .block = block};
	reorder->runs[reorder->n_runs - 1].end = reorder->n_entries;
	if (time_ns > reorder->max_time_ns)
		reorder->max_time_ns = time_ns;
	if (UNLIKELY(reorder->n_entries >= reorder->max_records ||
		     reorder->held_bytes > reorder->max_bytes))
		return shrink(reorder);
	return NULL;
}

struct error *reorder_round(struct reorder *reorder)
{
	uint64_t limit_ns = reorder->round_limit_ns;
	reorder->round_limit_ns = reorder->max_time_ns;
	return release(reorder, limit_ns, SIZE_MAX);
}

struct error *reorder_flush(struct reorder *reorder)
{
	struct error *err = release(reorder, UINT64_MAX, SIZE_MAX);
	return err ? err : reorder_emit(reorder);
}
