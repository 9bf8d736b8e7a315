/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "forwarder/series_name.h"

static void series_name_gives_what_promql_takes(void **state)
{
	(void)state;
	static const struct {
		const char *name, *want;
	} cases[] = {
		{"service_name", "service_name"},
		{"span id", "span_id"},
		{"output-level", "output_level"},
		{"9lives", "_9lives"},
		{"", "_"},
		{"k8s.io/app", "k8s_io_app"},
		{"a:b", "a_b"},
		{"\xc3\xa9t\xc3\xa9", "__t__"},
	};
	char out[64];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		series_name_make(cases[i].name, out, sizeof(out));
		assert_string_equal(out, cases[i].want);
	}
	series_name_make("abcdef", out, 4);
	assert_string_equal(out, "abc");
	series_name_make("1bcdef", out, 4);
	assert_string_equal(out, "_1b");
}

static void series_name_reduces_types(void **state)
{
	(void)state;
	char out[64];
	series_name_make_type("cpu-clock:uH", out, sizeof(out));
	assert_string_equal(out, "cpu_clock_uh");
	series_name_make_type("Sched:Sched_Switch", out, 8);
	assert_string_equal(out, "sched_s");
	series_name_make_type("", out, sizeof(out));
	assert_string_equal(out, "");
}

static void series_name_cuts_values_between_characters(void **state)
{
	(void)state;
	char out[16];
	series_name_make_value("plain", out, sizeof(out));
	assert_string_equal(out, "plain");
	series_name_make_value("123456789012345", out, sizeof(out)); /* just fits */
	assert_string_equal(out, "123456789012345");
	series_name_make_value("1234567890123456", out, sizeof(out));
	assert_string_equal(out, "123456789012...");
	/* The character that the cut meets goes whole. */
	series_name_make_value("12345678901\xe2\x82\xac"
			       "34567",
			       out, sizeof(out));
	assert_string_equal(out, "12345678901...");
	series_name_make_value("a\xff"
			       "b",
			       out, sizeof(out));
	assert_string_equal(out, "a\xef\xbf\xbd"
				 "b");
	/* What grows past the end by repair is cut too. */
	series_name_make_value("\xff\xff\xff\xff\xff\xff\xff", out, sizeof(out));
	assert_string_equal(out, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd...");
	series_name_make_value("abcdef", out, 4); /* no room for the mark */
	assert_string_equal(out, "");
	series_name_make_value("abc", out, 4);
	assert_string_equal(out, "abc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(series_name_gives_what_promql_takes),
		cmocka_unit_test(series_name_reduces_types),
		cmocka_unit_test(series_name_cuts_values_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
