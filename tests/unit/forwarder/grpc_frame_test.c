/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "forwarder/grpc_frame.h"

/* Reads everything in pieces of n bytes; the messages, joined with '|'. */
static struct error *read_pieces(struct grpc_frame_reader *reader, const uint8_t *bytes, size_t n,
				 size_t n_piece, char *out)
{
	out[0] = 0;
	for (size_t at = 0; at < n;) {
		size_t piece = n - at < n_piece ? n - at : n_piece;
		const uint8_t *message;
		size_t n_message;
		size_t used;
		struct error *err =
			grpc_frame_read(reader, bytes + at, piece, &used, &message, &n_message);
		if (err)
			return err;
		assert_true(used > 0 && used <= piece);
		at += used;
		if (message) {
			strncat(out, (const char *)message, n_message);
			strcat(out, "|");
		}
	}
	return NULL;
}

static void grpc_frame_reader_takes_messages_cut_anywhere(void **state)
{
	(void)state;
	static const uint8_t bytes[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de";
	for (size_t n_piece = 1; n_piece < sizeof(bytes); n_piece++) {
		struct grpc_frame_reader reader;
		char out[32];
		grpc_frame_reader_init(&reader, 100);
		assert_null(read_pieces(&reader, bytes, sizeof(bytes) - 1, n_piece, out));
		assert_string_equal(out, "abc||de|");
		assert_false(grpc_frame_is_partial(&reader));
		assert_null(read_pieces(&reader, bytes, 7, n_piece, out));
		assert_true(grpc_frame_is_partial(&reader));
		grpc_frame_reader_fini(&reader);
	}
}

static void check_error(const void *bytes, size_t n, bool is_gzip, size_t max, enum error_code code,
			const char *text)
{
	struct grpc_frame_reader reader;
	char out[64];
	grpc_frame_reader_init(&reader, max);
	reader.is_gzip = is_gzip;
	struct error *err = read_pieces(&reader, bytes, n, n, out);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), code);
	assert_non_null(strstr(error_text(err), text));
	assert_true(reader.message.capacity < 300);
	error_free(err);
	grpc_frame_reader_fini(&reader);
}

static void grpc_frame_reader_refuses_with_the_reason(void **state)
{
	(void)state;
	check_error("\2\0\0\0\1x", 6, false, 100, ERROR_BAD_DATA, "flag 2");
	check_error("\1\0\0\0\1x", 6, false, 100, ERROR_UNSUPPORTED, "names no encoding");
	check_error("\1\0\0\0\1x", 6, true, 100, ERROR_BAD_DATA, "compressed message");
	check_error("\0\0\0\0\x65x", 6, false, 100, ERROR_LIMIT, "101 bytes is larger than 100");
	check_error("\0\xff\xff\xff\xffx", 6, false, 1 << 30, ERROR_LIMIT, "4294967295");
}

static void grpc_frame_packs_and_unpacks(void **state)
{
	(void)state;
	static uint8_t zeros[100000];
	struct buf packed;
	buf_init(&packed, 1 << 20);
	assert_null(grpc_frame_compress(zeros, sizeof(zeros), sizeof(zeros) - 1, &packed));
	assert_true(packed.size < 1000);
	uint8_t *frame = mem_alloc(packed.size + 5);
	grpc_frame_put_prefix(frame, true, (uint32_t)packed.size);
	memcpy(frame + 5, packed.data, packed.size);
	for (size_t max = sizeof(zeros) - 1; max <= sizeof(zeros); max++) {
		struct grpc_frame_reader reader;
		grpc_frame_reader_init(&reader, max);
		reader.is_gzip = true;
		const uint8_t *message;
		size_t n_message;
		size_t used;
		struct error *err = grpc_frame_read(&reader, frame, packed.size + 5, &used,
						    &message, &n_message);
		if (max < sizeof(zeros)) {
			assert_int_equal(error_get_code(err), ERROR_LIMIT);
			error_free(err);
		} else {
			assert_null(err);
			assert_int_equal(n_message, sizeof(zeros));
			assert_memory_equal(message, zeros, sizeof(zeros));
		}
		grpc_frame_reader_fini(&reader);
	}
	buf_clear(&packed);
	struct error *err = grpc_frame_compress((const uint8_t *)"ab", 2, 1, &packed);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	mem_free(frame);
	buf_fini(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grpc_frame_reader_takes_messages_cut_anywhere),
		cmocka_unit_test(grpc_frame_reader_refuses_with_the_reason),
		cmocka_unit_test(grpc_frame_packs_and_unpacks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
