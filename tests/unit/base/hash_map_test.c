/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash_map.h"

enum { N_KEYS = 512 };

static void hash_map_put_get_remove(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	assert_null(hash_map_get(&map, 1));
	assert_false(hash_map_remove(&map, 1));
	bool is_new;
	*hash_map_put(&map, 1, &is_new) = 10;
	assert_true(is_new);
	assert_int_equal(*hash_map_put(&map, 1, &is_new), 10);
	assert_false(is_new);
	assert_int_equal(*hash_map_put(&map, 0, NULL), 0);
	assert_int_equal(*hash_map_put(&map, UINT64_MAX, NULL), 0);
	assert_int_equal(map.n, 3);
	assert_true(hash_map_remove(&map, 1));
	assert_null(hash_map_get(&map, 1));
	assert_int_equal(map.n, 2);
	hash_map_fini(&map);
	hash_map_fini(&map);
}

static void hash_map_stays_below_its_load(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	for (uint64_t i = 0; i < 100000; i++) {
		*hash_map_put(&map, i * 4096, NULL) = i;
		assert_true(map.n * 10 <= (map.mask + 1) * 7);
	}
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(*hash_map_get(&map, i * 4096), i);
	assert_int_equal(map.seed, 0);
	hash_map_fini(&map);
}

/* Compared with a plain array under a long random sequence on few slots, so that runs wrap around
 * the end of the table and removals shift across it. */
static void hash_map_agrees_with_an_array(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	static bool is_there[N_KEYS];
	static uint64_t want[N_KEYS];
	size_t n = 0;
	uint64_t random = 1;
	for (int round = 0; round < 400000; round++) {
		random = hash_mix(random + 0x9e3779b97f4a7c15u);
		uint64_t key = random % N_KEYS;
		if (random >> 40 & 1) {
			bool is_new;
			uint64_t *value = hash_map_put(&map, key, &is_new);
			assert_int_equal(is_new, !is_there[key]);
			n += is_new;
			*value = want[key] = random;
			is_there[key] = true;
		} else {
			assert_int_equal(hash_map_remove(&map, key), is_there[key]);
			n -= is_there[key];
			is_there[key] = false;
		}
		assert_int_equal(map.n, n);
		uint64_t probe = (random >> 20) % N_KEYS;
		const uint64_t *value = hash_map_get(&map, probe);
		assert_int_equal(value != NULL, is_there[probe]);
		if (value)
			assert_int_equal(*value, want[probe]);
	}
	hash_map_fini(&map);
}

static void hash_map_next_visits_each_entry_once(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	size_t iterator = 0;
	uint64_t key;
	uint64_t *value;
	assert_false(hash_map_next(&map, &iterator, &key, &value));
	for (uint64_t i = 0; i < N_KEYS; i++)
		*hash_map_put(&map, i, NULL) = i * 2;
	static int n_seen[N_KEYS];
	size_t n = 0;
	for (iterator = 0; hash_map_next(&map, &iterator, &key, &value); n++) {
		assert_int_equal(*value, key * 2);
		n_seen[key]++;
	}
	assert_int_equal(n, N_KEYS);
	for (int i = 0; i < N_KEYS; i++)
		assert_int_equal(n_seen[i], 1);
	assert_false(hash_map_next(&map, &iterator, &key, &value));
	hash_map_fini(&map);
}

static void hash_map_clear_forgets_all_and_works_on(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	hash_map_clear(&map);
	for (uint64_t i = 0; i < 100; i++)
		*hash_map_put(&map, i, NULL) = i;
	hash_map_clear(&map);
	assert_int_equal(map.n, 0);
	assert_null(hash_map_get(&map, 5));
	assert_int_equal(*hash_map_put(&map, 5, NULL), 0);
	hash_map_fini(&map);
}

/* The key whose hash_mix is x: the mixer run backwards. */
static uint64_t unmix(uint64_t x)
{
	x ^= x >> 31 ^ x >> 62;
	x *= 0x319642b2d24d8ec3u;
	x ^= x >> 27 ^ x >> 54;
	x *= 0x96de1b173f119089u;
	x ^= x >> 30 ^ x >> 60;
	return x;
}

static void hash_map_does_not_go_quadratic_on_chosen_keys(void **state)
{
	(void)state;
	struct hash_map map;
	hash_map_init(&map);
	enum { N_CHOSEN = 200000 };
	for (uint64_t i = 1; i <= N_CHOSEN; i++) {
		uint64_t key = unmix(i << 32 | 7);
		assert_int_equal(hash_mix(key) & UINT32_MAX, 7);
		*hash_map_put(&map, key, NULL) = i;
	}
	assert_int_not_equal(map.seed, 0);
	for (uint64_t i = 1; i <= N_CHOSEN; i++)
		assert_int_equal(*hash_map_get(&map, unmix(i << 32 | 7)), i);
	/* A run is short again: with all keys in one place it would be N_CHOSEN long. */
	size_t longest = 0, run = 0;
	for (size_t i = 0; i <= map.mask; i++) {
		run = map.used[i] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_true(longest < 2000);
	hash_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_map_put_get_remove),
		cmocka_unit_test(hash_map_stays_below_its_load),
		cmocka_unit_test(hash_map_agrees_with_an_array),
		cmocka_unit_test(hash_map_next_visits_each_entry_once),
		cmocka_unit_test(hash_map_clear_forgets_all_and_works_on),
		cmocka_unit_test(hash_map_does_not_go_quadratic_on_chosen_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
