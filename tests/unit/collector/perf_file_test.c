/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "collector/perf_features.h"
#include "collector/perf_file.h"
#include "tests/support/perf_data_writer.h"

enum { OUT_MAX = 64 << 20 };

static struct perf_event_attr clock_attr(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 99,
				       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_ID,
				       .read_format = PERF_FORMAT_ID,
				       .clockid = 1};
	perf_attr_set(&attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	perf_attr_set(&attr, PERF_ATTR_USE_CLOCKID, 1);
	perf_attr_set(&attr, PERF_ATTR_BUILD_ID, 1);
	return attr;
}

/* With a record: data of no size would mean that the recorder was killed. */
static void init_data(struct perf_data *data, bool is_big_endian)
{
	perf_data_init(data, is_big_endian);
	perf_data_begin(data, PERF_RECORD_FINISHED_ROUND, 0);
	perf_data_end(data);
}

/* Reads bytes as a file; the caller ends file with perf_file_fini whatever comes back. */
static struct error *read_bytes(struct perf_file *file, const void *bytes, size_t n)
{
	perf_file_init(file);
	struct error *err = perf_file_read_head(file, bytes, n < 16 ? n : 16);
	if (err || file->format.is_pipe)
		return err;
	int fd = perf_data_open_bytes(bytes, n);
	file->size = n;
	err = perf_file_read_header(file, fd);
	close(fd);
	return err;
}

static void read_data(struct perf_file *file, const struct perf_data *data)
{
	struct buf out;
	buf_init(&out, OUT_MAX);
	perf_data_write_file(data, &out);
	assert_null(read_bytes(file, out.data, out.size));
	buf_fini(&out);
}

static void assert_refused(const void *bytes, size_t n, int number, const char *text)
{
	struct perf_file file;
	struct error *err = read_bytes(&file, bytes, n);
	assert_non_null(err);
	assert_int_equal(error_get_number(err), number);
	assert_non_null(strstr(error_text(err), text));
	error_free(err);
	perf_file_fini(&file);
}

static void perf_file_says_what_a_wrong_file_is(void **state)
{
	(void)state;
	assert_refused("", 0, 604, "empty");
	assert_refused("PERFFILE\0\0\0\0\0\0\0\0", 16, 603, "perf.data version 1");
	assert_refused("\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 603, "gzip");
	assert_refused("\x7f"
		       "ELF\2\1\1\0\0\0\0\0\0\0\0\0",
		       16, 603, "ELF");
	assert_refused("hello world, how", 16, 603, "text");
	assert_refused("\1\2\3\4\5\6\7\x88\1\2\3\4\5\6\7\x88", 16, 603, "PERFILE2");
	assert_refused("PERFILE2", 8, 601, "truncated header");
}

static void perf_file_reads_attrs_of_both_byte_orders_alike(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	for (int is_big = 0; is_big < 2; is_big++) {
		struct perf_data data;
		init_data(&data, is_big);
		perf_data_add_event(&data, &attr, 100, 3);
		struct perf_file file;
		read_data(&file, &data);
		assert_int_equal(file.format.is_big_endian, is_big);
		assert_int_equal(file.info.n_events, 1);
		const struct perf_event_info *event = &file.info.events[0];
		struct perf_event_attr got = event->attr;
		got.size = 0;
		assert_memory_equal(&got, &attr, sizeof(attr));
		assert_int_equal(event->n_ids, 3);
		assert_int_equal(event->ids[2], 102);
		assert_int_equal(event->attr_size, PERF_ATTR_SIZE_VER9);
		assert_string_equal(event->name, "cpu-clock");
		assert_false(event->is_name_from_file);
		assert_int_equal(file.info.clockid, 1);
		perf_file_fini(&file);
		perf_data_fini(&data);
	}
}

static void perf_file_takes_attrs_of_any_size(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {64, 72, 80, 96, 112, 120, 128, 136, 144, 152, 512};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct perf_event_attr attr = clock_attr();
		attr.config1 = 77;
		struct perf_data data;
		init_data(&data, i % 2);
		data.attr_size = sizes[i];
		perf_data_add_event(&data, &attr, 5, 2);
		perf_data_add_event(&data, &attr, 7, 1);
		struct perf_file file;
		read_data(&file, &data);
		assert_int_equal(file.info.n_events, 2);
		assert_int_equal(file.info.events[1].ids[0], 7);
		assert_int_equal(file.info.events[1].attr.config1, 77);
		assert_int_equal(file.info.events[1].attr_size, sizes[i]);
		perf_file_fini(&file);
		perf_data_fini(&data);
	}
}

static void add_all_features(struct perf_data *data)
{
	static const char *const names[] = {"cpu-clock:u", "dummy:HG"};
	perf_data_add_text_feature(data, PERF_FEATURE_HOSTNAME, "host");
	perf_data_add_text_feature(data, PERF_FEATURE_OSRELEASE, "6.1.0");
	perf_data_add_text_feature(data, PERF_FEATURE_VERSION, "7.2");
	perf_data_add_text_feature(data, PERF_FEATURE_ARCH, "s390x");
	struct buf *buf = perf_data_add_feature(data, PERF_FEATURE_NRCPUS);
	perf_data_put_u32(data, buf, 8);
	perf_data_put_u32(data, buf, 6);
	buf = perf_data_add_feature(data, PERF_FEATURE_TOTAL_MEM);
	perf_data_put_u64(data, buf, 1 << 20);
	buf = perf_data_add_feature(data, PERF_FEATURE_CMDLINE);
	perf_data_put_u32(data, buf, 2);
	perf_data_put_text(data, buf, "perf");
	perf_data_put_text(data, buf, "record");
	perf_data_add_event_desc(data, names);
	buf = perf_data_add_feature(data, PERF_FEATURE_GROUP_DESC);
	perf_data_put_u32(data, buf, 1);
	perf_data_put_text(data, buf, "{group}");
	perf_data_put_u32(data, buf, 0);
	perf_data_put_u32(data, buf, 2);
	buf = perf_data_add_feature(data, PERF_FEATURE_SAMPLE_TIME);
	perf_data_put_u64(data, buf, 1000);
	perf_data_put_u64(data, buf, 2000);
	buf = perf_data_add_feature(data, PERF_FEATURE_CLOCK_DATA);
	perf_data_put_u32(data, buf, 1);
	perf_data_put_u32(data, buf, 4);
	perf_data_put_u64(data, buf, 1700000000000000000);
	perf_data_put_u64(data, buf, 5000);
}

static void perf_file_decodes_features_of_both_byte_orders(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	for (int is_big = 0; is_big < 2; is_big++) {
		struct perf_data data;
		init_data(&data, is_big);
		perf_data_add_event(&data, &attr, 1, 1);
		perf_data_add_event(&data, &attr, 2, 1);
		add_all_features(&data);
		struct perf_file file;
		read_data(&file, &data);
		const struct perf_source_info *info = &file.info;
		assert_string_equal(info->hostname, "host");
		assert_string_equal(info->os_release, "6.1.0");
		assert_string_equal(info->perf_version, "7.2");
		assert_string_equal(info->arch, "s390x");
		assert_string_equal(info->cmdline, "perf record");
		assert_int_equal(info->n_cpus_available, 8);
		assert_int_equal(info->n_cpus_online, 6);
		assert_int_equal(info->total_memory_kib, 1 << 20);
		assert_string_equal(info->events[0].name, "cpu-clock:u");
		assert_true(info->events[1].is_name_from_file);
		assert_int_equal(info->events[1].leader, 0);
		assert_int_equal(info->first_sample_ns, 1000);
		assert_int_equal(info->last_sample_ns, 2000);
		assert_int_equal(info->clockid, 4);
		assert_true(info->has_clock_pair);
		assert_int_equal(info->clock_pair_event_ns, 5000);
		assert_int_equal(file.format.n_features, data.n_features);
		assert_int_equal(file.n_warnings, 0);
		perf_file_fini(&file);
		perf_data_fini(&data);
	}
}

static void perf_file_reads_feature_bits_of_32_bit_big_endian_hosts(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, true);
	perf_data_add_event(&data, &attr, 1, 1);
	perf_data_add_text_feature(&data, PERF_FEATURE_HOSTNAME, "old");
	struct buf out;
	buf_init(&out, OUT_MAX);
	perf_data_write_file(&data, &out);
	uint8_t high[4];
	memcpy(high, out.data + 72, 4);
	memcpy(out.data + 72, out.data + 76, 4);
	memcpy(out.data + 76, high, 4);
	struct perf_file file;
	assert_null(read_bytes(&file, out.data, out.size));
	assert_string_equal(file.info.hostname, "old");
	perf_file_fini(&file);
	buf_fini(&out);
	perf_data_fini(&data);
}

/* One entry as perf writes it; without a pid in the oldest form. */
static void put_build_id(const struct perf_data *data, struct buf *buf, bool has_pid, uint16_t misc,
			 uint8_t size, const char *name)
{
	uint8_t id[24] = {0};
	size_t n = (strlen(name) + 8) & ~7ul;
	for (size_t i = 0; i < 20; i++)
		id[i] = i < size ? (uint8_t)(0xa0 + i) : 0;
	if (misc & PERF_RECORD_MISC_BUILD_ID_SIZE)
		id[20] = size;
	perf_data_put_u32(data, buf, PERF_RECORD_HEADER_BUILD_ID);
	perf_data_put_u16(data, buf, misc);
	perf_data_put_u16(data, buf, (uint16_t)(8 + 4 * has_pid + sizeof(id) + n));
	if (has_pid)
		perf_data_put_u32(data, buf, UINT32_MAX);
	assert_null(buf_append(buf, id, sizeof(id)));
	char padded[64] = {0};
	memcpy(padded, name, strlen(name));
	assert_null(buf_append(buf, padded, n));
}

static void perf_file_reads_build_ids_of_old_and_new_layout(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	for (int is_big = 0; is_big < 2; is_big++)
		for (int has_pid = 0; has_pid < 2; has_pid++) {
			struct perf_data data;
			init_data(&data, is_big);
			perf_data_add_event(&data, &attr, 1, 1);
			struct buf *buf = perf_data_add_feature(&data, PERF_FEATURE_BUILD_ID);
			put_build_id(&data, buf, has_pid, 1, 20, "[kernel.kallsyms]");
			/* The size bit came long after the pid. */
			uint16_t misc = has_pid ? PERF_RECORD_MISC_BUILD_ID_SIZE : 0;
			uint8_t size = has_pid ? 16 : 20;
			put_build_id(&data, buf, has_pid, misc, size, "/usr/bin/app");
			struct perf_file file;
			read_data(&file, &data);
			assert_int_equal(file.n_warnings, 0);
			assert_int_equal(file.info.n_build_ids, 2);
			const struct perf_build_id_entry *entry = file.info.build_ids;
			assert_int_equal(entry[0].pid, -1);
			assert_string_equal(entry[0].filename, "[kernel.kallsyms]");
			assert_int_equal(entry[0].id.size, 20);
			assert_int_equal(entry[0].id.bytes[19], 0xa0 + 19);
			assert_string_equal(entry[1].filename, "/usr/bin/app");
			assert_int_equal(entry[1].id.size, size);
			perf_file_fini(&file);
			perf_data_fini(&data);
		}
}

static void perf_file_drops_a_misaligned_build_id_table_with_one_warning(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, 1);
	struct buf *buf = perf_data_add_feature(&data, PERF_FEATURE_BUILD_ID);
	for (int i = 0; i < 5; i++)
		put_build_id(&data, buf, true, 2, 20, "/usr/bin/app");
	memmove(buf->data + 61, buf->data + 60, buf->size - 61);
	perf_data_add_text_feature(&data, PERF_FEATURE_HOSTNAME, "host");
	struct perf_file file;
	read_data(&file, &data);
	assert_int_equal(file.info.n_build_ids, 0);
	assert_int_equal(file.n_warnings, 1);
	assert_int_equal(file.warnings[0].number, 601);
	assert_non_null(strstr(file.warnings[0].text, "BUILD_ID at byte"));
	assert_string_equal(file.info.hostname, "host");
	perf_file_fini(&file);
	perf_data_fini(&data);
}

static void perf_file_ends_names_that_do_not_end(void **state)
{
	(void)state;
	enum { NAME_BYTES = 100000 };
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, 1);
	struct buf *buf = perf_data_add_feature(&data, PERF_FEATURE_HOSTNAME);
	perf_data_put_u32(&data, buf, NAME_BYTES);
	for (int i = 0; i < NAME_BYTES; i++)
		assert_null(buf_append(buf, "x", 1));
	buf = perf_data_add_feature(&data, PERF_FEATURE_OSRELEASE);
	perf_data_put_u32(&data, buf, UINT32_MAX);
	struct perf_file file;
	read_data(&file, &data);
	assert_int_equal(strlen(file.info.hostname), 4096);
	assert_null(file.info.os_release);
	assert_int_equal(file.n_warnings, 1);
	assert_non_null(strstr(file.warnings[0].text, "OSRELEASE"));
	perf_file_fini(&file);
	perf_data_fini(&data);
}

static void perf_file_names_unknown_features_once(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, 1);
	perf_data_add_text_feature(&data, PERF_FEATURE_HOSTNAME, "host");
	perf_data_add_text_feature(&data, 129, "x");
	perf_data_add_text_feature(&data, 200, "y");
	struct perf_file file;
	read_data(&file, &data);
	assert_int_equal(file.n_warnings, 0);
	perf_file_warn_skipped(&file);
	assert_int_equal(file.n_warnings, 1);
	assert_int_equal(file.warnings[0].number, 602);
	assert_false(file.warnings[0].is_damage);
	assert_non_null(strstr(file.warnings[0].text, "129, 200"));
	assert_null(collector_feature_name(129));
	assert_string_equal(collector_feature_name(PERF_FEATURE_HOSTNAME), "HOSTNAME");
	perf_file_fini(&file);
	perf_data_fini(&data);
}

/* Each u64 of header and attr entry in turn; a refusal must be numbered, nothing may break. */
static void perf_file_survives_absurd_sizes_anywhere_in_its_header(void **state)
{
	(void)state;
	static const uint64_t values[] = {0,	      1,	  7,	      15,
					  UINT32_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 15};
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, 2);
	perf_data_add_event(&data, &attr, 3, 2);
	add_all_features(&data);
	struct buf out;
	buf_init(&out, OUT_MAX);
	perf_data_write_file(&data, &out);
	for (size_t at = 8; at + 8 <= out.size; at += 8)
		for (size_t i = 0; i < ARRAY_LEN(values); i++) {
			uint64_t old;
			memcpy(&old, out.data + at, 8);
			memcpy(out.data + at, &values[i], 8);
			struct perf_file file;
			struct error *err = read_bytes(&file, out.data, out.size);
			if (err)
				assert_int_equal(error_get_number(err), 601);
			error_free(err);
			perf_file_fini(&file);
			memcpy(out.data + at, &old, 8);
		}
	buf_fini(&out);
	perf_data_fini(&data);
}

static void perf_file_refuses_more_ids_than_its_cap_at_once(void **state)
{
	(void)state;
	/* All attrs point at one list of ids: cheap to write, dear to load. */
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, PERF_FILE_IDS_MAX / 2);
	for (int i = 0; i < 3; i++)
		perf_data_add_event(&data, &attr, 1, 0);
	struct buf out;
	buf_init(&out, OUT_MAX);
	perf_data_write_file(&data, &out);
	uint64_t attrs_offset = 104 + 8ull * (PERF_FILE_IDS_MAX / 2);
	for (uint64_t i = 1; i < 4; i++) {
		const uint64_t section[2] = {104, 8ull * (PERF_FILE_IDS_MAX / 2)};
		memcpy(out.data + attrs_offset + i * 160 + 144, section, sizeof(section));
	}
	assert_refused(out.data, out.size, 601, "event ids");
	buf_fini(&out);
	perf_data_fini(&data);
}

static void perf_file_reads_headers_without_feature_bits(void **state)
{
	(void)state;
	const struct perf_event_attr attr = clock_attr();
	struct perf_data data;
	init_data(&data, false);
	perf_data_add_event(&data, &attr, 1, 1);
	perf_data_add_text_feature(&data, PERF_FEATURE_HOSTNAME, "host");
	struct buf out;
	buf_init(&out, OUT_MAX);
	perf_data_write_file(&data, &out);
	out.data[8] = 72;
	struct perf_file file;
	assert_null(read_bytes(&file, out.data, out.size));
	assert_int_equal(file.format.header_size, 72);
	assert_int_equal(file.format.n_features, 0);
	assert_int_equal(file.info.n_events, 1);
	perf_file_fini(&file);
	out.data[8] = 112; /* longer ones only grow at their end */
	assert_null(read_bytes(&file, out.data, out.size));
	assert_string_equal(file.info.hostname, "host");
	perf_file_fini(&file);
	buf_fini(&out);
	perf_data_fini(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_file_says_what_a_wrong_file_is),
		cmocka_unit_test(perf_file_reads_attrs_of_both_byte_orders_alike),
		cmocka_unit_test(perf_file_takes_attrs_of_any_size),
		cmocka_unit_test(perf_file_decodes_features_of_both_byte_orders),
		cmocka_unit_test(perf_file_reads_feature_bits_of_32_bit_big_endian_hosts),
		cmocka_unit_test(perf_file_reads_build_ids_of_old_and_new_layout),
		cmocka_unit_test(perf_file_drops_a_misaligned_build_id_table_with_one_warning),
		cmocka_unit_test(perf_file_ends_names_that_do_not_end),
		cmocka_unit_test(perf_file_names_unknown_features_once),
		cmocka_unit_test(perf_file_survives_absurd_sizes_anywhere_in_its_header),
		cmocka_unit_test(perf_file_refuses_more_ids_than_its_cap_at_once),
		cmocka_unit_test(perf_file_reads_headers_without_feature_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
