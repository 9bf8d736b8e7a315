/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sample_layout.h"

static struct sample_layout layout_of(uint64_t sample_type, int has_trailer)
{
	struct perf_event_attr attr = {.sample_type = sample_type};
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, has_trailer);
	return sample_layout_of(&attr);
}

static void sample_layout_of_identifier_puts_it_first_and_last(void **state)
{
	(void)state;
	struct sample_layout l = layout_of(
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		1);
	assert_int_equal(l.id_from_start, 8);
	assert_int_equal(l.tid_from_start, 24);
	assert_int_equal(l.time_from_start, 32);
	assert_int_equal(l.cpu_from_start, 40);
	assert_int_equal(l.trailer_bytes, 32);
	assert_int_equal(l.id_from_end, 8);
	assert_int_equal(l.cpu_from_end, 16);
	assert_int_equal(l.time_from_end, 24);
	assert_int_equal(l.tid_from_end, 32);
}

static void sample_layout_finds_id_behind_addr_without_identifier(void **state)
{
	(void)state;
	struct sample_layout l =
		layout_of(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
				  PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU,
			  1);
	assert_int_equal(l.tid_from_start, 16);
	assert_int_equal(l.time_from_start, 24);
	assert_int_equal(l.id_from_start, 40);
	assert_int_equal(l.cpu_from_start, 56);
	assert_int_equal(l.cpu_from_end, 8);
	assert_int_equal(l.id_from_end, 24);
	assert_int_equal(l.time_from_end, 32);
	assert_int_equal(l.tid_from_end, 40);
	assert_int_equal(l.trailer_bytes, 40);
}

static void sample_layout_prefers_identifier_to_id(void **state)
{
	(void)state;
	struct sample_layout l =
		layout_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID | PERF_SAMPLE_TID, 1);
	assert_int_equal(l.id_from_start, 8);
	assert_int_equal(l.id_from_end, 8);
	assert_int_equal(l.tid_from_start, 16);
	assert_int_equal(l.tid_from_end, 24);
	assert_int_equal(l.trailer_bytes, 24);
}

static void sample_layout_without_sample_id_all_has_no_trailer(void **state)
{
	(void)state;
	struct sample_layout l =
		layout_of(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME, 0);
	assert_int_equal(l.time_from_start, 24);
	assert_int_equal(l.trailer_bytes, 0);
	assert_int_equal(l.id_from_end, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.tid_from_end, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.time_from_end, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.cpu_from_end, SAMPLE_LAYOUT_NONE);
}

static void sample_layout_of_absent_fields_is_none(void **state)
{
	(void)state;
	struct sample_layout l = layout_of(PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN, 1);
	assert_int_equal(l.id_from_start, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.tid_from_start, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.time_from_start, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.cpu_from_start, SAMPLE_LAYOUT_NONE);
	assert_int_equal(l.trailer_bytes, 0);
	l = layout_of(PERF_SAMPLE_TID, 1);
	assert_int_equal(l.tid_from_start, 8);
	assert_int_equal(l.tid_from_end, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_layout_of_identifier_puts_it_first_and_last),
		cmocka_unit_test(sample_layout_finds_id_behind_addr_without_identifier),
		cmocka_unit_test(sample_layout_prefers_identifier_to_id),
		cmocka_unit_test(sample_layout_without_sample_id_all_has_no_trailer),
		cmocka_unit_test(sample_layout_of_absent_fields_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
