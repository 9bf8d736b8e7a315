/* SPDX-License-Identifier: Apache-2.0 */
/* Whole recordings through the recorded source: twins, damage, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "collector/perf_features.h"
#include "collector/replay.h"
#include "tests/support/perf_data_writer.h"

enum { OUT_MAX = 256 << 20, LOG_MAX = 1 << 14, IDS = 2 };

/* --- what came out --- */

struct seen {
	uint32_t type;
	uint32_t event_index;
	uint64_t time_ns;
	uint64_t hash; /* of the bytes behind the header, byte order put aside */
};

struct log {
	struct seen seen[LOG_MAX];
	size_t n; /* of the kernel's records, user-space ones are counted only */
	size_t n_others;
	uint64_t n_samples;
	size_t fail_at; /* the call that is refused, 0 = none */
	size_t n_calls;
};

static struct log *make_log(void)
{
	return mem_zalloc(1, sizeof(struct log));
}

/* The sum does not see the order of the bytes: twins of the other byte order agree. */
static uint64_t sum_bytes(const struct perf_record *record)
{
	uint64_t sum = 0;
	for (uint32_t i = sizeof(struct perf_event_header); i < record->size; i++)
		sum += record->bytes[i];
	return sum;
}

static struct error *note(void *context, const struct perf_record *records, size_t n)
{
	struct log *log = context;
	if (++log->n_calls == log->fail_at)
		return error_new(ERROR_CANCELLED, "enough");
	for (size_t i = 0; i < n; i++) {
		assert_true(records[i].size >= sizeof(struct perf_event_header));
		log->n_samples += records[i].type == PERF_RECORD_SAMPLE;
		if (records[i].type >= PERF_RECORD_USER_TYPE_START) {
			log->n_others++;
			continue;
		}
		uint64_t sum = sum_bytes(&records[i]);
		if (log->n < LOG_MAX)
			log->seen[log->n++] = (struct seen){.type = records[i].type,
							    .event_index = records[i].event_index,
							    .time_ns = records[i].time_ns,
							    .hash = sum};
	}
	return NULL;
}

static void assert_same(const struct log *a, const struct log *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->seen, b->seen, a->n * sizeof(a->seen[0]));
}

/* Expects the end without trouble. */
static void drain_all(struct record_source *source, struct log *log)
{
	struct error *err = record_source_drain(source, note, log);
	if (error_get_code(err) != ERROR_NO_ENTRY)
		fail_msg("%s", error_text(err));
	error_free(err);
}

static struct record_source *open_bytes(const void *bytes, size_t n, int *fd_out)
{
	*fd_out = perf_data_open_bytes(bytes, n);
	struct record_source *source = NULL;
	struct error *err = replay_open_fd(*fd_out, NULL, &source);
	if (err)
		fail_msg("%s", error_text(err));
	return source;
}

static void read_bytes(const struct buf *bytes, struct log *log)
{
	int fd;
	struct record_source *source = open_bytes(bytes->data, bytes->size, &fd);
	drain_all(source, log);
	size_t n_warnings;
	collector_file_warnings(source, &n_warnings);
	assert_int_equal(n_warnings, 0);
	assert_null(collector_file_format(source)->stream_stopped);
	record_source_close(source);
	close(fd);
}

/* --- what goes in --- */

static struct perf_event_attr make_attr(uint64_t config)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = config,
				       .sample_period = 99,
				       .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
						      PERF_SAMPLE_TIME,
				       .read_format = PERF_FORMAT_ID};
	perf_attr_set(&attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	return attr;
}

static void put_sample(struct perf_data *data, uint64_t id, uint64_t time_ns, size_t n_extra)
{
	perf_data_begin(data, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	perf_data_u64(data, id);
	perf_data_u64(data, 0x401000 + time_ns % 97);
	perf_data_u64(data, time_ns);
	for (size_t i = 0; i < n_extra; i++)
		perf_data_u64(data, i * time_ns);
	perf_data_end(data);
}

/* The trailer is TIME, IDENTIFIER. */
static void put_comm(struct perf_data *data, uint64_t id, uint64_t time_ns)
{
	perf_data_begin(data, PERF_RECORD_COMM, 0);
	perf_data_u32(data, 10);
	perf_data_u32(data, 10);
	perf_data_text(data, "program");
	perf_data_u64(data, time_ns);
	perf_data_u64(data, id);
	perf_data_end(data);
}

static void put_mark(struct perf_data *data, uint32_t type)
{
	perf_data_begin(data, type, 0);
	perf_data_end(data);
}

static void put_events(struct perf_data *data)
{
	static const char *const names[] = {"cpu-clock:u", "page-faults:u"};
	const struct perf_event_attr clock = make_attr(PERF_COUNT_SW_CPU_CLOCK);
	const struct perf_event_attr faults = make_attr(PERF_COUNT_SW_PAGE_FAULTS);
	perf_data_add_event(data, &clock, 100, IDS);
	perf_data_add_event(data, &faults, 200, IDS);
	perf_data_add_text_feature(data, PERF_FEATURE_HOSTNAME, "host");
	perf_data_add_event_desc(data, names);
}

/* One CPU's records of one round. */
static void put_chunk(struct perf_data *data, uint64_t round, uint64_t cpu, size_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t time_ns = round * 10000 + i * 7 + cpu;
		if (i % 9 == 4)
			put_comm(data, 100 + cpu, time_ns);
		else
			put_sample(data, (i % 3 ? 100 : 200) + cpu, time_ns, i % 30);
	}
}

static void put_rounds(struct perf_data *data, size_t n_rounds, size_t n)
{
	put_comm(data, 0, 0);
	for (uint64_t round = 1; round <= n_rounds; round++) {
		for (uint64_t cpu = 0; cpu < IDS; cpu++)
			put_chunk(data, round, cpu, n);
		put_mark(data, PERF_RECORD_FINISHED_ROUND);
	}
}

enum form { FORM_FILE, FORM_PIPE };

static void write_form(const struct perf_data *data, enum form form, struct buf *out)
{
	buf_init(out, OUT_MAX);
	if (form == FORM_FILE)
		perf_data_write_file(data, out);
	else
		perf_data_write_pipe(data, out);
}

/* Puts data's records into compressed ones, each with at most n_chunk bytes before packing. */
static void compress_records(struct perf_data *data, uint32_t type, size_t n_chunk,
			     bool is_frame_each)
{
	struct buf plain = data->records;
	buf_init(&data->records, OUT_MAX);
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	uint8_t *out = mem_alloc(ZSTD_compressBound(n_chunk) + 64);
	for (size_t at = 0; at < plain.size; at += n_chunk) {
		size_t n = plain.size - at < n_chunk ? plain.size - at : n_chunk;
		ZSTD_inBuffer input = {.src = plain.data + at, .size = n};
		ZSTD_outBuffer output = {.dst = out, .size = ZSTD_compressBound(n_chunk) + 64};
		size_t left = ZSTD_compressStream2(zstd, &output, &input,
						   is_frame_each ? ZSTD_e_end : ZSTD_e_flush);
		assert_int_equal(left, 0);
		perf_data_begin(data, type, 0);
		if (type == PERF_RECORD_COMPRESSED2)
			perf_data_u64(data, output.pos);
		perf_data_bytes(data, out, output.pos);
		/* The older type is not padded: its size says where the payload ends. */
		if (type == PERF_RECORD_COMPRESSED2) {
			perf_data_end(data);
			continue;
		}
		size_t begin = data->record_begin;
		size_t size = data->records.size - begin;
		data->records.data[begin + (data->is_big_endian ? 7 : 6)] = (uint8_t)size;
		data->records.data[begin + (data->is_big_endian ? 6 : 7)] = (uint8_t)(size >> 8);
	}
	mem_free(out);
	ZSTD_freeCCtx(zstd);
	buf_fini(&plain);
}

static void make_small(struct perf_data *data, bool is_big_endian)
{
	perf_data_init(data, is_big_endian);
	put_events(data);
	put_rounds(data, 4, 60);
}

static struct log *read_reference(void)
{
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	struct log *log = make_log();
	read_bytes(&out, log);
	assert_int_equal(log->n, 1 + 4 * 2 * 60);
	buf_fini(&out);
	perf_data_fini(&data);
	return log;
}

/* --- twins --- */

static void replay_orders_records_by_time(void **state)
{
	(void)state;
	struct log *log = read_reference();
	for (size_t i = 1; i < log->n; i++)
		assert_true(log->seen[i - 1].time_ns <= log->seen[i].time_ns);
	mem_free(log);
}

static void replay_gives_the_same_from_every_twin(void **state)
{
	(void)state;
	struct log *want = read_reference();
	for (int is_big = 0; is_big < 2; is_big++)
		for (enum form form = FORM_FILE; form <= FORM_PIPE; form++) {
			struct perf_data data;
			make_small(&data, is_big);
			struct buf out;
			write_form(&data, form, &out);
			struct log *got = make_log();
			read_bytes(&out, got);
			assert_same(want, got);
			mem_free(got);
			buf_fini(&out);
			perf_data_fini(&data);
		}
	mem_free(want);
}

static void replay_unpacks_compressed_twins(void **state)
{
	(void)state;
	static const size_t chunks[] = {17, 1000, 60000};
	struct log *want = read_reference();
	for (unsigned i = 0; i < 24; i++) {
		struct perf_data data;
		make_small(&data, i & 1);
		compress_records(&data, i & 2 ? PERF_RECORD_COMPRESSED2 : PERF_RECORD_COMPRESSED,
				 chunks[i / 8], i & 4);
		struct buf out;
		write_form(&data, i % 3 ? FORM_FILE : FORM_PIPE, &out);
		struct log *got = make_log();
		read_bytes(&out, got);
		assert_same(want, got);
		mem_free(got);
		buf_fini(&out);
		perf_data_fini(&data);
	}
	mem_free(want);
}

struct feed {
	int fd;
	const struct buf *bytes;
};

static void *feed_pipe(void *context)
{
	const struct feed *feed = context;
	error_free(file_write(feed->fd, feed->bytes->data, feed->bytes->size));
	close(feed->fd);
	return NULL;
}

static void replay_reads_both_forms_from_a_pipe(void **state)
{
	(void)state;
	struct log *want = read_reference();
	for (enum form form = FORM_FILE; form <= FORM_PIPE; form++) {
		struct perf_data data;
		make_small(&data, false);
		struct buf out;
		write_form(&data, form, &out);
		int ends[2];
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		struct feed feed = {.fd = ends[1], .bytes = &out};
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, feed_pipe, &feed), 0);
		struct record_source *source = NULL;
		assert_null(replay_open_fd(ends[0], NULL, &source));
		struct log *got = make_log();
		drain_all(source, got);
		assert_same(want, got);
		const struct perf_source_info *info = record_source_info(source);
		assert_string_equal(info->events[1].name, "page-faults:u");
		assert_string_equal(info->hostname, "host");
		record_source_close(source);
		pthread_join(thread, NULL);
		close(ends[0]);
		mem_free(got);
		buf_fini(&out);
		perf_data_fini(&data);
	}
	mem_free(want);
}

static void write_file(const char *folder, const char *name, const struct buf *bytes)
{
	char *path = mem_format("%s/%s", folder, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_null(file_write(fd, bytes->data, bytes->size));
	close(fd);
	mem_free(path);
}

static void remove_file(const char *folder, const char *name)
{
	char *path = mem_format("%s/%s", folder, name);
	unlink(path);
	mem_free(path);
}

/* What perf record --threads writes: one file per CPU, no rounds. */
static void replay_merges_the_files_of_a_folder(void **state)
{
	(void)state;
	struct log *want = read_reference();
	char folder[] = "/tmp/replay-test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	for (int is_packed = 0; is_packed < 2; is_packed++) {
		struct perf_data data;
		perf_data_init(&data, false);
		put_events(&data);
		put_comm(&data, 0, 0);
		struct buf out;
		write_form(&data, FORM_FILE, &out);
		write_file(folder, "data", &out);
		buf_fini(&out);
		perf_data_fini(&data);
		for (uint64_t cpu = 0; cpu < IDS; cpu++) {
			perf_data_init(&data, false);
			for (uint64_t round = 1; round <= 4; round++)
				put_chunk(&data, round, cpu, 60);
			if (is_packed)
				compress_records(&data, PERF_RECORD_COMPRESSED2, 500, false);
			write_file(folder, cpu ? "data.10" : "data.2", &data.records);
			perf_data_fini(&data);
		}
		struct record_source *source = NULL;
		assert_null(collector_open_file(folder, NULL, &source));
		assert_true(collector_file_format(source)->is_directory);
		struct log *got = make_log();
		drain_all(source, got);
		assert_same(want, got);
		record_source_close(source);
		mem_free(got);
		remove_file(folder, "data");
		remove_file(folder, "data.2");
		remove_file(folder, "data.10");
	}
	rmdir(folder);
	mem_free(want);
}

static void replay_keeps_file_order_when_an_event_has_no_time(void **state)
{
	(void)state;
	struct perf_event_attr attr = make_attr(PERF_COUNT_SW_CPU_CLOCK);
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, 0);
	struct perf_data data;
	perf_data_init(&data, false);
	perf_data_add_event(&data, &attr, 100, 1);
	put_sample(&data, 100, 50, 0);
	put_sample(&data, 100, 40, 0);
	put_mark(&data, PERF_RECORD_FINISHED_ROUND);
	put_sample(&data, 100, 30, 0);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	struct log *log = make_log();
	read_bytes(&out, log);
	assert_int_equal(log->n, 3);
	assert_int_equal(log->seen[0].time_ns, 50);
	assert_int_equal(log->seen[2].time_ns, 30);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

/* --- what describes the recording --- */

static void replay_takes_names_and_units_from_updates(void **state)
{
	(void)state;
	const struct perf_event_attr attr = make_attr(PERF_COUNT_SW_CPU_CLOCK);
	for (int is_big = 0; is_big < 2; is_big++) {
		struct perf_data data;
		perf_data_init(&data, is_big);
		perf_data_add_event(&data, &attr, 100, 1);
		static const char *const texts[] = {"Joules", "", "power/energy/"};
		for (uint64_t kind = 0; kind < 3; kind++) {
			perf_data_begin(&data, PERF_RECORD_EVENT_UPDATE, 0);
			perf_data_u64(&data, kind);
			perf_data_u64(&data, 100);
			if (kind == 1)
				perf_data_u64(&data, 0x3fe0000000000000); /* 0.5 */
			else
				perf_data_text(&data, texts[kind]);
			perf_data_end(&data);
		}
		perf_data_begin(&data, PERF_RECORD_EVENT_UPDATE, 0);
		perf_data_u64(&data, 2);
		perf_data_u64(&data, 999); /* nobody's */
		perf_data_bytes(&data, "no end: ", 8);
		perf_data_end(&data);
		struct buf out;
		write_form(&data, FORM_PIPE, &out);
		int fd;
		struct record_source *source = open_bytes(out.data, out.size, &fd);
		struct log *log = make_log();
		drain_all(source, log);
		const struct perf_event_info *event = record_source_info(source)->events;
		assert_string_equal(event->name, "power/energy/");
		assert_true(event->is_name_from_file);
		assert_string_equal(event->unit, "Joules");
		assert_true(event->scale == 0.5);
		mem_free(log);
		record_source_close(source);
		close(fd);
		buf_fini(&out);
		perf_data_fini(&data);
	}
}

/* FR-67: the order of metadata differs between writers. */
static void replay_accepts_names_that_come_before_their_events(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	struct buf plain;
	write_form(&data, FORM_PIPE, &plain);
	/* magic, two attrs of 8 + 144 + 16 bytes, features: the attrs go behind the features. */
	enum { HEAD = 16, ATTRS = 2 * (8 + 144 + 8 * IDS) };
	size_t n_rest = data.records.size;
	size_t n_features = plain.size - HEAD - ATTRS - n_rest;
	struct buf out;
	buf_init(&out, OUT_MAX);
	assert_null(buf_append(&out, plain.data, HEAD));
	assert_null(buf_append(&out, plain.data + HEAD + ATTRS, n_features));
	assert_null(buf_append(&out, plain.data + HEAD, ATTRS));
	assert_null(buf_append(&out, plain.data + HEAD + ATTRS + n_features, n_rest));
	int fd;
	struct record_source *source = open_bytes(out.data, out.size, &fd);
	struct log *log = make_log();
	drain_all(source, log);
	assert_string_equal(record_source_info(source)->events[0].name, "cpu-clock:u");
	assert_string_equal(record_source_info(source)->events[1].name, "page-faults:u");
	mem_free(log);
	record_source_close(source);
	close(fd);
	buf_fini(&plain);
	buf_fini(&out);
	perf_data_fini(&data);
}

/* The payload looks like records, and its size is not part of the record's. */
static void put_payload(struct perf_data *data, size_t n)
{
	for (size_t i = 0; i < n / 32; i++)
		put_sample(data, 100, 1, 0);
}

static void replay_skips_payloads_behind_records(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct perf_data data;
		perf_data_init(&data, i & 1);
		put_events(&data);
		put_sample(&data, 100, 1000, 0);
		perf_data_begin(&data, PERF_RECORD_AUXTRACE, 0);
		perf_data_u64(&data, 1 << 20);
		for (int j = 0; j < 4; j++)
			perf_data_u64(&data, 0);
		perf_data_end(&data);
		put_payload(&data, 1 << 20);
		perf_data_begin(&data, PERF_RECORD_HEADER_TRACING_DATA, 0);
		perf_data_u32(&data, 60); /* and padding up to 64 */
		data.records.size = data.record_begin + 12;
		perf_data_end(&data);
		data.records.size = data.record_begin + 12;
		data.records.data[data.record_begin + (i & 1 ? 7 : 6)] = 12;
		put_payload(&data, 64);
		put_sample(&data, 100, 2000, 0);
		struct buf out;
		write_form(&data, i & 2 ? FORM_FILE : FORM_PIPE, &out);
		struct log *log = make_log();
		read_bytes(&out, log);
		assert_int_equal(log->n, 2);
		assert_int_equal(log->seen[1].time_ns, 2000);
		mem_free(log);
		buf_fini(&out);
		perf_data_fini(&data);
	}
}

static void replay_makes_long_records_whole_across_blocks(void **state)
{
	(void)state;
	enum { RECORDS = 400, EXTRA = 8000 };
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	for (uint64_t i = 0; i < RECORDS; i++)
		put_sample(&data, 100, 1000 + i, EXTRA - i % 13);
	for (enum form form = FORM_FILE; form <= FORM_PIPE; form++) {
		struct buf out;
		write_form(&data, form, &out);
		struct log *log = make_log();
		read_bytes(&out, log);
		assert_int_equal(log->n, RECORDS);
		for (size_t i = 0; i < RECORDS; i++)
			assert_int_equal(log->seen[i].time_ns, 1000 + i);
		mem_free(log);
		buf_fini(&out);
	}
	perf_data_fini(&data);
}

static void replay_skips_and_counts_unknown_records(void **state)
{
	(void)state;
	stats_reset();
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	put_sample(&data, 100, 1000, 0);
	for (uint32_t type = 200; type < 240; type++)
		put_mark(&data, type);
	put_mark(&data, 40000);
	put_sample(&data, 100, 2000, 0);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	int fd;
	struct record_source *source = open_bytes(out.data, out.size, &fd);
	struct log *log = make_log();
	drain_all(source, log);
	assert_int_equal(log->n, 2);
	size_t n;
	const struct collector_warning *warnings = collector_file_warnings(source, &n);
	assert_int_equal(n, 1);
	assert_int_equal(warnings[0].number, 602);
	assert_non_null(strstr(warnings[0].text, "1 of type 200"));
	assert_non_null(strstr(warnings[0].text, "25 of other types"));
	assert_int_equal(stats_get(STAT_RECORDS_UNKNOWN), 41);
	mem_free(log);
	record_source_close(source);
	close(fd);
	buf_fini(&out);
	perf_data_fini(&data);
}

/* --- damage --- */

/* Reads what may be damaged: nothing is expected but an end; the number of its error, or 0. */
static int read_anything(const void *bytes, size_t n, struct log *log, size_t *n_warnings)
{
	int fd = perf_data_open_bytes(bytes, n);
	struct record_source *source = NULL;
	struct error *err = replay_open_fd(fd, NULL, &source);
	int number = err ? error_get_number(err) : 0;
	*n_warnings = 0;
	if (!err) {
		err = record_source_drain(source, note, log);
		number = error_get_number(err);
		assert_true(number != 0 || error_get_code(err) == ERROR_NO_ENTRY);
		collector_file_warnings(source, n_warnings);
		record_source_close(source);
	}
	error_free(err);
	close(fd);
	return number;
}

static void replay_reads_the_intact_part_of_a_file_cut_anywhere(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct perf_data data;
		perf_data_init(&data, i & 1);
		put_events(&data);
		put_rounds(&data, 2, 10);
		struct buf out;
		write_form(&data, i & 2 ? FORM_PIPE : FORM_FILE, &out);
		size_t last = 0;
		for (size_t n = 0; n < out.size; n++) {
			struct log *log = make_log();
			size_t n_warnings;
			int number = read_anything(out.data, n, log, &n_warnings);
			/* Longer input never gives less, and whatever is missing is said. */
			assert_true(log->n >= last);
			assert_true(n_warnings <= 1 || number != 0);
			last = log->n;
			if (!(i & 2))
				assert_true(number != 0 || n_warnings == 1);
			mem_free(log);
		}
		assert_int_equal(last, 1 + 2 * 2 * 10);
		buf_fini(&out);
		perf_data_fini(&data);
	}
}

static void replay_names_what_is_missing_of_a_cut_file(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	int fd;
	struct record_source *source = open_bytes(out.data, 5000, &fd);
	struct log *log = make_log();
	drain_all(source, log);
	assert_true(log->n_samples > 0);
	size_t n;
	const struct collector_warning *warnings = collector_file_warnings(source, &n);
	assert_int_equal(n, 1);
	assert_int_equal(warnings[0].number, 601);
	assert_true(warnings[0].is_damage);
	assert_non_null(strstr(warnings[0].text, "available are 5000"));
	assert_non_null(collector_file_format(source)->stream_stopped);
	mem_free(log);
	record_source_close(source);
	close(fd);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_recovers_a_recording_whose_recorder_was_killed(void **state)
{
	(void)state;
	struct log *want = read_reference();
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	memset(out.data + 48, 0, 8);
	size_t n_bytes = out.size;
	for (size_t i = 0; i < data.n_features; i++)
		n_bytes -= 16 + data.features[i].payload.size;
	int fd;
	struct record_source *source = open_bytes(out.data, n_bytes, &fd);
	struct log *log = make_log();
	drain_all(source, log);
	assert_same(want, log);
	size_t n;
	const struct collector_warning *warnings = collector_file_warnings(source, &n);
	assert_int_equal(n, 1);
	assert_non_null(strstr(warnings[0].text, "not finished"));
	mem_free(log);
	record_source_close(source);
	close(fd);
	buf_fini(&out);
	perf_data_fini(&data);
	mem_free(want);
}

/* The table of features was left for later, and what stands behind it is no record. */
static void replay_ends_an_unfinished_recording_at_the_hole_of_its_table(void **state)
{
	(void)state;
	struct log *want = read_reference();
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	size_t n_tail = 16 * data.n_features;
	for (size_t i = 0; i < data.n_features; i++)
		n_tail += data.features[i].payload.size;
	memset(out.data + 48, 0, 8);
	memset(out.data + out.size - n_tail, 0, 16 * data.n_features);
	int fd;
	struct record_source *source = open_bytes(out.data, out.size, &fd);
	struct log *log = make_log();
	drain_all(source, log);
	assert_same(want, log);
	size_t n;
	const struct collector_warning *warnings = collector_file_warnings(source, &n);
	assert_int_equal(n, 1);
	assert_non_null(strstr(warnings[0].text, "not finished"));
	mem_free(log);
	record_source_close(source);
	close(fd);
	buf_fini(&out);
	perf_data_fini(&data);
	mem_free(want);
}

static void replay_refuses_a_record_of_size_0_after_what_came_before(void **state)
{
	(void)state;
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	put_sample(&data, 100, 1000, 0);
	put_mark(&data, PERF_RECORD_SAMPLE);
	data.records.data[data.record_begin + 6] = 0;
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 601);
	assert_int_equal(log->n_samples, 1);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_refuses_damage_before_the_first_sample(void **state)
{
	(void)state;
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	put_comm(&data, 0, 0);
	put_mark(&data, PERF_RECORD_SAMPLE);
	data.records.data[data.record_begin + 7] = 0xff;
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 601);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_does_not_follow_absurd_payload_sizes(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {UINT64_MAX, 1ull << 63, (1ull << 63) - 1, 1ull << 40};
	for (unsigned i = 0; i < 8; i++) {
		struct perf_data data;
		perf_data_init(&data, false);
		put_events(&data);
		put_sample(&data, 100, 1000, 0);
		perf_data_begin(&data, PERF_RECORD_AUXTRACE, 0);
		perf_data_u64(&data, sizes[i / 2]);
		perf_data_end(&data);
		put_sample(&data, 100, 2000, 0);
		struct buf out;
		write_form(&data, i & 1 ? FORM_PIPE : FORM_FILE, &out);
		struct log *log = make_log();
		size_t n_warnings;
		assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 0);
		assert_int_equal(n_warnings, 1);
		assert_int_equal(log->n_samples, 1);
		mem_free(log);
		buf_fini(&out);
		perf_data_fini(&data);
	}
}

static void replay_calls_damaged_compression_by_its_name(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	compress_records(&data, PERF_RECORD_COMPRESSED2, 2000, true);
	memset(data.records.data + data.record_begin + 16, 0x5a, 20);
	struct buf out;
	write_form(&data, FORM_PIPE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 605);
	assert_true(log->n_samples > 0);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_stops_a_decompression_bomb(void **state)
{
	(void)state;
	enum { RECORDS = 1 << 20, REPEATS = 40 };
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	struct perf_data marks;
	perf_data_init(&marks, false);
	for (int i = 0; i < RECORDS; i++)
		put_mark(&marks, PERF_RECORD_THREAD_MAP);
	size_t bound = ZSTD_compressBound(marks.records.size);
	uint8_t *packed = mem_alloc(bound);
	size_t n = ZSTD_compress(packed, bound, marks.records.data, marks.records.size, 19);
	assert_true(n < 8 << 10);
	for (int i = 0; i < REPEATS; i++) {
		perf_data_begin(&data, PERF_RECORD_COMPRESSED2, 0);
		perf_data_u64(&data, n);
		perf_data_bytes(&data, packed, n);
		perf_data_end(&data);
	}
	struct buf out;
	write_form(&data, FORM_PIPE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	int number = read_anything(out.data, out.size, log, &n_warnings);
	assert_int_equal(number, 605);
	assert_true(log->n_others < RECORDS * REPEATS);
	mem_free(log);
	mem_free(packed);
	buf_fini(&out);
	perf_data_fini(&marks);
	perf_data_fini(&data);
}

static void replay_refuses_compressed_records_inside_one_another(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	compress_records(&data, PERF_RECORD_COMPRESSED2, 500, true);
	compress_records(&data, PERF_RECORD_COMPRESSED2, 500, true);
	struct buf out;
	write_form(&data, FORM_PIPE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 605);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_tells_a_pipe_of_another_perf(void **state)
{
	(void)state;
	struct perf_data data;
	perf_data_init(&data, true);
	perf_data_begin(&data, PERF_RECORD_ID_INDEX, 0);
	perf_data_text(&data, "platforms-power7b");
	perf_data_end(&data);
	struct buf out;
	write_form(&data, FORM_PIPE, &out);
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 608);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_survives_random_flips(void **state)
{
	(void)state;
	unsigned random = 1;
	for (unsigned i = 0; i < 2000; i++) {
		struct perf_data data;
		perf_data_init(&data, i & 1);
		put_events(&data);
		put_rounds(&data, 2, 10);
		if (i & 4)
			compress_records(&data, PERF_RECORD_COMPRESSED, 300, i & 8);
		struct buf out;
		write_form(&data, i & 2 ? FORM_PIPE : FORM_FILE, &out);
		for (unsigned j = 0; j < 1 + i % 5; j++)
			out.data[(size_t)rand_r(&random) % out.size] ^=
				(uint8_t)(1 << rand_r(&random) % 8);
		struct log *log = make_log();
		size_t n_warnings;
		read_anything(out.data, out.size, log, &n_warnings);
		mem_free(log);
		buf_fini(&out);
		perf_data_fini(&data);
	}
}

/* --- bounds --- */

static void replay_reads_a_million_tiny_records_in_little_memory(void **state)
{
	(void)state;
	enum { RECORDS = 1000000 };
	struct perf_data data;
	perf_data_init(&data, false);
	put_events(&data);
	for (int i = 0; i < RECORDS; i++)
		put_mark(&data, PERF_RECORD_SAMPLE);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	size_t before = mem_resident_bytes();
	struct log *log = make_log();
	size_t n_warnings;
	assert_int_equal(read_anything(out.data, out.size, log, &n_warnings), 0);
	assert_int_equal(log->n_samples, RECORDS);
	assert_true(mem_resident_bytes() < before + (96 << 20));
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_passes_the_sinks_error_on(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	int fd;
	struct record_source *source = open_bytes(out.data, out.size, &fd);
	struct log *log = make_log();
	log->fail_at = 1;
	struct error *err = record_source_drain(source, note, log);
	assert_int_equal(error_get_code(err), ERROR_CANCELLED);
	assert_int_equal(log->n_calls, 1);
	error_free(err);
	record_source_close(source);
	close(fd);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

struct seen_progress {
	uint64_t done;
	uint64_t total;
};

static void note_progress(void *context, uint64_t done, uint64_t total)
{
	struct seen_progress *seen = context;
	assert_true(done >= seen->done);
	seen->done = done;
	seen->total = total;
}

static void replay_reports_its_progress(void **state)
{
	(void)state;
	struct perf_data data;
	make_small(&data, false);
	struct buf out;
	write_form(&data, FORM_FILE, &out);
	int fd = perf_data_open_bytes(out.data, out.size);
	struct seen_progress seen = {0};
	const struct collector_file_options options = {.progress = note_progress,
						       .progress_context = &seen};
	struct record_source *source = NULL;
	assert_null(replay_open_fd(fd, &options, &source));
	struct log *log = make_log();
	drain_all(source, log);
	assert_int_equal(seen.done, data.records.size);
	assert_int_equal(seen.total, out.size);
	struct error *err = record_source_drain(source, note, log);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	record_source_close(source);
	close(fd);
	mem_free(log);
	buf_fini(&out);
	perf_data_fini(&data);
}

static void replay_says_which_path_is_wrong(void **state)
{
	(void)state;
	struct record_source *source = NULL;
	struct error *err = collector_open_file("/nonexistent/perf.data", NULL, &source);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	assert_non_null(strstr(error_text(err), "/nonexistent/perf.data"));
	error_free(err);
	err = collector_open_file("/", NULL, &source);
	assert_int_equal(error_get_number(err), 603);
	error_free(err);
	err = collector_open_file("/dev/null", NULL, &source);
	assert_int_equal(error_get_number(err), 604);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_orders_records_by_time),
		cmocka_unit_test(replay_gives_the_same_from_every_twin),
		cmocka_unit_test(replay_unpacks_compressed_twins),
		cmocka_unit_test(replay_reads_both_forms_from_a_pipe),
		cmocka_unit_test(replay_merges_the_files_of_a_folder),
		cmocka_unit_test(replay_keeps_file_order_when_an_event_has_no_time),
		cmocka_unit_test(replay_takes_names_and_units_from_updates),
		cmocka_unit_test(replay_accepts_names_that_come_before_their_events),
		cmocka_unit_test(replay_skips_payloads_behind_records),
		cmocka_unit_test(replay_makes_long_records_whole_across_blocks),
		cmocka_unit_test(replay_skips_and_counts_unknown_records),
		cmocka_unit_test(replay_reads_the_intact_part_of_a_file_cut_anywhere),
		cmocka_unit_test(replay_names_what_is_missing_of_a_cut_file),
		cmocka_unit_test(replay_recovers_a_recording_whose_recorder_was_killed),
		cmocka_unit_test(replay_ends_an_unfinished_recording_at_the_hole_of_its_table),
		cmocka_unit_test(replay_refuses_a_record_of_size_0_after_what_came_before),
		cmocka_unit_test(replay_refuses_damage_before_the_first_sample),
		cmocka_unit_test(replay_does_not_follow_absurd_payload_sizes),
		cmocka_unit_test(replay_calls_damaged_compression_by_its_name),
		cmocka_unit_test(replay_stops_a_decompression_bomb),
		cmocka_unit_test(replay_refuses_compressed_records_inside_one_another),
		cmocka_unit_test(replay_tells_a_pipe_of_another_perf),
		cmocka_unit_test(replay_survives_random_flips),
		cmocka_unit_test(replay_reads_a_million_tiny_records_in_little_memory),
		cmocka_unit_test(replay_passes_the_sinks_error_on),
		cmocka_unit_test(replay_reports_its_progress),
		cmocka_unit_test(replay_says_which_path_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
