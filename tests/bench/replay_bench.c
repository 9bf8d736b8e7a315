/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a recording into a sink that does nothing: what reading, ordering and batching cost.
 * Without an argument it makes one of 271 MB, 2.26 M samples of 4 CPUs in rounds, as perf writes
 * them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "collector/replay.h"

enum {
	SAMPLES = 2260000,
	CPUS = 4,
	CHUNK = 200, /* samples of one CPU in a round */
	CHAIN = 8,
	HEADER_BYTES = 104,
	ATTR_BYTES = 144,
	RUNS = 5,
};

struct writer {
	FILE *file;
	uint64_t n;
};

static void put(struct writer *writer, const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, writer->file) != n)
		abort();
	writer->n += n;
}

static void put_u64(struct writer *writer, uint64_t value)
{
	put(writer, &value, sizeof(value));
}

/* IP TID TIME CPU PERIOD CALLCHAIN of 8: 120 bytes. */
static void put_sample(struct writer *writer, uint32_t cpu, uint64_t time_ns)
{
	const struct perf_event_header header = {
		.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = 8 + 40 + 8 + 64};
	uint64_t fields[14] = {0x401000, 1234, time_ns, cpu, 1001001, CHAIN};
	put(writer, &header, sizeof(header));
	for (size_t i = 0; i < CHAIN; i++)
		fields[6 + i] = 0x401000 + 64 * i;
	put(writer, fields, sizeof(fields));
}

static void put_round(struct writer *writer, uint64_t round, uint64_t n)
{
	const struct perf_event_header end = {.type = PERF_RECORD_FINISHED_ROUND, .size = 8};
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		for (uint64_t i = 0; i < n; i++)
			put_sample(writer, cpu,
				   1000000000 + (round * CHUNK + i) * 1000000 + cpu * 1000);
	put(writer, &end, sizeof(end));
}

static uint64_t write_records(struct writer *writer)
{
	uint64_t before = writer->n;
	uint64_t left = SAMPLES / CPUS;
	for (uint64_t round = 0; left > 0; round++) {
		uint64_t n = left < CHUNK ? left : CHUNK;
		put_round(writer, round, n);
		left -= n;
	}
	return writer->n - before;
}

static int make_recording(void)
{
	struct writer writer = {.file = tmpfile()};
	if (!writer.file)
		abort();
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = ATTR_BYTES,
				       .sample_period = 999,
				       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN};
	perf_attr_set(&attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	uint64_t header[13] = {0,
			       HEADER_BYTES,
			       ATTR_BYTES + 16,
			       HEADER_BYTES,
			       ATTR_BYTES + 16,
			       HEADER_BYTES + ATTR_BYTES + 16};
	memcpy(header, "PERFILE2", 8);
	put(&writer, header, sizeof(header));
	put(&writer, &attr, sizeof(attr));
	put_u64(&writer, 0);
	put_u64(&writer, 0);
	header[6] = write_records(&writer);
	rewind(writer.file);
	put(&writer, header, sizeof(header));
	fflush(writer.file);
	return dup(fileno(writer.file));
}

static struct error *count(void *context, const struct perf_record *records, size_t n)
{
	(void)records;
	*(uint64_t *)context += n;
	return NULL;
}

static double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static int fail(struct error *err)
{
	fprintf(stderr, "replay_bench: %s\n", error_text(err));
	error_free(err);
	return 1;
}

int main(int argc, char **argv)
{
	int fd CLEANUP(cleanup_fd) = argc > 1 ? -1 : make_recording();
	for (int i = 0; i < RUNS; i++) {
		double before = cpu_seconds();
		struct record_source *source;
		struct error *err = argc > 1 ? collector_open_file(argv[1], NULL, &source)
					     : replay_open_fd(fd, NULL, &source);
		if (err)
			return fail(err);
		uint64_t n = 0;
		err = record_source_drain(source, count, &n);
		double seconds = cpu_seconds() - before;
		uint64_t bytes = collector_file_format(source)->bytes_read;
		record_source_close(source);
		if (error_get_code(err) != ERROR_NO_ENTRY)
			return fail(err);
		error_free(err);
		printf("replay records=%" PRIu64 " bytes=%" PRIu64
		       " cpu_seconds=%.3f ns_per_record=%.1f resident_bytes=%zu\n",
		       n, bytes, seconds, seconds * 1e9 / (double)n, mem_resident_bytes());
	}
	return 0;
}
