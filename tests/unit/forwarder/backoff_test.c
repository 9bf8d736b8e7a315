/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/backoff.h"

static const uint64_t second = 1000000000;

/* wait is base and at most 20 % more or less. */
static void assert_around(uint64_t wait, uint64_t base)
{
	assert_in_range(wait, base - base / 5, base + base / 5);
}

static void backoff_grows_by_1_6_up_to_its_maximum(void **state)
{
	(void)state;
	struct backoff backoff;
	backoff_init(&backoff, 0, 0, 42);
	uint64_t base = second;
	for (int i = 0; i < 30; i++) {
		assert_around(backoff_next(&backoff), base);
		base = base * 16 / 10 < 120 * second ? base * 16 / 10 : 120 * second;
	}
	assert_int_equal(base, 120 * second);
}

static void backoff_begins_anew_after_a_success(void **state)
{
	(void)state;
	struct backoff backoff;
	backoff_init(&backoff, 5 * second, 30 * second, 1);
	for (int i = 0; i < 10; i++)
		(void)backoff_next(&backoff);
	assert_around(backoff_next(&backoff), 30 * second);
	backoff_reset(&backoff);
	assert_around(backoff_next(&backoff), 5 * second);
	assert_around(backoff_next(&backoff), 8 * second);
}

static void backoff_spreads_over_the_whole_jitter(void **state)
{
	(void)state;
	struct backoff backoff;
	backoff_init(&backoff, second, second, 7);
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t wait = backoff_next(&backoff);
		least = wait < least ? wait : least;
		most = wait > most ? wait : most;
	}
	assert_in_range(least, second * 80 / 100, second * 81 / 100);
	assert_in_range(most, second * 119 / 100, second * 120 / 100);
}

static void backoff_takes_an_initial_wait_above_the_maximum(void **state)
{
	(void)state;
	struct backoff backoff;
	backoff_init(&backoff, 10 * second, 2 * second, 7);
	assert_around(backoff_next(&backoff), 2 * second);
	backoff_init(&backoff, 1, 10, 7);
	for (int i = 0; i < 20; i++)
		assert_in_range(backoff_next(&backoff), 1, 12);
}

static void backoff_random_stays_below_its_bound(void **state)
{
	(void)state;
	struct backoff backoff;
	backoff_init(&backoff, 0, 0, 0);
	unsigned seen = 0;
	for (int i = 0; i < 200; i++) {
		uint64_t value = backoff_random(&backoff, 5);
		assert_true(value < 5);
		seen |= 1U << value;
	}
	assert_int_equal(seen, 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(backoff_grows_by_1_6_up_to_its_maximum),
		cmocka_unit_test(backoff_begins_anew_after_a_success),
		cmocka_unit_test(backoff_spreads_over_the_whole_jitter),
		cmocka_unit_test(backoff_takes_an_initial_wait_above_the_maximum),
		cmocka_unit_test(backoff_random_stays_below_its_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
