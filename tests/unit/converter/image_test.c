/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "converter/image.h"

static uint32_t intern(struct image_table *table, const char *path, const char *id)
{
	struct image_key key = {.path = path};
	if (id)
		key.build_id = build_id_make(id, strlen(id));
	bool is_new;
	return image_table_intern(table, &key, &is_new);
}

static void image_adopts_the_first_build_id_of_its_path(void **state)
{
	(void)state;
	struct image_table table;
	image_table_init(&table);
	uint32_t named = intern(&table, "/bin/a", NULL);
	uint32_t own = intern(&table, "/bin/a", "own build-id");
	uint32_t other = intern(&table, "/bin/c", NULL);
	struct perf_build_id_entry entries[] = {
		{.id = build_id_make("first", 5), .filename = "/bin/a"},
		{.id = build_id_make("second", 6), .filename = "/bin/a"},
		{.id = build_id_make("unused", 6), .filename = "/bin/b"},
	};
	const struct perf_source_info source = {.build_ids = entries, .n_build_ids = 3};
	image_table_adopt_build_ids(&table, &source);
	assert_true(build_id_equal(&image_table_get(&table, named)->build_id, &entries[0].id));
	struct build_id kept = build_id_make("own build-id", 12);
	assert_true(build_id_equal(&image_table_get(&table, own)->build_id, &kept));
	assert_false(build_id_is_set(&image_table_get(&table, other)->build_id));
	image_table_fini(&table);
}

static void image_without_a_table_of_build_ids_has_none(void **state)
{
	(void)state;
	struct image_table table;
	image_table_init(&table);
	uint32_t a = intern(&table, "/bin/a", NULL);
	const struct perf_source_info source = {0};
	image_table_adopt_build_ids(&table, &source);
	assert_false(build_id_is_set(&image_table_get(&table, a)->build_id));
	image_table_fini(&table);
}

static void image_of_one_build_id_is_one_binary_under_all_its_paths(void **state)
{
	(void)state;
	struct image_table table;
	image_table_init(&table);
	uint32_t a = intern(&table, "/bin/a", "same");
	uint32_t b = intern(&table, "/proc/self/exe", "same");
	uint32_t c = intern(&table, "/bin/a", "other");
	assert_int_equal(image_table_get(&table, b)->canonical, a);
	assert_int_equal(image_table_get(&table, c)->canonical, c);
	assert_int_equal(intern(&table, "/bin/a", "same"), a);
	image_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(image_adopts_the_first_build_id_of_its_path),
		cmocka_unit_test(image_without_a_table_of_build_ids_has_none),
		cmocka_unit_test(image_of_one_build_id_is_one_binary_under_all_its_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
