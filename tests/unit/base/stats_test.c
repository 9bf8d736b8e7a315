/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/stats.h"

static void stats_names_are_unique(void **state)
{
	(void)state;
	for (enum stats_counter i = 0; i < STAT_N; i++) {
		assert_non_null(stats_name(i));
		for (enum stats_counter j = 0; j < i; j++)
			assert_string_not_equal(stats_name(i), stats_name(j));
	}
	assert_string_equal(stats_name(STAT_SAMPLES_LOST), "samples_lost");
}

static void *add_many(void *unused)
{
	for (int i = 0; i < 100000; i++)
		stats_add(STAT_SAMPLES_TAKEN, 2);
	return unused;
}

static void stats_lose_no_addition_of_two_threads(void **state)
{
	(void)state;
	stats_reset();
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(stats_get(STAT_SAMPLES_TAKEN), 400000);
	assert_int_equal(stats_get(STAT_SAMPLES_LOST), 0);
	stats_reset();
	assert_int_equal(stats_get(STAT_SAMPLES_TAKEN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_names_are_unique),
		cmocka_unit_test(stats_lose_no_addition_of_two_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
