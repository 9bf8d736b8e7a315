/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/profile_merge.h"
#include "tests/unit/proto/made_up_profile.h"

static int64_t total(const struct profile *profile, uint32_t column)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		sum += profile_value(profile, i, column);
	return sum;
}

static void profile_merge_adds_equal_stacks_up(void **state)
{
	(void)state;
	struct profile_merge merge;
	profile_merge_init(&merge);
	struct profile *profile = made_up_profile();
	for (int i = 0; i < 3; i++)
		assert_null(profile_merge_add(&merge, profile));
	struct profile *sum = profile_merge_take(&merge);
	assert_int_equal(sum->samples.n, profile->samples.n);
	assert_int_equal(sum->locations.n, profile->locations.n);
	assert_int_equal(sum->mappings.n, profile->mappings.n);
	assert_int_equal(sum->functions.n, profile->functions.n);
	assert_int_equal(total(sum, 0), 3 * total(profile, 0));
	assert_int_equal(total(sum, 1), 3 * total(profile, 1));
	assert_int_equal(sum->duration_nanos, 3 * profile->duration_nanos);
	assert_int_equal(sum->time_nanos, profile->time_nanos);
	profile_free(sum);
	assert_null(profile_merge_take(&merge));
	/* The next sum knows nothing of the one before. */
	assert_null(profile_merge_add(&merge, profile));
	sum = profile_merge_take(&merge);
	assert_int_equal(total(sum, 0), total(profile, 0));
	profile_free(sum);
	profile_free(profile);
	profile_merge_fini(&merge);
}

/* A place whose name came with a later window is another one. */
static void profile_merge_keeps_what_differs_apart(void **state)
{
	(void)state;
	struct profile_merge merge;
	profile_merge_init(&merge);
	for (int i = 0; i < 2; i++) {
		struct profile *profile = profile_new();
		profile_add_sample_type(profile, "samples", "count");
		struct profile_mapping mapping = {
			.memory_start = 0x1000, .memory_limit = 0x2000, .has_functions = i};
		uint32_t index = profile_add_mapping(profile, &mapping);
		uint32_t location = i ? made_up_location(profile, index, 0x1234, "late", 3)
				      : profile_add_location(profile, index, 0x1234);
		const int64_t one = 1;
		(void)profile_add_sample(profile, profile_stack(profile, &location, 1), 0, &one);
		assert_null(profile_merge_add(&merge, profile));
		profile_free(profile);
	}
	struct profile *sum = profile_merge_take(&merge);
	assert_int_equal(sum->mappings.n, 2);
	assert_int_equal(sum->locations.n, 2);
	assert_int_equal(sum->samples.n, 2);
	profile_free(sum);
	profile_merge_fini(&merge);
}

static void profile_merge_refuses_other_columns(void **state)
{
	(void)state;
	struct profile_merge merge;
	profile_merge_init(&merge);
	struct profile *profile = made_up_profile();
	assert_null(profile_merge_add(&merge, profile));
	profile_free(profile);
	profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	struct error *err = profile_merge_add(&merge, profile);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	error_free(err);
	assert_int_equal(total(merge.sum, 0), 10);
	profile_free(profile);
	profile_merge_fini(&merge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_merge_adds_equal_stacks_up),
		cmocka_unit_test(profile_merge_keeps_what_differs_apart),
		cmocka_unit_test(profile_merge_refuses_other_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
