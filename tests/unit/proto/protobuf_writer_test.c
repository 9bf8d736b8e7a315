/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and field walker against each other, and against bytes worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "proto/protobuf_field.h"
#include "proto/protobuf_writer.h"

static void protobuf_writer_writes_fields_as_the_format_has_them(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 1 << 20);
	struct protobuf_writer w = protobuf_writer_make(&out);
	protobuf_writer_number(&w, 1, 150);
	protobuf_writer_number(&w, 2, 0); /* left out */
	protobuf_writer_number_set(&w, 3, 0);
	protobuf_writer_text(&w, 4, "");
	protobuf_writer_bytes(&w, 5, NULL, 0);
	protobuf_writer_text(&w, 16, "ab");
	protobuf_writer_fixed64(&w, 6, 0x0102030405060708);
	protobuf_writer_fixed64(&w, 7, 0);
	protobuf_writer_number(&w, 8, (uint64_t)-1);
	assert_null(protobuf_writer_end(&w));
	static const uint8_t want[] = {0x08, 0x96, 0x01, 0x18, 0x00, 0x2a, 0x00, 0x82,
				       0x01, 0x02, 'a',	 'b',  0x31, 8,	   7,	 6,
				       5,    4,	   3,	 2,    1,    0x40, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	assert_int_equal(out.size, sizeof(want));
	assert_memory_equal(out.data, want, sizeof(want));
	assert_int_equal(protobuf_writer_field_bytes(16, 2), 5);
	assert_int_equal(protobuf_writer_field_bytes(1, 128), 131);

	struct cursor c = cursor_make(out.data, out.size, false);
	struct protobuf_field field;
	static const struct {
		uint32_t number;
		uint64_t value;
	} fields[] = {{1, 150}, {3, 0}, {5, 0}, {16, 2}, {6, 0x0102030405060708}, {8, UINT64_MAX}};
	for (size_t i = 0; i < 6; i++) {
		assert_true(protobuf_field_next(&c, &field));
		assert_int_equal(field.number, fields[i].number);
		if (field.type == PROTOBUF_WIRE_BYTES)
			assert_int_equal(cursor_left(&field.body), fields[i].value);
		else
			assert_int_equal(field.value, fields[i].value);
	}
	assert_false(protobuf_field_next(&c, &field));
	assert_true(cursor_is_ok(&c));
	buf_fini(&out);
}

static void protobuf_writer_keeps_its_first_error(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 4);
	struct protobuf_writer w = protobuf_writer_make(&out);
	protobuf_writer_number(&w, 1, 1);
	protobuf_writer_text(&w, 2, "too long");
	protobuf_writer_number(&w, 3, 1);
	struct error *err = protobuf_writer_end(&w);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	assert_null(protobuf_writer_end(&w));
	buf_fini(&out);
}

static void protobuf_field_refuses_what_is_damaged(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[12];
		size_t n;
	} cases[] = {
		{{0x0a, 0x05, 1}, 3},				 /* cut */
		{{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 7}, /* longer than anything */
		{{0x08}, 1},					 /* no value */
		{{0x09, 1, 2, 3}, 4},				 /* fixed64, cut */
		{{0x0d, 1}, 2},					 /* fixed32, cut */
		{{0x0b}, 1},					 /* group */
		{{0x02, 0x00}, 2},				 /* field 0 */
		{{0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00}, 7}, /* number past 29 bits */
		{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 11},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cursor c = cursor_make(cases[i].bytes, cases[i].n, false);
		struct protobuf_field field;
		assert_false(protobuf_field_next(&c, &field));
		assert_false(cursor_is_ok(&c));
		assert_false(protobuf_field_next(&c, &field));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protobuf_writer_writes_fields_as_the_format_has_them),
		cmocka_unit_test(protobuf_writer_keeps_its_first_error),
		cmocka_unit_test(protobuf_field_refuses_what_is_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
