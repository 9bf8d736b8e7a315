/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void crc32c_has_the_check_value_of_its_polynomial(void **state)
{
	(void)state;
	assert_int_equal(crc32c_update(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_update_portable(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_update(0, "", 0), 0);
}

static void crc32c_is_the_same_with_and_without_the_instruction(void **state)
{
	(void)state;
	uint8_t bytes[300];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 73 + i / 7);
	for (size_t n = 0; n < sizeof(bytes); n++) {
		uint32_t whole = crc32c_update(0, bytes, n);
		assert_int_equal(whole, crc32c_update_portable(0, bytes, n));
		uint32_t half = crc32c_update(0, bytes, n / 3);
		assert_int_equal(whole, crc32c_update(half, bytes + n / 3, n - n / 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32c_has_the_check_value_of_its_polynomial),
		cmocka_unit_test(crc32c_is_the_same_with_and_without_the_instruction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
