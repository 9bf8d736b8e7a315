/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/record.h"
#include "tests/support/record_maker.h"

static struct perf_event_attr trailer_attr(void)
{
	struct perf_event_attr attr = {
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_IDENTIFIER,
	};
	perf_attr_set(&attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	return attr;
}

static struct record_view view_of(const struct record_maker *maker, size_t i)
{
	bool is_kernels = maker->records[i].type < PERF_RECORD_USER_TYPE_START;
	struct sample_layout layout = {0};
	if (maker->trailer && is_kernels)
		layout = sample_layout_of(maker->trailer);
	return (struct record_view){
		.record = &maker->records[i],
		.is_swapped = maker->is_swapped,
		.trailer_bytes = layout.trailer_bytes,
	};
}

/* Reads a record as its type says; for the tests that only ask whether it can be read. */
static bool read_any(const struct record_view *view, const struct sample_layout *layout)
{
	union {
		struct record_mmap mmap;
		struct record_comm comm;
		struct record_task task;
		struct record_lost lost;
		struct record_throttle throttle;
		struct record_ksymbol ksymbol;
		struct record_bpf_event bpf_event;
		struct record_cgroup cgroup;
		struct record_namespaces namespaces;
		struct record_switch switch_;
		struct record_text_poke text_poke;
		struct record_aux aux;
		struct record_read read;
		struct record_deferred_chain deferred;
		struct record_build_id build_id;
		struct record_time_conv time_conv;
		struct record_exec exec;
	} u;
	switch (view->record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return record_read_mmap(view, &u.mmap);
	case PERF_RECORD_COMM:
		return record_read_comm(view, &u.comm);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return record_read_task(view, &u.task);
	case PERF_RECORD_LOST:
		return record_read_lost(view, &u.lost);
	case PERF_RECORD_LOST_SAMPLES:
		return record_read_lost_samples(view, &u.lost);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return record_read_throttle(view, &u.throttle);
	case PERF_RECORD_KSYMBOL:
		return record_read_ksymbol(view, &u.ksymbol);
	case PERF_RECORD_BPF_EVENT:
		return record_read_bpf_event(view, &u.bpf_event);
	case PERF_RECORD_CGROUP:
		return record_read_cgroup(view, &u.cgroup);
	case PERF_RECORD_NAMESPACES:
		return record_read_namespaces(view, &u.namespaces);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return record_read_switch(view, &u.switch_);
	case PERF_RECORD_TEXT_POKE:
		return record_read_text_poke(view, &u.text_poke);
	case PERF_RECORD_AUX:
		return record_read_aux(view, &u.aux);
	case PERF_RECORD_READ:
		return record_read_read(view, &u.read);
	case PERF_RECORD_CALLCHAIN_DEFERRED:
		return record_read_deferred_chain(view, layout, &u.deferred);
	case PERF_RECORD_HEADER_BUILD_ID:
		return record_read_build_id(view, &u.build_id);
	case PERF_RECORD_TIME_CONV:
		return record_read_time_conv(view, &u.time_conv);
	case PERF_RECORD_THREAD_MAP: {
		struct record_thread_map map;
		uint64_t tid;
		const char *comm;
		if (!record_read_thread_map(view, &map))
			return false;
		for (uint64_t i = 0; i < map.n; i++) {
			if (!record_thread_map_next(&map, &tid, &comm))
				return false;
		}
		return true;
	}
	case PERF_RECORD_PERFPIPE_EXEC:
		return record_read_exec(view, &u.exec);
	default:
		return false;
	}
}

static void add_exec(struct record_maker *maker, const char *argv, uint32_t argv_bytes,
		     const char *cgroup, const char *exe)
{
	const struct perf_record_perfpipe_exec head = {
		.pid = 7,
		.tid = 8,
		.source = PERF_EXEC_FROM_PROC,
		.argv_bytes = argv_bytes,
		.is_argv_cut = 1,
	};
	record_maker_begin(maker, PERF_RECORD_PERFPIPE_EXEC, 0);
	record_maker_bytes(maker, (const char *)&head + sizeof(struct perf_event_header),
			   sizeof(head) - sizeof(struct perf_event_header));
	record_maker_bytes(maker, argv, argv_bytes);
	record_maker_bytes(maker, cgroup, strlen(cgroup) + 1);
	record_maker_bytes(maker, exe, strlen(exe) + 1);
	record_maker_end(maker);
}

/* One of every kind, each ending with a byte that belongs to it. */
static void add_all(struct record_maker *m)
{
	static const struct record_maker_file file = {
		.path = "/usr/bin/git-1",
		.device_major = 8,
		.device_minor = 1,
		.inode = 77,
		.inode_generation = 5,
	};
	struct record_maker_file with_id = {.path = "/usr/bin/cc-abc"};
	with_id.build_id = build_id_make("\x01\x02\x03\x04", 4);
	record_maker_mmap(m, 1, 0x1000, 0x2000, 0x3000, "/bin/sh");
	record_maker_mmap2(m, 2, 0x1000, 0x2000, 0x3000, &file);
	record_maker_mmap2(m, 3, 0x1000, 0x2000, 0x3000, &with_id);
	record_maker_comm(m, 4, 5, "a thread", true);
	record_maker_task(m, PERF_RECORD_FORK, 10, 11, 12, 13);
	record_maker_task(m, PERF_RECORD_EXIT, 10, 11, 12, 13);
	record_maker_lost(m, 42);
	record_maker_lost_samples(m, 43);
	for (uint32_t type = PERF_RECORD_THROTTLE; type <= PERF_RECORD_UNTHROTTLE; type++) {
		record_maker_begin(m, type, 0);
		record_maker_u64(m, 100);
		record_maker_u64(m, 101);
		record_maker_u64(m, 102);
		record_maker_end(m);
	}
	record_maker_ksymbol(m, 0xffffffffc0000000, 0x100, "bpf_prog_aa", true);
	record_maker_begin(m, PERF_RECORD_BPF_EVENT, 0);
	record_maker_u16(m, PERF_BPF_EVENT_PROG_LOAD);
	record_maker_u16(m, 3);
	record_maker_u32(m, 99);
	record_maker_bytes(m, "tagbytes", 8);
	record_maker_end(m);
	record_maker_cgroup(m, 88, "/a.slice");
	record_maker_begin(m, PERF_RECORD_NAMESPACES, 0);
	record_maker_u32(m, 20);
	record_maker_u32(m, 21);
	record_maker_u64(m, 20);
	for (uint64_t i = 0; i < 20; i++) {
		record_maker_u64(m, i);
		record_maker_u64(m, 1000 + i);
	}
	record_maker_end(m);
	record_maker_begin(m, PERF_RECORD_SWITCH_CPU_WIDE,
			   PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	record_maker_u32(m, 30);
	record_maker_u32(m, 31);
	record_maker_end(m);
	record_maker_begin(m, PERF_RECORD_TEXT_POKE, 0);
	record_maker_u64(m, 0xffffffff81000010);
	record_maker_u16(m, 5);
	record_maker_u16(m, 3);
	record_maker_bytes(m, "OLDOLNEW", 8);
	record_maker_end(m);
	record_maker_begin(m, PERF_RECORD_AUX, 0);
	record_maker_u64(m, 1);
	record_maker_u64(m, 2);
	record_maker_u64(m, 3);
	record_maker_end(m);
	record_maker_begin(m, PERF_RECORD_READ, 0);
	record_maker_u32(m, 40);
	record_maker_u32(m, 41);
	record_maker_u64(m, 424242);
	record_maker_end(m);
	record_maker_deferred(m, 51, 0xc00c1e, (const uint64_t[]){1, 2, 3}, 3);
	record_maker_begin(m, PERF_RECORD_HEADER_BUILD_ID, PERF_RECORD_MISC_BUILD_ID_SIZE);
	record_maker_u32(m, UINT32_MAX);
	record_maker_bytes(m, "0123456789abcdef0123\x08\0\0\0", 24);
	record_maker_bytes(m, "/lib/libx.so", 13);
	record_maker_end(m);
	record_maker_begin(m, PERF_RECORD_THREAD_MAP, 0);
	record_maker_u64(m, 2);
	record_maker_u64(m, 60);
	record_maker_bytes(m, "first\0\0\0\0\0\0\0\0\0\0", 16);
	record_maker_u64(m, 61);
	record_maker_bytes(m, "second\0\0\0\0\0\0\0\0\0", 16);
	record_maker_end(m);
	add_exec(m, "cc\0-c\0x.c", 10, "/build", "/usr/bin/cc");
}

enum {
	AT_MMAP,
	AT_MMAP2,
	AT_MMAP2_ID,
	AT_COMM,
	AT_FORK,
	AT_EXIT,
	AT_LOST,
	AT_LOST_SAMPLES,
	AT_THROTTLE,
	AT_UNTHROTTLE,
	AT_KSYMBOL,
	AT_BPF,
	AT_CGROUP,
	AT_NAMESPACES,
	AT_SWITCH,
	AT_TEXT_POKE,
	AT_AUX,
	AT_READ,
	AT_DEFERRED,
	AT_BUILD_ID,
	AT_THREAD_MAP,
	AT_EXEC,
	N_KINDS,
};

static void check_mappings(const struct record_maker *m)
{
	struct record_mmap mmap;
	struct record_view view = view_of(m, AT_MMAP);
	assert_true(record_read_mmap(&view, &mmap));
	assert_int_equal(mmap.pid, 1);
	assert_int_equal(mmap.start, 0x1000);
	assert_int_equal(mmap.length, 0x2000);
	assert_int_equal(mmap.page_offset, 0x3000);
	assert_string_equal(mmap.filename, "/bin/sh");
	assert_false(mmap.has_inode);
	assert_false(mmap.has_protection);

	view = view_of(m, AT_MMAP2);
	assert_true(record_read_mmap(&view, &mmap));
	assert_int_equal(mmap.pid, 2);
	assert_int_equal(mmap.device_major, 8);
	assert_int_equal(mmap.device_minor, 1);
	assert_int_equal(mmap.inode, 77);
	assert_int_equal(mmap.inode_generation, 5);
	assert_true(mmap.has_inode);
	assert_int_equal(mmap.protection, 5);
	assert_int_equal(mmap.flags, 2);
	assert_false(build_id_is_set(&mmap.build_id));
	assert_string_equal(mmap.filename, "/usr/bin/git-1");

	view = view_of(m, AT_MMAP2_ID);
	assert_true(record_read_mmap(&view, &mmap));
	assert_int_equal(mmap.build_id.size, 4);
	assert_memory_equal(mmap.build_id.bytes, "\x01\x02\x03\x04", 4);
	assert_false(mmap.has_inode);
	assert_string_equal(mmap.filename, "/usr/bin/cc-abc");
}

static void check_tasks(const struct record_maker *m)
{
	struct record_comm comm;
	struct record_view view = view_of(m, AT_COMM);
	assert_true(record_read_comm(&view, &comm));
	assert_int_equal(comm.pid, 4);
	assert_int_equal(comm.tid, 5);
	assert_true(comm.is_exec);
	assert_string_equal(comm.name, "a thread");

	struct record_task task;
	view = view_of(m, AT_FORK);
	assert_true(record_read_task(&view, &task));
	assert_int_equal(task.pid, 10);
	assert_int_equal(task.parent_pid, 11);
	assert_int_equal(task.tid, 12);
	assert_int_equal(task.parent_tid, 13);
	assert_int_equal(task.time_ns, m->time_ns);

	struct record_namespaces namespaces;
	view = view_of(m, AT_NAMESPACES);
	assert_true(record_read_namespaces(&view, &namespaces));
	assert_int_equal(namespaces.n, RECORD_NAMESPACES_MAX);
	assert_int_equal(namespaces.entries[15].device, 15);
	assert_int_equal(namespaces.entries[15].inode, 1015);

	struct record_switch context_switch;
	view = view_of(m, AT_SWITCH);
	assert_true(record_read_switch(&view, &context_switch));
	assert_int_equal(context_switch.other_pid, 30);
	assert_int_equal(context_switch.other_tid, 31);
	assert_true(context_switch.is_out);
	assert_true(context_switch.is_preempted);

	struct record_exec exec;
	view = view_of(m, AT_EXEC);
	assert_true(record_read_exec(&view, &exec));
	assert_int_equal(exec.pid, 7);
	assert_int_equal(exec.tid, 8);
	assert_int_equal(exec.source, PERF_EXEC_FROM_PROC);
	assert_true(exec.is_argv_cut);
	assert_int_equal(exec.argv_bytes, 10);
	assert_memory_equal(exec.argv, "cc\0-c\0x.c", 10);
	assert_string_equal(exec.cgroup, "/build");
	assert_string_equal(exec.exe, "/usr/bin/cc");
}

static void check_counts(const struct record_maker *m)
{
	struct record_lost lost;
	struct record_view view = view_of(m, AT_LOST);
	assert_true(record_read_lost(&view, &lost));
	assert_int_equal(lost.id, 1);
	assert_int_equal(lost.n, 42);
	view = view_of(m, AT_LOST_SAMPLES);
	assert_true(record_read_lost_samples(&view, &lost));
	assert_int_equal(lost.n, 43);

	struct record_throttle throttle;
	view = view_of(m, AT_THROTTLE);
	assert_true(record_read_throttle(&view, &throttle));
	assert_int_equal(throttle.time_ns, 100);
	assert_int_equal(throttle.id, 101);
	assert_int_equal(throttle.stream_id, 102);

	struct record_aux aux;
	view = view_of(m, AT_AUX);
	assert_true(record_read_aux(&view, &aux));
	assert_int_equal(aux.offset, 1);
	assert_int_equal(aux.size, 2);
	assert_int_equal(aux.flags, 3);

	struct record_read read;
	view = view_of(m, AT_READ);
	assert_true(record_read_read(&view, &read));
	assert_int_equal(read.pid, 40);
	assert_int_equal(read.tid, 41);
	assert_int_equal(read.value, 424242);
}

static void check_kernel_records(const struct record_maker *m)
{
	struct record_ksymbol ksymbol;
	struct record_view view = view_of(m, AT_KSYMBOL);
	assert_true(record_read_ksymbol(&view, &ksymbol));
	assert_int_equal(ksymbol.start, 0xffffffffc0000000);
	assert_int_equal(ksymbol.length, 0x100);
	assert_int_equal(ksymbol.type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	assert_int_equal(ksymbol.flags, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	assert_string_equal(ksymbol.name, "bpf_prog_aa");

	struct record_bpf_event bpf;
	view = view_of(m, AT_BPF);
	assert_true(record_read_bpf_event(&view, &bpf));
	assert_int_equal(bpf.type, PERF_BPF_EVENT_PROG_LOAD);
	assert_int_equal(bpf.flags, 3);
	assert_int_equal(bpf.id, 99);
	assert_memory_equal(bpf.tag, "tagbytes", 8);

	struct record_cgroup cgroup;
	view = view_of(m, AT_CGROUP);
	assert_true(record_read_cgroup(&view, &cgroup));
	assert_int_equal(cgroup.id, 88);
	assert_string_equal(cgroup.path, "/a.slice");

	struct record_text_poke poke;
	view = view_of(m, AT_TEXT_POKE);
	assert_true(record_read_text_poke(&view, &poke));
	assert_int_equal(poke.address, 0xffffffff81000010);
	assert_int_equal(poke.n_old, 5);
	assert_int_equal(poke.n_new, 3);
	assert_memory_equal(poke.bytes, "OLDOLNEW", 8);
}

static void check_perf_records(const struct record_maker *m)
{
	struct record_deferred_chain chain;
	const struct sample_layout layout = sample_layout_of(m->trailer);
	struct record_view view = view_of(m, AT_DEFERRED);
	assert_true(record_read_deferred_chain(&view, &layout, &chain));
	assert_int_equal(chain.tid, 51);
	assert_int_equal(chain.cookie, 0xc00c1e);
	assert_int_equal(chain.n, 3);
	uint64_t last;
	memcpy(&last, chain.entries + 16, sizeof(last));
	assert_int_equal(m->is_swapped ? __builtin_bswap64(last) : last, 3);

	struct record_build_id id;
	view = view_of(m, AT_BUILD_ID);
	assert_true(record_read_build_id(&view, &id));
	assert_int_equal(id.pid, -1);
	assert_int_equal(id.id.size, 8);
	assert_memory_equal(id.id.bytes, "01234567", 8);
	assert_string_equal(id.filename, "/lib/libx.so");

	struct record_thread_map map;
	uint64_t tid;
	const char *comm;
	view = view_of(m, AT_THREAD_MAP);
	assert_true(record_read_thread_map(&view, &map));
	assert_int_equal(map.n, 2);
	assert_true(record_thread_map_next(&map, &tid, &comm));
	assert_int_equal(tid, 60);
	assert_string_equal(comm, "first");
	assert_true(record_thread_map_next(&map, &tid, &comm));
	assert_int_equal(tid, 61);
	assert_string_equal(comm, "second");
	assert_false(record_thread_map_next(&map, &tid, &comm));
}

static void record_reads_every_type_in_both_byte_orders(void **state)
{
	(void)state;
	const struct perf_event_attr attr = trailer_attr();
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct record_maker m;
		record_maker_init(&m, is_swapped);
		m.trailer = &attr;
		m.time_ns = 123456789;
		add_all(&m);
		assert_int_equal(m.n, N_KINDS);
		check_mappings(&m);
		check_tasks(&m);
		check_counts(&m);
		check_kernel_records(&m);
		check_perf_records(&m);
		record_maker_fini(&m);
	}
}

static void record_trailer_gives_pid_and_tid(void **state)
{
	(void)state;
	const struct perf_event_attr attr = trailer_attr();
	const struct sample_layout layout = sample_layout_of(&attr);
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct record_maker m;
		uint32_t pid, tid;
		record_maker_init(&m, is_swapped);
		m.trailer = &attr;
		m.pid = 1234;
		m.tid = 5678;
		record_maker_lost_samples(&m, 1);
		struct record_view view = view_of(&m, 0);
		assert_true(record_read_trailer_tid(&view, &layout, &pid, &tid));
		assert_int_equal(pid, 1234);
		assert_int_equal(tid, 5678);
		const struct sample_layout none = {0};
		assert_false(record_read_trailer_tid(&view, &none, &pid, &tid));
		m.records[0].size = 8 + layout.trailer_bytes - 1u;
		assert_false(record_read_trailer_tid(&view, &layout, &pid, &tid));
		record_maker_fini(&m);
	}
}

/*
 * The record is copied to a block of the cut size, so that a sanitizer sees what lies beyond. What
 * is left may still be whole where only padding was cut; a name that ends early is not.
 */
static size_t shortest_readable(const struct record_maker *m, size_t i)
{
	const struct record_view whole = view_of(m, i);
	struct sample_layout layout = {0};
	if (whole.trailer_bytes)
		layout = sample_layout_of(m->trailer);
	size_t shortest = m->records[i].size;
	for (size_t size = m->records[i].size + 1; size-- > 8;) {
		struct perf_record record = m->records[i];
		uint8_t *bytes = mem_copy(record.bytes, size < record.size ? size : record.size);
		record.bytes = bytes;
		record.size = (uint32_t)(size < record.size ? size : record.size);
		struct record_view view = whole;
		view.record = &record;
		if (read_any(&view, &layout))
			shortest = size;
		mem_free(bytes);
	}
	return shortest;
}

/* Without a trailer: what a record needs is then known to the byte. */
static void record_cut_at_any_byte_is_refused(void **state)
{
	(void)state;
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct record_maker m;
		record_maker_init(&m, is_swapped);
		add_all(&m);
		static const size_t needed[N_KINDS] = {
			[AT_MMAP] = 8 + 8 + 24 + 8,
			[AT_MMAP2] = 8 + 8 + 24 + 24 + 8 + 15,
			[AT_MMAP2_ID] = 8 + 8 + 24 + 24 + 8 + 16,
			[AT_COMM] = 8 + 8 + 9,
			[AT_FORK] = 8 + 24,
			[AT_EXIT] = 8 + 24,
			[AT_LOST] = 8 + 16,
			[AT_LOST_SAMPLES] = 8 + 8,
			[AT_THROTTLE] = 8 + 24,
			[AT_UNTHROTTLE] = 8 + 24,
			[AT_KSYMBOL] = 8 + 16 + 12,
			[AT_BPF] = 8 + 16,
			[AT_CGROUP] = 8 + 8 + 9,
			[AT_NAMESPACES] = 8 + 16 + 20 * 16,
			[AT_SWITCH] = 8 + 8,
			[AT_TEXT_POKE] = 8 + 12 + 8,
			[AT_AUX] = 8 + 24,
			[AT_READ] = 8 + 16,
			[AT_BUILD_ID] = 8 + 4 + 24 + 13,
			[AT_THREAD_MAP] = 8 + 8 + 48,
			[AT_EXEC] = sizeof(struct perf_record_perfpipe_exec) + 10 + 7 + 12,
		};
		for (size_t i = 0; i < N_KINDS; i++) {
			if (i != AT_DEFERRED) /* is nothing without a trailer */
				assert_int_equal(shortest_readable(&m, i), needed[i]);
		}
		record_maker_fini(&m);
	}
}

static void record_cut_with_a_trailer_stays_within_its_bytes(void **state)
{
	(void)state;
	const struct perf_event_attr attr = trailer_attr();
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct record_maker m;
		record_maker_init(&m, is_swapped);
		m.trailer = &attr;
		add_all(&m);
		for (size_t i = 0; i < N_KINDS; i++)
			(void)shortest_readable(&m, i);
		record_maker_fini(&m);
	}
}

static void record_counts_of_2_to_the_64_are_refused(void **state)
{
	(void)state;
	const struct perf_event_attr attr = trailer_attr();
	const struct sample_layout layout = sample_layout_of(&attr);
	static const uint64_t counts[] = {UINT64_MAX, UINT64_MAX / 8 + 1, UINT64_MAX / 16 + 1,
					  UINT64_MAX / 24 + 1, 100};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct record_maker m;
		record_maker_init(&m, false);
		m.trailer = &attr;
		record_maker_begin(&m, PERF_RECORD_NAMESPACES, 0);
		record_maker_u64(&m, 1);
		record_maker_u64(&m, counts[i]);
		record_maker_u64(&m, 1);
		record_maker_u64(&m, 2);
		record_maker_end(&m);
		record_maker_begin(&m, PERF_RECORD_CALLCHAIN_DEFERRED, 0);
		record_maker_u64(&m, 1);
		record_maker_u64(&m, counts[i]);
		record_maker_u64(&m, 1);
		record_maker_end(&m);
		record_maker_begin(&m, PERF_RECORD_THREAD_MAP, 0);
		record_maker_u64(&m, counts[i]);
		record_maker_u64(&m, 1);
		record_maker_bytes(&m, "name\0\0\0\0\0\0\0\0\0\0\0", 16);
		record_maker_end(&m);
		for (size_t r = 0; r < m.n; r++) {
			struct record_view view = view_of(&m, r);
			assert_false(read_any(&view, &layout));
		}
		record_maker_fini(&m);
	}
}

static void record_names_without_an_end_are_refused(void **state)
{
	(void)state;
	struct record_maker m;
	record_maker_init(&m, false);
	record_maker_begin(&m, PERF_RECORD_COMM, 0);
	record_maker_u64(&m, 1);
	record_maker_bytes(&m, "endless!", 8);
	record_maker_end(&m);
	/* A trailer is not part of the name, though it has zeros. */
	const struct perf_event_attr attr = trailer_attr();
	m.trailer = &attr;
	record_maker_begin(&m, PERF_RECORD_COMM, 0);
	record_maker_u64(&m, 1);
	record_maker_bytes(&m, "endless!", 8);
	record_maker_end(&m);
	/* A path longer than any path. */
	record_maker_begin(&m, PERF_RECORD_CGROUP, 0);
	record_maker_u64(&m, 1);
	for (int i = 0; i < 8000; i++)
		record_maker_u8(&m, 'x');
	record_maker_u64(&m, 0);
	record_maker_end(&m);
	add_exec(&m, "no end", 6, "", "");
	for (size_t i = 0; i < m.n; i++) {
		struct record_view view = view_of(&m, i);
		if (i == 0)
			view.trailer_bytes = 0;
		assert_false(read_any(&view, &(struct sample_layout){0}));
	}
	record_maker_fini(&m);
}

static void record_build_id_of_odd_size_is_none(void **state)
{
	(void)state;
	struct record_maker m;
	struct record_mmap mmap;
	record_maker_init(&m, false);
	struct record_maker_file file = {.path = "/x"};
	file.build_id = build_id_make("01234567890123456789", 20);
	record_maker_mmap2(&m, 1, 0, 1, 0, &file);
	uint8_t *size = (uint8_t *)m.records[0].bytes + 8 + 8 + 24;
	*size = 21;
	struct record_view view = view_of(&m, 0);
	assert_true(record_read_mmap(&view, &mmap));
	assert_false(build_id_is_set(&mmap.build_id));
	assert_string_equal(mmap.filename, "/x");
	*size = 0;
	assert_true(record_read_mmap(&view, &mmap));
	assert_false(build_id_is_set(&mmap.build_id));
	record_maker_fini(&m);
}

static void record_time_conv_reads_the_short_and_the_long_form(void **state)
{
	(void)state;
	for (int is_long = 0; is_long < 2; is_long++) {
		struct record_maker m;
		struct record_time_conv conv;
		record_maker_init(&m, is_long);
		record_maker_begin(&m, PERF_RECORD_TIME_CONV, 0);
		record_maker_u64(&m, 10);
		record_maker_u64(&m, 20);
		record_maker_u64(&m, 30);
		if (is_long) {
			record_maker_u64(&m, 40);
			record_maker_u64(&m, 50);
			record_maker_u8(&m, 0);
			record_maker_u8(&m, 1);
			record_maker_bytes(&m, "\0\0\0\0\0\0", 6);
		}
		record_maker_end(&m);
		struct record_view view = view_of(&m, 0);
		assert_true(record_read_time_conv(&view, &conv));
		assert_int_equal(conv.shift, 10);
		assert_int_equal(conv.multiplier, 20);
		assert_int_equal(conv.zero, 30);
		assert_int_equal(conv.cycles, is_long ? 40 : 0);
		assert_int_equal(conv.mask, is_long ? 50 : 0);
		assert_int_equal(conv.is_zero_valid, !is_long);
		assert_int_equal(conv.is_short, is_long);
		record_maker_fini(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_reads_every_type_in_both_byte_orders),
		cmocka_unit_test(record_trailer_gives_pid_and_tid),
		cmocka_unit_test(record_cut_at_any_byte_is_refused),
		cmocka_unit_test(record_cut_with_a_trailer_stays_within_its_bytes),
		cmocka_unit_test(record_counts_of_2_to_the_64_are_refused),
		cmocka_unit_test(record_names_without_an_end_are_refused),
		cmocka_unit_test(record_build_id_of_odd_size_is_none),
		cmocka_unit_test(record_time_conv_reads_the_short_and_the_long_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
