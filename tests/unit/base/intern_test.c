/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/intern.h"

struct fixture {
	struct arena arena;
	struct intern intern;
};

static void set_up(struct fixture *f)
{
	arena_init(&f->arena, 0);
	intern_init(&f->intern, &f->arena);
}

static void tear_down(struct fixture *f)
{
	intern_fini(&f->intern);
	intern_fini(&f->intern);
	arena_fini(&f->arena);
}

static void intern_index_zero_is_the_empty_string(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f);
	assert_int_equal(f.intern.n, 1);
	assert_int_equal(intern_string(&f.intern, ""), 0);
	assert_int_equal(intern_string(&f.intern, NULL), 0);
	assert_int_equal(intern_bytes(&f.intern, "x", 0), 0);
	assert_string_equal(intern_text(&f.intern, 0), "");
	tear_down(&f);
}

static void intern_numbers_by_first_use(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f);
	assert_int_equal(intern_string(&f.intern, "samples"), 1);
	assert_int_equal(intern_string(&f.intern, "count"), 2);
	assert_int_equal(intern_string(&f.intern, "samples"), 1);
	char copy[] = "count";
	assert_int_equal(intern_string(&f.intern, copy), 2);
	memset(copy, 'x', 5);
	assert_string_equal(intern_text(&f.intern, 2), "count");
	tear_down(&f);
}

static void intern_keeps_hundred_thousand_strings_apart(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f);
	char text[64];
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 100000; i++) {
			snprintf(text, sizeof(text), "%.*s%u", (int)(i % 20),
				 "____________________", i);
			assert_int_equal(intern_string(&f.intern, text), i);
		}
	}
	assert_string_equal(intern_text(&f.intern, 12345), "_____12345");
	assert_int_equal(f.intern.n, 100001);
	tear_down(&f);
}

static void intern_tells_bytes_with_zeros_and_prefixes_apart(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f);
	static const char zeros[32] = {0};
	for (uint32_t size = 1; size < sizeof(zeros); size++)
		assert_int_equal(intern_bytes(&f.intern, zeros, size), size);
	uint32_t a = intern_bytes(&f.intern, "a\0b", 3);
	uint32_t b = intern_bytes(&f.intern, "a\0c", 3);
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, intern_string(&f.intern, "a"));
	assert_int_equal(f.intern.entries[a].size, 3);
	assert_memory_equal(f.intern.entries[a].text, "a\0b", 4);
	tear_down(&f);
}

static void intern_spreads_similar_strings_over_the_table(void **state)
{
	(void)state;
	struct fixture f;
	set_up(&f);
	char text[64];
	for (uint32_t i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "%08x%08x", i, 0);
		intern_string(&f.intern, text);
	}
	size_t longest = 0, run = 0;
	for (size_t i = 0; i < f.intern.table.n_buckets; i++) {
		run = f.intern.table.buckets[i].is_passed ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	assert_true(longest < 20);
	tear_down(&f);
}

static void intern_seeds_each_table_anew(void **state)
{
	(void)state;
	struct fixture a, b;
	set_up(&a);
	set_up(&b);
	assert_true(a.intern.seed[0] != b.intern.seed[0] || a.intern.seed[1] != b.intern.seed[1]);
	assert_int_equal(intern_string(&a.intern, "main"), intern_string(&b.intern, "main"));
	tear_down(&a);
	tear_down(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intern_index_zero_is_the_empty_string),
		cmocka_unit_test(intern_numbers_by_first_use),
		cmocka_unit_test(intern_keeps_hundred_thousand_strings_apart),
		cmocka_unit_test(intern_tells_bytes_with_zeros_and_prefixes_apart),
		cmocka_unit_test(intern_spreads_similar_strings_over_the_table),
		cmocka_unit_test(intern_seeds_each_table_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
