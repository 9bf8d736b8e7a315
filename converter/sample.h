/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SAMPLE record → a typed view, for every sample_type bit and read_format, in either byte order
 * (perf_event_open(2), "PERF_RECORD_SAMPLE"). What has a variable size stays in the record and is
 * pointed at; it is in the record's byte order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/perf_record.h"

/* Fields whose bit is not in sample_type are 0; cpu and tid then are UINT32_MAX and 0. */
struct sample {
	uint64_t id, stream_id;
	uint64_t ip, address, time_ns;
	uint64_t period; /* attr.sample_period when the record has none, as perf weighs it */
	uint64_t weight, data_source, transaction, physical_address, cgroup_id;
	uint64_t data_page_size, code_page_size;
	uint32_t pid, tid, cpu;

	uint64_t n_chain;
	const uint8_t *chain; /* n_chain u64 */

	uint32_t raw_bytes;
	const uint8_t *raw;

	uint64_t n_branches;
	const uint8_t *branches; /* n_branches of SAMPLE_BRANCH_BYTES: from, to, flags */

	uint64_t user_regs_abi, intr_regs_abi; /* 0 = none were taken */
	const uint8_t *user_regs, *intr_regs;  /* one u64 a set bit of the attr's mask */

	uint64_t stack_bytes; /* valid part of the copied user stack */
	const uint8_t *stack;

	uint64_t aux_bytes;

	uint64_t n_read_values;	    /* READ: 1, or the group's size */
	const uint8_t *read_values; /* n_read_values of read_words u64: see sample_counter */
	uint8_t read_words, read_id_word;
	uint64_t n_read_lost; /* READ with LOST: sum over the values */

	/* A counter of a group for which another event fired: it adds its period and no sample.
	 * Set by who takes the group apart. */
	bool is_member;
};

enum { SAMPLE_BRANCH_BYTES = 24 };

/* False when the fields do not fit the record exactly. */
bool sample_read(const struct perf_record *record, const struct perf_event_attr *attr,
		 bool is_swapped, struct sample *out);

struct sample_counter {
	uint64_t value;
	uint64_t id; /* 0 when read_format has none */
};

/* Entry i of a list of u64 in the record's byte order. */
static inline uint64_t sample_u64(const uint8_t *list, size_t i, bool is_swapped)
{
	uint64_t v;
	memcpy(&v, list + i * sizeof(v), sizeof(v));
	return is_swapped ? __builtin_bswap64(v) : v;
}

/* Value i of n_read_values. */
static inline struct sample_counter sample_counter(const struct sample *sample, uint64_t i,
						   bool is_swapped)
{
	size_t first = (size_t)i * sample->read_words;
	struct sample_counter out = {.value = sample_u64(sample->read_values, first, is_swapped)};
	if (sample->read_id_word)
		out.id = sample_u64(sample->read_values, first + sample->read_id_word, is_swapped);
	return out;
}
