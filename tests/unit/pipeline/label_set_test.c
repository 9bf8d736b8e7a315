/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "pipeline/label_set.h"

static void put(struct label_set *set, const char *name, const char *value)
{
	label_set_put(set, name, strlen(name), value, strlen(value));
}

static void labels_stay_sorted_and_unique(void **state)
{
	(void)state;
	struct label_set set;
	label_set_init(&set);
	put(&set, "b", "1");
	put(&set, "ab", "2");
	put(&set, "a", "3");
	put(&set, "b", "4");
	put(&set, "c", "");
	assert_int_equal(set.n, 3);
	assert_string_equal(set.labels[0].name, "a");
	assert_string_equal(set.labels[1].name, "ab");
	assert_string_equal(set.labels[2].value, "4");
	put(&set, "ab", "");
	assert_null(label_set_find(&set, "ab", 2));
	label_set_delete(&set, "none", 4);
	assert_int_equal(set.n, 2);
	label_set_fini(&set);
}

static void meta_labels_are_dropped(void **state)
{
	(void)state;
	struct label_set set;
	label_set_init(&set);
	put(&set, "__meta_x", "1");
	put(&set, "_y", "2");
	put(&set, "__", "3");
	put(&set, "z__", "4");
	label_set_drop_meta(&set);
	assert_int_equal(set.n, 2);
	assert_string_equal(set.labels[0].name, "_y");
	assert_string_equal(set.labels[1].name, "z__");
	label_set_fini(&set);
}

static void what_does_not_fit_is_left_out_and_said(void **state)
{
	(void)state;
	struct label_set set;
	label_set_init(&set);
	for (int i = 0; i < LABEL_SET_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "l%03d", i);
		put(&set, name, "v");
	}
	assert_false(set.is_full);
	put(&set, "one_more", "v");
	assert_true(set.is_full);
	assert_int_equal(set.n, LABEL_SET_MAX);
	label_set_clear(&set);
	assert_false(set.is_full);
	/* "a" and its 0, the value and its 0: exactly the room there is, then a byte too much. */
	char *long_value = mem_alloc(LABEL_SET_TEXT_BYTES);
	memset(long_value, 'x', LABEL_SET_TEXT_BYTES);
	label_set_put(&set, "a", 1, long_value, LABEL_SET_TEXT_BYTES - 3);
	assert_false(set.is_full);
	label_set_clear(&set);
	label_set_put(&set, "a", 1, long_value, LABEL_SET_TEXT_BYTES - 2);
	assert_true(set.is_full);
	label_set_put(&set, "a", 1, long_value, SIZE_MAX);
	assert_int_equal(set.n, 0);
	mem_free(long_value);
	label_set_fini(&set);
}

static void names_are_letters_digits_and_underscores(void **state)
{
	(void)state;
	assert_true(label_name_is_valid("_a9", 3));
	assert_true(label_name_is_valid("__meta_x", 8));
	assert_false(label_name_is_valid("", 0));
	assert_false(label_name_is_valid("9a", 2));
	assert_false(label_name_is_valid("a-b", 3));
	assert_false(label_name_is_valid("a\xc3\xa4", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_stay_sorted_and_unique),
		cmocka_unit_test(meta_labels_are_dropped),
		cmocka_unit_test(what_does_not_fit_is_left_out_and_said),
		cmocka_unit_test(names_are_letters_digits_and_underscores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
