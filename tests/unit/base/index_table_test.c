/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash_map.h"
#include "base/index_table.h"

static uint32_t scattered(const void *context, uint32_t index)
{
	(void)context;
	return (uint32_t)hash_mix(index);
}

static uint32_t constant(const void *context, uint32_t index)
{
	(void)index;
	return *(const uint32_t *)context;
}

/* Whether index is among what its hash leads to; *n_out counts those. */
static bool is_found(const struct index_table *table, uint32_t hash, uint32_t index,
		     uint64_t *n_out)
{
	bool found = false;
	for (struct index_probe probe = index_table_probe(table, hash);
	     index_probe_next(table, &probe);) {
		found |= probe.index == index;
		*n_out += 1;
	}
	return found;
}

static void every_element_is_found_at_every_size(void **state)
{
	(void)state;
	enum { N = 700000 };
	struct index_table table = {0};
	uint64_t n_candidates = 0, n_lookups = 0;
	for (uint32_t i = 0; i < N; i++) {
		index_table_reserve(&table, 1, scattered, NULL);
		assert_int_equal(index_table_add(&table, scattered(NULL, i)), i);
		if (i & (i + 1) & ~(uint32_t)0xffff)
			continue;
		for (uint32_t k = 0; k <= i; k += i / 1000 + 1, n_lookups++)
			assert_true(is_found(&table, scattered(NULL, k), k, &n_candidates));
	}
	for (uint32_t i = 0; i < N; i++, n_lookups++)
		assert_true(is_found(&table, scattered(NULL, i), i, &n_candidates));
	/* Few are looked at in vain, and a large table is dense. */
	assert_true(n_candidates < n_lookups + n_lookups / 10);
	assert_true(index_table_bytes(&table) < (uint64_t)N * 8);
	index_table_fini(&table);
}

static void an_absent_hash_leads_to_little(void **state)
{
	(void)state;
	struct index_table table = {0};
	index_table_reserve(&table, 100000, scattered, NULL);
	for (uint32_t i = 0; i < 100000; i++)
		index_table_add(&table, scattered(NULL, i));
	uint64_t n_candidates = 0;
	for (uint32_t i = 100000; i < 200000; i++)
		assert_false(is_found(&table, scattered(NULL, i), i, &n_candidates));
	assert_true(n_candidates < 10000);
	index_table_fini(&table);
}

/* At both ends of the buckets, where probing wraps, and with both tags that are alike. */
static void equal_hashes_are_all_found(void **state)
{
	(void)state;
	static const uint32_t hashes[] = {0, 1, UINT32_MAX, 0x80000000};
	for (size_t h = 0; h < sizeof(hashes) / sizeof(hashes[0]); h++) {
		struct index_table table = {0};
		uint64_t n_candidates = 0;
		for (uint32_t i = 0; i < 300; i++) {
			index_table_reserve(&table, 1, constant, &hashes[h]);
			index_table_add(&table, hashes[h]);
		}
		for (uint32_t i = 0; i < 300; i++)
			assert_true(is_found(&table, hashes[h], i, &n_candidates));
		assert_int_equal(n_candidates, 300 * 300);
		index_table_fini(&table);
	}
}

static void a_trimmed_table_comes_back(void **state)
{
	(void)state;
	struct index_table table = {0};
	uint64_t n_candidates = 0;
	index_table_reserve(&table, 5000, scattered, NULL);
	for (uint32_t i = 0; i < 5000; i++)
		index_table_add(&table, scattered(NULL, i));
	index_table_trim(&table);
	assert_int_equal(index_table_bytes(&table), 0);
	index_table_reserve(&table, 1, scattered, NULL);
	assert_int_equal(index_table_add(&table, scattered(NULL, 5000)), 5000);
	for (uint32_t i = 0; i <= 5000; i++)
		assert_true(is_found(&table, scattered(NULL, i), i, &n_candidates));
	index_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_is_found_at_every_size),
		cmocka_unit_test(an_absent_hash_leads_to_little),
		cmocka_unit_test(equal_hashes_are_all_found),
		cmocka_unit_test(a_trimmed_table_comes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
