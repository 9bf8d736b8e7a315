/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes raw perf records for tests, in either byte order. Each record lies in a block of memory of
 * exactly its size, so that a sanitizer sees a read one byte past it.
 *
 * Order of calls: record_maker_init; record_maker_begin, fields, record_maker_end (or one of the
 * makers of whole records), again and again; hand records and n to a converter;
 * record_maker_fini.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/perf_record.h"

struct record_maker {
	bool is_swapped;
	bool is_synthetic;		       /* of the records to come */
	const struct perf_event_attr *trailer; /* records get its sample_id trailer; may be NULL */
	uint32_t event_index;		       /* of the records to come */
	uint64_t time_ns;		       /* of the records to come; the trailer's too */
	uint32_t pid, tid;		       /* the trailer's */

	struct perf_record *records;
	size_t n, capacity;

	uint8_t *open; /* the record being made */
	size_t open_size, open_capacity;
	uint32_t open_type;
	uint16_t open_misc;
};

void record_maker_init(struct record_maker *maker, bool is_swapped);
void record_maker_fini(struct record_maker *maker);
/* Drops all records, keeps the settings. */
void record_maker_clear(struct record_maker *maker);

void record_maker_begin(struct record_maker *maker, uint32_t type, uint16_t misc);
void record_maker_u8(struct record_maker *maker, uint8_t v);
void record_maker_u16(struct record_maker *maker, uint16_t v);
void record_maker_u32(struct record_maker *maker, uint32_t v);
void record_maker_u64(struct record_maker *maker, uint64_t v);
void record_maker_bytes(struct record_maker *maker, const void *bytes, size_t n);
/* With its 0, padded to 8 bytes as the kernel does. */
void record_maker_text(struct record_maker *maker, const char *text);
/* Adds the trailer and fixes the size. Valid until the next record is made. */
struct perf_record *record_maker_end(struct record_maker *maker);

/* Whole records. */
struct perf_record *record_maker_mmap(struct record_maker *maker, uint32_t pid, uint64_t start,
				      uint64_t length, uint64_t page_offset, const char *filename);
/* What of MMAP2 the short forms leave at 0. */
struct record_maker_file {
	const char *path;
	struct build_id build_id; /* set: the form with a build-id, else with the inode */
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
};
struct perf_record *record_maker_mmap2(struct record_maker *maker, uint32_t pid, uint64_t start,
				       uint64_t length, uint64_t page_offset,
				       const struct record_maker_file *file);
/* The kernel's text ("[kernel.kallsyms]_text") or a module. */
struct perf_record *record_maker_kernel(struct record_maker *maker, uint64_t start, uint64_t length,
					uint64_t page_offset, const char *filename);
struct perf_record *record_maker_comm(struct record_maker *maker, uint32_t pid, uint32_t tid,
				      const char *name, bool is_exec);
/* type FORK or EXIT. */
struct perf_record *record_maker_task(struct record_maker *maker, uint32_t type, uint32_t pid,
				      uint32_t parent_pid, uint32_t tid, uint32_t parent_tid);
struct perf_record *record_maker_ksymbol(struct record_maker *maker, uint64_t start,
					 uint32_t length, const char *name, bool is_unregister);
struct perf_record *record_maker_lost(struct record_maker *maker, uint64_t n);
struct perf_record *record_maker_lost_samples(struct record_maker *maker, uint64_t n);
struct perf_record *record_maker_cgroup(struct record_maker *maker, uint64_t id, const char *path);
struct perf_record *record_maker_deferred(struct record_maker *maker, uint32_t tid, uint64_t cookie,
					  const uint64_t *entries, size_t n);

/* What a SAMPLE says; a field goes in when the attr's sample_type has its bit. */
struct record_maker_sample {
	uint64_t identifier, id, stream_id;
	uint64_t ip, address;
	uint64_t period, weight, data_source, transaction, physical_address, cgroup_id;
	uint64_t data_page_size, code_page_size;
	uint32_t pid, tid, cpu;

	uint64_t time_enabled, time_running;
	uint64_t n_values; /* 1 without PERF_FORMAT_GROUP */
	uint64_t values[8], value_ids[8], value_lost[8];

	const uint64_t *chain;
	uint64_t n_chain;
	const uint8_t *raw; /* raw_bytes + 4 is a multiple of 8 */
	uint32_t raw_bytes;
	uint64_t n_branches;
	uint64_t branch_index;
	const uint64_t *branches; /* three words each */
	const uint64_t *branch_counters;
	uint64_t user_regs_abi, intr_regs_abi;
	const uint64_t *user_regs, *intr_regs;
	const uint8_t *stack;
	uint64_t stack_size, stack_valid;
	const uint8_t *aux;
	uint64_t aux_bytes;
};
struct perf_record *record_maker_sample(struct record_maker *maker, uint16_t misc,
					const struct perf_event_attr *attr,
					const struct record_maker_sample *sample);
