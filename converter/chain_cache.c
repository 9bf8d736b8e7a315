/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/chain_cache.h"

#include <string.h>

#include "base/hash_seed.h"
#include "base/mem.h"

void chain_cache_init(struct chain_cache *cache)
{
	cache->slots = mem_zalloc(CHAIN_CACHE_SLOTS, sizeof(*cache->slots));
	cache->seed = hash_seed_make();
}

void chain_cache_fini(struct chain_cache *cache)
{
	mem_free(cache->slots);
	cache->slots = NULL;
}

void chain_cache_clear(struct chain_cache *cache)
{
	memset(cache->slots, 0, CHAIN_CACHE_SLOTS * sizeof(*cache->slots));
}
