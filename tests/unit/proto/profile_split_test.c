/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "proto/pprof_encode.h"
#include "proto/profile_split.h"
#include "tests/unit/proto/made_up_profile.h"

enum { MAX_PARTS = 4096 };

struct parts {
	uint32_t n;
	uint64_t bytes[MAX_PARTS];
	uint32_t n_samples[MAX_PARTS];
	char values[MAX_PARTS][64];
	int64_t totals[2];
	uint32_t n_labels;
	bool is_refused;
};

static struct error *note_part(void *context, struct profile *part, const char *const *values)
{
	struct parts *parts = context;
	assert_true(parts->n < MAX_PARTS);
	parts->bytes[parts->n] = pprof_encode_count_bytes(part);
	parts->n_samples[parts->n] = part->samples.n;
	if (values)
		snprintf(parts->values[parts->n], sizeof(parts->values[0]), "%s,%s", values[0],
			 values[1]);
	for (uint32_t i = 0; i < part->samples.n; i++) {
		for (int column = 0; column < 2; column++)
			parts->totals[column] += profile_values(part, i)[column];
		parts->n_labels += part->label_sets.items[part->samples.items[i].label_set].n;
	}
	assert_string_equal(profile_text(part, part->period_type.type), "cpu");
	assert_int_equal(part->comments.n, 2);
	assert_string_equal(profile_text(part, part->mappings.items[0].filename), "/usr/bin/app");
	parts->n++;
	profile_free(part);
	return parts->is_refused ? error_new(ERROR_CANCELLED, "enough") : NULL;
}

static void profile_split_by_labels_gives_one_part_a_combination(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static const char *const keys[] = {"comm", "pid"};
	static struct parts parts;
	parts = (struct parts){0};
	assert_null(profile_split_by_labels(profile, keys, 2, note_part, &parts));
	assert_int_equal(parts.n, 4);
	assert_string_equal(parts.values[0], "app,0");
	assert_string_equal(parts.values[1], "app,100");
	assert_string_equal(parts.values[2], "other,200");
	assert_string_equal(parts.values[3], ",");
	assert_int_equal(parts.n_samples[0], 2);
	assert_int_equal(parts.totals[0], 10);
	assert_int_equal(parts.totals[1], 100000000);
	assert_int_equal(parts.n_labels, 0);
	profile_free(profile);
}

static void profile_split_by_labels_takes_unknown_keys_for_empty(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static const char *const keys[] = {"comm", "pod"};
	static struct parts parts;
	parts = (struct parts){0};
	assert_null(profile_split_by_labels(profile, keys, 2, note_part, &parts));
	assert_int_equal(parts.n, 3);
	assert_string_equal(parts.values[0], "app,");
	assert_int_equal(parts.n_labels, 4); /* pid stays */
	assert_int_equal(parts.totals[0], 10);
	struct error *err = profile_split_by_labels(profile, keys, PROFILE_SPLIT_MAX_KEYS + 1,
						    note_part, &parts);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	error_free(err);
	profile_free(profile);
}

static void profile_split_by_limits_keeps_to_the_number_of_samples(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static struct parts parts;
	parts = (struct parts){0};
	struct profile_split_limits limits = {.max_samples = 2};
	assert_null(profile_split_by_limits(profile, &limits, note_part, &parts));
	assert_int_equal(parts.n, 3);
	assert_int_equal(parts.n_samples[2], 1);
	assert_int_equal(parts.totals[0], 10);
	assert_int_equal(parts.totals[1], 100000000);
	profile_free(profile);
}

/* 20,000 samples over 3,000 locations with names of their own. */
static struct profile *large_profile(void)
{
	enum { N_LOCATIONS = 3000, N_SAMPLES = 20000 };
	struct profile *profile = made_up_profile();
	char name[64];
	uint32_t first = profile->locations.n;
	for (int i = 0; i < N_LOCATIONS; i++) {
		snprintf(name, sizeof(name), "function_with_a_long_name_%d", i);
		(void)made_up_location(profile, 0, 0x400000 + (uint64_t)i * 16, name, i);
	}
	uint64_t random = 5;
	for (int i = 0; i < N_SAMPLES; i++) {
		uint32_t stack = 0;
		for (int depth = 0; depth < 10; depth++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			stack = profile_stack_push(profile, stack,
						   first + (uint32_t)(random >> 40) % N_LOCATIONS);
		}
		const int64_t values[] = {1, 10000000};
		(void)profile_add_sample(profile, stack, 1 + (uint32_t)i % 3, values);
	}
	return profile;
}

static void profile_split_by_limits_keeps_to_bytes_and_fills_them(void **state)
{
	(void)state;
	enum { MAX_BYTES = 200000 };
	struct profile *profile = large_profile();
	static struct parts parts;
	parts = (struct parts){0};
	struct profile_split_limits limits = {.max_encoded_bytes = MAX_BYTES};
	assert_null(profile_split_by_limits(profile, &limits, note_part, &parts));
	assert_true(parts.n > 1);
	for (uint32_t i = 0; i < parts.n; i++) {
		assert_true(parts.bytes[i] <= MAX_BYTES);
		if (i + 1 < parts.n)
			assert_true(parts.bytes[i] > MAX_BYTES * 95 / 100);
	}
	assert_int_equal(parts.totals[0], 20010);
	assert_int_equal(parts.totals[1], 20010ll * 10000000);
	profile_free(profile);
}

static void profile_split_by_limits_gives_what_is_too_large_a_part_of_its_own(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static struct parts parts;
	parts = (struct parts){0};
	struct profile_split_limits limits = {.max_encoded_bytes = 1};
	assert_null(profile_split_by_limits(profile, &limits, note_part, &parts));
	assert_int_equal(parts.n, 5);
	assert_int_equal(parts.totals[0], 10);
	profile_free(profile);
}

static void profile_split_stops_at_the_first_error(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static struct parts parts;
	parts = (struct parts){.is_refused = true};
	struct profile_split_limits limits = {.max_samples = 1};
	struct error *err = profile_split_by_limits(profile, &limits, note_part, &parts);
	assert_int_equal(error_get_code(err), ERROR_CANCELLED);
	assert_int_equal(parts.n, 1);
	error_free(err);
	static const char *const keys[] = {"comm", "pid"};
	err = profile_split_by_labels(profile, keys, 2, note_part, &parts);
	assert_int_equal(parts.n, 2);
	error_free(err);
	profile_free(profile);
}

static struct error *note_set(void *context, struct profile *part, uint32_t label_set)
{
	struct parts *parts = context;
	snprintf(parts->values[parts->n], sizeof(parts->values[0]), "%u", label_set);
	return note_part(context, part, NULL);
}

static void profile_split_by_label_sets_takes_all_labels_out(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static struct parts parts;
	parts = (struct parts){0};
	assert_null(profile_split_by_label_sets(profile, note_set, &parts));
	assert_int_equal(parts.n, 4);
	/* The last sample, of the empty set 0, comes last. */
	assert_string_equal(parts.values[0], "1");
	assert_string_equal(parts.values[3], "0");
	assert_int_equal(parts.n_samples[0], 2);
	assert_int_equal(parts.n_labels, 0);
	assert_int_equal(parts.totals[0], 10);
	assert_int_equal(parts.totals[1], 100000000);
	parts = (struct parts){.is_refused = true};
	struct error *err = profile_split_by_label_sets(profile, note_set, &parts);
	assert_int_equal(error_get_code(err), ERROR_CANCELLED);
	error_free(err);
	assert_int_equal(parts.n, 1);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_split_by_labels_gives_one_part_a_combination),
		cmocka_unit_test(profile_split_by_labels_takes_unknown_keys_for_empty),
		cmocka_unit_test(profile_split_by_limits_keeps_to_the_number_of_samples),
		cmocka_unit_test(profile_split_by_label_sets_takes_all_labels_out),
		cmocka_unit_test(profile_split_by_limits_keeps_to_bytes_and_fills_them),
		cmocka_unit_test(profile_split_by_limits_gives_what_is_too_large_a_part_of_its_own),
		cmocka_unit_test(profile_split_stops_at_the_first_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
