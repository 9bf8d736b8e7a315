/* SPDX-License-Identifier: Apache-2.0 */
#include "base/index_table.h"

#include <assert.h>

#include "base/mem.h"

enum {
	FIRST_BUCKETS = 8,
	DOUBLE_BELOW_BUCKETS = 1 << 15, /* 2 MiB; what is larger grows by a quarter */
	BATCH = 32,
};

static_assert(sizeof(struct index_bucket) == INDEX_BUCKET_BYTES, "a bucket is a cache line");

void index_table_trim(struct index_table *table)
{
	mem_free(table->memory);
	*table = (struct index_table){.n = table->n};
}

void index_table_fini(struct index_table *table)
{
	mem_free(table->memory);
	*table = (struct index_table){0};
}

/* Seven eighths: few buckets are passed then. */
static uint64_t load_limit(uint64_t n_buckets)
{
	return n_buckets * INDEX_BUCKET_SLOTS / 8 * 7;
}

/* Elements [0, n) anew; batches keep many cache misses in flight. */
static void fill(struct index_table *table, uint32_t n, index_table_hash_fn hash_of,
		 const void *context)
{
	uint32_t hashes[BATCH];
	for (uint32_t first = 0; first < n; first += BATCH) {
		uint32_t end = n - first < BATCH ? n - first : BATCH;
		for (uint32_t i = 0; i < end; i++) {
			hashes[i] = hash_of(context, first + i);
			index_table_prefetch(table, hashes[i]);
		}
		for (uint32_t i = 0; i < end; i++)
			index_table_add(table, hashes[i]);
	}
}

void index_table_grow(struct index_table *table, uint32_t extra, index_table_hash_fn hash_of,
		      const void *context)
{
	uint32_t n = table->n;
	uint64_t want = (uint64_t)n + extra;
	uint64_t n_buckets = table->n_buckets ? table->n_buckets : FIRST_BUCKETS;
	while (load_limit(n_buckets) < want)
		n_buckets += n_buckets < DOUBLE_BELOW_BUCKETS ? n_buckets : n_buckets / 4;
	mem_free(table->memory);
	/* What 32 bits cannot count counts as no memory left. */
	size_t n_made = want > UINT32_MAX ? SIZE_MAX : (size_t)n_buckets + 1;
	uint8_t *memory = mem_zalloc(n_made, INDEX_BUCKET_BYTES);
	uintptr_t unaligned = (uintptr_t)memory % INDEX_BUCKET_BYTES;
	*table = (struct index_table){
		.buckets = (void *)(memory + (INDEX_BUCKET_BYTES - unaligned)),
		.n_buckets = (uint32_t)n_buckets,
		.n_max = load_limit(n_buckets),
		.memory = memory,
	};
	fill(table, n, hash_of, context);
}
