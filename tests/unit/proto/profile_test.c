/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "proto/profile.h"

static struct profile *two_columns(void)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, "cpu", "nanoseconds");
	return profile;
}

static void profile_starts_with_empty_string_stack_and_set(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	assert_string_equal(profile_text(profile, 0), "");
	assert_int_equal(profile->stacks.n, 1);
	assert_int_equal(profile->label_sets.n, 1);
	assert_int_equal(profile_label_set(profile, NULL, 0), 0);
	assert_int_equal(profile_stack(profile, NULL, 0), 0);
	profile_free(profile);
	profile_free(NULL);
}

static void profile_string_repairs_what_is_not_utf8(void **state)
{
	(void)state;
	static const struct {
		const char *given;
		const char *kept;
	} cases[] = {
		{"plain ascii, longer than a word", "plain ascii, longer than a word"},
		{"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5",
		 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},		  /* overlong */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"12345678\xe2\x82", "12345678\xef\xbf\xbd\xef\xbf\xbd"}, /* cut */
	};
	struct profile *profile = profile_new();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t string = profile_string(profile, cases[i].given);
		assert_string_equal(profile_text(profile, string), cases[i].kept);
		assert_int_equal(profile_string(profile, cases[i].kept), string);
	}
	profile_free(profile);
}

static void profile_function_is_kept_once(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	struct profile_function function = {.name = profile_string(profile, "f"), .start_line = 3};
	uint32_t index = profile_function(profile, &function);
	function.reserved = 77; /* not part of it */
	assert_int_equal(profile_function(profile, &function), index);
	function.start_line = 4;
	assert_int_not_equal(profile_function(profile, &function), index);
	assert_int_equal(profile->functions.n, 2);
	profile_free(profile);
}

static void profile_stack_shares_nodes_from_the_root(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	const uint32_t leaf_first[] = {3, 2, 1};
	const uint32_t root_first[] = {1, 2, 4};
	uint32_t a = profile_stack(profile, leaf_first, 3);
	uint32_t b = profile_stack_path(profile, root_first, 3);
	assert_int_equal(profile->stacks.n, 1 + 4);
	assert_int_equal(profile->stacks.items[a].location, 3);
	assert_int_equal(profile->stacks.items[b].location, 4);
	assert_int_equal(profile->stacks.items[a].parent, profile->stacks.items[b].parent);
	uint32_t node = 0;
	for (uint32_t location = 1; location <= 3; location++)
		node = profile_stack_push(profile, node, location);
	assert_int_equal(node, a);
	assert_int_equal(profile_stack(profile, leaf_first, 3), a);
	assert_int_equal(profile_stack_path(profile, root_first, 2),
			 profile->stacks.items[a].parent);
	assert_int_equal(profile->stacks.n, 1 + 4);
	profile_free(profile);
}

static void profile_stack_doors_agree_over_many_chains(void **state)
{
	(void)state;
	enum { N_CHAINS = 20000, DEPTH = 150 };
	struct profile *by_path = profile_new();
	struct profile *by_push = profile_new();
	uint32_t chain[DEPTH];
	uint64_t random = 1;
	for (int i = 0; i < N_CHAINS; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t n = 1 + (uint32_t)(random >> 40) % DEPTH;
		uint32_t keep = (uint32_t)(random >> 33) % DEPTH;
		for (uint32_t frame = 0; frame < n; frame++)
			chain[frame] =
				frame < keep ? frame % 7 : (uint32_t)(random >> frame % 50) % 3;
		uint32_t a = profile_stack_path(by_path, chain, n);
		uint32_t b = 0;
		for (uint32_t frame = 0; frame < n; frame++)
			b = profile_stack_push(by_push, b, chain[frame]);
		assert_int_equal(a, b);
	}
	assert_int_equal(by_path->stacks.n, by_push->stacks.n);
	profile_free(by_path);
	profile_free(by_push);
}

static void profile_join_locations_joins_what_becomes_equal(void **state)
{
	(void)state;
	struct profile *profile = two_columns();
	for (uint64_t address = 0; address < 4; address++)
		profile_add_location(profile, PROFILE_NONE, 100 + address);
	const uint32_t a[] = {0, 1}, b[] = {2, 1}, c[] = {0, 3};
	const int64_t once[] = {1, 10}, twice[] = {2, 20}, more[] = {4, 40};
	profile_add_sample(profile, profile_stack(profile, a, 2), 0, once);
	profile_add_sample(profile, profile_stack(profile, b, 2), 0, twice);
	profile_add_sample(profile, profile_stack(profile, c, 2), 0, more);
	const uint32_t to[] = {0, 1, 0, 3};
	profile_join_locations(profile, to);
	assert_int_equal(profile->locations.n, 3);
	assert_int_equal(profile->locations.items[2].address, 103);
	assert_int_equal(profile->samples.n, 2);
	assert_int_equal(profile_values(profile, 0)[0], 3);
	assert_int_equal(profile_values(profile, 0)[1], 30);
	assert_int_equal(profile_values(profile, 1)[0], 4);
	uint32_t leaf = profile->samples.items[1].stack;
	assert_int_equal(profile->stacks.items[leaf].location, 0);
	assert_int_equal(profile->stacks.items[profile->stacks.items[leaf].parent].location, 2);
	assert_int_equal(profile->stacks.n, 1 + 4);
	profile_free(profile);
}

/* Rows of one column each: equal ones of several stacks become one, those of another event stay. */
static void profile_join_locations_joins_narrow_rows(void **state)
{
	(void)state;
	struct profile *profile = two_columns();
	profile_set_row_width(profile, 1);
	for (uint64_t address = 0; address < 4; address++)
		profile_add_location(profile, PROFILE_NONE, 100 + address);
	/* Leaf first: two children of what is joined, a stack apart. */
	const uint32_t stacks[][2] = {{2, 0}, {2, 1}, {3, 2}};
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t stack = profile_stack(profile, stacks[i], 2);
			uint32_t row = profile_add_row(profile, stack, 0, (uint32_t)round);
			profile_values(profile, row)[0] += 1 << (i + 4 * round);
		}
	}
	const uint32_t to[] = {0, 0, 2, 3};
	profile_join_locations(profile, to);
	assert_int_equal(profile->locations.n, 3);
	assert_int_equal(profile->stacks.n, 1 + 4);
	assert_int_equal(profile->samples.n, 4);
	static const int64_t want[][2] = {{1 + 2, 0}, {4, 0}, {0, 16 + 32}, {0, 64}};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(profile_value(profile, i, 0), want[i][0]);
		assert_int_equal(profile_value(profile, i, 1), want[i][1]);
	}
	profile_free(profile);
}

static void profile_add_sample_adds_to_the_same_stack_and_labels(void **state)
{
	(void)state;
	struct profile *profile = two_columns();
	const int64_t once[] = {1, 10};
	const uint32_t chain[] = {0};
	uint32_t stack = profile_stack(profile, chain, 1);
	struct profile_label label = {.key = profile_string(profile, "comm"),
				      .str = profile_string(profile, "a")};
	uint32_t set = profile_label_set(profile, &label, 1);
	uint32_t first = profile_add_sample(profile, stack, set, once);
	assert_int_equal(profile_add_sample(profile, stack, set, once), first);
	assert_int_not_equal(profile_add_sample(profile, stack, 0, once), first);
	assert_int_not_equal(profile_add_sample(profile, 0, set, once), first);
	assert_int_equal(profile->samples.n, 3);
	assert_int_equal(profile_values(profile, first)[0], 2);
	assert_int_equal(profile_values(profile, first)[1], 20);
	profile_prefetch_row(profile, stack, set, 0);
	profile_free(profile);
}

static void profile_add_sample_keeps_a_million_apart(void **state)
{
	(void)state;
	enum { N = 1000000 };
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	const int64_t one = 1;
	for (uint32_t i = 0; i < N; i++) {
		uint32_t stack = profile_stack_push(profile, i / 2, i);
		(void)profile_add_sample(profile, stack, 0, &one);
	}
	assert_int_equal(profile->samples.n, N);
	assert_int_equal(profile->stacks.n, N + 1);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(profile_add_sample(profile, i + 1, 0, &one), i);
	/* Node and sample together; without what finds them their arrays are left. */
	assert_true(profile_memory_bytes(profile) < (size_t)N * 46);
	profile_trim(profile);
	assert_true(profile_memory_bytes(profile) < (size_t)N * 25);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(profile_stack_push(profile, i / 2, i), i + 1);
		assert_int_equal(profile_add_sample(profile, i + 1, 0, &one), i);
	}
	profile_free(profile);
}

static void profile_set_lines_keeps_equal_runs_once(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	struct profile_line lines[3] = {{.line = 1}, {.line = 2}, {.line = 3}};
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t location = profile_add_location(profile, PROFILE_NONE, i);
		profile_set_lines(profile, location, lines, i % 4);
	}
	assert_int_equal(profile->lines.n, 1 + 2 + 3);
	for (uint32_t i = 0; i < 100; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		assert_int_equal(location->n_lines, i % 4);
		for (uint32_t k = 0; k < location->n_lines; k++)
			assert_int_equal(profile->lines.items[location->first_line + k].line,
					 k + 1);
	}
	/* What others share stays as it is. */
	lines[0].line = 7;
	profile_set_lines(profile, 1, lines, 1);
	assert_int_equal(profile->lines.items[profile->locations.items[1].first_line].line, 7);
	assert_int_equal(profile->lines.items[profile->locations.items[5].first_line].line, 1);
	profile_free(profile);
}

static void profile_label_set_keeps_order_and_gives_zero_a_unit(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	struct profile_label labels[] = {
		{.key = profile_string(profile, "pid"), .is_number = true},
		{.key = profile_string(profile, "request"), .is_number = true},
	};
	uint32_t set = profile_label_set(profile, labels, 2);
	uint32_t first = profile->label_sets.items[set].first;
	assert_string_equal(profile_text(profile, profile_label_at(profile, first).unit), "pid");
	assert_string_equal(profile_text(profile, profile_label_at(profile, first + 1).unit),
			    "bytes");
	assert_int_equal(profile_label_set(profile, labels, 2), set);
	struct profile_label swapped[] = {labels[1], labels[0]};
	assert_int_not_equal(profile_label_set(profile, swapped, 2), set);
	profile_free(profile);
}

static void profile_set_main_mapping_moves_references(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	for (uint64_t i = 0; i < 4; i++) {
		struct profile_mapping mapping = {.memory_start = i};
		uint32_t index = profile_add_mapping(profile, &mapping);
		(void)profile_add_location(profile, index, i);
	}
	(void)profile_add_location(profile, PROFILE_NONE, 9);
	profile_set_main_mapping(profile, 2);
	assert_int_equal(profile->mappings.items[0].memory_start, 2);
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		assert_int_equal(profile->mappings.items[location->mapping].memory_start,
				 location->address);
	}
	assert_int_equal(profile->locations.items[4].mapping, PROFILE_NONE);
	profile_free(profile);
}

static void profile_set_symbol_flags_wants_every_location_named(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	struct profile_mapping mapping = {.has_functions = true, .has_inline_frames = true};
	uint32_t whole = profile_add_mapping(profile, &mapping);
	uint32_t mixed = profile_add_mapping(profile, &mapping);
	uint32_t unused = profile_add_mapping(profile, &mapping);
	struct profile_function function = {.name = profile_string(profile, "f"),
					    .filename = profile_string(profile, "f.c")};
	struct profile_line lines[2] = {{.line = 3}, {.line = 0}};
	lines[0].function = lines[1].function = profile_function(profile, &function);
	profile_set_lines(profile, profile_add_location(profile, whole, 1), lines, 1);
	profile_set_lines(profile, profile_add_location(profile, whole, 2), lines, 2);
	profile_set_lines(profile, profile_add_location(profile, mixed, 3), lines, 1);
	(void)profile_add_location(profile, mixed, 4);
	profile_set_symbol_flags(profile);
	const struct profile_mapping *mappings = profile->mappings.items;
	assert_true(mappings[whole].has_functions && mappings[whole].has_filenames);
	assert_false(mappings[whole].has_line_numbers);
	assert_true(mappings[whole].has_inline_frames);
	assert_false(mappings[mixed].has_functions || mappings[mixed].has_filenames ||
		     mappings[mixed].has_line_numbers || mappings[mixed].has_inline_frames);
	assert_false(mappings[unused].has_functions || mappings[unused].has_inline_frames);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_starts_with_empty_string_stack_and_set),
		cmocka_unit_test(profile_string_repairs_what_is_not_utf8),
		cmocka_unit_test(profile_join_locations_joins_what_becomes_equal),
		cmocka_unit_test(profile_join_locations_joins_narrow_rows),
		cmocka_unit_test(profile_function_is_kept_once),
		cmocka_unit_test(profile_stack_shares_nodes_from_the_root),
		cmocka_unit_test(profile_stack_doors_agree_over_many_chains),
		cmocka_unit_test(profile_add_sample_adds_to_the_same_stack_and_labels),
		cmocka_unit_test(profile_add_sample_keeps_a_million_apart),
		cmocka_unit_test(profile_set_lines_keeps_equal_runs_once),
		cmocka_unit_test(profile_label_set_keeps_order_and_gives_zero_a_unit),
		cmocka_unit_test(profile_set_main_mapping_moves_references),
		cmocka_unit_test(profile_set_symbol_flags_wants_every_location_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
