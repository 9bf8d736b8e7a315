/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read back by our own reader and, where it is installed, by perf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/collector.h"
#include "collector/event_attr.h"
#include "collector/record_writer.h"

static uint64_t clock_ids[] = {11, 12};
static uint64_t fault_ids[] = {21};
static uint64_t dummy_ids[] = {31, 32};

static struct perf_event_info events[3];

static struct perf_source_info make_info(void)
{
	static struct perf_build_id_entry entry;
	struct event_attr_sampling sampling = {.frequency_hz = 99};

	memset(events, 0, sizeof(events));
	for (int i = 0; i < 2; i++) {
		events[i].attr.type = PERF_TYPE_SOFTWARE;
		events[i].attr.config = i ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK;
		event_attr_set_sampling(&events[i].attr, &sampling);
	}
	event_attr_set_side_band(&events[2].attr);
	events[0].name = "cpu-clock";
	events[1].name = "page-faults:u";
	events[2].name = "dummy:HG";
	events[0].ids = clock_ids;
	events[1].ids = fault_ids;
	events[2].ids = dummy_ids;
	events[0].n_ids = events[2].n_ids = 2;
	events[1].n_ids = 1;
	for (int i = 0; i < 3; i++)
		events[i].layout = sample_layout_of(&events[i].attr);
	entry = (struct perf_build_id_entry){
		.pid = -1,
		.misc = PERF_RECORD_MISC_KERNEL,
		.id = build_id_make("0123456789abcdefghij", 20),
		.filename = "[kernel.kallsyms]",
	};
	return (struct perf_source_info){
		.is_live = true,
		.events = events,
		.n_events = 3,
		.build_ids = &entry,
		.n_build_ids = 1,
		.hostname = "host-1",
		.os_release = "6.1.0",
		.perf_version = "perfpipe",
		.arch = "x86_64",
		.cmdline = "perfpipe record -a",
		.n_cpus_available = 4,
		.n_cpus_online = 2,
		.clockid = 1,
		.has_clock_pair = true,
		.clock_pair_wall_ns = 1700000000000000000,
		.clock_pair_event_ns = 5000,
	};
}

/* The trailer and the sample have the order of perf_event_open(2). */
static void write_sample(struct buf *out, uint64_t id, uint64_t time_ns, uint64_t period)
{
	struct record_writer writer = {.out = out};

	record_writer_begin(&writer, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	record_writer_u64(&writer, id);
	record_writer_u64(&writer, 0x401000);
	record_writer_u32(&writer, 77);
	record_writer_u32(&writer, 78);
	record_writer_u64(&writer, time_ns);
	record_writer_u64(&writer, 1);
	record_writer_u64(&writer, period);
	record_writer_u64(&writer, 2);
	record_writer_u64(&writer, PERF_CONTEXT_USER);
	record_writer_u64(&writer, 0x401000);
	assert_null(record_writer_end(&writer));
}

static void write_comm(struct buf *out)
{
	struct record_writer writer = {.out = out, .trailer_bytes = 32};
	char comm[16] = "worker";

	record_writer_begin(&writer, PERF_RECORD_COMM, 0);
	record_writer_u32(&writer, 77);
	record_writer_u32(&writer, 78);
	record_writer_bytes(&writer, comm, sizeof(comm));
	assert_null(record_writer_end(&writer));
}

static void write_own(struct buf *out)
{
	struct record_writer writer = {.out = out};

	record_writer_begin(&writer, PERF_RECORD_PERFPIPE_EXEC, 0);
	record_writer_u64(&writer, 0);
	assert_null(record_writer_end(&writer));
}

static struct record_source *open_fake(const struct perf_source_info *info, struct buf *bytes,
				       unsigned n_samples)
{
	write_comm(bytes);
	write_own(bytes);
	for (unsigned i = 0; i < n_samples; i++)
		write_sample(bytes, i % 3 == 2 ? 21 : 11 + i % 2, 10000 + i, 10 + i);
	return fake_source_new(info, bytes->data, bytes->size);
}

enum ending { FINISHED, KILLED, FINISHED_WITH_MANY_IDS };

/* The file's name; the caller removes it. */
static void write_file(char path[], unsigned n_samples, enum ending ending)
{
	static uint64_t many_ids[1000] = {11, 12};
	struct perf_source_info info = make_info();
	struct buf bytes CLEANUP(buf_fini);
	struct perf_file_writer *writer;
	int fd CLEANUP(cleanup_fd) = mkstemp(path);

	assert_true(fd >= 0);
	buf_init(&bytes, 64 << 20);
	struct record_source *source = open_fake(&info, &bytes, n_samples);
	assert_null(perf_file_writer_open(fd, &info, &writer));
	struct error *err;
	while (!(err = record_source_drain(source, perf_file_writer_add, writer)))
		;
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
	if (ending == FINISHED_WITH_MANY_IDS) { /* CPUs came and went */
		for (unsigned i = 2; i < 1000; i++)
			many_ids[i] = 1000 + i;
		events[0].ids = many_ids;
		events[0].n_ids = 1000;
	}
	if (ending != KILLED)
		assert_null(perf_file_writer_finish(writer));
	perf_file_writer_close(writer);
	record_source_close(source);
}

struct taken {
	uint64_t n_samples, n_comm, n_other;
	uint64_t period_of_event[3];
};

static struct error *take(void *context, const struct perf_record *records, size_t n)
{
	struct taken *taken = context;

	for (size_t i = 0; i < n; i++) {
		uint64_t period;
		taken->n_comm += records[i].type == PERF_RECORD_COMM;
		taken->n_other += records[i].type != PERF_RECORD_COMM &&
				  records[i].type != PERF_RECORD_SAMPLE;
		if (records[i].type != PERF_RECORD_SAMPLE)
			continue;
		taken->n_samples++;
		memcpy(&period, records[i].bytes + 48, sizeof(period));
		assert_in_range(records[i].event_index, 0, 2);
		taken->period_of_event[records[i].event_index] += period;
	}
	return NULL;
}

static void own_reader_reads_what_was_written(void **state)
{
	(void)state;
	enum { N = 3000 };
	char path[] = "/tmp/perfpipe_writer_XXXXXX";
	struct collector_file_options options = {0};
	struct record_source *source;
	struct taken taken = {0};
	uint64_t want[3] = {0};
	struct error *err;
	size_t n_warnings;

	write_file(path, N, FINISHED);
	for (unsigned i = 0; i < N; i++)
		want[i % 3 == 2] += 10 + i;
	err = collector_open_file(path, &options, &source);
	if (err)
		print_error("%s\n", error_text(err));
	assert_null(err);
	while (!(err = record_source_drain(source, take, &taken)))
		;
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
	const struct perf_source_info *info = record_source_info(source);
	assert_int_equal(taken.n_samples, N);
	assert_int_equal(taken.n_comm, 1);
	assert_int_equal(taken.period_of_event[0], want[0]);
	assert_int_equal(taken.period_of_event[1], want[1]);
	assert_int_equal(info->n_events, 3);
	assert_string_equal(info->events[1].name, "page-faults:u");
	assert_string_equal(info->hostname, "host-1");
	assert_string_equal(info->os_release, "6.1.0");
	assert_string_equal(info->arch, "x86_64");
	assert_string_equal(info->cmdline, "perfpipe record -a");
	assert_int_equal(info->n_cpus_available, 4);
	assert_int_equal(info->n_cpus_online, 2);
	assert_int_equal(info->clockid, 1);
	assert_true(info->has_clock_pair);
	assert_int_equal(info->clock_pair_wall_ns, 1700000000000000000);
	assert_int_equal(info->first_sample_ns, 10000);
	assert_int_equal(info->last_sample_ns, 10000 + N - 1);
	assert_int_equal(info->n_build_ids, 1);
	assert_memory_equal(info->build_ids[0].id.bytes, "0123456789abcdefghij", 20);
	assert_string_equal(info->build_ids[0].filename, "[kernel.kallsyms]");
	const struct collector_warning *warnings = collector_file_warnings(source, &n_warnings);
	for (size_t i = 0; i < n_warnings; i++)
		print_error("%s\n", warnings[i].text);
	assert_int_equal(n_warnings, 0);
	record_source_close(source);
	unlink(path);
}

/* Samples that our reader finds; the first of its warnings or its error, 0 when there is none. */
static uint64_t count_samples(const char *path, int *number_out)
{
	struct collector_file_options options = {0};
	struct record_source *source;
	struct taken taken = {0};
	size_t n_warnings;
	struct error *err = collector_open_file(path, &options, &source);

	if (err) {
		*number_out = error_get_number(err);
		error_free(err);
		return 0;
	}
	while (!(err = record_source_drain(source, take, &taken)))
		;
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
	const struct collector_warning *warnings = collector_file_warnings(source, &n_warnings);
	*number_out = n_warnings ? warnings[0].number : 0;
	record_source_close(source);
	return taken.n_samples;
}

static void what_a_cut_leaves_is_read(void **state)
{
	(void)state;
	enum { N = 9000, SAMPLE_BYTES = 80 };
	char path[] = "/tmp/perfpipe_writer_XXXXXX";
	uint64_t n_before = N;
	int number;

	write_file(path, N, FINISHED);
	int fd CLEANUP(cleanup_fd) = open(path, O_RDWR | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	for (unsigned percent = 99; percent > 2; percent -= 7) {
		off_t kept = size * percent / 100;
		assert_int_equal(ftruncate(fd, kept), 0);
		uint64_t n = count_samples(path, &number);
		assert_int_equal(number, 601);
		assert_true(n <= n_before);
		/* What stands before the records, and what the cut hit, is no sample. */
		assert_in_range(n, (uint64_t)kept / SAMPLE_BYTES - 80, N);
		n_before = n;
	}
	unlink(path);
}

static void what_a_killed_recorder_leaves_is_read(void **state)
{
	(void)state;
	enum { N = 9000, FLUSH = 256 << 10, SAMPLE_BYTES = 80 };
	char path[] = "/tmp/perfpipe_writer_XXXXXX";
	int number;

	write_file(path, N, KILLED);
	/* Only what had been flushed. */
	assert_in_range(count_samples(path, &number), N - FLUSH / SAMPLE_BYTES - 1, N);
	assert_int_equal(number, 601);
	unlink(path);
}

static void ids_beyond_the_room_are_kept(void **state)
{
	(void)state;
	char path[] = "/tmp/perfpipe_writer_XXXXXX";
	int number;

	write_file(path, 3000, FINISHED_WITH_MANY_IDS);
	assert_int_equal(count_samples(path, &number), 3000);
	assert_int_equal(number, 0);
	unlink(path);
}

static void perf_reads_what_was_written(void **state)
{
	(void)state;
	enum { N = 30000 }; /* more than one round */
	char path[] = "/tmp/perfpipe_writer_XXXXXX";
	char command[256], line[512];
	unsigned n_clock = 0, n_faults = 0, n_bad = 0;

	if (system("perf --version >/dev/null 2>&1") != 0)
		skip();
	write_file(path, N, FINISHED);
	snprintf(command, sizeof(command), "perf script -F comm,time,event,period -i %s 2>&1",
		 path);
	FILE *script = popen(command, "r");
	assert_non_null(script);
	while (fgets(line, sizeof(line), script)) {
		n_clock += strstr(line, "cpu-clock:") && strstr(line, "worker");
		n_faults += strstr(line, "page-faults:u:") && strstr(line, "worker");
		n_bad += strstr(line, "error") || strstr(line, "out of order");
	}
	assert_int_equal(pclose(script), 0);
	snprintf(command, sizeof(command), "perf report --stdio -i %s >/dev/null 2>&1", path);
	assert_int_equal(system(command), 0);
	unlink(path);
	assert_int_equal(n_clock, N * 2 / 3);
	assert_int_equal(n_faults, N / 3);
	assert_int_equal(n_bad, 0);
}

static void pipes_and_foreign_records_are_refused(void **state)
{
	(void)state;
	struct perf_source_info info = make_info();
	struct perf_file_writer *writer;
	int pipe_fds[2];

	assert_int_equal(pipe(pipe_fds), 0);
	struct error *err = perf_file_writer_open(pipe_fds[1], &info, &writer);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_UNSUPPORTED);
	error_free(err);
	info.is_swapped = true;
	err = perf_file_writer_open(pipe_fds[1], &info, &writer);
	assert_non_null(err);
	error_free(err);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void full_disk_is_an_error(void **state)
{
	(void)state;
	struct perf_source_info info = make_info();
	struct perf_file_writer *writer;
	int fd CLEANUP(cleanup_fd) = open("/dev/full", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		skip();
	struct error *err = perf_file_writer_open(fd, &info, &writer);
	assert_non_null(err);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_reader_reads_what_was_written),
		cmocka_unit_test(what_a_cut_leaves_is_read),
		cmocka_unit_test(what_a_killed_recorder_leaves_is_read),
		cmocka_unit_test(ids_beyond_the_room_are_kept),
		cmocka_unit_test(perf_reads_what_was_written),
		cmocka_unit_test(pipes_and_foreign_records_are_refused),
		cmocka_unit_test(full_disk_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
