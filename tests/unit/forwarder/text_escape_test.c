/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/text_escape.h"

static void check(const char *text, size_t n, size_t size, const char *wanted)
{
	char out[256];
	memset(out, 'Z', sizeof(out));
	text_escape(text, n, out, size);
	assert_string_equal(out, wanted);
	assert_int_equal(out[size], 'Z');
}

static void text_escape_keeps_text_and_folds_white_space(void **state)
{
	(void)state;
	check("plain", 5, 64, "plain");
	check("  a\t\r\n b \n", 10, 64, "a b");
	check("é ☺ 😈", strlen("é ☺ 😈"), 64, "é ☺ 😈");
	check("", 0, 8, "");
}

static void text_escape_replaces_what_could_do_harm(void **state)
{
	(void)state;
	check("\x1b[31m\0x\x7f", 8, 64, "?[31m?x?"); /* escape, zero, delete */
	check("a\xc2\x9bz", 4, 64, "a??z");	     /* CSI of C1 */
	check("\xff\xc3(\xe2\x82", 5, 64,
	      "?"
	      "?("
	      "?"
	      "?");			     /* no UTF-8 */
	check("\xed\xa0\x80", 3, 64, "???"); /* a surrogate */
}

static void text_escape_cuts_between_characters(void **state)
{
	(void)state;
	check("0123456789", 10, 11, "0123456…");
	check("0123456", 7, 11, "0123456");
	check("ééééé", 10, 11, "ééé…");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_escape_keeps_text_and_folds_white_space),
		cmocka_unit_test(text_escape_replaces_what_could_do_harm),
		cmocka_unit_test(text_escape_cuts_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
