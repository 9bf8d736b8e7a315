/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "converter/jit_code.h"

static void add(struct jit_code_list *list, uint64_t start, uint64_t size, uint64_t from_ns,
		const char *name)
{
	const struct jit_code code = {.start = start,
				      .size = size,
				      .from_ns = from_ns,
				      .name = jit_code_add_text(list, name, strlen(name))};
	assert_true(jit_code_add(list, &code));
}

static const char *at(struct jit_code_list *list, uint64_t vaddr, uint64_t moment_ns,
		      uint64_t late_ns)
{
	struct jit_query query = {.vaddr = vaddr, .moment_ns = moment_ns};
	jit_code_find(list, &query, 1, late_ns);
	return query.code == JIT_CODE_NONE ? "-"
					   : jit_code_text(list, list->codes[query.code].name);
}

static void jit_code_last_piece_wins_over_any_overlap(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	add(&list, 0x300, 0x100, 0, "third");
	add(&list, 0x100, 0x100, 0, "first");
	add(&list, 0x180, 0x200, 0, "over");
	assert_string_equal(at(&list, 0xff, 0, 0), "-");
	assert_string_equal(at(&list, 0x100, 0, 0), "first");
	assert_string_equal(at(&list, 0x17f, 0, 0), "first");
	assert_string_equal(at(&list, 0x180, 0, 0), "over");
	assert_string_equal(at(&list, 0x37f, 0, 0), "over");
	assert_string_equal(at(&list, 0x380, 0, 0), "third");
	assert_string_equal(at(&list, 0x400, 0, 0), "-");
	jit_code_list_fini(&list);
}

static void jit_code_holds_from_its_time_on(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	add(&list, 0x100, 0x100, 10, "old");
	add(&list, 0x100, 0x100, 20, "new");
	assert_string_equal(at(&list, 0x150, 9, 0), "-");
	assert_string_equal(at(&list, 0x150, 10, 0), "old");
	assert_string_equal(at(&list, 0x150, 19, 0), "old");
	assert_string_equal(at(&list, 0x150, 20, 0), "new");
	assert_int_equal(jit_code_moment(&list, 9), 0);
	assert_int_equal(jit_code_moment(&list, 10), 10);
	assert_int_equal(jit_code_moment(&list, 1000), 20);
	jit_code_list_fini(&list);
}

/* The last line of the first batch that covered it. */
static void jit_code_without_times_reaches_back(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	add(&list, 0x100, 0x10, 10, "a");
	add(&list, 0x100, 0x10, 10, "b");
	add(&list, 0x100, 0x10, 20, "c");
	assert_string_equal(at(&list, 0x100, 5, UINT64_MAX), "b");
	assert_string_equal(at(&list, 0x100, 15, UINT64_MAX), "b");
	assert_string_equal(at(&list, 0x100, 25, UINT64_MAX), "c");
	assert_string_equal(at(&list, 0x100, 5, 4), "-");
	assert_string_equal(at(&list, 0x100, 5, 5), "b");
	jit_code_list_fini(&list);
}

static void jit_code_out_of_order_is_sorted_by_time(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	add(&list, 0x100, 0x10, 30, "late");
	add(&list, 0x100, 0x10, 10, "early");
	add(&list, 0x100, 0x10, 10, "early too");
	assert_string_equal(at(&list, 0x100, 29, 0), "early too");
	assert_string_equal(at(&list, 0x100, 30, 0), "late");
	jit_code_list_fini(&list);
}

static void jit_code_ends_at_the_end_of_addresses(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	add(&list, UINT64_MAX - 16, UINT64_MAX, 0, "top");
	add(&list, 0x100, 0, 0, "point");
	assert_string_equal(at(&list, UINT64_MAX - 1, 0, 0), "top");
	assert_string_equal(at(&list, UINT64_MAX - 17, 0, 0), "-");
	assert_string_equal(at(&list, 0x100, 0, 0), "point");
	assert_string_equal(at(&list, 0x101, 0, 0), "-");
	jit_code_list_fini(&list);
}

static void jit_code_long_name_is_cut_at_a_character(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	char name[3 * JIT_CODE_NAME_MAX_BYTES];
	for (size_t i = 0; i < sizeof(name) - 2; i += 2)
		memcpy(name + i, "\xc3\xa4", 2); /* ä */
	uint32_t text = jit_code_add_text(&list, name, sizeof(name) - 2);
	const char *cut = jit_code_text(&list, text);
	size_t n = strlen(cut);
	assert_true(n < JIT_CODE_NAME_MAX_BYTES);
	assert_string_equal(cut + n - 3, "\xe2\x80\xa6");
	assert_int_equal((n - 3) % 2, 0);
	text = jit_code_add_text(&list, "a\0b", 3);
	assert_string_equal(jit_code_text(&list, text), "a\xff"
							"b");
	jit_code_list_fini(&list);
}

static void jit_code_bounds_are_counted(void **state)
{
	(void)state;
	struct jit_code_list list;
	size_t budget = 0;
	jit_code_list_init(&list, &budget);
	for (uint32_t i = 0; i < JIT_CODE_MAX; i++) {
		const struct jit_code code = {.start = i, .size = 1};
		assert_true(jit_code_add(&list, &code));
	}
	const struct jit_code more = {.start = 1, .size = 1};
	assert_false(jit_code_add(&list, &more));
	assert_int_equal(list.n_left_out, 1);
	assert_int_equal(budget, list.capacity * sizeof(*list.codes));
	jit_code_list_fini(&list);
	assert_int_equal(budget, 0);
	budget = JIT_CODE_MAX_BYTES;
	jit_code_list_init(&list, &budget);
	assert_false(jit_code_add(&list, &more));
	jit_code_list_fini(&list);
}

static void jit_code_lines_cover_up_to_the_next(void **state)
{
	(void)state;
	struct jit_code_list list;
	jit_code_list_init(&list, NULL);
	const struct jit_line lines[] = {{.offset = 8, .line = 2}, {.offset = 4, .line = 1}};
	for (size_t i = 0; i < 2; i++)
		assert_true(jit_code_add_line(&list, &lines[i]));
	jit_code_sort_lines(&list, 0);
	const struct jit_code code = {.start = 0x100, .size = 0x20, .n_lines = 2};
	assert_null(jit_code_line(&list, &code, 0x103));
	assert_int_equal(jit_code_line(&list, &code, 0x107)->line, 1);
	assert_int_equal(jit_code_line(&list, &code, 0x108)->line, 2);
	assert_int_equal(jit_code_line(&list, &code, 0x11f)->line, 2);
	jit_code_list_fini(&list);
}

/* What the headers promise, the slow way. */
static uint32_t referee(const struct jit_code_list *list, const struct jit_query *query,
			uint64_t late_ns)
{
	uint32_t best = JIT_CODE_NONE;
	for (uint32_t i = 0; i < list->n; i++) {
		const struct jit_code *code = &list->codes[i];
		bool covers =
			query->vaddr >= code->start && query->vaddr - code->start < code->size;
		if (covers && code->from_ns <= query->moment_ns)
			best = i;
	}
	for (uint32_t i = 0; best == JIT_CODE_NONE && i < list->n; i++) {
		const struct jit_code *code = &list->codes[i];
		bool covers =
			query->vaddr >= code->start && query->vaddr - code->start < code->size;
		if (!covers || code->from_ns - query->moment_ns > late_ns)
			continue;
		for (best = i; i < list->n && list->codes[i].from_ns == code->from_ns; i++) {
			const struct jit_code *same = &list->codes[i];
			if (query->vaddr >= same->start && query->vaddr - same->start < same->size)
				best = i;
		}
	}
	return best;
}

static void jit_code_answers_as_a_plain_search_does(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 300; round++) {
		struct jit_code_list list;
		struct jit_query queries[64];
		uint64_t late_ns = (uint64_t[]){0, 3, UINT64_MAX}[round % 3];
		jit_code_list_init(&list, NULL);
		uint32_t n = (uint32_t)rand() % 60, n_queries = 1 + (uint32_t)rand() % 64;
		for (uint32_t i = 0; i < n; i++)
			add(&list, (uint64_t)rand() % 100, (uint64_t)rand() % 30,
			    (uint64_t)(i / 4 + (uint32_t)(rand() % 2)), "x");
		for (uint32_t i = 0; i < n_queries; i++)
			queries[i] = (struct jit_query){.vaddr = (uint64_t)rand() % 130,
							.moment_ns = (uint64_t)rand() % 18};
		jit_code_find(&list, queries, n_queries, late_ns);
		for (uint32_t i = 0; i < n_queries; i++)
			assert_int_equal(queries[i].code, referee(&list, &queries[i], late_ns));
		jit_code_list_fini(&list);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jit_code_last_piece_wins_over_any_overlap),
		cmocka_unit_test(jit_code_holds_from_its_time_on),
		cmocka_unit_test(jit_code_without_times_reaches_back),
		cmocka_unit_test(jit_code_out_of_order_is_sorted_by_time),
		cmocka_unit_test(jit_code_ends_at_the_end_of_addresses),
		cmocka_unit_test(jit_code_long_name_is_cut_at_a_character),
		cmocka_unit_test(jit_code_bounds_are_counted),
		cmocka_unit_test(jit_code_lines_cover_up_to_the_next),
		cmocka_unit_test(jit_code_answers_as_a_plain_search_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
