/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/sample.h"
#include "tests/support/record_maker.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000, 0x402000};
static const uint64_t branches[] = {1, 2, 3, 4, 5, 6};
static const uint64_t branch_counters[] = {7, 8};
static const uint64_t registers[64] = {11, 12, 13};
static const uint8_t stack[24] = "a stack of 24 bytes....";
static const uint8_t raw[12] = "raw bytes..";
static const uint8_t aux[16] = "aux bytes......";

/* Every field another number. */
static const struct record_maker_sample full = {
	.identifier = 101,
	.id = 102,
	.stream_id = 103,
	.ip = 104,
	.address = 105,
	.period = 106,
	.weight = 107,
	.data_source = 108,
	.transaction = 109,
	.physical_address = 110,
	.cgroup_id = 111,
	.data_page_size = 112,
	.code_page_size = 113,
	.pid = 114,
	.tid = 115,
	.cpu = 116,
	.time_enabled = 117,
	.time_running = 118,
	.n_values = 3,
	.values = {119, 120, 121},
	.value_ids = {122, 123, 124},
	.value_lost = {1000, 2000, 4000},
	.chain = chain,
	.n_chain = 3,
	.raw = raw,
	.raw_bytes = sizeof(raw),
	.n_branches = 2,
	.branch_index = 125,
	.branches = branches,
	.branch_counters = branch_counters,
	.user_regs_abi = 2,
	.intr_regs_abi = 1,
	.user_regs = registers,
	.intr_regs = registers,
	.stack = stack,
	.stack_size = sizeof(stack),
	.stack_valid = 16,
	.aux = aux,
	.aux_bytes = sizeof(aux),
};

static uint64_t when(const struct perf_event_attr *attr, uint64_t bit, uint64_t value)
{
	return attr->sample_type & bit ? value : 0;
}

static void check_plain_fields(const struct perf_event_attr *attr, const struct sample *s)
{
	uint64_t id = when(attr, PERF_SAMPLE_ID, 102);
	assert_int_equal(s->id, id ? id : when(attr, PERF_SAMPLE_IDENTIFIER, 101));
	assert_int_equal(s->stream_id, when(attr, PERF_SAMPLE_STREAM_ID, 103));
	assert_int_equal(s->ip, when(attr, PERF_SAMPLE_IP, 104));
	assert_int_equal(s->address, when(attr, PERF_SAMPLE_ADDR, 105));
	assert_int_equal(s->period, attr->sample_type & PERF_SAMPLE_PERIOD ? 106 : 4000);
	assert_int_equal(s->weight,
			 when(attr, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, 107));
	assert_int_equal(s->data_source, when(attr, PERF_SAMPLE_DATA_SRC, 108));
	assert_int_equal(s->transaction, when(attr, PERF_SAMPLE_TRANSACTION, 109));
	assert_int_equal(s->physical_address, when(attr, PERF_SAMPLE_PHYS_ADDR, 110));
	assert_int_equal(s->cgroup_id, when(attr, PERF_SAMPLE_CGROUP, 111));
	assert_int_equal(s->data_page_size, when(attr, PERF_SAMPLE_DATA_PAGE_SIZE, 112));
	assert_int_equal(s->code_page_size, when(attr, PERF_SAMPLE_CODE_PAGE_SIZE, 113));
	assert_int_equal(s->pid, when(attr, PERF_SAMPLE_TID, 114));
	assert_int_equal(s->tid, when(attr, PERF_SAMPLE_TID, 115));
	assert_int_equal(s->cpu, attr->sample_type & PERF_SAMPLE_CPU ? 116 : UINT32_MAX);
	assert_int_equal(s->time_ns, when(attr, PERF_SAMPLE_TIME, 126));
}

static void check_counters(const struct perf_event_attr *attr, bool is_swapped,
			   const struct sample *s)
{
	if (!(attr->sample_type & PERF_SAMPLE_READ)) {
		assert_int_equal(s->n_read_values, 0);
		return;
	}
	bool has_lost = attr->read_format & PERF_FORMAT_LOST;
	if (attr->read_format & PERF_FORMAT_GROUP) {
		assert_int_equal(s->n_read_values, 3);
		assert_int_equal(s->n_read_lost, has_lost ? 7000 : 0);
	} else {
		assert_int_equal(s->n_read_values, 1);
		assert_int_equal(sample_counter(s, 0, is_swapped).value, 119);
		assert_int_equal(s->n_read_lost, has_lost ? 1000 : 0);
	}
}

static void check_lists(const struct perf_event_attr *attr, bool is_swapped, const struct sample *s)
{
	assert_int_equal(s->n_chain, when(attr, PERF_SAMPLE_CALLCHAIN, 3));
	for (size_t i = 0; i < s->n_chain; i++)
		assert_int_equal(sample_u64(s->chain, i, is_swapped), chain[i]);
	assert_int_equal(s->raw_bytes, when(attr, PERF_SAMPLE_RAW, sizeof(raw)));
	if (s->raw_bytes)
		assert_memory_equal(s->raw, raw, sizeof(raw));
	assert_int_equal(s->n_branches, when(attr, PERF_SAMPLE_BRANCH_STACK, 2));
	for (size_t i = 0; i < s->n_branches * 3; i++)
		assert_int_equal(sample_u64(s->branches, i, is_swapped), branches[i]);
	assert_int_equal(s->user_regs_abi, when(attr, PERF_SAMPLE_REGS_USER, 2));
	assert_int_equal(s->intr_regs_abi, when(attr, PERF_SAMPLE_REGS_INTR, 1));
	if (s->user_regs_abi)
		assert_int_equal(sample_u64(s->user_regs, 2, is_swapped), 13);
	if (s->intr_regs_abi)
		assert_int_equal(sample_u64(s->intr_regs, 0, is_swapped), 11);
	assert_int_equal(s->stack_bytes, when(attr, PERF_SAMPLE_STACK_USER, 16));
	if (s->stack_bytes)
		assert_memory_equal(s->stack, stack, 16);
	assert_int_equal(s->aux_bytes, when(attr, PERF_SAMPLE_AUX, sizeof(aux)));
}

static struct perf_event_attr make_attr(uint64_t sample_type, uint64_t read_format,
					uint64_t branch_type)
{
	return (struct perf_event_attr){
		.sample_type = sample_type,
		.sample_period = 4000,
		.read_format = read_format,
		.branch_sample_type = branch_type,
		.sample_regs_user = 7,
		.sample_regs_intr = 1ull << 63 | 1,
	};
}

static void check_attr(const struct perf_event_attr *attr)
{
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct record_maker m;
		struct sample sample;
		record_maker_init(&m, is_swapped);
		m.time_ns = 126;
		record_maker_sample(&m, PERF_RECORD_MISC_USER, attr, &full);
		assert_true(sample_read(&m.records[0], attr, is_swapped, &sample));
		check_plain_fields(attr, &sample);
		check_counters(attr, is_swapped, &sample);
		check_lists(attr, is_swapped, &sample);
		record_maker_fini(&m);
	}
}

static void sample_reads_each_field_alone(void **state)
{
	(void)state;
	for (int bit = 0; bit < 25; bit++) {
		const struct perf_event_attr attr = make_attr(1ull << bit, 0, 0);
		check_attr(&attr);
	}
	const struct perf_event_attr none = make_attr(0, 0, 0);
	check_attr(&none);
	const struct perf_event_attr all = make_attr(PERF_SAMPLE_KNOWN, 0, 0);
	check_attr(&all);
}

static void sample_reads_every_read_format(void **state)
{
	(void)state;
	for (uint64_t format = 0; format < 32; format++) {
		const struct perf_event_attr alone = make_attr(PERF_SAMPLE_READ, format, 0);
		check_attr(&alone);
		const struct perf_event_attr among = make_attr(
			PERF_SAMPLE_READ | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN, format, 0);
		check_attr(&among);
	}
}

static void sample_reads_fields_in_any_combination(void **state)
{
	(void)state;
	uint64_t seed = 0x5eed;
	for (int i = 0; i < 20000; i++) {
		uint64_t branch_type = next_random(&seed) &
				       (PERF_SAMPLE_BRANCH_HW_INDEX | PERF_SAMPLE_BRANCH_COUNTERS);
		const struct perf_event_attr attr =
			make_attr(next_random(&seed) & PERF_SAMPLE_KNOWN, next_random(&seed) & 31,
				  branch_type);
		check_attr(&attr);
	}
}

/* From a block of exactly that size, for the sanitizers. */
static bool is_readable(const struct record_maker *m, const struct perf_event_attr *attr,
			uint32_t size)
{
	struct perf_record record = m->records[0];
	struct sample sample;
	uint8_t *bytes = mem_zalloc(size, 1);
	memcpy(bytes, record.bytes, size < record.size ? size : record.size);
	record.bytes = bytes;
	record.size = size;
	bool ok = sample_read(&record, attr, m->is_swapped, &sample);
	mem_free(bytes);
	return ok;
}

static void sample_cut_at_any_byte_is_refused(void **state)
{
	(void)state;
	uint64_t seed = 0xc07;
	for (int i = 0; i < 300; i++) {
		uint64_t type = i ? next_random(&seed) & PERF_SAMPLE_KNOWN : PERF_SAMPLE_KNOWN;
		const struct perf_event_attr attr = make_attr(type, next_random(&seed) & 31, 0);
		struct record_maker m;
		record_maker_init(&m, i % 2);
		record_maker_sample(&m, 0, &attr, &full);
		for (uint32_t size = 8; size < m.records[0].size; size++)
			assert_false(is_readable(&m, &attr, size));
		record_maker_fini(&m);
	}
}

static void sample_with_bytes_left_over_is_refused(void **state)
{
	(void)state;
	for (int bit = 0; bit < 25; bit++) {
		const struct perf_event_attr attr = make_attr(1ull << bit, 0, 0);
		struct record_maker m;
		record_maker_init(&m, false);
		record_maker_sample(&m, 0, &attr, &full);
		uint32_t size = m.records[0].size;
		assert_true(is_readable(&m, &attr, size));
		assert_true(is_readable(&m, &attr, size + 7)); /* padding */
		assert_false(is_readable(&m, &attr, size + 8));
		assert_false(is_readable(&m, &attr, size + 800));
		record_maker_fini(&m);
	}
}

static void sample_with_fields_of_the_future_is_read_as_far_as_known(void **state)
{
	(void)state;
	struct perf_event_attr attr = make_attr(PERF_SAMPLE_IP | PERF_SAMPLE_TID, 0, 0);
	struct record_maker m;
	struct sample sample;
	record_maker_init(&m, false);
	attr.sample_type |= 1ull << 40;
	record_maker_begin(&m, PERF_RECORD_SAMPLE, 0);
	record_maker_u64(&m, 0x1234);
	record_maker_u32(&m, 5);
	record_maker_u32(&m, 6);
	record_maker_u64(&m, 99);
	record_maker_u64(&m, 99);
	record_maker_end(&m);
	assert_true(sample_read(&m.records[0], &attr, false, &sample));
	assert_int_equal(sample.ip, 0x1234);
	assert_int_equal(sample.tid, 6);
	record_maker_fini(&m);
}

/* A record of one count and some bytes behind it. */
static void check_count(uint64_t type, uint64_t read_format, uint64_t count)
{
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		const struct perf_event_attr attr = make_attr(type, read_format, 0);
		struct record_maker m;
		record_maker_init(&m, is_swapped);
		record_maker_begin(&m, PERF_RECORD_SAMPLE, 0);
		record_maker_u64(&m, count);
		for (int i = 0; i < 6; i++)
			record_maker_u64(&m, 1);
		record_maker_end(&m);
		assert_false(is_readable(&m, &attr, m.records[0].size));
		record_maker_fini(&m);
	}
}

static void sample_counts_of_2_to_the_64_are_refused(void **state)
{
	(void)state;
	static const uint64_t counts[] = {
		UINT64_MAX,	UINT64_MAX - 7,	  1ull << 63,	       1ull << 62,
		1ull << 61,	(1ull << 61) + 1, UINT64_MAX / 24 + 1, UINT64_MAX / 16 + 1,
		UINT64_MAX / 3, UINT32_MAX,	  1ull << 32,	       1000,
	};
	static const uint64_t types[] = {PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_BRANCH_STACK,
					 PERF_SAMPLE_STACK_USER, PERF_SAMPLE_AUX};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			check_count(types[t], 0, counts[i]);
		for (uint64_t format = 0; format < 32; format++) {
			if (format & PERF_FORMAT_GROUP)
				check_count(PERF_SAMPLE_READ, format, counts[i]);
		}
		check_count(PERF_SAMPLE_RAW, 0, counts[i] | UINT32_MAX);
	}
}

static void sample_without_registers_or_stack_has_no_bytes_for_them(void **state)
{
	(void)state;
	struct record_maker_sample empty = full;
	empty.user_regs_abi = 0;
	empty.intr_regs_abi = 0;
	empty.stack_size = 0;
	empty.n_branches = 0;
	empty.n_chain = 0;
	const struct perf_event_attr attr = make_attr(
		PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_STACK_USER |
			PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_CGROUP,
		0, 0);
	struct record_maker m;
	struct sample sample;
	record_maker_init(&m, false);
	record_maker_sample(&m, 0, &attr, &empty);
	assert_int_equal(m.records[0].size, 8 + 6 * 8);
	assert_true(sample_read(&m.records[0], &attr, false, &sample));
	assert_int_equal(sample.user_regs_abi, 0);
	assert_null(sample.user_regs);
	assert_int_equal(sample.stack_bytes, 0);
	assert_int_equal(sample.n_chain, 0);
	assert_int_equal(sample.n_branches, 0);
	assert_int_equal(sample.cgroup_id, 111);
	record_maker_fini(&m);
}

static void sample_stack_says_no_more_than_it_has(void **state)
{
	(void)state;
	struct record_maker_sample lying = full;
	lying.stack_valid = UINT64_MAX;
	const struct perf_event_attr attr = make_attr(PERF_SAMPLE_STACK_USER, 0, 0);
	struct record_maker m;
	struct sample sample;
	record_maker_init(&m, false);
	record_maker_sample(&m, 0, &attr, &lying);
	assert_true(sample_read(&m.records[0], &attr, false, &sample));
	assert_int_equal(sample.stack_bytes, sizeof(stack));
	record_maker_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_reads_each_field_alone),
		cmocka_unit_test(sample_reads_every_read_format),
		cmocka_unit_test(sample_reads_fields_in_any_combination),
		cmocka_unit_test(sample_cut_at_any_byte_is_refused),
		cmocka_unit_test(sample_with_bytes_left_over_is_refused),
		cmocka_unit_test(sample_with_fields_of_the_future_is_read_as_far_as_known),
		cmocka_unit_test(sample_counts_of_2_to_the_64_are_refused),
		cmocka_unit_test(sample_without_registers_or_stack_has_no_bytes_for_them),
		cmocka_unit_test(sample_stack_says_no_more_than_it_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
