/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "converter/group_read.h"

static uint64_t first_ids[] = {11, 12}, second_ids[] = {21, 22};

static struct perf_source_info make_source(struct perf_event_info *events)
{
	events[0] = (struct perf_event_info){.ids = first_ids, .n_ids = 2};
	events[1] = (struct perf_event_info){.ids = second_ids, .n_ids = 2};
	return (struct perf_source_info){.events = events, .n_events = 2};
}

/* Counters as a record has them: value, id. */
static struct group_read_value take(struct group_read *group, const struct perf_event_attr *attr,
				    uint32_t tid, uint64_t id, uint64_t value)
{
	const uint64_t words[] = {value, id};
	const struct sample sample = {
		.tid = tid,
		.n_read_values = 1,
		.read_values = (const uint8_t *)words,
		.read_words = 2,
		.read_id_word = 1,
	};
	return group_read_take(group, attr, &sample, 0);
}

static void assert_value(struct group_read_value value, uint32_t event_index, uint64_t period)
{
	assert_int_equal(value.event_index, event_index);
	assert_int_equal(value.period, period);
}

static void group_read_gives_what_each_id_counted_since_its_last_value(void **state)
{
	(void)state;
	struct perf_event_info events[2];
	const struct perf_source_info source = make_source(events);
	const struct perf_event_attr attr = {0};
	struct group_read group;
	group_read_init(&group, &source);
	assert_value(take(&group, &attr, 1, 11, 100), 0, 100);
	assert_value(take(&group, &attr, 1, 21, 7), 1, 7);
	assert_value(take(&group, &attr, 2, 11, 150), 0, 50);
	assert_value(take(&group, &attr, 2, 21, 7), 1, 0);
	/* Another CPU's counter of the same event. */
	assert_value(take(&group, &attr, 1, 12, 30), 0, 30);
	assert_value(take(&group, &attr, 1, 99, 5), PERF_EVENT_INDEX_NONE, 0);
	group_read_fini(&group);
}

static void group_read_keeps_threads_of_an_inherited_event_apart(void **state)
{
	(void)state;
	struct perf_event_info events[2];
	const struct perf_source_info source = make_source(events);
	struct perf_event_attr attr = {0};
	perf_attr_set(&attr, PERF_ATTR_INHERIT, 1);
	struct group_read group;
	group_read_init(&group, &source);
	assert_value(take(&group, &attr, 1, 11, 100), 0, 100);
	assert_value(take(&group, &attr, 2, 11, 40), 0, 40);
	assert_value(take(&group, &attr, 1, 11, 110), 0, 10);
	group_read_fini(&group);
}

static void group_read_learns_ids_that_come_later(void **state)
{
	(void)state;
	struct perf_event_info events[2];
	struct perf_source_info source = make_source(events);
	const struct perf_event_attr attr = {0};
	source.n_events = 1;
	events[0].n_ids = 1;
	struct group_read group;
	group_read_init(&group, &source);
	assert_value(take(&group, &attr, 1, 12, 1), PERF_EVENT_INDEX_NONE, 0);
	events[0].n_ids = 2;
	assert_value(take(&group, &attr, 1, 12, 1), 0, 1);
	assert_value(take(&group, &attr, 1, 22, 2), PERF_EVENT_INDEX_NONE, 0);
	source.n_events = 2;
	assert_value(take(&group, &attr, 1, 22, 2), 1, 2);
	group_read_fini(&group);
}

static void group_read_applies_where_values_have_ids(void **state)
{
	(void)state;
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_READ,
				       .read_format = PERF_FORMAT_GROUP};
	assert_false(group_read_applies(&attr));
	attr.read_format |= PERF_FORMAT_ID;
	assert_true(group_read_applies(&attr));
	attr.sample_type = PERF_SAMPLE_PERIOD;
	assert_false(group_read_applies(&attr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_read_gives_what_each_id_counted_since_its_last_value),
		cmocka_unit_test(group_read_keeps_threads_of_an_inherited_event_apart),
		cmocka_unit_test(group_read_learns_ids_that_come_later),
		cmocka_unit_test(group_read_applies_where_values_have_ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
