/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/stack_growth.h"

static const uint64_t second = 1000000000;

static void growth_waits_for_enough_stacks_and_a_second(void **state)
{
	(void)state;
	struct stack_growth growth = {0};
	assert_false(stack_growth_is_due(&growth, 5 * second, STACK_GROWTH_LEAST_STACKS - 1, 40));
	assert_true(stack_growth_is_due(&growth, 5 * second, STACK_GROWTH_LEAST_STACKS, 40));
	/* The next copies have to show whether that was enough. */
	assert_false(stack_growth_is_due(&growth, 6 * second - 1, 1000, 900));
	assert_true(stack_growth_is_due(&growth, 6 * second, 1000, 900));
}

static void growth_looks_at_what_came_since_the_last_look(void **state)
{
	(void)state;
	struct stack_growth growth = {0};
	assert_true(stack_growth_is_due(&growth, 5 * second, 100, 50));
	/* 1000 more, of which 20 were too short: one in fifty is allowed. */
	assert_false(stack_growth_is_due(&growth, 7 * second, 1100, 70));
	assert_false(stack_growth_is_due(&growth, 9 * second, 2100, 70));
	assert_true(stack_growth_is_due(&growth, 11 * second, 3100, 91));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_waits_for_enough_stacks_and_a_second),
		cmocka_unit_test(growth_looks_at_what_came_since_the_last_look),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
