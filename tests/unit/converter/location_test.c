/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash_map.h"
#include "converter/location.h"

static uint32_t intern(struct location_table *table, uint64_t address, uint32_t image,
		       bool is_return)
{
	const struct location location = {
		.address = address, .image = image, .is_return = is_return};
	location_table_prefetch(table, &location);
	return location_table_intern(table, &location);
}

static void location_table_gives_equal_places_one_index(void **state)
{
	(void)state;
	struct location_table table;
	struct profile *profile = profile_new();
	location_table_init(&table);
	uint32_t n = 0;
	for (uint64_t address = 0; address < 3000; address++) {
		for (uint32_t image = 0; image < 5; image++) {
			assert_int_equal(intern(&table, address, image, false), n++);
			assert_int_equal(intern(&table, address, image, true), n++);
		}
	}
	for (uint64_t address = 0; address < 3000; address++)
		assert_int_equal(intern(&table, address, 3, true), address * 10 + 7);
	assert_int_equal(table.n, n);
	const struct location kept = location_table_get(&table, 17);
	assert_int_equal(kept.address, 1);
	assert_int_equal(kept.image, 3);
	assert_true(kept.is_return);
	location_table_move(&table, profile);
	assert_int_equal(table.n, 0);
	assert_int_equal(profile->locations.n, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct location moved = location_of_profile(&profile->locations.items[i]);
		assert_int_equal(moved.address, i / 10);
		assert_int_equal(moved.image, i / 2 % 5);
		assert_int_equal(moved.is_return, i % 2);
	}
	location_table_clear(&table);
	assert_int_equal(table.n, 0);
	location_table_fini(&table);
	profile_free(profile);
}

/* The inverse of hash_mix. */
static uint64_t unmix(uint64_t x)
{
	x ^= x >> 31 ^ x >> 62;
	x *= 0x319642b2d24d8ec3u;
	x ^= x >> 27 ^ x >> 54;
	x *= 0x96de1b173f119089u;
	x ^= x >> 30 ^ x >> 60;
	return x;
}

/* Addresses that all fall into one slot of a table without a seed: 10^10 steps, minutes. */
static void location_table_cannot_be_aimed_at(void **state)
{
	(void)state;
	struct location_table table;
	location_table_init(&table);
	assert_int_equal(hash_mix(unmix(12345)), 12345);
	for (uint64_t i = 0; i < 300000; i++)
		assert_int_equal(intern(&table, unmix(i << 32), 0, false), i);
	location_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(location_table_gives_equal_places_one_index),
		cmocka_unit_test(location_table_cannot_be_aimed_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
