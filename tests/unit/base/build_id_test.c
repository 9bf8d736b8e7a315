/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/build_id.h"

static struct build_id parsed(const char *hex)
{
	struct build_id id = {0};
	assert_true(build_id_parse(hex, &id));
	return id;
}

static void build_id_formats_what_it_parsed_in_lower_case(void **state)
{
	(void)state;
	struct build_id id = parsed("00DEadBEef");
	assert_int_equal(id.size, 5);
	assert_int_equal(id.kind, BUILD_ID_GNU);
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(&id, hex);
	assert_string_equal(hex, "00deadbeef");
}

static void build_id_parse_refuses_what_is_no_hex(void **state)
{
	(void)state;
	struct build_id id = {.size = 9};
	assert_false(build_id_parse("", &id));
	assert_false(build_id_parse("abc", &id));
	assert_false(build_id_parse("0x12", &id));
	assert_false(build_id_parse("12 4", &id));
	assert_false(build_id_parse("/../", &id));
	assert_int_equal(id.size, 9);
}

static void build_id_holds_64_bytes_and_no_more(void **state)
{
	(void)state;
	char hex[2 * BUILD_ID_MAX_BYTES + 3];
	memset(hex, 'a', sizeof(hex));
	hex[2 * BUILD_ID_MAX_BYTES] = 0;
	struct build_id id = parsed(hex);
	assert_int_equal(id.size, BUILD_ID_MAX_BYTES);
	char back[BUILD_ID_HEX_BYTES];
	build_id_format(&id, back);
	assert_string_equal(back, hex);
	hex[2 * BUILD_ID_MAX_BYTES] = 'a';
	hex[2 * BUILD_ID_MAX_BYTES + 2] = 0;
	assert_false(build_id_parse(hex, &id));
	uint8_t bytes[BUILD_ID_MAX_BYTES + 1] = {1};
	id = build_id_make(bytes, sizeof(bytes));
	assert_false(build_id_is_set(&id));
	id = build_id_make(bytes, BUILD_ID_MAX_BYTES);
	assert_int_equal(id.size, BUILD_ID_MAX_BYTES);
}

static void build_id_of_no_bytes_is_not_set(void **state)
{
	(void)state;
	struct build_id id = build_id_make(NULL, 0);
	assert_false(build_id_is_set(&id));
	assert_int_equal(id.kind, BUILD_ID_NONE);
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(&id, hex);
	assert_string_equal(hex, "");
}

static void build_id_equal_ignores_zero_padding(void **state)
{
	(void)state;
	struct build_id short_id = parsed("0102030405060708090a0b0c0d0e0f10");
	struct build_id padded = parsed("0102030405060708090a0b0c0d0e0f1000000000");
	struct build_id other = parsed("0102030405060708090a0b0c0d0e0f1000000001");
	assert_true(build_id_equal(&short_id, &padded));
	assert_true(build_id_equal(&padded, &short_id));
	assert_false(build_id_equal(&short_id, &other));
}

static void build_id_of_zeros_or_nothing_equals_nothing(void **state)
{
	(void)state;
	struct build_id none = {0};
	struct build_id zeros = parsed("0000000000000000");
	assert_false(build_id_equal(&none, &none));
	assert_false(build_id_equal(&zeros, &zeros));
	assert_false(build_id_equal(&zeros, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_id_formats_what_it_parsed_in_lower_case),
		cmocka_unit_test(build_id_parse_refuses_what_is_no_hex),
		cmocka_unit_test(build_id_holds_64_bytes_and_no_more),
		cmocka_unit_test(build_id_of_no_bytes_is_not_set),
		cmocka_unit_test(build_id_equal_ignores_zero_padding),
		cmocka_unit_test(build_id_of_zeros_or_nothing_equals_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
