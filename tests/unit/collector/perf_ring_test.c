/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/stats.h"
#include "collector/perf_ring.h"

enum { DATA_BYTES = 4096 };

/* A ring as the kernel would map it, made of our own memory. */
static struct {
	struct perf_event_mmap_page page;
	uint8_t data[DATA_BYTES];
} made;

static struct perf_ring make_ring(uint64_t tail)
{
	memset(&made, 0, sizeof(made));
	made.page.data_head = made.page.data_tail = tail;
	return (struct perf_ring){.page = &made.page, .data = made.data, .data_bytes = DATA_BYTES};
}

static void write_record(uint32_t type, uint16_t size, uint8_t fill)
{
	uint8_t record[256];
	struct perf_event_header header = {.type = type, .size = size};

	memset(record, fill, sizeof(record));
	memcpy(record, &header, sizeof(header));
	for (size_t i = 0; i < size; i++)
		made.data[(made.page.data_head + i) % DATA_BYTES] = record[i];
	made.page.data_head += size;
}

static size_t take(struct perf_ring *ring, uint8_t out[DATA_BYTES])
{
	uint64_t n = perf_ring_ready(ring);

	assert_true(n <= DATA_BYTES);
	perf_ring_copy(ring, out, n);
	perf_ring_release(ring, n);
	return n;
}

static void perf_ring_returns_wrapped_record_whole(void **state)
{
	(void)state;
	uint8_t out[DATA_BYTES];
	struct perf_event_header header;

	/* Every place where a record of 64 bytes can be cut by the end. */
	for (uint64_t before = 0; before <= 64; before += 8) {
		struct perf_ring ring = make_ring(5 * DATA_BYTES - before);
		size_t offset = 0;
		write_record(PERF_RECORD_SAMPLE, 64, 0xab);
		write_record(PERF_RECORD_COMM, 40, 0xcd);
		size_t n = take(&ring, out);
		assert_int_equal(n, 104);
		const uint8_t *record = perf_ring_next(out, n, &offset, &header);
		assert_non_null(record);
		assert_int_equal(header.type, PERF_RECORD_SAMPLE);
		for (int i = 8; i < 64; i++)
			assert_int_equal(record[i], 0xab);
		record = perf_ring_next(out, n, &offset, &header);
		assert_non_null(record);
		assert_int_equal(header.type, PERF_RECORD_COMM);
		assert_int_equal(record[39], 0xcd);
		assert_null(perf_ring_next(out, n, &offset, &header));
		assert_int_equal(perf_ring_ready(&ring), 0);
		assert_int_equal(made.page.data_tail, made.page.data_head);
	}
}

static void full_ring_is_taken_whole(void **state)
{
	(void)state;
	uint8_t out[DATA_BYTES];
	struct perf_event_header header;
	struct perf_ring ring = make_ring(1000 * 8);
	size_t offset = 0, n_records = 0;

	for (int i = 0; i < DATA_BYTES / 64; i++)
		write_record(PERF_RECORD_SAMPLE, 64, (uint8_t)i);
	size_t n = take(&ring, out);
	assert_int_equal(n, DATA_BYTES);
	while (perf_ring_next(out, n, &offset, &header))
		n_records++;
	assert_int_equal(n_records, DATA_BYTES / 64);
}

static void damaged_sizes_end_the_walk(void **state)
{
	(void)state;
	static const uint16_t sizes[] = {0, 1, 7, 9, 63, 72, 0xffff};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint8_t bytes[64] = {0};
		struct perf_event_header header = {.type = 9, .size = sizes[i]};
		size_t offset = 0;
		memcpy(bytes, &header, sizeof(header));
		stats_reset();
		assert_null(perf_ring_next(bytes, sizeof(bytes), &offset, &header));
		assert_int_equal(offset, sizeof(bytes));
		assert_int_equal(stats_get(STAT_RECORDS_MALFORMED), 1);
		assert_null(perf_ring_next(bytes, sizeof(bytes), &offset, &header));
		assert_int_equal(stats_get(STAT_RECORDS_MALFORMED), 1);
	}
}

static void rest_shorter_than_a_header_ends_the_walk(void **state)
{
	(void)state;
	uint8_t bytes[4] = {8, 0, 0, 0};
	struct perf_event_header header;
	size_t offset = 0;

	assert_null(perf_ring_next(bytes, sizeof(bytes), &offset, &header));
	assert_int_equal(offset, sizeof(bytes));
}

static void head_beyond_the_ring_empties_it(void **state)
{
	(void)state;
	struct perf_ring ring = make_ring(64);

	stats_reset();
	made.page.data_head = 64 + DATA_BYTES + 8;
	assert_int_equal(perf_ring_ready(&ring), 0);
	assert_int_equal(stats_get(STAT_RECORDS_MALFORMED), 1);
	assert_int_equal(made.page.data_tail, made.page.data_head);
	/* A head behind the tail is as impossible. */
	made.page.data_head -= 8;
	assert_int_equal(perf_ring_ready(&ring), 0);
	assert_int_equal(stats_get(STAT_RECORDS_MALFORMED), 2);
}

static void refused_mapping_is_an_error(void **state)
{
	(void)state;
	struct perf_ring ring;
	struct error *err = perf_ring_open(-1, DATA_BYTES, &ring);

	assert_non_null(err);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_ring_returns_wrapped_record_whole),
		cmocka_unit_test(full_ring_is_taken_whole),
		cmocka_unit_test(damaged_sizes_end_the_walk),
		cmocka_unit_test(rest_shorter_than_a_header_ends_the_walk),
		cmocka_unit_test(head_beyond_the_ring_empties_it),
		cmocka_unit_test(refused_mapping_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
