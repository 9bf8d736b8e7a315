/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "collector/pid_filter.h"

enum { SAMPLE_PID_AT = 24, MAX = 32 };

static uint8_t bytes[MAX][64];
static struct perf_record records[MAX];
static size_t n_records;

static void add(uint32_t type, size_t at, uint32_t first, uint32_t second)
{
	uint8_t *p = bytes[n_records];

	memset(p, 0, 64);
	memcpy(p + at, &first, sizeof(first));
	memcpy(p + at + 4, &second, sizeof(second));
	records[n_records] = (struct perf_record){
		.bytes = p, .type = type, .size = 64, .time_ns = n_records + 1};
	n_records++;
}

static void sample(uint32_t pid)
{
	add(PERF_RECORD_SAMPLE, SAMPLE_PID_AT, pid, pid);
}

/* The numbers of the records that came, a character each from 'a'. */
static char came[MAX + 1];

static struct error *take(void *context, const struct perf_record *list, size_t n)
{
	(void)context;
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++)
		strncat(came, &(char){(char)('a' + (list[i].time_ns - 1))}, 1);
	return NULL;
}

static const char *pass(void)
{
	struct pid_filter filter;

	pid_filter_init(&filter);
	filter.sample_pid_at = SAMPLE_PID_AT;
	filter.sink = take;
	pid_filter_add(&filter, 10);
	came[0] = '\0';
	assert_null(pid_filter_pass(&filter, records, n_records));
	pid_filter_fini(&filter);
	n_records = 0;
	return came;
}

static void pid_filter_passes_a_process_and_its_children(void **state)
{
	(void)state;
	sample(9);
	sample(10);			  /* b */
	add(PERF_RECORD_FORK, 8, 10, 10); /* c: a thread */
	add(PERF_RECORD_FORK, 8, 20, 10); /* d: a child */
	add(PERF_RECORD_FORK, 8, 30, 20); /* e: its child */
	add(PERF_RECORD_FORK, 8, 40, 9);  /* of others */
	add(PERF_RECORD_COMM, 8, 20, 20); /* g */
	add(PERF_RECORD_COMM, 8, 40, 40);
	sample(30); /* i */
	sample(40);
	add(PERF_RECORD_EXIT, 8, 30, 20); /* k */
	sample(30);			  /* l: on another CPU a little later */
	assert_string_equal(pass(), "bcdegikl");
}

static void pid_filter_drops_a_pid_that_is_used_again(void **state)
{
	(void)state;
	add(PERF_RECORD_FORK, 8, 20, 10); /* a */
	add(PERF_RECORD_EXIT, 8, 20, 10); /* b */
	add(PERF_RECORD_FORK, 8, 20, 9);
	sample(20);
	add(PERF_RECORD_FORK, 8, 20, 20); /* a thread of the new one */
	sample(10);			  /* f */
	assert_string_equal(pass(), "abf");
}

static void pid_filter_passes_what_is_of_no_process(void **state)
{
	(void)state;
	add(PERF_RECORD_MMAP, 8, UINT32_MAX, 0); /* a: a kernel module */
	add(PERF_RECORD_MMAP2, 8, 9, 9);
	add(PERF_RECORD_LOST, 8, 1, 0);		   /* c */
	add(PERF_RECORD_KSYMBOL, 8, 0, 0);	   /* d */
	add(PERF_RECORD_PERFPIPE_EXEC, 8, 10, 10); /* e */
	add(PERF_RECORD_PERFPIPE_EXEC, 8, 9, 9);
	assert_string_equal(pass(), "acde");
}

static void pid_filter_drops_records_that_are_too_short(void **state)
{
	(void)state;
	sample(10);
	add(PERF_RECORD_COMM, 8, 10, 10);
	add(PERF_RECORD_FORK, 8, 20, 10);
	records[0].size = SAMPLE_PID_AT;
	records[1].size = 8;
	records[2].size = 12;
	assert_string_equal(pass(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pid_filter_passes_a_process_and_its_children),
		cmocka_unit_test(pid_filter_drops_a_pid_that_is_used_again),
		cmocka_unit_test(pid_filter_passes_what_is_of_no_process),
		cmocka_unit_test(pid_filter_drops_records_that_are_too_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
