/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "collector/reorder.h"

enum { LOG_MAX = 1 << 16, WINDOW_BYTES = 1 << 20, WINDOW_RECORDS = 1 << 16 };

/* What the sink saw; a record's place in the order of arrival is kept in event_index. */
struct log {
	uint64_t times[LOG_MAX];
	uint32_t arrivals[LOG_MAX];
	size_t n;
	size_t n_calls;
	size_t fail_at_call; /* 0 = never */
};

static struct error *note(void *context, const struct perf_record *records, size_t n)
{
	struct log *log = context;
	if (++log->n_calls == log->fail_at_call)
		return error_new(ERROR_CANCELLED, "enough");
	for (size_t i = 0; i < n; i++) {
		assert_true(log->n < LOG_MAX);
		log->times[log->n] = records[i].time_ns;
		log->arrivals[log->n++] = records[i].event_index;
	}
	return NULL;
}

struct fixture {
	struct reorder reorder;
	struct log log;
	uint32_t n_added;
};

static struct fixture *make_fixture(size_t max_bytes, size_t max_records)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	reorder_init(&f->reorder, max_bytes, max_records);
	reorder_set_sink(&f->reorder, note, &f->log);
	stats_reset();
	return f;
}

static void free_fixture(struct fixture *f)
{
	reorder_fini(&f->reorder);
	mem_free(f);
}

static void add(struct fixture *f, uint64_t time_ns, struct reorder_block *block)
{
	const struct perf_record record = {.time_ns = time_ns, .event_index = f->n_added++};
	assert_null(reorder_add(&f->reorder, &record, block));
}

static void end_round(struct fixture *f)
{
	assert_null(reorder_round(&f->reorder));
	assert_null(reorder_emit(&f->reorder));
}

static void flush(struct fixture *f)
{
	assert_null(reorder_flush(&f->reorder));
}

static void assert_times(const struct log *log, const uint64_t *times, size_t n)
{
	assert_int_equal(log->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(log->times[i], times[i]);
}

static void reorder_follows_the_timeline_of_its_header(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	static const uint64_t after_2[] = {10, 20, 30, 35, 40};
	static const uint64_t after_3[] = {10, 20, 30, 35, 40, 50, 70, 80};
	static const uint64_t after_flush[] = {10, 20, 30, 35, 40, 50, 70, 80, 90};
	add(f, 10, NULL), add(f, 30, NULL);
	add(f, 20, NULL), add(f, 40, NULL);
	end_round(f);
	assert_times(&f->log, NULL, 0);
	add(f, 50, NULL), add(f, 80, NULL);
	add(f, 35, NULL);
	end_round(f);
	assert_times(&f->log, after_2, 5);
	add(f, 90, NULL);
	add(f, 70, NULL);
	end_round(f);
	assert_times(&f->log, after_3, 8);
	flush(f);
	assert_times(&f->log, after_flush, 9);
	assert_int_equal(stats_get(STAT_RECORDS_OUT_OF_ORDER), 0);
	free_fixture(f);
}

static void reorder_keeps_arrival_order_of_equal_times(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	static const uint64_t times[] = {7, 9, 7, 8, 7, 9, 7, 7};
	static const uint32_t want[] = {0, 2, 4, 6, 7, 3, 1, 5};
	for (size_t i = 0; i < 8; i++)
		add(f, times[i], NULL);
	flush(f);
	assert_int_equal(f->log.n, 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(f->log.arrivals[i], want[i]);
	free_fixture(f);
}

static void reorder_passes_records_without_time_before_pending_ones(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	static const uint64_t want[] = {0, UINT64_MAX, 5, 6};
	add(f, 6, NULL);
	add(f, 0, NULL);
	add(f, UINT64_MAX, NULL);
	add(f, 5, NULL);
	flush(f);
	assert_times(&f->log, want, 4);
	free_fixture(f);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Rounds as the kernel makes them: a CPU's chunk may reach back into the round before. */
static void reorder_sorts_whatever_keeps_the_guarantee(void **state)
{
	(void)state;
	enum { ROUNDS = 40, CPUS = 7, CHUNK_MAX = 30 };
	for (unsigned seed = 1; seed <= 50; seed++) {
		struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
		uint64_t *all = mem_zalloc(ROUNDS * CPUS * CHUNK_MAX, sizeof(*all));
		size_t n = 0;
		unsigned random = seed;
		for (uint64_t round = 1; round <= ROUNDS; round++) {
			for (unsigned cpu = 0; cpu < CPUS; cpu++) {
				uint64_t time_ns = round * 1000;
				unsigned chunk = (unsigned)rand_r(&random) % CHUNK_MAX;
				for (unsigned i = 0; i < chunk; i++) {
					time_ns += (unsigned)rand_r(&random) % 60;
					all[n++] = time_ns;
					add(f, time_ns, NULL);
				}
			}
			end_round(f);
		}
		flush(f);
		qsort(all, n, sizeof(*all), compare_times);
		assert_times(&f->log, all, n);
		assert_int_equal(stats_get(STAT_RECORDS_OUT_OF_ORDER), 0);
		mem_free(all);
		free_fixture(f);
	}
}

static void reorder_releases_the_older_half_at_its_record_bound(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, 8);
	static const uint64_t half[] = {1, 2, 3, 4};
	for (uint64_t i = 0; i < 4; i++) {
		add(f, 8 - i, NULL);
		add(f, i + 1, NULL);
	}
	assert_times(&f->log, half, 4);
	assert_int_equal(stats_get(STAT_RECORDS_OUT_OF_ORDER), 0);
	add(f, 3, NULL); /* late by now */
	flush(f);
	static const uint64_t all[] = {1, 2, 3, 4, 3, 5, 6, 7, 8};
	assert_times(&f->log, all, 9);
	assert_int_equal(stats_get(STAT_RECORDS_OUT_OF_ORDER), 1);
	free_fixture(f);
}

struct test_block {
	struct reorder_block base;
	int n_released;
};

static void release_test_block(struct reorder_block *base)
{
	((struct test_block *)base)->n_released++;
}

static struct test_block make_block(size_t bytes)
{
	return (struct test_block){
		.base = {.bytes = bytes, .is_open = true, .release = release_test_block}};
}

static void reorder_holds_no_more_blocks_than_its_bound(void **state)
{
	(void)state;
	enum { BLOCKS = 100, BOUND = 10 };
	struct fixture *f = make_fixture(BOUND * 1000, WINDOW_RECORDS);
	struct test_block blocks[BLOCKS];
	size_t most = 0;
	for (uint64_t i = 0; i < BLOCKS; i++) {
		blocks[i] = make_block(1000);
		/* Each block has one record of the far future, which would keep it for good. */
		add(f, 1000 + i, &blocks[i].base);
		add(f, 1ull << 60, &blocks[i].base);
		reorder_block_close(&blocks[i].base);
		if (f->reorder.held_bytes > most)
			most = f->reorder.held_bytes;
	}
	assert_true(most <= BOUND * 1000);
	flush(f);
	assert_int_equal(f->log.n, 2 * BLOCKS);
	assert_int_equal(f->reorder.held_bytes, 0);
	for (size_t i = 0; i < BLOCKS; i++)
		assert_int_equal(blocks[i].n_released, 1);
	free_fixture(f);
}

static void reorder_bounds_blocks_of_records_without_time_too(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(3000, WINDOW_RECORDS);
	struct test_block blocks[8];
	for (size_t i = 0; i < 8; i++) {
		blocks[i] = make_block(1000);
		add(f, 0, &blocks[i].base);
		reorder_block_close(&blocks[i].base);
		assert_true(f->reorder.held_bytes <= 3000);
	}
	assert_true(f->log.n >= 4);
	free_fixture(f);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(blocks[i].n_released, 1);
}

static void reorder_keeps_an_open_block_although_nothing_waits(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	struct test_block block = make_block(100);
	add(f, 1, &block.base);
	flush(f);
	assert_int_equal(block.base.n_held, 0);
	assert_int_equal(block.n_released, 0);
	reorder_block_close(&block.base);
	assert_int_equal(block.n_released, 1);
	free_fixture(f);
}

static void reorder_returns_the_sinks_error_and_goes_on(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	struct test_block block = make_block(100);
	for (uint64_t i = 1; i <= REORDER_BATCH_RECORDS + 10; i++)
		add(f, i, &block.base);
	f->log.fail_at_call = 1;
	struct error *err = reorder_flush(&f->reorder);
	assert_int_equal(error_get_code(err), ERROR_CANCELLED);
	error_free(err);
	flush(f);
	assert_int_equal(f->log.n, 10);
	reorder_block_close(&block.base);
	assert_int_equal(block.n_released, 1);
	free_fixture(f);
}

static void reorder_fini_lets_go_of_what_waits(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	struct test_block block = make_block(100);
	add(f, 5, &block.base);
	add(f, 3, &block.base);
	add(f, 0, &block.base);
	reorder_block_close(&block.base);
	assert_int_equal(block.n_released, 0);
	free_fixture(f);
	assert_int_equal(block.n_released, 1);
}

static void reorder_takes_falling_times_in_reasonable_time(void **state)
{
	(void)state;
	struct fixture *f = make_fixture(WINDOW_BYTES, WINDOW_RECORDS);
	for (uint64_t i = 0; i < WINDOW_RECORDS - 1; i++)
		add(f, WINDOW_RECORDS - i, NULL);
	flush(f);
	for (size_t i = 1; i < f->log.n; i++)
		assert_true(f->log.times[i - 1] < f->log.times[i]);
	free_fixture(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reorder_follows_the_timeline_of_its_header),
		cmocka_unit_test(reorder_keeps_arrival_order_of_equal_times),
		cmocka_unit_test(reorder_passes_records_without_time_before_pending_ones),
		cmocka_unit_test(reorder_sorts_whatever_keeps_the_guarantee),
		cmocka_unit_test(reorder_releases_the_older_half_at_its_record_bound),
		cmocka_unit_test(reorder_holds_no_more_blocks_than_its_bound),
		cmocka_unit_test(reorder_bounds_blocks_of_records_without_time_too),
		cmocka_unit_test(reorder_keeps_an_open_block_although_nothing_waits),
		cmocka_unit_test(reorder_returns_the_sinks_error_and_goes_on),
		cmocka_unit_test(reorder_fini_lets_go_of_what_waits),
		cmocka_unit_test(reorder_takes_falling_times_in_reasonable_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
