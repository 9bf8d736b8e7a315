/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/clock.h"

static void clock_system_reads_monotonic_and_wall_time(void **state)
{
	(void)state;
	uint64_t before_ns = clock_system.monotonic_ns(clock_system.context);
	assert_true(clock_system.monotonic_ns(clock_system.context) >= before_ns);
	uint64_t wall_s = clock_system.wall_ns(clock_system.context) / 1000000000u;
	assert_true(wall_s + 2 >= (uint64_t)time(NULL) && wall_s <= (uint64_t)time(NULL) + 2);
}

static void clock_fake_moves_by_hand(void **state)
{
	(void)state;
	struct clock_fake fake = {.now_monotonic_ns = 5, .now_wall_ns = 1000};
	struct clock clock = clock_from_fake(&fake);
	assert_int_equal(clock.monotonic_ns(clock.context), 5);
	assert_int_equal(clock_wall_offset_ns(&clock), 995);
	fake.now_monotonic_ns = 2000;
	assert_int_equal(clock_wall_offset_ns(&clock), -1000);
}

/* Monotonic readings that take 100, 2 and again 100 ns; only the tight pair gives 1000. */
struct jittery {
	int n_readings;
	uint64_t now_ns;
};

static uint64_t jittery_monotonic_ns(void *context)
{
	struct jittery *clock = context;
	int n = clock->n_readings++;
	if (n % 2)
		clock->now_ns += n == 3 ? 2 : 100;
	return clock->now_ns;
}

static uint64_t jittery_wall_ns(void *context)
{
	const struct jittery *clock = context;
	return clock->now_ns + 1001;
}

static void clock_wall_offset_takes_the_tightest_pair(void **state)
{
	(void)state;
	struct jittery jittery = {.now_ns = 50};
	struct clock clock = {jittery_monotonic_ns, jittery_wall_ns, &jittery};
	assert_int_equal(clock_wall_offset_ns(&clock), 1000);
}

static void clock_wall_offset_links_the_system_clocks(void **state)
{
	(void)state;
	int64_t offset_ns = clock_wall_offset_ns(&clock_system);
	int64_t wall_ns = (int64_t)clock_system.monotonic_ns(NULL) + offset_ns;
	int64_t error_ns = (int64_t)clock_system.wall_ns(NULL) - wall_ns;
	assert_true(error_ns > -1000000000 && error_ns < 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_system_reads_monotonic_and_wall_time),
		cmocka_unit_test(clock_fake_moves_by_hand),
		cmocka_unit_test(clock_wall_offset_takes_the_tightest_pair),
		cmocka_unit_test(clock_wall_offset_links_the_system_clocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
