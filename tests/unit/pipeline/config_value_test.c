/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "pipeline/config_value.h"

static void durations_have_units_largest_first(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"0", 0},
		{"10s", 10000000000},
		{"1h30m", 5400000000000},
		{"250ms", 250000000},
		{"1d2h3m4s5ms6us7ns", 93784005006007},
		{"0s", 0},
		{"213503d", 18446659200000000000u},
	};
	static const char *const bad[] = {
		"",	"10",	"s",  "1.5s", "-1s",	 "1 s",	  "1s ",
		"1m1h", "1s1s", "1S", "1w",   "213504d", "1ms1s", "99999999999999999999s"};
	uint64_t ns;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(config_value_duration(good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(config_value_duration(bad[i], &ns));
}

static void sizes_are_binary(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0},
		    {"4096", 4096},
		    {"1B", 1},
		    {"3KiB", 3072},
		    {"512MiB", 536870912},
		    {"1GiB", 1073741824},
		    {"16777215TiB", 18446742974197923840u}};
	static const char *const bad[] = {
		"",	  "MiB", "1MB",	  "1M",		 "1mib",
		"1.5GiB", "-1",	 "1 MiB", "16777216TiB", "18446744073709551616"};
	uint64_t bytes;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(config_value_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(config_value_size(bad[i], &bytes));
}

static void shares_end_in_a_percent_sign(void **state)
{
	(void)state;
	double percent;
	assert_true(config_value_percent("5%", &percent));
	assert_true(percent == 5);
	assert_true(config_value_percent("0.25%", &percent));
	assert_true(percent > 0.2499 && percent < 0.2501);
	static const char *const bad[] = {"5", "%", "5.%", ".5%", "5%%", "-5%", "nan%", "1e3%"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(config_value_percent(bad[i], &percent));
}

static void truth_and_numbers_are_spelt_one_way(void **state)
{
	(void)state;
	bool truth = false;
	uint64_t number;
	assert_true(config_value_bool("true", &truth) && truth);
	assert_true(config_value_bool("false", &truth) && !truth);
	static const char *const bad[] = {"yes", "True", "1", "", "on"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(config_value_bool(bad[i], &truth));
	assert_true(config_value_integer("18446744073709551615", &number));
	assert_int_equal(number, UINT64_MAX);
	static const char *const no_numbers[] = {"", "0x1", "+1", "1_0", "18446744073709551616"};
	for (size_t i = 0; i < ARRAY_LEN(no_numbers); i++)
		assert_false(config_value_integer(no_numbers[i], &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_units_largest_first),
		cmocka_unit_test(sizes_are_binary),
		cmocka_unit_test(shares_end_in_a_percent_sign),
		cmocka_unit_test(truth_and_numbers_are_spelt_one_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
