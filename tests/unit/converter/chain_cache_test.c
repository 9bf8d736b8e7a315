/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "converter/chain_cache.h"

static XXH128_hash_t hash_of(const struct chain_cache *cache, uint64_t word, uint64_t context)
{
	return chain_cache_hash(cache, &word, sizeof(word), context);
}

static void add(struct chain_cache *cache, uint64_t word, uint64_t context, uint32_t sample)
{
	XXH128_hash_t hash = hash_of(cache, word, context);
	struct chain_cache_slot *slot = chain_cache_find(cache, hash);
	assert_int_equal(slot->sample_plus_1, 0);
	chain_cache_claim(cache, slot, hash, sample);
}

/* Sample + 1. */
static uint32_t look_up(struct chain_cache *cache, uint64_t word, uint64_t context)
{
	return chain_cache_find(cache, hash_of(cache, word, context))->sample_plus_1;
}

static void chain_cache_remembers_across_growth(void **state)
{
	(void)state;
	struct chain_cache cache;
	chain_cache_init(&cache);
	for (uint32_t i = 0; i < 100000; i++)
		add(&cache, i, 0, i);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(look_up(&cache, i, 0), i + 1);
	assert_int_equal(look_up(&cache, 100000, 0), 0);
	assert_true(cache.n * 4 <= (cache.mask + 1) * 3);
	chain_cache_fini(&cache);
}

static void chain_cache_keeps_contexts_and_lengths_apart(void **state)
{
	(void)state;
	static const uint64_t words[4] = {1, 2, 3, 4};
	struct chain_cache cache;
	chain_cache_init(&cache);
	uint32_t sample = 0;
	for (uint64_t context = 0; context < 50; context++) {
		for (size_t n = 0; n <= 4; n++) {
			XXH128_hash_t hash = chain_cache_hash(&cache, words, n * 8, context);
			struct chain_cache_slot *slot = chain_cache_find(&cache, hash);
			assert_int_equal(slot->sample_plus_1, 0);
			chain_cache_claim(&cache, slot, hash, sample++);
		}
	}
	chain_cache_clear(&cache);
	assert_int_equal(look_up(&cache, 1, 0), 0);
	assert_int_equal(cache.n, 0);
	chain_cache_fini(&cache);
}

static void chain_cache_starts_over_at_its_bound(void **state)
{
	(void)state;
	struct chain_cache cache;
	chain_cache_init(&cache);
	for (uint32_t i = 0; i < CHAIN_CACHE_MAX; i++)
		add(&cache, i, 7, i);
	assert_int_equal(cache.n, CHAIN_CACHE_MAX);
	assert_true((cache.mask + 1) * sizeof(struct chain_cache_slot) <= 64u << 20);
	assert_int_equal(look_up(&cache, 5, 7), 6);
	add(&cache, CHAIN_CACHE_MAX, 7, 1);
	assert_int_equal(cache.n, 0);
	assert_int_equal(look_up(&cache, 5, 7), 0);
	add(&cache, 5, 7, 99);
	assert_int_equal(look_up(&cache, 5, 7), 100);
	chain_cache_fini(&cache);
}

static void chain_cache_is_seeded(void **state)
{
	(void)state;
	struct chain_cache a, b;
	chain_cache_init(&a);
	chain_cache_init(&b);
	assert_true(a.seed != b.seed);
	chain_cache_fini(&a);
	chain_cache_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_cache_remembers_across_growth),
		cmocka_unit_test(chain_cache_keeps_contexts_and_lengths_apart),
		cmocka_unit_test(chain_cache_starts_over_at_its_bound),
		cmocka_unit_test(chain_cache_is_seeded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
