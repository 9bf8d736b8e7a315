/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void buf_appends_up_to_its_maximum_and_refuses_more(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 10);
	assert_null(buf_append(&buf, "12345", 5));
	assert_null(buf_append(&buf, "67890", 5));
	assert_string_equal(buf_string(&buf), "1234567890");
	struct error *err = buf_append(&buf, "x", 1);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	assert_int_equal(buf.size, 10);
	assert_string_equal(buf_string(&buf), "1234567890");
	buf_fini(&buf);
}

static void buf_refuses_sizes_that_would_overflow(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 100);
	assert_null(buf_append(&buf, "abc", 3));
	struct error *err = buf_reserve(&buf, SIZE_MAX);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	buf_fini(&buf);
}

static void buf_grows_from_empty_to_large(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, SIZE_MAX);
	for (uint32_t i = 0; i < 100000; i++)
		assert_null(buf_append(&buf, &i, sizeof(i)));
	assert_int_equal(buf.size, 400000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_memory_equal(buf.data + 4 * i, &i, sizeof(i));
	buf_fini(&buf);
	assert_null(buf.data);
}

static void buf_clear_keeps_the_memory(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 1000);
	assert_null(buf_append(&buf, "abc", 3));
	const uint8_t *data = buf.data;
	buf_clear(&buf);
	assert_int_equal(buf.size, 0);
	assert_ptr_equal(buf.data, data);
	assert_string_equal(buf_string(&buf), "");
	buf_fini(&buf);
}

static void buf_printf_formats_behind_the_content(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 600);
	assert_null(buf_printf(&buf, "%s=%d", "pid", 7));
	assert_null(buf_printf(&buf, "%500s", "end"));
	assert_int_equal(buf.size, 505);
	assert_memory_equal(buf_string(&buf), "pid=7 ", 6);
	assert_string_equal(buf_string(&buf) + 502, "end");
	struct error *err = buf_printf(&buf, "%96s", "");
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	assert_int_equal(buf.size, 505);
	assert_null(buf_printf(&buf, "%95s", ""));
	assert_int_equal(buf.size, 600);
	buf_fini(&buf);
}

static void buf_string_of_an_untouched_buffer_is_empty(void **state)
{
	(void)state;
	struct buf buf;
	buf_init(&buf, 0);
	assert_null(buf_append(&buf, NULL, 0));
	assert_string_equal(buf_string(&buf), "");
	buf_fini(&buf);
	buf_fini(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_appends_up_to_its_maximum_and_refuses_more),
		cmocka_unit_test(buf_refuses_sizes_that_would_overflow),
		cmocka_unit_test(buf_grows_from_empty_to_large),
		cmocka_unit_test(buf_clear_keeps_the_memory),
		cmocka_unit_test(buf_printf_formats_behind_the_content),
		cmocka_unit_test(buf_string_of_an_untouched_buffer_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
