/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/finished_window.h"

static uint32_t labels_of(struct profile *profile, const char *process, const char *comm)
{
	struct profile_label labels[2] = {
		{.key = profile_string(profile, "comm"), .str = profile_string(profile, comm)},
		{.key = profile_string(profile, "process")},
	};
	labels[1].str = profile_string(profile, process ? process : "");
	return profile_label_set(profile, labels, process ? 2 : 1);
}

/* One event, as cpu-clock gives it. */
static struct profile *make_clock_profile(void)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, "cpu", "nanoseconds");
	profile->period_type = profile->sample_types.items[1];
	profile->time_nanos = 1000;
	profile->duration_nanos = 10;
	return profile;
}

static void add(struct profile *profile, const char *process, const char *comm, int64_t n)
{
	const int64_t values[] = {n, n * 100};
	uint32_t location = profile_add_location(profile, PROFILE_NONE, 0x1000);
	(void)profile_add_sample(profile, profile_stack(profile, &location, 1),
				 labels_of(profile, process, comm), values);
}

static uint64_t samples_of(const struct finished_window *window, const char *service)
{
	uint64_t n = 0;
	for (size_t i = 0; i < window->n_series; i++) {
		const struct profile *profile = window->series[i].profile;
		for (uint32_t s = 0; s < profile->samples.n; s++) {
			if (strcmp(window->series[i].service, service) == 0)
				n += (uint64_t)profile_value(profile, s, 0);
		}
	}
	return n;
}

static void finished_window_has_a_series_for_each_service(void **state)
{
	(void)state;
	struct profile *whole = make_clock_profile();
	add(whole, "git", "git", 3);
	add(whole, "gitaly", "worker", 4);
	add(whole, "git", "index-pack", 5);
	add(whole, NULL, "nobody", 7);
	struct finished_window *window = finished_window_new(whole, 10);
	assert_int_equal(window->n_series, 3);
	assert_int_equal(window->n_samples, 19);
	assert_int_equal(window->begin_wall_ns, 1000);
	assert_int_equal(window->duration_ns, 10);
	assert_int_equal(samples_of(window, "git"), 8);
	assert_int_equal(samples_of(window, "gitaly"), 4);
	assert_int_equal(samples_of(window, "unknown"), 7);
	/* The name of the process is the series' now, that of the thread stays the sample's. */
	for (uint32_t i = 0; i < window->series[0].profile->labels.n; i++) {
		struct profile_label label = profile_label_at(window->series[0].profile, i);
		assert_string_equal(profile_text(window->series[0].profile, label.key), "comm");
	}
	finished_window_free(window);
}

static void finished_window_takes_kernel_threads_of_one_kind_as_one_service(void **state)
{
	(void)state;
	struct profile *whole = make_clock_profile();
	add(whole, "kworker/0:1", "kworker/0:1", 1);
	add(whole, "kworker/u8:3", "kworker/u8:3", 2);
	add(whole, "/odd", "/odd", 4);
	struct finished_window *window = finished_window_new(whole, 10);
	assert_int_equal(window->n_series, 2);
	assert_int_equal(samples_of(window, "kworker"), 3);
	assert_int_equal(samples_of(window, "/odd"), 4);
	finished_window_free(window);
}

static void finished_window_folds_the_least_sampled_services(void **state)
{
	(void)state;
	struct profile *whole = make_clock_profile();
	char name[16];
	for (int i = 1; i <= 20; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		add(whole, name, name, i);
	}
	struct finished_window *window = finished_window_new(whole, 4);
	assert_int_equal(window->n_series, 4);
	assert_int_equal(samples_of(window, "p20"), 20);
	assert_int_equal(samples_of(window, "p18"), 18);
	assert_int_equal(samples_of(window, FINISHED_WINDOW_OTHER), 17 * 18 / 2);
	assert_int_equal(window->n_samples, 210);
	finished_window_free(window);
}

static void finished_window_has_a_profile_for_each_event(void **state)
{
	(void)state;
	struct profile *whole = profile_new();
	profile_add_sample_type(whole, "cpu_clock_samples", "count");
	profile_add_sample_type(whole, "cpu_clock", "nanoseconds");
	profile_add_sample_type(whole, "page_faults_samples", "count");
	profile_add_sample_type(whole, "page_faults", "count");
	profile_set_row_width(whole, 2);
	whole->period_type.type = profile_string(whole, "cpu");
	whole->period = 42;
	uint32_t location = profile_add_location(whole, PROFILE_NONE, 0x1000);
	uint32_t stack = profile_stack(whole, &location, 1);
	for (uint32_t column = 0; column <= 2; column += 2) {
		uint32_t row =
			profile_add_row(whole, stack, labels_of(whole, "git", "git"), column);
		profile_values(whole, row)[0] = 5 + column;
		profile_values(whole, row)[1] = 600 + column;
	}
	struct finished_window *window = finished_window_new(whole, 10);
	assert_int_equal(window->n_series, 2);
	assert_int_equal(window->n_samples, 12);
	static const char *const measures[] = {"cpu", "page_faults"};
	for (size_t i = 0; i < 2; i++) {
		const struct profile *profile = window->series[i].profile;
		assert_int_equal(profile->sample_types.n, 2);
		assert_string_equal(profile_text(profile, profile->sample_types.items[0].type),
				    "samples");
		assert_string_equal(profile_text(profile, profile->sample_types.items[1].type),
				    measures[i]);
		assert_string_equal(profile_text(profile, profile->period_type.type), measures[i]);
		assert_int_equal(profile->period, i == 0 ? 42 : 0);
		assert_int_equal(profile->samples.n, 1);
		assert_int_equal(profile_value(profile, 0, 0), 5 + 2 * (int)i);
		assert_int_equal(profile_value(profile, 0, 1), 600 + 2 * (int)i);
	}
	finished_window_free(window);
}

static void finished_window_may_have_no_samples(void **state)
{
	(void)state;
	struct finished_window *window = finished_window_new(make_clock_profile(), 10);
	assert_int_equal(window->n_series, 0);
	assert_int_equal(window->n_samples, 0);
	finished_window_free(window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finished_window_has_a_series_for_each_service),
		cmocka_unit_test(finished_window_takes_kernel_threads_of_one_kind_as_one_service),
		cmocka_unit_test(finished_window_folds_the_least_sampled_services),
		cmocka_unit_test(finished_window_has_a_profile_for_each_event),
		cmocka_unit_test(finished_window_may_have_no_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
