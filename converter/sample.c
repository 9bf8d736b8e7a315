/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/sample.h"

#include "base/cursor.h"

/* n elements of size bytes each; NULL and bad when they do not fit, without overflow. */
static const uint8_t *read_list(struct cursor *c, uint64_t n, size_t size)
{
	if (n > cursor_left(c) / size) {
		c->is_bad = true;
		return NULL;
	}
	return cursor_bytes(c, (size_t)n * size);
}

/*
 * GROUP: n, times, then value, id, lost of each member. Else: value, times, id, lost; the id then
 * lies behind the times.
 */
static void read_counters(struct cursor *c, uint64_t read_format, struct sample *out)
{
	bool is_group = read_format & PERF_FORMAT_GROUP;
	bool has_id = read_format & PERF_FORMAT_ID;
	bool has_lost = read_format & PERF_FORMAT_LOST;
	unsigned n_times = (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1u : 0u) +
			   (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1u : 0u);
	uint64_t n = is_group ? cursor_u64(c) : 1;
	if (is_group)
		cursor_skip(c, 8 * n_times);
	size_t words = 1u + (is_group ? 0 : n_times) + has_id + has_lost;
	const uint8_t *values = read_list(c, n, 8 * words);
	if (!values)
		return;
	out->n_read_values = n;
	out->read_values = values;
	out->read_words = (uint8_t)words;
	out->read_id_word = has_id ? (uint8_t)(words - 1 - has_lost) : 0;
	for (uint64_t i = 0; has_lost && i < n; i++)
		out->n_read_lost +=
			sample_u64(values, (size_t)i * words + words - 1, c->is_swapped);
}

static void read_branches(struct cursor *c, const struct perf_event_attr *attr, struct sample *out)
{
	uint64_t n = cursor_u64(c);
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		cursor_skip(c, 8);
	out->branches = read_list(c, n, SAMPLE_BRANCH_BYTES);
	out->n_branches = out->branches ? n : 0;
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS)
		(void)read_list(c, n, 8);
}

static const uint8_t *read_registers(struct cursor *c, uint64_t mask, uint64_t *abi_out)
{
	*abi_out = cursor_u64(c);
	if (!*abi_out)
		return NULL;
	return cursor_bytes(c, 8u * (size_t)__builtin_popcountll(mask));
}

static void read_stack(struct cursor *c, struct sample *out)
{
	uint64_t size = cursor_u64(c);
	if (!size)
		return;
	out->stack = read_list(c, size, 1);
	uint64_t valid = cursor_u64(c);
	/* Kernels never say more than they copied; who does is not believed. */
	out->stack_bytes = valid <= size ? valid : size;
}

/* What comes behind PERIOD: rare fields, kept out of the hot path. */
static void read_rest(struct cursor *c, const struct perf_event_attr *attr, struct sample *out)
{
	uint64_t type = attr->sample_type;
	if (type & PERF_SAMPLE_RAW) {
		out->raw_bytes = cursor_u32(c);
		out->raw = cursor_bytes(c, out->raw_bytes);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		read_branches(c, attr, out);
	if (type & PERF_SAMPLE_REGS_USER)
		out->user_regs = read_registers(c, attr->sample_regs_user, &out->user_regs_abi);
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(c, out);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		out->weight = cursor_u64(c);
	if (type & PERF_SAMPLE_DATA_SRC)
		out->data_source = cursor_u64(c);
	if (type & PERF_SAMPLE_TRANSACTION)
		out->transaction = cursor_u64(c);
	if (type & PERF_SAMPLE_REGS_INTR)
		out->intr_regs = read_registers(c, attr->sample_regs_intr, &out->intr_regs_abi);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		out->physical_address = cursor_u64(c);
	if (type & PERF_SAMPLE_CGROUP)
		out->cgroup_id = cursor_u64(c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		out->data_page_size = cursor_u64(c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		out->code_page_size = cursor_u64(c);
	if (type & PERF_SAMPLE_AUX) {
		out->aux_bytes = cursor_u64(c);
		(void)read_list(c, out->aux_bytes, 1);
	}
}

bool sample_read(const struct perf_record *record, const struct perf_event_attr *attr,
		 bool is_swapped, struct sample *out)
{
	struct cursor c = cursor_make(record->bytes, record->size, is_swapped);
	uint64_t type = attr->sample_type;
	memset(out, 0, sizeof(*out));
	out->cpu = UINT32_MAX;
	cursor_skip(&c, sizeof(struct perf_event_header));
	if (type & PERF_SAMPLE_IDENTIFIER)
		out->id = cursor_u64(&c);
	if (type & PERF_SAMPLE_IP)
		out->ip = cursor_u64(&c);
	if (type & PERF_SAMPLE_TID) {
		out->pid = cursor_u32(&c);
		out->tid = cursor_u32(&c);
	}
	if (type & PERF_SAMPLE_TIME)
		out->time_ns = cursor_u64(&c);
	if (type & PERF_SAMPLE_ADDR)
		out->address = cursor_u64(&c);
	if (type & PERF_SAMPLE_ID)
		out->id = cursor_u64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		out->stream_id = cursor_u64(&c);
	if (type & PERF_SAMPLE_CPU) {
		out->cpu = cursor_u32(&c);
		cursor_skip(&c, 4);
	}
	out->period = type & PERF_SAMPLE_PERIOD ? cursor_u64(&c) : attr->sample_period;
	if (type & PERF_SAMPLE_READ)
		read_counters(&c, attr->read_format, out);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		uint64_t n = cursor_u64(&c);
		out->chain = read_list(&c, n, sizeof(uint64_t));
		out->n_chain = out->chain ? n : 0;
	}
	if (type & ~(uint64_t)(PERF_SAMPLE_CALLCHAIN * 2 - 1))
		read_rest(&c, attr, out);
	/*
	 * Up to 7 bytes of padding; bits that we do not know may stand for more fields. hiperf
	 * writes the valid size of a user stack also behind an empty one, the kernel does not.
	 */
	size_t slack = type & PERF_SAMPLE_STACK_USER && !out->stack ? 16 : 8;
	return cursor_is_ok(&c) && (cursor_left(&c) < slack || type & ~(uint64_t)PERF_SAMPLE_KNOWN);
}
