/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void error_wrap_puts_the_outer_text_first(void **state)
{
	(void)state;
	struct error *err = error_new(ERROR_BAD_DATA, "attr size %d", 0);
	err = error_wrap(error_wrap(err, "header"), "%s", "perf.data");
	assert_string_equal(error_text(err), "perf.data: header: attr size 0");
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
}

static void error_wrap_leaves_success_alone(void **state)
{
	(void)state;
	assert_null(error_wrap(NULL, "never %s", "seen"));
	assert_null(error_number(NULL, 601));
	error_free(NULL);
}

static void error_errno_tells_the_reason_and_picks_the_code(void **state)
{
	(void)state;
	static const struct {
		int errno_value;
		enum error_code code;
	} cases[] = {
		{ENOENT, ERROR_NO_ENTRY},
		{ESRCH, ERROR_NO_ENTRY},
		{EACCES, ERROR_DENIED},
		{EPERM, ERROR_DENIED},
		{ENOMEM, ERROR_LIMIT},
		{EMFILE, ERROR_LIMIT},
		{ENFILE, ERROR_LIMIT},
		{E2BIG, ERROR_LIMIT},
		{EAGAIN, ERROR_AGAIN},
		{EINTR, ERROR_AGAIN},
		{EIO, ERROR_IO},
		{ENOSYS, ERROR_UNSUPPORTED},
		{EOPNOTSUPP, ERROR_UNSUPPORTED},
		{ENOSPC, ERROR_IO},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct error *err = error_errno(cases[i].errno_value, "open %s", "x");
		assert_int_equal(error_get_code(err), cases[i].code);
		assert_memory_equal(error_text(err), "open x: ", 8);
		assert_string_equal(error_text(err) + 8, strerror(cases[i].errno_value));
		error_free(err);
	}
}

static void error_number_travels_through_wraps(void **state)
{
	(void)state;
	struct error *err = error_number(error_new(ERROR_BAD_DATA, "cut short"), 601);
	err = error_wrap(err, "a.data");
	assert_int_equal(error_get_number(err), 601);
	error_free(err);
	err = error_new(ERROR_IO, "no number");
	assert_int_equal(error_get_number(err), 0);
	error_free(err);
}

static void error_static_objects_survive_free_wrap_and_number(void **state)
{
	(void)state;
	error_free(error_again);
	struct error *wrapped = error_wrap(error_no_entry, "pid 7");
	assert_ptr_not_equal(wrapped, error_no_entry);
	assert_int_equal(error_get_code(wrapped), ERROR_NO_ENTRY);
	assert_memory_equal(error_text(wrapped), "pid 7: ", 7);
	error_free(wrapped);
	struct error *numbered = error_number(error_no_entry, 102);
	assert_int_equal(error_get_number(numbered), 102);
	assert_int_equal(error_get_number(error_no_entry), 0);
	error_free(numbered);
	assert_int_equal(error_get_code(error_again), ERROR_AGAIN);
}

static void error_text_may_be_long(void **state)
{
	(void)state;
	char path[5000];
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	struct error *err = error_wrap(error_new(ERROR_IO, "%s", path), "%s", path);
	assert_int_equal(strlen(error_text(err)), 2 * (sizeof(path) - 1) + 2);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_wrap_puts_the_outer_text_first),
		cmocka_unit_test(error_wrap_leaves_success_alone),
		cmocka_unit_test(error_errno_tells_the_reason_and_picks_the_code),
		cmocka_unit_test(error_number_travels_through_wraps),
		cmocka_unit_test(error_static_objects_survive_free_wrap_and_number),
		cmocka_unit_test(error_text_may_be_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
