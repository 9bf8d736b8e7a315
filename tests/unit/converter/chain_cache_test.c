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

static uint32_t look_up(const struct chain_cache *cache, uint64_t word, uint64_t context)
{
	return chain_cache_find(cache, hash_of(cache, word, context));
}

static void chain_cache_gives_each_chain_its_row_or_none(void **state)
{
	(void)state;
	struct chain_cache cache;
	uint32_t n_remembered = 0;
	chain_cache_init(&cache);
	for (uint32_t i = 0; i < CHAIN_CACHE_SLOTS; i++)
		chain_cache_put(&cache, hash_of(&cache, i, 0), i);
	for (uint32_t i = 0; i < CHAIN_CACHE_SLOTS; i++) {
		uint32_t row = look_up(&cache, i, 0);
		assert_true(row == i || row == CHAIN_CACHE_NONE);
		n_remembered += row == i;
	}
	/* As many chains as slots: 1 - 1/e of the slots are taken. */
	assert_in_range(n_remembered, CHAIN_CACHE_SLOTS * 62 / 100, CHAIN_CACHE_SLOTS * 65 / 100);
	assert_int_equal(look_up(&cache, CHAIN_CACHE_SLOTS, 0), CHAIN_CACHE_NONE);
	chain_cache_fini(&cache);
}

static void chain_cache_keeps_the_newest_of_two_that_share_a_slot(void **state)
{
	(void)state;
	struct chain_cache cache;
	chain_cache_init(&cache);
	XXH128_hash_t first = {.low64 = 5, .high64 = 1};
	XXH128_hash_t second = {.low64 = 5 + CHAIN_CACHE_SLOTS, .high64 = 1};
	chain_cache_put(&cache, first, 10);
	chain_cache_put(&cache, second, 20);
	assert_int_equal(chain_cache_find(&cache, first), CHAIN_CACHE_NONE);
	assert_int_equal(chain_cache_find(&cache, second), 20);
	chain_cache_fini(&cache);
}

static void chain_cache_keeps_contexts_and_lengths_apart(void **state)
{
	(void)state;
	static const uint64_t words[4] = {1, 2, 3, 4};
	struct chain_cache cache;
	chain_cache_init(&cache);
	uint32_t row = 0;
	for (uint64_t context = 0; context < 50; context++) {
		for (size_t n = 0; n <= 4; n++) {
			XXH128_hash_t hash = chain_cache_hash(&cache, words, n * 8, context);
			assert_int_equal(chain_cache_find(&cache, hash), CHAIN_CACHE_NONE);
			chain_cache_put(&cache, hash, row++);
		}
	}
	chain_cache_clear(&cache);
	assert_int_equal(look_up(&cache, 1, 0), CHAIN_CACHE_NONE);
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
		cmocka_unit_test(chain_cache_gives_each_chain_its_row_or_none),
		cmocka_unit_test(chain_cache_keeps_the_newest_of_two_that_share_a_slot),
		cmocka_unit_test(chain_cache_keeps_contexts_and_lengths_apart),
		cmocka_unit_test(chain_cache_is_seeded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
