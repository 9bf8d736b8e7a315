/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/json_text.h"

static void assert_written(const char *text, size_t size, const char *want)
{
	char got[256] = "";
	FILE *out = fmemopen(got, sizeof(got), "w");
	assert_non_null(out);
	json_text_write_n(out, text, size);
	fclose(out);
	assert_string_equal(got, want);
}

static void json_text_escapes_what_json_forbids(void **state)
{
	(void)state;
	assert_written("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	assert_written("\n\t\0\x7f", 4, "\"\\u000a\\u0009\\u0000\\u007f\"");
	assert_written("", 0, "\"\"");
}

static void json_text_keeps_utf8_and_repairs_the_rest(void **state)
{
	(void)state;
	assert_written("\xc3\xa4\xf0\x9f\x99\x82", 6, "\"\xc3\xa4\xf0\x9f\x99\x82\"");
	assert_written("a\xff!", 3, "\"a\xef\xbf\xbd!\"");
}

static void json_text_writes_null_for_nothing(void **state)
{
	(void)state;
	char got[16] = "";
	FILE *out = fmemopen(got, sizeof(got), "w");
	json_text_write(out, NULL);
	fclose(out);
	assert_string_equal(got, "null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_text_escapes_what_json_forbids),
		cmocka_unit_test(json_text_keeps_utf8_and_repairs_the_rest),
		cmocka_unit_test(json_text_writes_null_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
