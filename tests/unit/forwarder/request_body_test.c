/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/request_body.h"

static const char *const messages[] = {"first", "", "the third"};

static bool next_message(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	unsigned *n_asked = context;
	(*n_asked)++;
	if (index >= 3)
		return false;
	*bytes_out = (const uint8_t *)messages[index];
	*n_out = strlen(messages[index]);
	return true;
}

static size_t read_body(struct request_body *body, size_t n_piece, uint8_t *out)
{
	size_t n = 0;
	size_t available;
	while ((available = request_body_available(body)) > 0) {
		size_t piece = available < n_piece ? available : n_piece;
		request_body_read(body, out + n, piece);
		n += piece;
	}
	return n;
}

static void request_body_gives_messages_in_pieces_and_again(void **state)
{
	(void)state;
	static const uint8_t wanted[] = "\0\0\0\0\5first\0\0\0\0\0\0\0\0\0\x9the third";
	for (size_t n_piece = 1; n_piece < 16; n_piece++) {
		unsigned n_asked = 0;
		struct request_body body;
		uint8_t out[64];
		request_body_init(&body, next_message, &n_asked, false);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(read_body(&body, n_piece, out), sizeof(wanted) - 1);
			assert_memory_equal(out, wanted, sizeof(wanted) - 1);
			assert_int_equal(request_body_available(&body), 0);
			request_body_rewind(&body);
		}
		assert_int_equal(n_asked, 8);
		(void)request_body_available(&body);
		request_body_read(&body, out, 7);
		request_body_rewind(&body);
		assert_int_equal(read_body(&body, n_piece, out), sizeof(wanted) - 1);
		request_body_fini(&body);
	}
}

static bool one_large(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	*bytes_out = context;
	*n_out = 5000;
	return index == 0;
}

static void request_body_sends_packed_what_shrinks(void **state)
{
	(void)state;
	uint8_t plain[5000];
	uint8_t sent[6000];
	struct request_body body;
	memset(plain, 'x', sizeof(plain));
	request_body_init(&body, one_large, plain, true);
	size_t n = read_body(&body, 100, sent);
	assert_true(n < 200);
	assert_int_equal(sent[0], 1);
	request_body_fini(&body);

	uint32_t random = 1;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	request_body_init(&body, one_large, plain, true);
	assert_int_equal(read_body(&body, 100, sent), 5005);
	assert_int_equal(sent[0], 0);
	assert_memory_equal(sent + 5, plain, sizeof(plain));
	request_body_fini(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_body_gives_messages_in_pieces_and_again),
		cmocka_unit_test(request_body_sends_packed_what_shrinks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
