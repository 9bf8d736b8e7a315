/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

#include "converter/event_columns.h"

enum { EVENTS_MAX = 16 };

struct fixture {
	struct perf_source_info source;
	struct perf_event_info events[EVENTS_MAX];
	struct event_columns columns;
	struct profile *profile;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){.profile = profile_new()};
	f->source.events = f->events;
}

static void fixture_fini(struct fixture *f)
{
	event_columns_fini(&f->columns);
	profile_free(f->profile);
}

/* rate: Hz when is_frequency, else a period. */
static void add_event(struct fixture *f, const char *name, uint32_t type, uint64_t config,
		      uint64_t rate, bool is_frequency)
{
	struct perf_event_info *event = &f->events[f->source.n_events++];
	*event = (struct perf_event_info){.name = (char *)name};
	event->attr.type = type;
	event->attr.config = config;
	event->attr.sample_period = rate;
	perf_attr_set(&event->attr, PERF_ATTR_FREQ, is_frequency);
}

static void add_clock(struct fixture *f, const char *name, uint64_t hz)
{
	add_event(f, name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, hz, true);
}

static void update(struct fixture *f, const char *only)
{
	event_columns_update(&f->columns, &f->source, only, f->profile);
	assert_true(event_columns_is_current(&f->columns, &f->source));
}

static void check_column(const struct fixture *f, uint32_t i, const char *type, const char *unit)
{
	assert_true(i < f->profile->sample_types.n);
	const struct profile_value_type *t = &f->profile->sample_types.items[i];
	assert_string_equal(profile_text(f->profile, t->type), type);
	assert_string_equal(profile_text(f->profile, t->unit), unit);
}

static void check_period(const struct fixture *f, const char *type, const char *unit,
			 int64_t period)
{
	assert_string_equal(profile_text(f->profile, f->profile->period_type.type), type);
	assert_string_equal(profile_text(f->profile, f->profile->period_type.unit), unit);
	assert_int_equal(f->profile->period, period);
}

static void check_default(const struct fixture *f, const char *type)
{
	assert_string_equal(profile_text(f->profile, f->profile->default_sample_type), type);
}

static void event_columns_single_clock_is_cpu_time(void **state)
{
	(void)state;
	for (uint64_t config = PERF_COUNT_SW_CPU_CLOCK; config <= PERF_COUNT_SW_TASK_CLOCK;
	     config++) {
		struct fixture f;
		fixture_init(&f);
		add_event(&f, config ? "task-clock:u" : "cpu-clock", PERF_TYPE_SOFTWARE, config, 99,
			  true);
		update(&f, NULL);
		assert_int_equal(f.profile->sample_types.n, 2);
		assert_true(f.columns.is_single);
		check_column(&f, 0, "samples", "count");
		check_column(&f, 1, "cpu", "nanoseconds");
		check_period(&f, "cpu", "nanoseconds", 10101010);
		check_default(&f, "cpu");
		fixture_fini(&f);
	}
}

static void event_columns_clock_by_period_has_that_period(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000, false);
	update(&f, NULL);
	check_period(&f, "cpu", "nanoseconds", 1000000);
	fixture_fini(&f);
}

static void event_columns_cycles_by_frequency_have_an_estimate_of_time(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "cycles:ppp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100, true);
	update(&f, NULL);
	assert_int_equal(f.profile->sample_types.n, 3);
	check_column(&f, 0, "samples", "count");
	check_column(&f, 1, "cycles", "count");
	check_column(&f, 2, "cpu", "nanoseconds");
	check_period(&f, "cpu", "nanoseconds", 10000000);
	check_default(&f, "cpu");
	int64_t row[3] = {0};
	event_columns_add(&f.columns, 123456, row);
	event_columns_add(&f.columns, 1, row);
	assert_int_equal(row[0], 2);
	assert_int_equal(row[1], 123457);
	assert_int_equal(row[2], 20000000);
	fixture_fini(&f);
}

static void event_columns_cycles_by_period_have_none(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100000, false);
	update(&f, NULL);
	assert_int_equal(f.profile->sample_types.n, 2);
	check_column(&f, 1, "cycles", "count");
	check_period(&f, "cycles", "count", 100000);
	check_default(&f, "cycles");
	fixture_fini(&f);
}

/* FR-79 */
static void event_columns_several_events_have_two_each_in_file_order(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_clock(&f, "cpu-clock", 499);
	add_event(&f, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 499, true);
	add_event(&f, "sched:sched_switch", PERF_TYPE_TRACEPOINT, 300, 1, false);
	update(&f, NULL);
	assert_false(f.columns.is_single);
	assert_int_equal(f.profile->sample_types.n, 6);
	check_column(&f, 0, "cpu_clock_samples", "count");
	check_column(&f, 1, "cpu_clock", "nanoseconds");
	check_column(&f, 2, "page_faults_samples", "count");
	check_column(&f, 3, "page_faults", "count");
	check_column(&f, 4, "sched_sched_switch_samples", "count");
	check_column(&f, 5, "sched_sched_switch", "count");
	check_default(&f, "cpu_clock");
	assert_int_equal(f.columns.first_column[1], 2);
	int64_t row[2] = {0};
	event_columns_add(&f.columns, 16, row);
	event_columns_add(&f.columns, 1, row);
	assert_int_equal(row[0], 2);
	assert_int_equal(row[1], 17);
	fixture_fini(&f);
}

static void event_columns_dummy_is_never_a_column(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "dummy:HG", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 4000, true);
	add_clock(&f, "cpu-clock", 99);
	add_event(&f, "dummy", 10, 0, 1, false);
	update(&f, NULL);
	assert_true(f.columns.is_single);
	assert_int_equal(f.profile->sample_types.n, 2);
	assert_int_equal(f.columns.first_column[0], EVENT_COLUMN_NONE);
	assert_int_equal(f.columns.first_column[1], 0);
	assert_int_equal(f.columns.first_column[2], EVENT_COLUMN_NONE);
	assert_int_equal(f.columns.main_event, 1);
	/* A probe that happens to begin with that word is not one. */
	add_event(&f, "dummy_queue:push", PERF_TYPE_TRACEPOINT, 44, 1, false);
	update(&f, NULL);
	assert_int_equal(f.profile->sample_types.n, 4);
	fixture_fini(&f);
}

static void event_columns_only_dummies_are_better_than_nothing(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "dummy:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1, false);
	update(&f, NULL);
	check_column(&f, 0, "samples", "count");
	check_column(&f, 1, "dummy", "count");
	fixture_fini(&f);
}

static void event_columns_no_event_is_an_empty_count(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	update(&f, NULL);
	assert_int_equal(f.profile->sample_types.n, 1);
	check_column(&f, 0, "samples", "count");
	check_period(&f, "samples", "count", 1);
	fixture_fini(&f);
}

/* The two kinds of core of a hybrid CPU, and a list that names an event twice. */
static void event_columns_duplicate_names_are_numbered(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 4ull << 32, 99,
		  true);
	add_event(&f, "cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 8ull << 32, 99,
		  true);
	add_event(&f, "CYCLES", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 99, true);
	update(&f, NULL);
	check_column(&f, 0, "cycles_samples", "count");
	check_column(&f, 1, "cycles", "count");
	check_column(&f, 2, "cycles_2_samples", "count");
	check_column(&f, 3, "cycles_2", "count");
	check_column(&f, 5, "cycles_3", "count");
	fixture_fini(&f);
}

static void event_columns_names_are_reduced(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t type;
		const char *reduced;
	} cases[] = {
		{"cpu/event=0xc0,umask=0x1/pp", PERF_TYPE_RAW, "cpu_event_0xc0_umask_0x1_pp"},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, "l1_dcache_load_misses"},
		{"instructions:u", PERF_TYPE_HARDWARE, "instructions"},
		{"mem:0x401136:x", PERF_TYPE_BREAKPOINT, "mem_0x401136_x"},
		{"--\xc3\xa9v\xc3\xa9nement--", PERF_TYPE_RAW, "v_nement"},
		{"///", PERF_TYPE_RAW, "event"},
		{"", PERF_TYPE_RAW, "event"},
		{":u", PERF_TYPE_RAW, "u"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		fixture_init(&f);
		add_event(&f, cases[i].name, cases[i].type, 0x1234, 1, false);
		update(&f, NULL);
		check_column(&f, 1, cases[i].reduced, "count");
		fixture_fini(&f);
	}
	char longest[5000];
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	struct fixture f;
	fixture_init(&f);
	add_event(&f, longest, PERF_TYPE_RAW, 1, 1, false);
	add_event(&f, longest, PERF_TYPE_RAW, 2, 1, false);
	update(&f, NULL);
	assert_int_equal(f.profile->sample_types.n, 4);
	fixture_fini(&f);
}

static void event_columns_only_gives_the_single_form_of_one_event(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_clock(&f, "cpu-clock:u", 99);
	add_event(&f, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, false);
	add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 4ull << 32, 99,
		  true);
	add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES | 8ull << 32, 99,
		  true);
	update(&f, "page-faults");
	assert_true(f.columns.is_single);
	check_column(&f, 0, "samples", "count");
	check_column(&f, 1, "page_faults", "count");
	assert_int_equal(f.columns.first_column[0], EVENT_COLUMN_NONE);
	update(&f, "cpu-clock"); /* with or without its modifiers */
	check_column(&f, 1, "cpu", "nanoseconds");
	update(&f, "cpu-clock:u");
	check_column(&f, 1, "cpu", "nanoseconds");
	update(&f, "cycles"); /* both core types add up */
	assert_int_equal(f.columns.n_used, 2);
	assert_int_equal(f.profile->sample_types.n, 3);
	update(&f, "cpu");
	assert_int_equal(f.columns.n_used, 0);
	fixture_fini(&f);
}

static void add_sample(struct fixture *f, uint32_t stack, uint32_t event, uint64_t period)
{
	uint32_t row = profile_add_row(f->profile, stack, 0, f->columns.first_column[event]);
	event_columns_add(&f->columns, period, profile_values(f->profile, row));
}

/* In pipe mode an attr may come behind samples of others. */
static void event_columns_late_event_keeps_the_values_there_are(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	uint32_t location = profile_add_location(f.profile, PROFILE_NONE, 1);
	uint32_t a = profile_stack(f.profile, &location, 1);
	add_clock(&f, "cpu-clock", 99);
	update(&f, NULL);
	add_sample(&f, a, 0, 1000);
	add_sample(&f, 0, 0, 1);
	add_sample(&f, a, 0, 2000);
	add_event(&f, "dummy:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1, false);
	update(&f, NULL);
	assert_int_equal(f.profile->samples.n, 2);
	assert_int_equal(profile_values(f.profile, 0)[1], 3000);
	add_event(&f, "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, false);
	update(&f, NULL);
	check_column(&f, 0, "cpu_clock_samples", "count");
	add_sample(&f, a, 2, 5);
	add_sample(&f, a, 0, 10);
	/* A row an event: (a, cpu-clock), (none, cpu-clock), (a, page-faults). */
	static const int64_t want[3][4] = {{3, 3010, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 5}};
	assert_int_equal(f.profile->samples.n, 3);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t column = 0; column < 4; column++)
			assert_int_equal(profile_value(f.profile, i, column), want[i][column]);
	}
	fixture_fini(&f);
}

static void event_columns_late_dummy_keeps_the_estimate(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100, true);
	update(&f, NULL);
	add_sample(&f, 0, 0, 7);
	add_event(&f, "dummy:u", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1, false);
	update(&f, NULL);
	static const int64_t want[3] = {1, 7, 10000000};
	assert_memory_equal(profile_values(f.profile, 0), want, sizeof(want));
	fixture_fini(&f);
}

/* Each event behind a sample of the one before: columns are appended, rows stay where they are. */
static void event_columns_many_late_events_have_their_own(void **state)
{
	(void)state;
	enum { N = EVENTS_MAX };
	struct fixture f;
	fixture_init(&f);
	for (uint32_t i = 0; i < N; i++) {
		char name[32];
		snprintf(name, sizeof(name), "probe:p%u", i);
		add_event(&f, name, PERF_TYPE_TRACEPOINT, i, 1, false);
		update(&f, NULL);
		add_sample(&f, 0, i, i + 1);
	}
	assert_int_equal(f.profile->sample_types.n, 2 * N);
	assert_int_equal(f.profile->samples.n, N);
	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t column = 0; column < 2 * N; column++) {
			int64_t want = column == 2 * i ? 1 : column == 2 * i + 1 ? i + 1 : 0;
			assert_int_equal(profile_value(f.profile, i, column), want);
		}
	}
	fixture_fini(&f);
}

static void event_columns_odd_rates_do_no_harm(void **state)
{
	(void)state;
	static const uint64_t rates[] = {0, 1, 1000000001, UINT64_MAX};
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (int by_frequency = 0; by_frequency < 2; by_frequency++) {
			struct fixture f;
			fixture_init(&f);
			add_event(&f, "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
				  rates[i], by_frequency);
			update(&f, NULL);
			add_sample(&f, 0, 0, UINT64_MAX);
			add_sample(&f, 0, 0, UINT64_MAX);
			assert_int_equal(profile_values(f.profile, 0)[0], 2);
			fixture_fini(&f);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_columns_single_clock_is_cpu_time),
		cmocka_unit_test(event_columns_clock_by_period_has_that_period),
		cmocka_unit_test(event_columns_cycles_by_frequency_have_an_estimate_of_time),
		cmocka_unit_test(event_columns_cycles_by_period_have_none),
		cmocka_unit_test(event_columns_several_events_have_two_each_in_file_order),
		cmocka_unit_test(event_columns_dummy_is_never_a_column),
		cmocka_unit_test(event_columns_only_dummies_are_better_than_nothing),
		cmocka_unit_test(event_columns_no_event_is_an_empty_count),
		cmocka_unit_test(event_columns_duplicate_names_are_numbered),
		cmocka_unit_test(event_columns_names_are_reduced),
		cmocka_unit_test(event_columns_only_gives_the_single_form_of_one_event),
		cmocka_unit_test(event_columns_late_event_keeps_the_values_there_are),
		cmocka_unit_test(event_columns_late_dummy_keeps_the_estimate),
		cmocka_unit_test(event_columns_many_late_events_have_their_own),
		cmocka_unit_test(event_columns_odd_rates_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
