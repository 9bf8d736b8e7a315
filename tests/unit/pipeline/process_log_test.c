/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/process_log.h"

static uint8_t bytes[4096];
static char written[4096];

static struct perf_record begin(uint32_t type, uint16_t misc, uint64_t time_ns)
{
	memset(bytes, 0, sizeof(bytes));
	return (struct perf_record){
		.bytes = bytes, .type = type, .misc = misc, .time_ns = time_ns, .size = 8};
}

static void put(struct perf_record *record, const void *p, size_t n)
{
	memcpy(bytes + record->size, p, n);
	record->size += (uint32_t)n;
}

static void put_u32(struct perf_record *record, uint32_t value)
{
	put(record, &value, sizeof(value));
}

static struct perf_record comm_exec(uint32_t pid, const char *comm, uint64_t time_ns)
{
	struct perf_record record = begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, time_ns);
	put_u32(&record, pid);
	put_u32(&record, pid);
	put(&record, comm, strlen(comm) + 1);
	return record;
}

static struct perf_record exec_record(uint32_t pid, uint32_t source, const char *argv, size_t n,
				      const char *cgroup, const char *exe, uint64_t time_ns)
{
	struct perf_record record = begin(PERF_RECORD_PERFPIPE_EXEC, 0, time_ns);
	struct perf_record_perfpipe_exec head = {.pid = pid,
						 .tid = pid,
						 .time_ns = time_ns,
						 .source = source,
						 .argv_bytes = (uint32_t)n};
	record.size = 0;
	put(&record, &head, sizeof(head));
	put(&record, argv, n);
	put(&record, cgroup, strlen(cgroup) + 1);
	put(&record, exe, strlen(exe) + 1);
	return record;
}

static struct perf_record exit_record(uint32_t pid, uint32_t tid)
{
	struct perf_record record = begin(PERF_RECORD_EXIT, 0, 0);
	put_u32(&record, pid);
	put_u32(&record, 1);
	put_u32(&record, tid);
	return record;
}

static void add(struct process_log *log, struct perf_record record)
{
	assert_null(process_log_add(log, &record, 1));
}

static const char *finish(struct process_log *log, FILE *file)
{
	assert_null(process_log_finish(log));
	process_log_free(log);
	rewind(file);
	written[fread(written, 1, sizeof(written) - 1, file)] = '\0';
	fclose(file);
	return written;
}

static void process_log_joins_comm_and_command_line(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	add(log, comm_exec(42, "git", 1000));
	add(log, exec_record(42, PERF_EXEC_FROM_RECORD, "git\0gc\0", 7, "/repos-7", "/usr/bin/git",
			     1001));
	assert_int_equal(process_log_count(log), 1);
	assert_string_equal(
		finish(log, file),
		"{\"time_ns\":1001,\"pid\":42,\"comm\":\"git\",\"argv\":[\"git\",\"gc\"],"
		"\"cgroup\":\"/repos-7\",\"exe\":\"/usr/bin/git\",\"source\":\"record\"}\n");
}

/* Without the tracepoint the two halves have nearly the same time. */
static void process_log_joins_a_command_line_that_comes_first(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	uint64_t n_none, n_cut;
	add(log, exec_record(42, PERF_EXEC_FROM_PROC, "sh\0", 3, "", "", 1000));
	add(log, comm_exec(42, "sh", 21000));
	add(log, exec_record(42, PERF_EXEC_FROM_PROC, "echo\0", 5, "", "", 30000));
	add(log, comm_exec(42, "echo", 30000));
	add(log, exit_record(42, 42));
	process_log_count_gaps(log, &n_none, &n_cut);
	assert_int_equal(n_none, 0);
	assert_string_equal(finish(log, file),
			    "{\"time_ns\":1000,\"pid\":42,\"comm\":\"sh\",\"argv\":[\"sh\"],"
			    "\"cgroup\":null,\"exe\":null,\"source\":\"proc\"}\n"
			    "{\"time_ns\":30000,\"pid\":42,\"comm\":\"echo\",\"argv\":[\"echo\"],"
			    "\"cgroup\":null,\"exe\":null,\"source\":\"proc\"}\n");
}

static void process_log_does_not_join_halves_of_two_execs(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	add(log, exec_record(42, PERF_EXEC_FROM_PROC, "sh\0", 3, "", "", 1000));
	add(log, comm_exec(42, "echo", 1000000000));
	assert_string_equal(finish(log, file),
			    "{\"time_ns\":1000,\"pid\":42,\"comm\":null,\"argv\":[\"sh\"],"
			    "\"cgroup\":null,\"exe\":null,\"source\":\"proc\"}\n"
			    "{\"time_ns\":1000000000,\"pid\":42,\"comm\":\"echo\",\"argv\":[],"
			    "\"cgroup\":null,\"exe\":null,\"source\":\"none\"}\n");
}

/* A name without a record is of a process outside of the cgroup; pid 0 is outside of all. */
static void process_log_of_a_target_has_its_programs_alone(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_TARGET);
	add(log, comm_exec(1, "outside", 10));
	add(log, exit_record(1, 1));
	add(log, comm_exec(2, "outside", 20));
	add(log, comm_exec(42, "in", 1000));
	add(log, exec_record(42, PERF_EXEC_UNKNOWN, "", 0, "", "", 1000));
	add(log, exec_record(0, PERF_EXEC_UNKNOWN, "", 0, "", "", 1000));
	assert_string_equal(finish(log, file),
			    "{\"time_ns\":1000,\"pid\":42,\"comm\":\"in\",\"argv\":[],"
			    "\"cgroup\":null,\"exe\":null,\"source\":\"none\"}\n");
}

static void process_log_counts_execs_without_command_line(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	add(log, comm_exec(1, "first", 10));
	add(log, comm_exec(1, "second", 20)); /* an exec chain: each is a line */
	add(log, exit_record(1, 2));	      /* a thread of it */
	assert_int_equal(process_log_count(log), 1);
	add(log, exit_record(1, 1));
	assert_int_equal(process_log_count(log), 2);
	add(log, comm_exec(3, "late", 30));
	const char *text = finish(log, file);
	assert_string_equal(text, "{\"time_ns\":10,\"pid\":1,\"comm\":\"first\",\"argv\":[],"
				  "\"cgroup\":null,\"exe\":null,\"source\":\"none\"}\n"
				  "{\"time_ns\":20,\"pid\":1,\"comm\":\"second\",\"argv\":[],"
				  "\"cgroup\":null,\"exe\":null,\"source\":\"none\"}\n"
				  "{\"time_ns\":30,\"pid\":3,\"comm\":\"late\",\"argv\":[],"
				  "\"cgroup\":null,\"exe\":null,\"source\":\"none\"}\n");
}

static void process_log_leaves_renames_and_what_already_ran_out(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	struct perf_record renamed = comm_exec(1, "renamed", 10);
	renamed.misc = 0;
	add(log, renamed);
	struct perf_record old = comm_exec(2, "old", 10);
	old.is_synthetic = true;
	add(log, old);
	assert_string_equal(finish(log, file), "");
}

static void process_log_passes_over_damaged_records(void **state)
{
	(void)state;
	FILE *file = tmpfile();
	struct process_log *log = process_log_new(fileno(file), PROCESS_LOG_ALL);
	for (uint32_t size = 8; size < 60; size++) {
		struct perf_record record =
			exec_record(42, PERF_EXEC_FROM_PROC, "a\0b", 4, "c", "d", 1);
		record.size = size < record.size ? size : record.size - 1;
		add(log, record);
		struct perf_record comm = comm_exec(7, "seven", 1);
		comm.size = size < comm.size ? size : comm.size - 1;
		add(log, comm);
	}
	struct perf_record lying = exec_record(42, PERF_EXEC_FROM_PROC, "a", 2, "c", "d", 1);
	uint32_t huge = UINT32_MAX;
	memcpy(bytes + offsetof(struct perf_record_perfpipe_exec, argv_bytes), &huge, sizeof(huge));
	add(log, lying);
	assert_string_equal(finish(log, file), "");
}

static void process_log_reports_a_full_disk(void **state)
{
	(void)state;
	FILE *full = fopen("/dev/full", "w");
	if (!full)
		skip();
	struct process_log *log = process_log_new(fileno(full), PROCESS_LOG_ALL);
	/* More than any buffer: writing fails long before the end, and add says nothing. */
	for (uint32_t i = 0; i < 5000; i++)
		add(log, comm_exec(1 + i % 2, "x", i + 1));
	struct error *err = process_log_finish(log);
	assert_non_null(err);
	assert_int_equal(error_get_number(err), 702);
	assert_non_null(strstr(error_text(err), "No space left"));
	error_free(err);
	process_log_free(log);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_log_joins_comm_and_command_line),
		cmocka_unit_test(process_log_joins_a_command_line_that_comes_first),
		cmocka_unit_test(process_log_does_not_join_halves_of_two_execs),
		cmocka_unit_test(process_log_of_a_target_has_its_programs_alone),
		cmocka_unit_test(process_log_counts_execs_without_command_line),
		cmocka_unit_test(process_log_leaves_renames_and_what_already_ran_out),
		cmocka_unit_test(process_log_passes_over_damaged_records),
		cmocka_unit_test(process_log_reports_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
