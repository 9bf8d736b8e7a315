/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "collector/perf_file_events.h"

struct fixture {
	struct perf_source_info info;
	struct perf_file_events events;
	uint64_t fields[8];
};

static void init_fixture(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->info.clockid = -1;
	perf_file_events_init(&f->events, &f->info, false);
}

static void add_event(struct fixture *f, uint64_t config, uint64_t sample_type, int id_all,
		      const uint64_t *ids, size_t n_ids)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = config, .sample_type = sample_type};
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, id_all);
	struct cursor c = cursor_make(ids, n_ids * sizeof(*ids), false);
	assert_null(perf_file_events_add(&f->events, &attr, PERF_ATTR_SIZE_VER9, &c, n_ids));
}

/* A record of type with n u64 fields behind its header. */
static struct perf_record route(struct fixture *f, uint32_t type, const uint64_t *fields, size_t n)
{
	const struct perf_event_header header = {
		.type = type, .size = (uint16_t)(sizeof(header) + n * sizeof(*fields))};
	memcpy(f->fields, &header, sizeof(header));
	memcpy(f->fields + 1, fields, n * sizeof(*fields));
	struct perf_record record = {
		.bytes = (const uint8_t *)f->fields, .type = type, .size = header.size};
	perf_file_events_route(&f->events, &record);
	return record;
}

static const uint64_t two_ids[] = {11, 12};
static const uint64_t other_ids[] = {21, 22};

static void perf_file_events_route_by_identifier(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	/* Different fields, but the identifier lies in one place. */
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK,
		  PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, two_ids, 2);
	add_event(&f, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, 1,
		  other_ids, 2);
	struct perf_record record =
		route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){12, 0x401000, 500}, 3);
	assert_int_equal(record.event_index, 0);
	assert_int_equal(record.time_ns, 500);
	record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){22, 600}, 2);
	assert_int_equal(record.event_index, 1);
	assert_int_equal(record.time_ns, 600);
	record = route(&f, PERF_RECORD_COMM, (uint64_t[]){1, 2, 700, 21}, 4);
	assert_int_equal(record.event_index, 1);
	assert_int_equal(record.time_ns, 700);
	record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){99, 0x401000, 500}, 3);
	assert_int_equal(record.event_index, PERF_EVENT_INDEX_NONE);
	record = route(&f, PERF_RECORD_COMM, (uint64_t[]){1, 2, 0, 0}, 4);
	assert_int_equal(record.event_index, 0);
	assert_int_equal(record.time_ns, 0);
	assert_true(f.events.is_all_timed);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_try_each_layout_when_ids_lie_apart(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ID,
		  0, two_ids, 2);
	add_event(&f, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_TIME | PERF_SAMPLE_ID, 0, other_ids,
		  2);
	struct perf_record record =
		route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){0x401000, 500, 11}, 3);
	assert_int_equal(record.event_index, 0);
	assert_int_equal(record.time_ns, 500);
	record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){600, 22}, 2);
	assert_int_equal(record.event_index, 1);
	assert_int_equal(record.time_ns, 600);
	assert_false(f.events.is_all_timed);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_give_all_to_the_one_event_without_ids(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 0, NULL, 0);
	struct perf_record record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){0x401000, 500}, 2);
	assert_int_equal(record.event_index, 0);
	assert_int_equal(record.time_ns, 500);
	record = route(&f, PERF_RECORD_COMM, (uint64_t[]){1, 2}, 2);
	assert_int_equal(record.event_index, 0);
	assert_int_equal(record.time_ns, 0);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_prefer_a_real_event_to_dummy(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	add_event(&f, PERF_COUNT_SW_DUMMY, PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, NULL, 0);
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, NULL, 0);
	struct perf_record record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){0x401000, 500}, 2);
	assert_int_equal(record.event_index, 1);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_read_no_field_past_a_short_record(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK,
		  PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, 1, two_ids, 2);
	add_event(&f, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, 1,
		  other_ids, 2);
	for (uint32_t type = 1; type < PERF_RECORD_KERNEL_MAX; type++)
		for (size_t n = 0; n < 2; n++) {
			struct perf_record record = route(&f, type, (uint64_t[]){12}, n);
			assert_int_equal(record.time_ns, 0);
		}
	perf_file_events_fini(&f.events);
}

static void perf_file_events_take_a_time_of_all_ones_as_none(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_TIME, 1, NULL, 0);
	struct perf_record record = route(&f, PERF_RECORD_COMM, (uint64_t[]){1, UINT64_MAX}, 2);
	assert_int_equal(record.time_ns, 0);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_know_no_event_before_the_first_attr(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	struct perf_record record = route(&f, PERF_RECORD_SAMPLE, (uint64_t[]){1, 2}, 2);
	assert_int_equal(record.event_index, PERF_EVENT_INDEX_NONE);
	assert_int_equal(record.time_ns, 0);
	perf_file_events_fini(&f.events);
}

static void perf_file_events_give_an_id_twice_to_its_first_owner(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	const uint64_t type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
	add_event(&f, PERF_COUNT_SW_CPU_CLOCK, type, 1, two_ids, 2);
	add_event(&f, PERF_COUNT_SW_PAGE_FAULTS, type, 1, two_ids, 2);
	assert_int_equal(perf_file_events_find(&f.events, 11), 0);
	assert_int_equal(perf_file_events_find(&f.events, 13), PERF_EVENT_INDEX_NONE);
	perf_file_events_fini(&f.events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_file_events_route_by_identifier),
		cmocka_unit_test(perf_file_events_try_each_layout_when_ids_lie_apart),
		cmocka_unit_test(perf_file_events_give_all_to_the_one_event_without_ids),
		cmocka_unit_test(perf_file_events_prefer_a_real_event_to_dummy),
		cmocka_unit_test(perf_file_events_read_no_field_past_a_short_record),
		cmocka_unit_test(perf_file_events_take_a_time_of_all_ones_as_none),
		cmocka_unit_test(perf_file_events_know_no_event_before_the_first_attr),
		cmocka_unit_test(perf_file_events_give_an_id_twice_to_its_first_owner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
