/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/content_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE_BYTES = 8 << 20 };

static void assert_differ(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	struct build_id left = content_id_of_file(a, a_bytes);
	struct build_id right = content_id_of_file(b, b_bytes);
	assert_false(build_id_equal(&left, &right));
}

static void content_id_of_equal_files_is_equal_and_marked(void **state)
{
	(void)state;
	struct build_id id = content_id_of_file("abcdefghij", 10);
	struct build_id again = content_id_of_file("abcdefghij", 10);
	assert_true(build_id_equal(&id, &again));
	assert_int_equal(id.kind, BUILD_ID_HASH);
	assert_int_equal(id.size, 16);
}

/* FR-16: profiles of different hosts and versions meet on it, so it must never change. */
static void content_id_is_the_documented_one(void **state)
{
	(void)state;
	char hex[BUILD_ID_HEX_BYTES];
	struct build_id id = content_id_of_file("abcdefghij", 10);
	build_id_format(&id, hex);
	assert_string_equal(hex, "0bb706197a3a128c60b25db74ba6fc43");
	id = content_id_of_go_note("abcdefghij", 10);
	build_id_format(&id, hex);
	assert_string_equal(hex, "0bb706197a3a128c60b25db74ba6fc43d510f9c4");
	assert_int_equal(id.kind, BUILD_ID_GO);
}

static void content_id_tells_size_and_every_byte_of_small_files_apart(void **state)
{
	(void)state;
	assert_differ("abc", 3, "abc\0", 4);
	assert_differ("", 0, "\0", 1);
	uint8_t a[100] = {0}, b[100] = {0};
	for (size_t i = 0; i < sizeof(b); i++) {
		b[i] = 1;
		assert_differ(a, sizeof(a), b, sizeof(b));
		b[i] = 0;
	}
}

/* The same over a file, at an offset, whatever the steps of reading. */
static void content_id_of_an_open_file_is_that_of_its_bytes(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 7, 8, 4097, 256 << 10, (256 << 10) + 3, LARGE_BYTES};
	uint8_t *bytes = malloc(LARGE_BYTES + 5);
	for (size_t i = 0; i < LARGE_BYTES + 5; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	int fd = memfd_create("content", MFD_CLOEXEC);
	assert_int_equal(write(fd, bytes, LARGE_BYTES + 5), LARGE_BYTES + 5);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct build_id id, wanted = content_id_of_file(bytes + 5, sizes[i]);
		assert_null(content_id_of_fd(fd, 5, sizes[i], &id));
		assert_true(build_id_equal(&id, &wanted));
	}
	/* One byte more than there is: it was cut. */
	struct build_id id;
	struct error *err = content_id_of_fd(fd, 5, LARGE_BYTES + 1, &id);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	close(fd);
	free(bytes);
}

/* Rebuilt in place: two words of five megabytes are others. */
static void content_id_sees_every_byte_up_to_the_bound(void **state)
{
	(void)state;
	uint8_t *a = calloc(LARGE_BYTES, 1), *b = calloc(LARGE_BYTES, 1);
	for (size_t at = 70001; at < LARGE_BYTES; at += 99991) {
		b[at] = 1;
		assert_differ(a, LARGE_BYTES, b, LARGE_BYTES);
		b[at] = 0;
	}
	free(a);
	free(b);
}

static void content_id_of_large_file_sees_head_tail_and_pages_between(void **state)
{
	(void)state;
	uint8_t *a = calloc(LARGE_BYTES, 1);
	uint8_t *b = calloc(LARGE_BYTES, 1);
	static const size_t places[] = {0, (64 << 10) - 1, 64 << 10, LARGE_BYTES - 1,
					LARGE_BYTES - (64 << 10)};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		b[places[i]] = 1;
		assert_differ(a, LARGE_BYTES, b, LARGE_BYTES);
		b[places[i]] = 0;
	}
	/* Any 64 KiB that differ hold a page that is looked at. */
	memset(b + LARGE_BYTES / 2, 1, 64 << 10);
	assert_differ(a, LARGE_BYTES, b, LARGE_BYTES);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_id_of_equal_files_is_equal_and_marked),
		cmocka_unit_test(content_id_is_the_documented_one),
		cmocka_unit_test(content_id_tells_size_and_every_byte_of_small_files_apart),
		cmocka_unit_test(content_id_of_an_open_file_is_that_of_its_bytes),
		cmocka_unit_test(content_id_sees_every_byte_up_to_the_bound),
		cmocka_unit_test(content_id_of_large_file_sees_head_tail_and_pages_between),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
