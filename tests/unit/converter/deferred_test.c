/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/deferred.h"

struct seen {
	uint64_t times[3 * DEFERRED_MAX];
	uint64_t n_chain[3 * DEFERRED_MAX];
	const uint8_t *last_chain;
	uint32_t n;
};

static void note(void *context, const struct perf_record *record, const uint8_t *chain,
		 uint64_t n_chain)
{
	struct seen *seen = context;
	assert_memory_equal(record->bytes, "01234567", 8);
	assert_int_equal(chain == NULL, n_chain == 0);
	seen->times[seen->n] = record->time_ns;
	seen->n_chain[seen->n++] = n_chain;
	seen->last_chain = chain;
}

static void add(struct deferred_table *table, struct seen *seen, uint32_t tid, uint64_t cookie,
		uint64_t time_ns)
{
	uint8_t bytes[8];
	memcpy(bytes, "01234567", 8);
	const struct perf_record record = {.bytes = bytes, .size = 8, .time_ns = time_ns};
	deferred_add(table, &record, tid, cookie, note, seen);
	memset(bytes, 0, 8); /* the record is copied */
}

static const uint8_t user_part[16];

static void deferred_completes_all_that_wait_for_thread_and_cookie(void **state)
{
	(void)state;
	struct deferred_table *table = mem_zalloc(1, sizeof(*table));
	struct seen *seen = mem_zalloc(1, sizeof(*seen));
	add(table, seen, 1, 100, 1);
	add(table, seen, 2, 100, 2); /* another thread, same cookie */
	add(table, seen, 1, 100, 3);
	add(table, seen, 1, 101, 4);
	assert_int_equal(seen->n, 0);
	deferred_complete(table, 1, 100, user_part, 2, note, seen);
	assert_int_equal(seen->n, 2);
	assert_int_equal(seen->times[0], 1);
	assert_int_equal(seen->times[1], 3);
	assert_int_equal(seen->n_chain[0], 2);
	assert_ptr_equal(seen->last_chain, user_part);
	deferred_complete(table, 1, 100, user_part, 2, note, seen);
	deferred_complete(table, 9, 9, user_part, 2, note, seen);
	assert_int_equal(seen->n, 2);
	deferred_flush(table, note, seen);
	assert_int_equal(seen->n, 4);
	assert_int_equal(seen->times[2], 2);
	assert_int_equal(seen->times[3], 4);
	assert_int_equal(seen->n_chain[3], 0);
	deferred_flush(table, note, seen);
	assert_int_equal(seen->n, 4);
	deferred_fini(table);
	mem_free(table);
	mem_free(seen);
}

static void deferred_full_table_finishes_the_oldest_without_its_part(void **state)
{
	(void)state;
	struct deferred_table *table = mem_zalloc(1, sizeof(*table));
	struct seen *seen = mem_zalloc(1, sizeof(*seen));
	for (uint32_t i = 0; i < DEFERRED_MAX; i++)
		add(table, seen, i, i, i + 1);
	assert_int_equal(seen->n, 0);
	add(table, seen, 7, 77777, 99999);
	assert_int_equal(seen->n, 1);
	assert_int_equal(seen->times[0], 1);
	assert_int_equal(seen->n_chain[0], 0);
	/* A hole in the middle is no room, one at the front is. */
	deferred_complete(table, 5, 5, user_part, 1, note, seen);
	deferred_complete(table, 1, 1, user_part, 1, note, seen);
	assert_int_equal(seen->n, 3);
	add(table, seen, 8, 88888, 100000);
	assert_int_equal(seen->n, 3);
	add(table, seen, 8, 88889, 100001);
	assert_int_equal(seen->n, 4);
	assert_int_equal(seen->times[3], 3);
	deferred_fini(table); /* the rest is dropped, its memory freed */
	mem_free(table);
	mem_free(seen);
}

/* A thread sleeps in the kernel for as long as it likes. */
static void deferred_waits_while_others_come_and_go(void **state)
{
	(void)state;
	struct deferred_table *table = mem_zalloc(1, sizeof(*table));
	struct seen *seen = mem_zalloc(1, sizeof(*seen));
	for (uint32_t i = 0; i < 100; i++)
		add(table, seen, 1000 + i, 7, i + 1);
	for (uint64_t i = 0; i < 20 * DEFERRED_MAX; i++) {
		add(table, seen, 1, i, 5000);
		deferred_complete(table, 1, i, user_part, 1, note, seen);
		assert_int_equal(seen->n, 1);
		seen->n = 0;
	}
	for (uint32_t i = 0; i < 100; i++)
		deferred_complete(table, 1000 + i, 7, user_part, 2, note, seen);
	assert_int_equal(seen->n, 100);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(seen->times[i], i + 1);
		assert_int_equal(seen->n_chain[i], 2);
	}
	assert_int_equal(table->n, 0);
	mem_free(table);
	mem_free(seen);
}

static void deferred_hands_out_each_sample_once_whatever_comes(void **state)
{
	(void)state;
	struct deferred_table *table = mem_zalloc(1, sizeof(*table));
	uint64_t seed = 5, n_added = 0, n_out = 0;
	struct seen *seen = mem_zalloc(1, sizeof(*seen));
	for (int i = 0; i < 100000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		uint32_t tid = (uint32_t)(seed % 50);
		uint64_t cookie = seed >> 32 & 63;
		if (seed >> 40 & 7) {
			add(table, seen, tid, cookie, ++n_added);
		} else {
			deferred_complete(table, tid, cookie, user_part, 1, note, seen);
		}
		n_out += seen->n;
		seen->n = 0;
		assert_true(table->n <= DEFERRED_MAX);
	}
	deferred_flush(table, note, seen);
	assert_int_equal(n_out + seen->n, n_added);
	mem_free(table);
	mem_free(seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deferred_completes_all_that_wait_for_thread_and_cookie),
		cmocka_unit_test(deferred_full_table_finishes_the_oldest_without_its_part),
		cmocka_unit_test(deferred_waits_while_others_come_and_go),
		cmocka_unit_test(deferred_hands_out_each_sample_once_whatever_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
