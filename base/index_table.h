/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table beside an array whose elements are interned: it finds the index of an element by
 * a 32-bit hash of it. The caller compares elements; this keeps indices, in buckets of one cache
 * line:
 *
 *     | 12 tags: 8 bits of the hash, 0 = free | flag | 12 indices |
 *
 * so that a look-up costs one cache miss here, and looks at an element only if a tag is equal. A
 * bucket that is full passes entries on to the next one. Buckets follow the hash's upper bits, tags
 * are its lower ones.
 *
 * Hashes are not kept. To grow, the old buckets are freed and all elements hashed again, from the
 * first to the last: the table never exists twice. It takes 6 to 8 bytes an element when it is
 * large, up to 13 when it is small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/compiler.h"

enum { INDEX_BUCKET_SLOTS = 12, INDEX_BUCKET_BYTES = 64 };

struct index_bucket {
	uint8_t tags[INDEX_BUCKET_SLOTS]; /* filled from the front */
	uint32_t is_passed;		  /* an entry went on to the next bucket */
	uint32_t indices[INDEX_BUCKET_SLOTS];
} __attribute__((aligned(INDEX_BUCKET_BYTES)));

/* Zeroed, it is an empty table. */
struct index_table {
	struct index_bucket *buckets;
	uint32_t n_buckets;
	uint32_t n;	/* elements 0 to n - 1 are in it */
	uint64_t n_max; /* number at which it grows, 0 before the first reserve */
	void *memory;	/* around buckets */
};

/* The hash of the element with that index; called for all in turn when a table grows. */
typedef uint32_t (*index_table_hash_fn)(const void *context, uint32_t index);

void index_table_fini(struct index_table *table);
/* Frees the buckets only; the next reserve makes them anew. */
void index_table_trim(struct index_table *table);
void index_table_grow(struct index_table *table, uint32_t extra, index_table_hash_fn hash_of,
		      const void *context);
static inline uint64_t index_table_bytes(const struct index_table *table)
{
	return (uint64_t)table->n_buckets * INDEX_BUCKET_BYTES;
}

/* Room for extra more elements; before a look-up too. Buckets do not move until so many came. */
static inline void index_table_reserve(struct index_table *table, uint32_t extra,
				       index_table_hash_fn hash_of, const void *context)
{
	if (UNLIKELY(table->n_max < (uint64_t)table->n + extra))
		index_table_grow(table, extra, hash_of, context);
}

static inline struct index_bucket *index_table_bucket(const struct index_table *table,
						      uint32_t hash)
{
	return &table->buckets[(uint64_t)hash * table->n_buckets >> 32];
}

static inline uint8_t index_table_tag(uint32_t hash)
{
	uint8_t tag = (uint8_t)hash;
	return tag ? tag : 1;
}

static inline void index_table_prefetch(const struct index_table *table, uint32_t hash)
{
	__builtin_prefetch(index_table_bucket(table, hash));
}

/* Bit i: tag i is equal. */
static inline uint32_t index_bucket_matches(const struct index_bucket *bucket, uint8_t tag)
{
#ifdef __SSE2__
	__m128i tags = _mm_load_si128((const __m128i *)(const void *)bucket);
	__m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8((char)tag));
	return (uint32_t)_mm_movemask_epi8(equal) & ((1u << INDEX_BUCKET_SLOTS) - 1);
#else
	uint32_t matches = 0;
	for (unsigned i = 0; i < INDEX_BUCKET_SLOTS; i++)
		matches |= (uint32_t)(bucket->tags[i] == tag) << i;
	return matches;
#endif
}

/* A walk over the indices that may be the hash's:
 *     for (struct index_probe p = index_table_probe(t, hash); index_probe_next(t, &p);) … p.index
 */
struct index_probe {
	const struct index_bucket *bucket;
	uint32_t matches;
	uint32_t index;
	uint8_t tag;
};

/* Room was reserved. */
static inline struct index_probe index_table_probe(const struct index_table *table, uint32_t hash)
{
	struct index_probe probe = {
		.bucket = index_table_bucket(table, hash),
		.tag = index_table_tag(hash),
	};
	probe.matches = index_bucket_matches(probe.bucket, probe.tag);
	return probe;
}

static inline bool index_probe_next(const struct index_table *table, struct index_probe *probe)
{
	while (!probe->matches) {
		if (LIKELY(!probe->bucket->is_passed))
			return false;
		if (++probe->bucket == table->buckets + table->n_buckets)
			probe->bucket = table->buckets;
		probe->matches = index_bucket_matches(probe->bucket, probe->tag);
	}
	probe->index = probe->bucket->indices[__builtin_ctz(probe->matches)];
	probe->matches &= probe->matches - 1;
	return true;
}

/* The next element, table->n, gets this hash; room was reserved. Returns its index. */
static inline uint32_t index_table_add(struct index_table *table, uint32_t hash)
{
	struct index_bucket *bucket = index_table_bucket(table, hash);
	uint32_t free_tags;
	while (!(free_tags = index_bucket_matches(bucket, 0))) {
		bucket->is_passed = 1;
		if (++bucket == table->buckets + table->n_buckets)
			bucket = table->buckets;
	}
	unsigned slot = (unsigned)__builtin_ctz(free_tags);
	bucket->tags[slot] = index_table_tag(hash);
	bucket->indices[slot] = table->n;
	return table->n++;
}
