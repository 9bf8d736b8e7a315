/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/record_block.h"

static uint8_t bytes[UINT16_MAX];

static struct perf_record make(uint32_t type, uint32_t size, uint8_t fill)
{
	memset(bytes, fill, size);
	return (struct perf_record){.bytes = bytes, .type = type, .size = size, .time_ns = fill};
}

static bool add(struct record_block *block, uint32_t type, uint32_t size, uint8_t fill)
{
	struct perf_record record = make(type, size, fill);
	return record_block_add(block, &record);
}

static void record_block_copies_odd_sizes_to_aligned_places(void **state)
{
	(void)state;
	struct record_block *block = record_block_new();
	for (uint32_t size = 8; size < 40; size++)
		assert_true(add(block, PERF_RECORD_COMM, size, (uint8_t)size));
	for (uint32_t i = 0; i < block->n; i++) {
		const struct perf_record *record = &block->records[i];
		assert_int_equal((uintptr_t)record->bytes % 8, 0);
		assert_int_equal(record->size, 8 + i);
		assert_int_equal(record->bytes[0], record->size);
		assert_int_equal(record->bytes[record->size - 1], record->size);
	}
	record_block_free(block);
}

static void record_block_refuses_what_does_not_fit(void **state)
{
	(void)state;
	struct record_block *block = record_block_new();
	assert_true(add(block, PERF_RECORD_SAMPLE, UINT16_MAX, 1));
	assert_true(add(block, PERF_RECORD_SAMPLE, UINT16_MAX, 2));
	assert_false(add(block, PERF_RECORD_SAMPLE, 8, 3));
	assert_int_equal(block->n, 2);
	record_block_free(block);

	block = record_block_new();
	for (int i = 0; i < RECORD_BLOCK_RECORDS; i++)
		assert_true(add(block, PERF_RECORD_SAMPLE, 8, 1));
	assert_false(add(block, PERF_RECORD_SAMPLE, 8, 1));
	record_block_free(block);
}

static void record_block_keeps_side_band_when_samples_go(void **state)
{
	(void)state;
	struct record_block *block = record_block_new();
	for (uint8_t i = 0; i < 100; i++)
		assert_true(add(block, i % 3 ? PERF_RECORD_SAMPLE : PERF_RECORD_MMAP2,
				8 + (uint32_t)i, i));
	assert_int_equal(record_block_drop_samples(block), 66);
	assert_int_equal(block->n, 34);
	for (uint32_t i = 0; i < block->n; i++) {
		assert_int_equal(block->records[i].time_ns, 3 * i);
		assert_int_equal(block->records[i].bytes[7 + 3 * i], 3 * i);
	}
	assert_true(add(block, PERF_RECORD_MMAP2, 8, 255));
	assert_int_equal(block->records[33].bytes[0], 99);
	assert_int_equal(block->records[34].bytes[0], 255);
	record_block_free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_block_copies_odd_sizes_to_aligned_places),
		cmocka_unit_test(record_block_refuses_what_does_not_fit),
		cmocka_unit_test(record_block_keeps_side_band_when_samples_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
