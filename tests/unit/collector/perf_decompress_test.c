/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "collector/perf_decompress.h"

enum { PLAIN_BYTES = 300000 };

static uint8_t *make_plain(void)
{
	uint8_t *plain = mem_alloc(PLAIN_BYTES);
	for (size_t i = 0; i < PLAIN_BYTES; i++)
		plain[i] = (uint8_t)(i * i >> 7);
	return plain;
}

static void perf_decompress_reads_one_stream_through_pieces_of_any_size(void **state)
{
	(void)state;
	static const size_t pieces[] = {1, 7, 4096, PLAIN_BYTES};
	uint8_t *plain = make_plain();
	size_t bound = ZSTD_compressBound(PLAIN_BYTES);
	uint8_t *packed = mem_alloc(bound);
	size_t n_packed = ZSTD_compress(packed, bound, plain, PLAIN_BYTES, 3);
	uint8_t *out = mem_alloc(PLAIN_BYTES);
	for (size_t i = 0; i < 4; i++) {
		struct perf_decompress decompress = {0};
		size_t n_out = 0;
		for (size_t at = 0; at < n_packed; at += pieces[i]) {
			size_t n = n_packed - at < pieces[i] ? n_packed - at : pieces[i];
			perf_decompress_feed(&decompress, packed + at, n);
			size_t got = 1000;
			while (got == 1000) {
				uint8_t room[1000];
				assert_null(perf_decompress_read(&decompress, room, sizeof(room),
								 &got));
				assert_true(n_out + got <= PLAIN_BYTES);
				memcpy(out + n_out, room, got);
				n_out += got;
			}
		}
		assert_int_equal(n_out, PLAIN_BYTES);
		assert_memory_equal(out, plain, PLAIN_BYTES);
		perf_decompress_fini(&decompress);
	}
	mem_free(out);
	mem_free(packed);
	mem_free(plain);
}

static void perf_decompress_takes_a_new_frame_in_each_piece(void **state)
{
	(void)state;
	struct perf_decompress decompress = {0};
	for (int i = 0; i < 3; i++) {
		uint8_t packed[64];
		uint8_t out[64];
		size_t n = ZSTD_compress(packed, sizeof(packed), "record", 6, 3);
		perf_decompress_feed(&decompress, packed, n);
		size_t got;
		assert_null(perf_decompress_read(&decompress, out, sizeof(out), &got));
		assert_int_equal(got, 6);
		assert_memory_equal(out, "record", 6);
	}
	perf_decompress_fini(&decompress);
}

static void perf_decompress_says_what_is_wrong_with_damaged_data(void **state)
{
	(void)state;
	struct perf_decompress decompress = {0};
	uint8_t out[64];
	size_t got;
	perf_decompress_feed(&decompress, (const uint8_t *)"this is not zstd", 16);
	struct error *err = perf_decompress_read(&decompress, out, sizeof(out), &got);
	assert_int_equal(error_get_number(err), 605);
	assert_non_null(strstr(error_text(err), "decompression failed"));
	error_free(err);
	perf_decompress_fini(&decompress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_decompress_reads_one_stream_through_pieces_of_any_size),
		cmocka_unit_test(perf_decompress_takes_a_new_frame_in_each_piece),
		cmocka_unit_test(perf_decompress_says_what_is_wrong_with_damaged_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
