/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw call chain → row of the profile, so that a chain seen before costs one look-up and no
 * decoding. Direct-mapped and of fixed size: what is not in it is built again and comes to the same
 * row. A chain is known by 96 bits of a hash of all its words, seeded per cache from the system's
 * random source, so that no input can be built to collide; the chance that two of 2^32 chains do is
 * 2^-33.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Inlined: most chains are short, and a call through the PLT costs as much as their hash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHAIN_CACHE_NONE UINT32_MAX

struct chain_cache_slot {
	uint64_t hash;
	uint32_t check;	     /* more bits of the hash */
	uint32_t row_plus_1; /* 0 = free */
};

struct chain_cache {
	struct chain_cache_slot *slots;
	uint64_t seed;
};

/* 2 MiB: a window of 10 s at 99 Hz has fewer samples than this on 128 CPUs. */
enum { CHAIN_CACHE_SLOTS = 1 << 17 };

void chain_cache_init(struct chain_cache *cache);
void chain_cache_fini(struct chain_cache *cache);
void chain_cache_clear(struct chain_cache *cache);

/* context is all beside the chain that decides which sample it adds to, mixed to one number. */
static inline XXH128_hash_t chain_cache_hash(const struct chain_cache *cache, const void *chain,
					     size_t bytes, uint64_t context)
{
	return XXH3_128bits_withSeed(chain, bytes, cache->seed ^ context);
}

static inline struct chain_cache_slot *chain_cache_slot(const struct chain_cache *cache,
							XXH128_hash_t hash)
{
	return &cache->slots[hash.low64 % CHAIN_CACHE_SLOTS];
}

static inline void chain_cache_prefetch(const struct chain_cache *cache, XXH128_hash_t hash)
{
	__builtin_prefetch(chain_cache_slot(cache, hash));
}

static inline uint32_t chain_cache_find(const struct chain_cache *cache, XXH128_hash_t hash)
{
	const struct chain_cache_slot *slot = chain_cache_slot(cache, hash);
	bool is_it = slot->row_plus_1 && slot->hash == hash.low64 &&
		     slot->check == (uint32_t)hash.high64;
	return is_it ? slot->row_plus_1 - 1 : CHAIN_CACHE_NONE;
}

static inline void chain_cache_put(struct chain_cache *cache, XXH128_hash_t hash, uint32_t row)
{
	*chain_cache_slot(cache, hash) =
		(struct chain_cache_slot){hash.low64, (uint32_t)hash.high64, row + 1};
}
