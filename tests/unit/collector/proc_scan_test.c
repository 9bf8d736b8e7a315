/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/perf_abi.h"
#include "collector/perf_ring.h"
#include "collector/proc_scan.h"

enum { TRAILER = 32 };

struct map {
	uint32_t pid;
	uint64_t start, size, offset, inode;
	uint32_t major, minor, prot, flags;
	const char *name;
};

static struct map read_map(const uint8_t *record, const struct perf_event_header *header)
{
	struct cursor c = cursor_make(record + 8, header->size - 8u - TRAILER, false);
	struct map map = {.pid = cursor_u32(&c)};

	cursor_skip(&c, 4);
	map.start = cursor_u64(&c);
	map.size = cursor_u64(&c);
	map.offset = cursor_u64(&c);
	map.major = cursor_u32(&c);
	map.minor = cursor_u32(&c);
	map.inode = cursor_u64(&c);
	cursor_skip(&c, 8);
	map.prot = cursor_u32(&c);
	map.flags = cursor_u32(&c);
	map.name = cursor_string(&c, 4096);
	assert_true(cursor_is_ok(&c));
	return map;
}

static size_t write_line(struct buf *out, const char *line, struct map *map)
{
	struct record_writer writer = {.out = out, .trailer_bytes = TRAILER};
	struct perf_event_header header;
	size_t offset = 0;

	buf_clear(out);
	assert_null(proc_scan_write_map(&writer, 42, line, strlen(line)));
	const uint8_t *record = perf_ring_next(out->data, out->size, &offset, &header);
	if (record) {
		assert_int_equal(header.type, PERF_RECORD_MMAP2);
		*map = read_map(record, &header);
	}
	return out->size;
}

static void executable_mappings_become_mmap2(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct map map;

	buf_init(&out, 1 << 20);
	assert_true(
		write_line(&out,
			   "7f00a000-7f00c000 r-xp 00001000 fd:01 1234567      /usr/lib/li b.so "
			   "(deleted)",
			   &map) > 0);
	assert_int_equal(map.pid, 42);
	assert_int_equal(map.start, 0x7f00a000);
	assert_int_equal(map.size, 0x2000);
	assert_int_equal(map.offset, 0x1000);
	assert_int_equal(map.major, 0xfd);
	assert_int_equal(map.minor, 1);
	assert_int_equal(map.inode, 1234567);
	assert_int_equal(map.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(map.flags, MAP_PRIVATE);
	assert_string_equal(map.name, "/usr/lib/li b.so (deleted)");
}

static void mappings_without_code_are_marked_where_they_are_wanted(void **state)
{
	(void)state;
	static const char line[] = "1000-2000 r--p 00000000 fd:01 12    /lib/x.so";
	static const char heap[] = "3000-4000 rw-p 00000000 00:00 0     [heap]";
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out, .trailer_bytes = TRAILER};
	struct perf_event_header header;
	size_t offset = 0;

	buf_init(&out, 1 << 20);
	assert_null(proc_scan_write_map(&writer, 42, line, strlen(line)));
	assert_int_equal(out.size, 0);
	writer.has_data_maps = true;
	assert_null(proc_scan_write_map(&writer, 42, heap, strlen(heap)));
	assert_int_equal(out.size, 0);
	assert_null(proc_scan_write_map(&writer, 42, line, strlen(line)));
	assert_non_null(perf_ring_next(out.data, out.size, &offset, &header));
	assert_int_equal(header.misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
}

static void names_are_those_of_the_kernels_own_records(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct map map;

	buf_init(&out, 1 << 20);
	write_line(&out, "1000-2000 rwxp 00000000 00:00 0 ", &map);
	assert_string_equal(map.name, "//anon");
	write_line(&out, "1000-2000 rwxs 00000000 00:00 0    [anon:jit code]", &map);
	assert_string_equal(map.name, "//anon");
	assert_int_equal(map.flags, MAP_SHARED);
	write_line(&out, "1000-2000 r-xp 00000000 00:00 0    [vdso]", &map);
	assert_string_equal(map.name, "[vdso]");
	write_line(&out, "1000-2000 r-xp 00000000 08:01 5    /a\\012b", &map);
	assert_string_equal(map.name, "/a\nb");
}

static void other_lines_give_nothing(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"1000-2000 rw-p 00000000 08:01 5    /data", /* not executable */
		"",
		"garbage",
		"2000-1000 r-xp 00000000 08:01 5    /x", /* ends before it starts */
		"1000-2000 r-x",
		"1000-2000 r-xp 00000000 0801 5 /x",
	};
	struct buf out CLEANUP(buf_fini);
	struct map map;

	buf_init(&out, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(write_line(&out, lines[i], &map), 0);
}

static void own_process_is_described(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out, .trailer_bytes = TRAILER};
	struct perf_event_header header;
	struct stat st;
	const uint8_t *record;
	size_t offset = 0;
	unsigned n_comm = 0, n_fork = 0, n_namespaces = 0;
	bool has_program = false;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	buf_init(&out, 1 << 20);
	assert_null(proc_scan_process(&writer, getpid()));
	while ((record = perf_ring_next(out.data, out.size, &offset, &header))) {
		n_fork += header.type == PERF_RECORD_FORK;
		if (header.type == PERF_RECORD_FORK) {
			uint32_t ppid;
			memcpy(&ppid, record + 12, sizeof(ppid));
			assert_int_equal(ppid, getppid());
		}
		if (header.type == PERF_RECORD_COMM) {
			n_comm++;
			assert_string_equal((const char *)record + 16, "proc_scan_test");
		}
		n_namespaces += header.type == PERF_RECORD_NAMESPACES;
		if (header.type == PERF_RECORD_MMAP2)
			has_program |= read_map(record, &header).inode == st.st_ino;
	}
	assert_int_equal(offset, out.size);
	assert_int_equal(n_comm, 1);
	assert_int_equal(n_fork, 1);
	assert_int_equal(n_namespaces, 1);
	assert_true(has_program);
}

static void vanished_process_gives_nothing(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out};
	pid_t *tids;
	size_t n;

	buf_init(&out, 1 << 20);
	assert_null(proc_scan_process(&writer, 4194303));
	assert_int_equal(out.size, 0);
	proc_scan_tids(4194303, &tids, &n);
	assert_int_equal(n, 0);
	mem_free(tids);
}

static void full_buffer_is_a_limit(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out, .trailer_bytes = TRAILER};

	buf_init(&out, 200);
	struct error *err = proc_scan_process(&writer, getpid());
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	/* Only whole records are there. */
	struct perf_event_header header;
	size_t offset = 0;
	while (perf_ring_next(out.data, out.size, &offset, &header))
		assert_true(header.size >= 8);
	assert_int_equal(offset, out.size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executable_mappings_become_mmap2),
		cmocka_unit_test(mappings_without_code_are_marked_where_they_are_wanted),
		cmocka_unit_test(names_are_those_of_the_kernels_own_records),
		cmocka_unit_test(other_lines_give_nothing),
		cmocka_unit_test(own_process_is_described),
		cmocka_unit_test(vanished_process_gives_nothing),
		cmocka_unit_test(full_buffer_is_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
