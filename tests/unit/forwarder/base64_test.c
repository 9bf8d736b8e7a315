/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/base64.h"

/* The examples of RFC 4648 §10, and all values of a byte. */
static const struct {
	const char *plain, *text;
} examples[] = {{"", ""},
		{"f", "Zg=="},
		{"fo", "Zm8="},
		{"foo", "Zm9v"},
		{"foob", "Zm9vYg=="},
		{"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"}};

static void base64_encodes_and_decodes_the_examples_of_its_rfc(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		size_t n = strlen(examples[i].plain);
		char text[16] = "";
		base64_encode(examples[i].plain, n, text);
		assert_int_equal(base64_encoded_size(n), strlen(examples[i].text));
		assert_string_equal(text, examples[i].text);
		uint8_t bytes[16];
		size_t n_bytes;
		assert_true(base64_decode(text, strlen(text), bytes, &n_bytes));
		assert_int_equal(n_bytes, n);
		assert_memory_equal(bytes, examples[i].plain, n);
		size_t n_bare = strcspn(text, "=");
		assert_true(base64_decode(text, n_bare, bytes, &n_bytes));
		assert_int_equal(n_bytes, n);
	}
}

static void base64_keeps_every_byte(void **state)
{
	(void)state;
	uint8_t all[256];
	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	for (size_t n = 0; n <= 256; n++) {
		char text[352];
		uint8_t back[300];
		size_t n_back;
		base64_encode(all + 256 - n, n, text);
		assert_true(base64_decode(text, base64_encoded_size(n), back, &n_back));
		assert_int_equal(n_back, n);
		assert_memory_equal(back, all + 256 - n, n);
	}
}

static void base64_refuses_what_no_encoder_writes(void **state)
{
	(void)state;
	static const char *const bad[] = {"Z",	  "Zm9vY",  "Zg=",  "Z===", "====",	 "Zm=v",
					  "Z g=", "Zm9v\n", "Zm9-", "Zm9_", "\xc3\xa9=="};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t bytes[16];
		size_t n;
		assert_false(base64_decode(bad[i], strlen(bad[i]), bytes, &n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_encodes_and_decodes_the_examples_of_its_rfc),
		cmocka_unit_test(base64_keeps_every_byte),
		cmocka_unit_test(base64_refuses_what_no_encoder_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
