/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/record_maker.h"

#include <string.h>

#include "base/mem.h"

void record_maker_init(struct record_maker *maker, bool is_swapped)
{
	*maker = (struct record_maker){.is_swapped = is_swapped};
}

void record_maker_clear(struct record_maker *maker)
{
	for (size_t i = 0; i < maker->n; i++)
		mem_free((void *)maker->records[i].bytes);
	maker->n = 0;
}

void record_maker_fini(struct record_maker *maker)
{
	record_maker_clear(maker);
	mem_free(maker->records);
	mem_free(maker->open);
	*maker = (struct record_maker){0};
}

void record_maker_bytes(struct record_maker *maker, const void *bytes, size_t n)
{
	if (maker->open_size + n > maker->open_capacity) {
		maker->open_capacity = (maker->open_size + n) * 2;
		maker->open = mem_realloc(maker->open, maker->open_capacity, 1);
	}
	if (n)
		memcpy(maker->open + maker->open_size, bytes, n);
	maker->open_size += n;
}

void record_maker_u8(struct record_maker *maker, uint8_t v)
{
	record_maker_bytes(maker, &v, sizeof(v));
}

void record_maker_u16(struct record_maker *maker, uint16_t v)
{
	v = maker->is_swapped ? __builtin_bswap16(v) : v;
	record_maker_bytes(maker, &v, sizeof(v));
}

void record_maker_u32(struct record_maker *maker, uint32_t v)
{
	v = maker->is_swapped ? __builtin_bswap32(v) : v;
	record_maker_bytes(maker, &v, sizeof(v));
}

void record_maker_u64(struct record_maker *maker, uint64_t v)
{
	v = maker->is_swapped ? __builtin_bswap64(v) : v;
	record_maker_bytes(maker, &v, sizeof(v));
}

void record_maker_text(struct record_maker *maker, const char *text)
{
	record_maker_bytes(maker, text, strlen(text) + 1);
	while (maker->open_size % 8)
		record_maker_u8(maker, 0);
}

void record_maker_begin(struct record_maker *maker, uint32_t type, uint16_t misc)
{
	maker->open_size = 0;
	maker->open_type = type;
	maker->open_misc = misc;
	record_maker_u32(maker, type);
	record_maker_u16(maker, misc);
	record_maker_u16(maker, 0);
}

static void add_trailer(struct record_maker *maker)
{
	uint64_t type = maker->trailer->sample_type;
	if (!perf_attr_has(maker->trailer, PERF_ATTR_SAMPLE_ID_ALL))
		return;
	if (type & PERF_SAMPLE_TID) {
		record_maker_u32(maker, maker->pid);
		record_maker_u32(maker, maker->tid);
	}
	if (type & PERF_SAMPLE_TIME)
		record_maker_u64(maker, maker->time_ns);
	if (type & PERF_SAMPLE_ID)
		record_maker_u64(maker, 0);
	if (type & PERF_SAMPLE_STREAM_ID)
		record_maker_u64(maker, 0);
	if (type & PERF_SAMPLE_CPU)
		record_maker_u64(maker, 0);
	if (type & PERF_SAMPLE_IDENTIFIER)
		record_maker_u64(maker, 0);
}

struct perf_record *record_maker_end(struct record_maker *maker)
{
	if (maker->trailer && maker->open_type != PERF_RECORD_SAMPLE &&
	    maker->open_type < PERF_RECORD_USER_TYPE_START)
		add_trailer(maker);
	uint16_t size = (uint16_t)maker->open_size;
	uint16_t stored = maker->is_swapped ? __builtin_bswap16(size) : size;
	memcpy(maker->open + 6, &stored, sizeof(stored));
	if (maker->n == maker->capacity) {
		maker->capacity = maker->capacity ? maker->capacity * 2 : 64;
		maker->records =
			mem_realloc(maker->records, maker->capacity, sizeof(*maker->records));
	}
	struct perf_record *record = &maker->records[maker->n++];
	*record = (struct perf_record){
		.bytes = mem_copy(maker->open, size),
		.time_ns = maker->time_ns,
		.type = maker->open_type,
		.event_index = maker->event_index,
		.size = size,
		.misc = maker->open_misc,
		.is_synthetic = maker->is_synthetic,
	};
	return record;
}

struct perf_record *record_maker_mmap(struct record_maker *maker, uint32_t pid, uint64_t start,
				      uint64_t length, uint64_t page_offset, const char *filename)
{
	record_maker_begin(maker, PERF_RECORD_MMAP,
			   pid == UINT32_MAX ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	record_maker_u32(maker, pid);
	record_maker_u32(maker, pid == UINT32_MAX ? 0 : pid);
	record_maker_u64(maker, start);
	record_maker_u64(maker, length);
	record_maker_u64(maker, page_offset);
	record_maker_text(maker, filename);
	return record_maker_end(maker);
}

struct perf_record *record_maker_kernel(struct record_maker *maker, uint64_t start, uint64_t length,
					uint64_t page_offset, const char *filename)
{
	return record_maker_mmap(maker, UINT32_MAX, start, length, page_offset, filename);
}

enum { PROT_READ_EXEC = 5, MAP_PRIVATE_BIT = 2 };

struct perf_record *record_maker_mmap2(struct record_maker *maker, uint32_t pid, uint64_t start,
				       uint64_t length, uint64_t page_offset,
				       const struct record_maker_file *file)
{
	bool has_id = build_id_is_set(&file->build_id);
	uint16_t misc = PERF_RECORD_MISC_USER;
	if (has_id)
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	record_maker_begin(maker, PERF_RECORD_MMAP2, misc);
	record_maker_u32(maker, pid);
	record_maker_u32(maker, pid);
	record_maker_u64(maker, start);
	record_maker_u64(maker, length);
	record_maker_u64(maker, page_offset);
	if (has_id) {
		record_maker_u8(maker, file->build_id.size);
		record_maker_u8(maker, 0);
		record_maker_u16(maker, 0);
		record_maker_bytes(maker, file->build_id.bytes, 20);
	} else {
		record_maker_u32(maker, file->device_major);
		record_maker_u32(maker, file->device_minor);
		record_maker_u64(maker, file->inode);
		record_maker_u64(maker, file->inode_generation);
	}
	record_maker_u32(maker, PROT_READ_EXEC);
	record_maker_u32(maker, MAP_PRIVATE_BIT);
	record_maker_text(maker, file->path);
	return record_maker_end(maker);
}

struct perf_record *record_maker_comm(struct record_maker *maker, uint32_t pid, uint32_t tid,
				      const char *name, bool is_exec)
{
	record_maker_begin(maker, PERF_RECORD_COMM,
			   is_exec ? PERF_RECORD_MISC_COMM_EXEC : (uint16_t)0);
	record_maker_u32(maker, pid);
	record_maker_u32(maker, tid);
	record_maker_text(maker, name);
	return record_maker_end(maker);
}

struct perf_record *record_maker_task(struct record_maker *maker, uint32_t type, uint32_t pid,
				      uint32_t parent_pid, uint32_t tid, uint32_t parent_tid)
{
	record_maker_begin(maker, type, 0);
	record_maker_u32(maker, pid);
	record_maker_u32(maker, parent_pid);
	record_maker_u32(maker, tid);
	record_maker_u32(maker, parent_tid);
	record_maker_u64(maker, maker->time_ns);
	return record_maker_end(maker);
}

struct perf_record *record_maker_ksymbol(struct record_maker *maker, uint64_t start,
					 uint32_t length, const char *name, bool is_unregister)
{
	record_maker_begin(maker, PERF_RECORD_KSYMBOL, 0);
	record_maker_u64(maker, start);
	record_maker_u32(maker, length);
	record_maker_u16(maker, PERF_RECORD_KSYMBOL_TYPE_BPF);
	record_maker_u16(maker, is_unregister ? PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER : 0);
	record_maker_text(maker, name);
	return record_maker_end(maker);
}

struct perf_record *record_maker_lost(struct record_maker *maker, uint64_t n)
{
	record_maker_begin(maker, PERF_RECORD_LOST, 0);
	record_maker_u64(maker, 1);
	record_maker_u64(maker, n);
	return record_maker_end(maker);
}

struct perf_record *record_maker_lost_samples(struct record_maker *maker, uint64_t n)
{
	record_maker_begin(maker, PERF_RECORD_LOST_SAMPLES, 0);
	record_maker_u64(maker, n);
	return record_maker_end(maker);
}

struct perf_record *record_maker_cgroup(struct record_maker *maker, uint64_t id, const char *path)
{
	record_maker_begin(maker, PERF_RECORD_CGROUP, 0);
	record_maker_u64(maker, id);
	record_maker_text(maker, path);
	return record_maker_end(maker);
}

static void put_list(struct record_maker *maker, const uint64_t *words, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		record_maker_u64(maker, words[i]);
}

struct perf_record *record_maker_deferred(struct record_maker *maker, uint32_t tid, uint64_t cookie,
					  const uint64_t *entries, size_t n)
{
	maker->tid = tid;
	record_maker_begin(maker, PERF_RECORD_CALLCHAIN_DEFERRED, PERF_RECORD_MISC_USER);
	record_maker_u64(maker, cookie);
	record_maker_u64(maker, n);
	put_list(maker, entries, n);
	return record_maker_end(maker);
}

static void put_counters(struct record_maker *maker, uint64_t format,
			 const struct record_maker_sample *sample)
{
	bool is_group = format & PERF_FORMAT_GROUP;
	uint64_t n = is_group ? sample->n_values : 1;
	if (is_group)
		record_maker_u64(maker, n);
	else
		record_maker_u64(maker, sample->values[0]);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		record_maker_u64(maker, sample->time_enabled);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		record_maker_u64(maker, sample->time_running);
	for (uint64_t i = 0; i < n; i++) {
		if (is_group)
			record_maker_u64(maker, sample->values[i]);
		if (format & PERF_FORMAT_ID)
			record_maker_u64(maker, sample->value_ids[i]);
		if (format & PERF_FORMAT_LOST)
			record_maker_u64(maker, sample->value_lost[i]);
	}
}

static void put_branches(struct record_maker *maker, uint64_t branch_type,
			 const struct record_maker_sample *sample)
{
	record_maker_u64(maker, sample->n_branches);
	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		record_maker_u64(maker, sample->branch_index);
	put_list(maker, sample->branches, sample->n_branches * 3);
	if (branch_type & PERF_SAMPLE_BRANCH_COUNTERS)
		put_list(maker, sample->branch_counters, sample->n_branches);
}

static void put_registers(struct record_maker *maker, uint64_t abi, const uint64_t *registers,
			  uint64_t mask)
{
	record_maker_u64(maker, abi);
	if (abi)
		put_list(maker, registers, (uint64_t)__builtin_popcountll(mask));
}

static void put_stack(struct record_maker *maker, const struct record_maker_sample *sample)
{
	record_maker_u64(maker, sample->stack_size);
	if (!sample->stack_size)
		return;
	record_maker_bytes(maker, sample->stack, sample->stack_size);
	record_maker_u64(maker, sample->stack_valid);
}

static void put_start(struct record_maker *maker, uint64_t type,
		      const struct record_maker_sample *sample)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		record_maker_u64(maker, sample->identifier);
	if (type & PERF_SAMPLE_IP)
		record_maker_u64(maker, sample->ip);
	if (type & PERF_SAMPLE_TID) {
		record_maker_u32(maker, sample->pid);
		record_maker_u32(maker, sample->tid);
	}
	if (type & PERF_SAMPLE_TIME)
		record_maker_u64(maker, maker->time_ns);
	if (type & PERF_SAMPLE_ADDR)
		record_maker_u64(maker, sample->address);
	if (type & PERF_SAMPLE_ID)
		record_maker_u64(maker, sample->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		record_maker_u64(maker, sample->stream_id);
	if (type & PERF_SAMPLE_CPU) {
		record_maker_u32(maker, sample->cpu);
		record_maker_u32(maker, 0);
	}
	if (type & PERF_SAMPLE_PERIOD)
		record_maker_u64(maker, sample->period);
}

struct perf_record *record_maker_sample(struct record_maker *maker, uint16_t misc,
					const struct perf_event_attr *attr,
					const struct record_maker_sample *sample)
{
	uint64_t type = attr->sample_type;
	record_maker_begin(maker, PERF_RECORD_SAMPLE, misc);
	put_start(maker, type, sample);
	if (type & PERF_SAMPLE_READ)
		put_counters(maker, attr->read_format, sample);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		record_maker_u64(maker, sample->n_chain);
		put_list(maker, sample->chain, sample->n_chain);
	}
	if (type & PERF_SAMPLE_RAW) {
		record_maker_u32(maker, sample->raw_bytes);
		record_maker_bytes(maker, sample->raw, sample->raw_bytes);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		put_branches(maker, attr->branch_sample_type, sample);
	if (type & PERF_SAMPLE_REGS_USER)
		put_registers(maker, sample->user_regs_abi, sample->user_regs,
			      attr->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		put_stack(maker, sample);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		record_maker_u64(maker, sample->weight);
	if (type & PERF_SAMPLE_DATA_SRC)
		record_maker_u64(maker, sample->data_source);
	if (type & PERF_SAMPLE_TRANSACTION)
		record_maker_u64(maker, sample->transaction);
	if (type & PERF_SAMPLE_REGS_INTR)
		put_registers(maker, sample->intr_regs_abi, sample->intr_regs,
			      attr->sample_regs_intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		record_maker_u64(maker, sample->physical_address);
	if (type & PERF_SAMPLE_CGROUP)
		record_maker_u64(maker, sample->cgroup_id);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		record_maker_u64(maker, sample->data_page_size);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		record_maker_u64(maker, sample->code_page_size);
	if (type & PERF_SAMPLE_AUX) {
		record_maker_u64(maker, sample->aux_bytes);
		record_maker_bytes(maker, sample->aux, sample->aux_bytes);
	}
	return record_maker_end(maker);
}
