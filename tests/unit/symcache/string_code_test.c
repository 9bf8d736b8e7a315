/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/string_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static size_t code_and_check(const struct string_code *code, const void *text, size_t n)
{
	struct string_encoder *encoder = string_encoder_new(code);
	uint8_t *coded = malloc(2 * n + 1);
	size_t n_coded = string_encoder_run(encoder, text, n, coded);
	assert_true(n_coded <= 2 * n);
	assert_int_equal(string_code_decoded_size(code, coded, n_coded), n);
	char *decoded = malloc(n + STRING_CODE_PIECE_BYTES);
	string_code_decode(code, coded, n_coded, decoded);
	assert_memory_equal(decoded, text, n);
	free(decoded);
	free(coded);
	string_encoder_free(encoder);
	return n_coded;
}

static const char sample[] = "_ZN13G1CollectedHeap10initializeEv_ZN13G1CollectedHeap4stopEv"
			     "_ZN13G1CollectedHeap12collect_heapEv_ZN6Thread13current_or_nullEv"
			     "_ZN6Thread3runEv_ZN6Thread10initializeEv_ZN6Thread4stopEv";

static void string_code_gives_back_every_text(void **state)
{
	(void)state;
	struct string_code code;
	uint8_t bytes[1024];
	string_code_train(&code, (const uint8_t *)sample, sizeof(sample) - 1);
	for (size_t n = 0; n < sizeof(sample); n++)
		code_and_check(&code, sample, n);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 + i / 256);
	code_and_check(&code, bytes, sizeof(bytes));
	string_code_train(&code, bytes, 0);
	assert_int_equal(code.n, 0);
	assert_int_equal(code_and_check(&code, bytes, sizeof(bytes)), 2 * sizeof(bytes));
}

static void string_code_shortens_names_like_its_sample(void **state)
{
	(void)state;
	static const char name[] = "_ZN13G1CollectedHeap15initialize_heapEv";
	struct string_code code;
	uint8_t many[8 * sizeof(sample)];
	for (size_t i = 0; i < 8; i++)
		memcpy(many + i * sizeof(sample), sample, sizeof(sample));
	string_code_train(&code, many, sizeof(many));
	assert_true(code_and_check(&code, name, sizeof(name) - 1) < sizeof(name) * 2 / 3);
}

static void string_code_is_stored_and_loaded(void **state)
{
	(void)state;
	struct string_code code, loaded;
	struct buf bytes;
	buf_init(&bytes, 1 << 16);
	string_code_train(&code, (const uint8_t *)sample, sizeof(sample) - 1);
	assert_null(string_code_store(&code, &bytes));
	assert_true(string_code_load(&loaded, bytes.data, bytes.size));
	assert_int_equal(loaded.n, code.n);
	assert_memory_equal(loaded.pieces, code.pieces, code.n * sizeof(code.pieces[0]));
	/* What is cut or goes on is no dictionary. */
	for (size_t n = 0; n < bytes.size; n++)
		assert_false(string_code_load(&loaded, bytes.data, n));
	assert_null(buf_append(&bytes, "", 1));
	assert_false(string_code_load(&loaded, bytes.data, bytes.size));
	static const uint8_t empty_piece[] = {1, 0},
			     long_piece[] = {1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	assert_false(string_code_load(&loaded, empty_piece, sizeof(empty_piece)));
	assert_false(string_code_load(&loaded, long_piece, sizeof(long_piece)));
	buf_fini(&bytes);
}

static void string_code_reads_damaged_text_within_its_bounds(void **state)
{
	(void)state;
	struct string_code code = {.n = 1, .pieces = {{.bytes = "ab", .size = 2}}};
	static const uint8_t coded[] = {0, 77, STRING_CODE_ESCAPE, 'c', 0, STRING_CODE_ESCAPE};
	char out[5 + STRING_CODE_PIECE_BYTES];
	assert_int_equal(string_code_decoded_size(&code, coded, sizeof(coded)), 5);
	string_code_decode(&code, coded, sizeof(coded), out);
	assert_memory_equal(out, "abcab", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(string_code_gives_back_every_text),
		cmocka_unit_test(string_code_shortens_names_like_its_sample),
		cmocka_unit_test(string_code_is_stored_and_loaded),
		cmocka_unit_test(string_code_reads_damaged_text_within_its_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
