/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "converter/jit_map.h"

struct fixture {
	struct jit_map map;
	struct jit_code_list list;
};

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	jit_code_list_init(&f->list, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	jit_code_list_fini(&f->list);
	mem_free(f);
	return 0;
}

static size_t parse(struct fixture *f, const char *text, bool is_last)
{
	return jit_map_parse(&f->map, text, strlen(text), is_last, 7, &f->list);
}

static void check(const struct fixture *f, uint32_t i, uint64_t start, uint64_t size,
		  const char *name)
{
	assert_true(i < f->list.n);
	assert_int_equal(f->list.codes[i].start, start);
	assert_int_equal(f->list.codes[i].size, size);
	assert_int_equal(f->list.codes[i].from_ns, 7);
	assert_string_equal(jit_code_text(&f->list, f->list.codes[i].name), name);
}

static void jit_map_reads_what_runtimes_write(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "7f57c4005a40 2fc JS:*fib /tmp/fib.js:1:13\n"
				   "0x7F00 0X10 py::spin:/srv/a b.py\r\n"
				   "  400   20\tjava.lang.String::hash\xff\n"
				   "\n"
				   "500 0 stub\n";
	assert_int_equal(parse(f, text, false), strlen(text));
	assert_int_equal(f->list.n, 4);
	check(f, 0, 0x7f57c4005a40, 0x2fc, "JS:*fib /tmp/fib.js:1:13");
	check(f, 1, 0x7f00, 0x10, "py::spin:/srv/a b.py");
	check(f, 2, 0x400, 0x20, "java.lang.String::hash\xff");
	check(f, 3, 0x500, 1, "stub");
	assert_int_equal(f->map.n_lines, 4);
	assert_int_equal(f->map.n_malformed, 0);
}

static void jit_map_passes_over_malformed_lines(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "root:x:0:0:root:/root:/bin/bash\n"
				   "400\n"
				   "400 20\n"
				   "400 20 \n"
				   "400 2g name\n"
				   "-400 20 name\n"
				   "0x 20 name\n"
				   "10000000000000000 20 name\n"
				   "ffffffffffffffff 1 name\n"
				   "400 20 good\n";
	assert_int_equal(parse(f, text, false), strlen(text));
	assert_int_equal(f->list.n, 1);
	check(f, 0, 0x400, 0x20, "good");
	assert_int_equal(f->map.n_malformed, 9);
}

static void jit_map_half_line_waits_for_its_rest(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "100 10 one\n200 10 tw";
	assert_int_equal(parse(f, text, false), 11);
	assert_int_equal(f->list.n, 1);
	assert_int_equal(parse(f, "200 10 two\n", false), 11);
	check(f, 1, 0x200, 0x10, "two");
}

static void jit_map_half_line_counts_when_nothing_follows(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(parse(f, "100 10 one", true), 10);
	check(f, 0, 0x100, 0x10, "one");
}

static void jit_map_long_line_is_cut_and_its_rest_skipped(void **state)
{
	struct fixture *f = *state;
	enum { N = 3 * JIT_MAP_MAX_LINE_BYTES };
	char *text = mem_alloc(N + 1);
	memset(text, 'x', N);
	memcpy(text, "100 10 ", 7);
	/* In pieces, as a file is read. */
	assert_int_equal(jit_map_parse(&f->map, text, N / 2, false, 7, &f->list), N / 2);
	assert_int_equal(jit_map_parse(&f->map, text + N / 2, N / 2, false, 7, &f->list), N / 2);
	assert_int_equal(parse(f, "xx\n200 10 two\n", false), 14);
	assert_int_equal(f->list.n, 2);
	assert_true(strlen(jit_code_text(&f->list, f->list.codes[0].name)) <
		    JIT_CODE_NAME_MAX_BYTES);
	check(f, 1, 0x200, 0x10, "two");
	mem_free(text);
}

/* The same bytes in pieces of any length. */
static void jit_map_pieces_make_no_difference(void **state)
{
	struct fixture *f = *state;
	static const char text[] = "100 10 one\n0x200 20 two words\nbad\n300 30 three\n";
	for (size_t step = 1; step < sizeof(text); step++) {
		struct jit_map map = {0};
		uint32_t n_before = f->list.n;
		size_t at = 0, n = 0;
		while (at < strlen(text)) {
			n = n + step > strlen(text) - at ? strlen(text) - at : n + step;
			size_t taken = jit_map_parse(&map, text + at, n, false, 7, &f->list);
			at += taken;
			n -= taken;
		}
		assert_int_equal(f->list.n - n_before, 3);
		check(f, n_before, 0x100, 0x10, "one");
		check(f, n_before + 1, 0x200, 0x20, "two words");
		check(f, n_before + 2, 0x300, 0x30, "three");
		assert_int_equal(map.n_malformed, 1);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(jit_map_reads_what_runtimes_write),
		CASE(jit_map_passes_over_malformed_lines),
		CASE(jit_map_half_line_waits_for_its_rest),
		CASE(jit_map_half_line_counts_when_nothing_follows),
		CASE(jit_map_long_line_is_cut_and_its_rest_skipped),
		CASE(jit_map_pieces_make_no_difference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
