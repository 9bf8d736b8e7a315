/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/perf_abi.h"
#include "collector/cgroup_path.h"
#include "collector/cpu_set.h"
#include "collector/kernel_scan.h"
#include "collector/perf_ring.h"

static void cpu_lists_are_read(void **state)
{
	(void)state;
	struct cpu_set set CLEANUP(cpu_set_fini) = {0};

	assert_null(cpu_set_parse("0-2,5,7-8\n", &set));
	const uint32_t want[] = {0, 1, 2, 5, 7, 8};
	assert_int_equal(set.n, 6);
	assert_memory_equal(set.cpus, want, sizeof(want));
	assert_true(cpu_set_has(&set, 5));
	assert_false(cpu_set_has(&set, 6));
}

static void odd_cpu_lists_are_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {"a",   "1-",   "-1", "3-1",		"1,1",
					    "0 1", "8192", "5,", "0-4294967295"};
	struct cpu_set set CLEANUP(cpu_set_fini) = {0};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		/* A comma at the end is how nothing more is written. */
		struct error *err = cpu_set_parse(texts[i], &set);
		if (strcmp(texts[i], "5,") != 0)
			assert_non_null(err);
		error_free(err);
	}
}

static void perf_event_hierarchy_goes_before_the_unified_one(void **state)
{
	(void)state;
	static const char unified[] =
		"30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
	static const char hybrid[] =
		"31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		"32 25 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		"33 25 0:29 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n";
	char *a CLEANUP(cleanup_mem) = cgroup_path_pick_root(unified);
	char *b CLEANUP(cleanup_mem) = cgroup_path_pick_root(hybrid);

	assert_string_equal(a, "/sys/fs/cgroup");
	assert_string_equal(b, "/sys/fs/cgroup/perf_event");
	assert_null(cgroup_path_pick_root("1 2 0:1 / / rw - ext4 /dev/a rw\nnonsense\n - \n"));
	assert_null(cgroup_path_pick_root(""));
}

static const char dep[] = "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2.ko\n"
			  "kernel/net/nf-nat.ko: kernel/x.ko\n";

static const char *write_module(struct buf *out, const char *line)
{
	struct record_writer writer = {.out = out, .trailer_bytes = 32};
	struct perf_event_header header;
	size_t offset = 0;

	buf_clear(out);
	assert_null(kernel_scan_write_module(&writer, line, strlen(line), "/lib/modules/6.1", dep));
	const uint8_t *record = perf_ring_next(out->data, out->size, &offset, &header);
	if (!record)
		return NULL;
	assert_int_equal(header.type, PERF_RECORD_MMAP);
	assert_int_equal(header.misc, PERF_RECORD_MISC_KERNEL);
	struct cursor c = cursor_make(record + 8, header.size - 8, false);
	assert_int_equal(cursor_u32(&c), UINT32_MAX);
	cursor_skip(&c, 4);
	assert_true(cursor_u64(&c) == 0xffffffffc0200000);
	assert_int_equal(cursor_u64(&c), 737280);
	cursor_skip(&c, 8);
	return cursor_string(&c, 4096);
}

static void modules_become_mmap_with_their_file(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);

	buf_init(&out, 1 << 20);
	assert_string_equal(write_module(&out, "ext4 737280 1 - Live 0xffffffffc0200000"),
			    "/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz");
	assert_string_equal(write_module(&out, "nf_nat 737280 1 a,b, Live 0xffffffffc0200000 (OE)"),
			    "/lib/modules/6.1/kernel/net/nf-nat.ko");
	assert_string_equal(write_module(&out, "own 737280 0 - Live 0xffffffffc0200000"), "[own]");
	/* kptr_restrict */
	assert_null(write_module(&out, "own 737280 0 - Live 0x0000000000000000"));
	assert_null(write_module(&out, "nonsense"));
	assert_null(write_module(&out, ""));
}

static void kernel_and_cgroups_of_this_host_are_described(void **state)
{
	(void)state;
	struct buf out CLEANUP(buf_fini);
	struct record_writer writer = {.out = &out, .trailer_bytes = 32};
	struct perf_event_header header;
	const uint8_t *record;
	size_t offset = 0;
	bool is_hidden;
	unsigned n_kernel = 0, n_cgroup = 0;

	buf_init(&out, 16 << 20);
	assert_null(kernel_scan_text(&writer, &is_hidden));
	assert_null(kernel_scan_cgroups(&writer));
	while ((record = perf_ring_next(out.data, out.size, &offset, &header))) {
		n_kernel += header.type == PERF_RECORD_MMAP &&
			    strcmp((const char *)record + 40, "[kernel.kallsyms]_text") == 0;
		n_cgroup += header.type == PERF_RECORD_CGROUP;
		if (header.type == PERF_RECORD_CGROUP)
			assert_int_equal(record[16], '/');
	}
	char *root CLEANUP(cleanup_mem) = cgroup_path_find_root();
	assert_int_equal(n_kernel, is_hidden ? 0 : 1);
	assert_int_equal(n_cgroup > 0, root != NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_lists_are_read),
		cmocka_unit_test(odd_cpu_lists_are_refused),
		cmocka_unit_test(perf_event_hierarchy_goes_before_the_unified_one),
		cmocka_unit_test(modules_become_mmap_with_their_file),
		cmocka_unit_test(kernel_and_cgroups_of_this_host_are_described),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
