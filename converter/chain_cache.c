/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/chain_cache.h"

#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

enum { FIRST_SLOTS = 1 << 12 };

void chain_cache_init(struct chain_cache *cache)
{
	*cache = (struct chain_cache){.mask = FIRST_SLOTS - 1};
	cache->slots = mem_zalloc(FIRST_SLOTS, sizeof(*cache->slots));
	/* Without randomness (early boot) the layout of our address space is all there is. */
	if (getrandom(&cache->seed, sizeof(cache->seed), GRND_NONBLOCK) != sizeof(cache->seed))
		cache->seed = (uint64_t)(uintptr_t)cache->slots;
}

void chain_cache_fini(struct chain_cache *cache)
{
	mem_free(cache->slots);
	*cache = (struct chain_cache){0};
}

void chain_cache_clear(struct chain_cache *cache)
{
	chain_cache_fini(cache);
	chain_cache_init(cache);
}

static void grow(struct chain_cache *cache)
{
	uint64_t mask = cache->mask * 2 + 1;
	struct chain_cache_slot *slots = mem_zalloc(mask + 1, sizeof(*slots));
	for (uint64_t i = 0; i <= cache->mask; i++) {
		const struct chain_cache_slot *slot = &cache->slots[i];
		if (!slot->sample_plus_1)
			continue;
		uint64_t at = slot->hash & mask;
		while (slots[at].sample_plus_1)
			at = (at + 1) & mask;
		slots[at] = *slot;
	}
	mem_free(cache->slots);
	cache->slots = slots;
	cache->mask = mask;
}

void chain_cache_claim(struct chain_cache *cache, struct chain_cache_slot *slot, XXH128_hash_t hash,
		       uint32_t sample)
{
	*slot = (struct chain_cache_slot){hash.low64, (uint32_t)hash.high64, sample + 1};
	if (++cache->n > CHAIN_CACHE_MAX)
		chain_cache_clear(cache);
	else if (cache->n * 4 > (cache->mask + 1) * 3)
		grow(cache);
}
