/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/prefix_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct prefix_table table;

static void check_code(const uint64_t *counts, size_t n)
{
	struct prefix_code code;
	prefix_code_init(&code, counts, n);
	assert_true(prefix_table_init(&table, code.lengths, n));
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(!code.lengths[i], !counts[i]);
		if (!counts[i])
			continue;
		unsigned bits = prefix_code_bits(&code, i);
		assert_in_range(bits, 0, PREFIX_CODE_MAX_BITS);
		/* Whatever follows, the symbol is found. */
		for (unsigned tail = 0; tail < 8; tail++) {
			unsigned window =
				(code.codes[i] | tail * 0x155u << bits) % PREFIX_CODE_SLOTS;
			assert_int_equal(table.slots[window].symbol, i);
			assert_int_equal(table.slots[window].bits, bits);
		}
	}
}

static void prefix_code_gives_back_each_symbol(void **state)
{
	(void)state;
	uint64_t counts[PREFIX_CODE_MAX_SYMBOLS] = {5, 1, 0, 7, 100, 3};
	check_code(counts, 6);
	for (unsigned i = 0; i < PREFIX_CODE_MAX_SYMBOLS; i++)
		counts[i] = i * i % 17;
	check_code(counts, PREFIX_CODE_MAX_SYMBOLS);
	for (unsigned i = 0; i < PREFIX_CODE_MAX_SYMBOLS; i++)
		counts[i] = 1;
	check_code(counts, PREFIX_CODE_MAX_SYMBOLS);
}

static void prefix_code_keeps_to_ten_bits_whatever_the_counts(void **state)
{
	(void)state;
	uint64_t counts[40] = {1, 1};
	for (unsigned i = 2; i < 40; i++)
		counts[i] = counts[i - 1] + counts[i - 2];
	check_code(counts, 40);
}

static void prefix_code_of_one_symbol_takes_no_bits(void **state)
{
	(void)state;
	uint64_t counts[3] = {0, 9, 0};
	struct prefix_code code;
	prefix_code_init(&code, counts, 3);
	assert_int_equal(prefix_code_bits(&code, 1), 0);
	assert_true(prefix_table_init(&table, code.lengths, 3));
	assert_int_equal(table.slots[77].symbol, 1);
	assert_int_equal(table.slots[77].bits, 0);
	uint64_t none[3] = {0};
	prefix_code_init(&code, none, 3);
	assert_true(prefix_table_init(&table, code.lengths, 3));
}

static void prefix_table_refuses_lengths_that_are_no_code(void **state)
{
	(void)state;
	static const uint8_t lengths[][4] = {
		{1, 1, 1, 0},  {1, 2, 0, 0},   {1, 0, 0, 0},	 {11, 11, 0, 0},
		{15, 1, 1, 0}, {15, 15, 0, 0}, {10, 10, 10, 10}, {14, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		assert_false(prefix_table_init(&table, lengths[i], 4));
	assert_true(prefix_table_init(&table, (const uint8_t[]){1, 2, 3, 3}, 4));
}

static void prefix_number_is_symbol_and_extra_bits(void **state)
{
	(void)state;
	static const uint32_t near[] = {0,    1,	  15,	      16,	  17,
					23,   24,	  31,	      32,	  255,
					4095, 0x12345678, 0x3fffffff, 0x40000000, 0x7fffffff};
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
		unsigned symbol = prefix_number_symbol(near[i]);
		assert_true(symbol < PREFIX_NUMBER_SYMBOLS);
		uint32_t base = prefix_number_bases[symbol];
		assert_true(base <= near[i]);
		assert_true(near[i] - base < UINT32_C(1) << prefix_number_extra_bits(symbol));
		/* The extra bits are the number's low ones. */
		assert_int_equal(base & ((UINT32_C(1) << prefix_number_extra_bits(symbol)) - 1), 0);
	}
	static const int32_t differences[] = {0, 1, -1, 7, -8, 1000000, INT32_MAX, INT32_MIN};
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		assert_int_equal(prefix_number_unzigzag(prefix_number_zigzag(differences[i])),
				 differences[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefix_code_gives_back_each_symbol),
		cmocka_unit_test(prefix_code_keeps_to_ten_bits_whatever_the_counts),
		cmocka_unit_test(prefix_code_of_one_symbol_takes_no_bits),
		cmocka_unit_test(prefix_table_refuses_lengths_that_are_no_code),
		cmocka_unit_test(prefix_number_is_symbol_and_extra_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
