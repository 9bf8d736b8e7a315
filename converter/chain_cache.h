/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw call chain → sample index, so that a chain seen before costs one look-up and no decoding. A
 * chain is known by 96 bits of a hash of all its words, seeded per cache from the system's random
 * source, so that no input can be built to collide; the chance that two of 2^32 chains do is 2^-33.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

struct chain_cache_slot {
	uint64_t hash;
	uint32_t check;		/* more bits of the hash */
	uint32_t sample_plus_1; /* 0 = free */
};

struct chain_cache {
	struct chain_cache_slot *slots;
	uint64_t mask;
	uint64_t n;
	uint64_t seed;
};

/* Past this many the cache starts over; 64 MiB with its slots. */
enum { CHAIN_CACHE_MAX = 3 << 20 };

void chain_cache_init(struct chain_cache *cache);
void chain_cache_fini(struct chain_cache *cache);
void chain_cache_clear(struct chain_cache *cache);

/* context is all beside the chain that decides which sample it adds to, mixed to one number. */
static inline XXH128_hash_t chain_cache_hash(const struct chain_cache *cache, const void *chain,
					     size_t bytes, uint64_t context)
{
	return XXH3_128bits_withSeed(chain, bytes, cache->seed ^ context);
}

static inline void chain_cache_prefetch(const struct chain_cache *cache, XXH128_hash_t hash)
{
	__builtin_prefetch(&cache->slots[hash.low64 & cache->mask]);
}

/* The slot of this chain, or the free one where it would be; valid until the next claim. */
static inline struct chain_cache_slot *chain_cache_find(struct chain_cache *cache,
							XXH128_hash_t hash)
{
	uint64_t at = hash.low64 & cache->mask;
	for (;; at = (at + 1) & cache->mask) {
		struct chain_cache_slot *slot = &cache->slots[at];
		if (!slot->sample_plus_1 ||
		    (slot->hash == hash.low64 && slot->check == (uint32_t)hash.high64))
			return slot;
	}
}

void chain_cache_claim(struct chain_cache *cache, struct chain_cache_slot *slot, XXH128_hash_t hash,
		       uint32_t sample);
