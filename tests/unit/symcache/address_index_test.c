/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/address_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Against a walk from the front, for every size up to 70. */
static void check_all(uint64_t base, uint64_t step)
{
	uint64_t starts[70];
	for (uint32_t n = 1; n <= 70; n++) {
		for (uint32_t i = 0; i < n; i++)
			starts[i] = base + i * step;
		struct address_index index;
		address_index_init(&index, starts, n);
		assert_int_equal(address_index_find(&index, base - 1), ADDRESS_INDEX_NONE);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(address_index_find(&index, starts[i]), i);
			assert_int_equal(address_index_find(&index, starts[i] + step - 1), i);
		}
		assert_int_equal(address_index_find(&index, UINT64_MAX), n - 1);
		address_index_fini(&index);
	}
}

static void address_index_finds_the_last_start_at_or_before(void **state)
{
	(void)state;
	check_all(0x1000, 16);
	check_all(0xffffffff81000000, 3);
	check_all(1, 1ull << 40);
}

static void address_index_keeps_near_addresses_in_32_bits(void **state)
{
	(void)state;
	const uint64_t near[] = {0xffffffff00000000, UINT64_MAX};
	const uint64_t far[] = {0xfffffffeffffffff, UINT64_MAX};
	struct address_index index;
	address_index_init(&index, near, 2);
	assert_non_null(index.narrow);
	assert_int_equal(address_index_find(&index, UINT64_MAX), 1);
	assert_int_equal(address_index_find(&index, UINT64_MAX - 1), 0);
	address_index_fini(&index);
	address_index_init(&index, far, 2);
	assert_non_null(index.wide);
	assert_int_equal(address_index_find(&index, UINT64_MAX), 1);
	address_index_fini(&index);
}

static void address_index_without_starts_finds_nothing(void **state)
{
	(void)state;
	struct address_index index;
	address_index_init(&index, NULL, 0);
	assert_int_equal(address_index_find(&index, 0), ADDRESS_INDEX_NONE);
	assert_int_equal(address_index_find(&index, UINT64_MAX), ADDRESS_INDEX_NONE);
	address_index_fini(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_index_finds_the_last_start_at_or_before),
		cmocka_unit_test(address_index_keeps_near_addresses_in_32_bits),
		cmocka_unit_test(address_index_without_starts_finds_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
