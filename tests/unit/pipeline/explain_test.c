/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/explain.h"
#include "pipeline/message.h"

static void explain_has_every_part_of_every_entry(void **state)
{
	(void)state;
	size_t n;
	const struct explain_entry *entries = explain_list(&n);
	assert_true(n > 10);
	for (size_t i = 0; i < n; i++) {
		assert_true(entries[i].title[0] && entries[i].why[0] && entries[i].fix[0]);
		assert_null(strchr(entries[i].fix, '\n'));
		bool is_error = entries[i].severity == EXPLAIN_ERROR;
		assert_true(is_error || entries[i].severity == EXPLAIN_WARNING);
		assert_int_equal(is_error, entries[i].exit_code != EXIT_CODE_DONE);
	}
}

static void explain_prefers_the_severity_that_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(explain_find(EXPLAIN_ERROR, 601)->severity, 'E');
	assert_int_equal(explain_find(EXPLAIN_WARNING, 601)->severity, 'W');
	assert_int_equal(explain_find(EXPLAIN_ERROR, 602)->severity, 'W');
	assert_null(explain_find(EXPLAIN_ERROR, 999));
	assert_null(explain_find(EXPLAIN_ERROR, 0));
}

static int exit_code(enum error_code code, int number)
{
	struct error *err = error_number(error_new(code, "trouble"), number);
	int exit_code = message_exit_code(err);
	error_free(err);
	return exit_code;
}

static void explain_exit_codes_are_as_documented(void **state)
{
	(void)state;
	assert_int_equal(exit_code(ERROR_USAGE, 1), 2);
	assert_int_equal(exit_code(ERROR_DENIED, 101), 77);
	assert_int_equal(exit_code(ERROR_NO_ENTRY, 102), 66);
	assert_int_equal(exit_code(ERROR_BAD_DATA, 603), 65);
	assert_int_equal(exit_code(ERROR_NO_ENTRY, 613), 66);
	assert_int_equal(exit_code(ERROR_IO, 701), 73);
	assert_int_equal(exit_code(ERROR_IO, 702), 74);
	/* A command: not found, or there but not executable. */
	assert_int_equal(exit_code(ERROR_NO_ENTRY, 111), 127);
	assert_int_equal(exit_code(ERROR_DENIED, 111), 126);
	/* Without a number the code decides. */
	assert_int_equal(exit_code(ERROR_BAD_DATA, 0), 65);
	assert_int_equal(exit_code(ERROR_UNAVAILABLE, 0), 69);
	assert_int_equal(exit_code(ERROR_UNSUPPORTED, 0), 1);
	assert_int_equal(exit_code(ERROR_IO, 0), 74);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(explain_has_every_part_of_every_entry),
		cmocka_unit_test(explain_prefers_the_severity_that_is_asked_for),
		cmocka_unit_test(explain_exit_codes_are_as_documented),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
