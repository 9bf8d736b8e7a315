/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "collector/collector.h"

struct log {
	uint64_t times[8];
	uint32_t events[8];
	uint32_t types[8];
	size_t n;
};

static struct error *note(void *context, const struct perf_record *records, size_t n)
{
	struct log *log = context;
	for (size_t i = 0; i < n; i++) {
		log->types[log->n] = records[i].type;
		log->events[log->n] = records[i].event_index;
		log->times[log->n++] = records[i].time_ns;
	}
	return NULL;
}

static struct error *refuse(void *context, const struct perf_record *records, size_t n)
{
	(void)context;
	(void)records;
	(void)n;
	return error_new(ERROR_CANCELLED, "enough");
}

struct list {
	struct perf_event_header sample;
	uint64_t id, time_ns;
	struct perf_event_header round;
	struct perf_event_header second;
	uint64_t second_id, second_time_ns;
};

static const struct list list = {
	.sample = {.type = PERF_RECORD_SAMPLE, .size = 24},
	.id = 8,
	.time_ns = 500,
	.round = {.type = PERF_RECORD_FINISHED_ROUND, .size = 8},
	.second = {.type = PERF_RECORD_SAMPLE, .size = 24},
	.second_id = 7,
	.second_time_ns = 400,
};

struct fixture {
	struct perf_source_info info;
	struct perf_event_info events[2];
	uint64_t ids[2];
};

static void init_fixture(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	for (size_t i = 0; i < 2; i++) {
		struct perf_event_info *event = &f->events[i];
		f->ids[i] = 7 + i;
		event->attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
		event->layout = sample_layout_of(&event->attr);
		event->ids = &f->ids[i];
		event->n_ids = 1;
	}
	f->info.events = f->events;
	f->info.n_events = 2;
}

static void fake_source_gives_its_list_once_in_its_order(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	struct record_source *source = fake_source_new(&f.info, &list, sizeof(list));
	struct log log = {0};
	for (int i = 0; i < 2; i++) {
		struct error *err = record_source_drain(source, note, &log);
		assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
		error_free(err);
	}
	assert_int_equal(log.n, 3);
	assert_int_equal(log.times[0], 500);
	assert_int_equal(log.events[0], 1);
	assert_int_equal(log.types[1], PERF_RECORD_FINISHED_ROUND);
	assert_int_equal(log.events[1], PERF_EVENT_INDEX_NONE);
	assert_int_equal(log.times[2], 400);
	assert_int_equal(log.events[2], 0);
	assert_ptr_equal(record_source_info(source), &f.info);
	assert_string_equal(source->ops->kind, "fake");
	record_source_close(source);
}

static void fake_source_returns_the_sinks_error(void **state)
{
	(void)state;
	struct fixture f;
	init_fixture(&f);
	struct record_source *source = fake_source_new(&f.info, &list, sizeof(list));
	struct error *err = record_source_drain(source, refuse, NULL);
	assert_int_equal(error_get_code(err), ERROR_CANCELLED);
	error_free(err);
	record_source_close(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fake_source_gives_its_list_once_in_its_order),
		cmocka_unit_test(fake_source_returns_the_sinks_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
