/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checked bytes → typed views of every record that is not a sample. Layouts: perf_event_open(2)
 * "MMAP layout" and include/uapi/linux/perf_event.h; perf's own types from
 * tools/perf/Documentation/perf.data-file-format.txt. Texts point into the record and live as long
 * as it. Each reader returns false when the record's fields do not fit its size; out is then
 * undefined. Fields that an older layout lacks are 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/cursor.h"
#include "base/perf_record.h"

/* A record and how to read it. trailer_bytes: the sample_id trailer to leave out at its end. */
struct record_view {
	const struct perf_record *record;
	bool is_swapped;
	uint16_t trailer_bytes;
};

struct record_mmap {
	uint32_t pid, tid; /* pid UINT32_MAX: the kernel */
	uint64_t start, length, page_offset;
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
	struct build_id build_id;
	uint32_t protection, flags; /* MMAP2; MMAP has neither */
	const char *filename;
	bool has_inode, has_protection;
	bool is_data; /* misc MMAP_DATA: not executable */
};
bool record_read_mmap(const struct record_view *view, struct record_mmap *out);

struct record_comm {
	uint32_t pid, tid;
	const char *name;
	bool is_exec;
};
bool record_read_comm(const struct record_view *view, struct record_comm *out);

/* FORK and EXIT. */
struct record_task {
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time_ns;
};
bool record_read_task(const struct record_view *view, struct record_task *out);

struct record_lost {
	uint64_t id; /* LOST only */
	uint64_t n;
};
bool record_read_lost(const struct record_view *view, struct record_lost *out);
bool record_read_lost_samples(const struct record_view *view, struct record_lost *out);

/* THROTTLE and UNTHROTTLE. */
struct record_throttle {
	uint64_t time_ns, id, stream_id;
};
bool record_read_throttle(const struct record_view *view, struct record_throttle *out);

struct record_ksymbol {
	uint64_t start;
	uint32_t length;
	uint16_t type;	/* enum perf_abi_ksymbol_type */
	uint16_t flags; /* PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER */
	const char *name;
};
bool record_read_ksymbol(const struct record_view *view, struct record_ksymbol *out);

struct record_bpf_event {
	uint16_t type, flags;
	uint32_t id;
	uint8_t tag[8];
};
bool record_read_bpf_event(const struct record_view *view, struct record_bpf_event *out);

struct record_cgroup {
	uint64_t id;
	const char *path;
};
bool record_read_cgroup(const struct record_view *view, struct record_cgroup *out);

enum { RECORD_NAMESPACES_MAX = 16 };
struct record_namespaces {
	uint32_t pid, tid;
	uint32_t n; /* capped at RECORD_NAMESPACES_MAX; further ones are passed over */
	struct {
		uint64_t device, inode;
	} entries[RECORD_NAMESPACES_MAX]; /* net, uts, ipc, pid, user, mnt, cgroup, … */
};
bool record_read_namespaces(const struct record_view *view, struct record_namespaces *out);

struct record_switch {
	uint32_t other_pid, other_tid; /* SWITCH_CPU_WIDE only */
	bool is_out, is_preempted;
};
bool record_read_switch(const struct record_view *view, struct record_switch *out);

struct record_text_poke {
	uint64_t address;
	uint16_t n_old, n_new;
	const uint8_t *bytes; /* old, then new */
};
bool record_read_text_poke(const struct record_view *view, struct record_text_poke *out);

struct record_aux {
	uint64_t offset, size, flags;
};
bool record_read_aux(const struct record_view *view, struct record_aux *out);

/* READ: a counter's value at a thread's end; value of the event itself, not of a group. */
struct record_read {
	uint32_t pid, tid;
	uint64_t value;
};
bool record_read_read(const struct record_view *view, struct record_read *out);

/* CALLCHAIN_DEFERRED: the user part for samples that ended with this cookie. */
struct record_deferred_chain {
	uint32_t tid; /* from the sample_id trailer */
	uint64_t cookie;
	uint64_t n;
	const uint8_t *entries; /* n u64 in the record's byte order */
};
bool record_read_deferred_chain(const struct record_view *view, const struct sample_layout *layout,
				struct record_deferred_chain *out);

/* HEADER_BUILD_ID. */
struct record_build_id {
	int32_t pid;
	struct build_id id;
	const char *filename;
};
bool record_read_build_id(const struct record_view *view, struct record_build_id *out);

/* THREAD_MAP: threads that were there when recording began, one at a time. */
struct record_thread_map {
	uint64_t n, next;
	struct cursor cursor;
};
bool record_read_thread_map(const struct record_view *view, struct record_thread_map *out);
bool record_thread_map_next(struct record_thread_map *map, uint64_t *tid_out,
			    const char **comm_out);

/* TIME_CONV: how to get ns from the time-stamp counter. */
struct record_time_conv {
	uint64_t shift, multiplier, zero;
	uint64_t cycles, mask; /* newer perf */
	bool is_zero_valid, is_short;
};
bool record_read_time_conv(const struct record_view *view, struct record_time_conv *out);

/* Ours, native order. argv: words with their 0, argv_bytes in all. */
struct record_exec {
	uint32_t pid, tid;
	uint32_t source; /* enum perf_exec_source */
	uint32_t argv_bytes;
	const char *argv;
	const char *cgroup, *exe;
	bool is_argv_cut;
};
bool record_read_exec(const struct record_view *view, struct record_exec *out);

/* pid and tid of the sample_id trailer; false when there is none. */
bool record_read_trailer_tid(const struct record_view *view, const struct sample_layout *layout,
			     uint32_t *pid_out, uint32_t *tid_out);
