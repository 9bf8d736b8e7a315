/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/window_clock.h"

#define S ((uint64_t)1000000000)

static struct clock_fake fake;
static struct clock fake_clock;
static struct window_clock windows;

static void begin_at(uint64_t wall_ns, uint64_t length_ns)
{
	fake = (struct clock_fake){.now_monotonic_ns = 500 * S, .now_wall_ns = wall_ns};
	fake_clock = clock_from_fake(&fake);
	window_clock_init(&windows, &fake_clock, length_ns);
}

static void pass(uint64_t ns)
{
	fake.now_monotonic_ns += ns;
	fake.now_wall_ns += ns;
}

static void window_clock_ends_windows_at_multiples_of_their_length(void **state)
{
	(void)state;
	begin_at(1003 * S, 10 * S);
	assert_int_equal(window_clock_wait_ns(&windows), 7 * S);
	pass(7 * S - 1);
	assert_int_equal(window_clock_wait_ns(&windows), 1);
	pass(1);
	assert_int_equal(window_clock_wait_ns(&windows), 0);
	window_clock_begin(&windows);
	assert_int_equal(windows.begin_wall_ns, 1010 * S);
	assert_int_equal(window_clock_wait_ns(&windows), 10 * S);
	/* Late, as when the host is busy: the next one is shorter instead. */
	pass(13 * S);
	assert_int_equal(window_clock_wait_ns(&windows), 0);
	window_clock_begin(&windows);
	assert_int_equal(window_clock_wait_ns(&windows), 7 * S);
}

static void window_clock_makes_no_tiny_windows(void **state)
{
	(void)state;
	begin_at(1010 * S - S / 4, 10 * S);
	assert_int_equal(window_clock_wait_ns(&windows), 10 * S + S / 4);
	begin_at(1009 * S, 10 * S);
	assert_int_equal(window_clock_wait_ns(&windows), S);
}

static void window_clock_ends_the_window_when_the_clock_is_set(void **state)
{
	(void)state;
	const int64_t steps[] = {-86400, -2, 2, 86400};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		begin_at(100000 * S, 10 * S);
		pass(3 * S);
		fake.now_wall_ns += (uint64_t)(steps[i] * (int64_t)S);
		assert_int_equal(window_clock_wait_ns(&windows), 0);
		window_clock_begin(&windows);
		assert_in_range(window_clock_wait_ns(&windows), S / 2, 10 * S + S / 2);
		pass(window_clock_wait_ns(&windows));
		assert_int_equal(fake.now_wall_ns % (10 * S), 0);
	}
}

static void window_clock_ends_the_window_behind_a_sleep(void **state)
{
	(void)state;
	begin_at(1000 * S, 10 * S);
	pass(2 * S);
	fake.now_wall_ns += 3600 * S; /* CLOCK_MONOTONIC stands while the host sleeps */
	assert_int_equal(window_clock_wait_ns(&windows), 0);
	assert_int_equal(fake.now_monotonic_ns - windows.begin_ns, 2 * S);
}

static void window_clock_follows_a_clock_that_is_slewed(void **state)
{
	(void)state;
	begin_at(1000 * S, 10 * S);
	pass(5 * S);
	fake.now_wall_ns += S / 2;
	assert_int_equal(window_clock_wait_ns(&windows), 5 * S);
	pass(5 * S);
	window_clock_begin(&windows);
	/* Half a second ahead by now, so the next window is that much shorter. */
	assert_int_equal(window_clock_wait_ns(&windows), 10 * S - S / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_clock_ends_windows_at_multiples_of_their_length),
		cmocka_unit_test(window_clock_makes_no_tiny_windows),
		cmocka_unit_test(window_clock_ends_the_window_when_the_clock_is_set),
		cmocka_unit_test(window_clock_ends_the_window_behind_a_sleep),
		cmocka_unit_test(window_clock_follows_a_clock_that_is_slewed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
