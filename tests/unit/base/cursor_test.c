/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cursor.h"

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void cursor_reads_both_byte_orders(void **state)
{
	(void)state;
	struct cursor c = cursor_make(bytes, sizeof(bytes), false);
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0302);
	assert_int_equal(cursor_u32(&c), 0x07060504);
	assert_int_equal(cursor_u64(&c), 0x0f0e0d0c0b0a0908);
	assert_int_equal(cursor_left(&c), 0);
	assert_true(cursor_is_ok(&c));
	c = cursor_make(bytes, sizeof(bytes), true);
	assert_int_equal(cursor_u8(&c), 1);
	assert_int_equal(cursor_u16(&c), 0x0203);
	assert_int_equal(cursor_u32(&c), 0x04050607);
	assert_int_equal(cursor_u64(&c), 0x08090a0b0c0d0e0f);
}

static void cursor_is_bad_for_good_after_the_end(void **state)
{
	(void)state;
	struct cursor c = cursor_make(bytes, 3, false);
	assert_int_equal(cursor_u32(&c), 0);
	assert_false(cursor_is_ok(&c));
	assert_int_equal(cursor_u8(&c), 0);
	assert_null(cursor_bytes(&c, 1));
	cursor_seek(&c, 0);
	assert_false(cursor_is_ok(&c));
}

static void cursor_skip_and_seek_check_their_distance(void **state)
{
	(void)state;
	struct cursor c = cursor_make(bytes, 10, false);
	cursor_skip(&c, 10);
	assert_true(cursor_is_ok(&c));
	cursor_seek(&c, 4);
	assert_int_equal(cursor_u8(&c), 5);
	cursor_seek(&c, 10);
	assert_true(cursor_is_ok(&c));
	cursor_seek(&c, 11);
	assert_false(cursor_is_ok(&c));
	c = cursor_make(bytes, 10, false);
	cursor_skip(&c, SIZE_MAX);
	assert_false(cursor_is_ok(&c));
}

static void cursor_string_needs_its_zero_within_the_bound(void **state)
{
	(void)state;
	struct cursor c = cursor_make("ab\0cd", 5, false);
	assert_string_equal(cursor_string(&c, 16), "ab");
	assert_null(cursor_string(&c, 16));
	assert_false(cursor_is_ok(&c));
	c = cursor_make("abc", 4, false);
	assert_null(cursor_string(&c, 3));
	c = cursor_make("abc", 4, false);
	assert_string_equal(cursor_string(&c, 4), "abc");
	c = cursor_make(NULL, 0, false);
	assert_null(cursor_string(&c, 4));
}

static void cursor_sub_keeps_the_position_for_messages(void **state)
{
	(void)state;
	struct cursor c = cursor_make(bytes, 10, false);
	c.origin = 100;
	cursor_skip(&c, 2);
	struct cursor sub = cursor_sub(&c, 4);
	assert_int_equal(cursor_u8(&sub), 3);
	assert_int_equal(cursor_position(&sub), 103);
	assert_int_equal(cursor_left(&sub), 3);
	assert_int_equal(cursor_position(&c), 106);
	sub = cursor_sub(&c, 5);
	assert_false(cursor_is_ok(&sub));
	assert_false(cursor_is_ok(&c));
	assert_int_equal(cursor_left(&sub), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cursor_reads_both_byte_orders),
		cmocka_unit_test(cursor_is_bad_for_good_after_the_end),
		cmocka_unit_test(cursor_skip_and_seek_check_their_distance),
		cmocka_unit_test(cursor_string_needs_its_zero_within_the_bound),
		cmocka_unit_test(cursor_sub_keeps_the_position_for_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
