/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "converter/survey.h"
#include "tests/support/record_maker.h"

enum {
	USER = PERF_RECORD_MISC_USER,
	KERNEL = PERF_RECORD_MISC_KERNEL,
	SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
		      PERF_SAMPLE_CALLCHAIN,
};

struct fixture {
	struct perf_event_info events[2];
	struct perf_source_info source;
	struct record_maker maker;
	struct survey *survey;
};

static void fixture_init(struct fixture *f, bool is_swapped)
{
	*f = (struct fixture){0};
	for (int i = 0; i < 2; i++) {
		f->events[i].attr.size = sizeof(f->events[i].attr);
		f->events[i].attr.sample_type = SAMPLE_TYPE;
		f->events[i].attr.sample_period = 1000;
		perf_attr_set(&f->events[i].attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
		f->events[i].layout = sample_layout_of(&f->events[i].attr);
	}
	f->source = (struct perf_source_info){
		.is_swapped = is_swapped, .events = f->events, .n_events = 2};
	record_maker_init(&f->maker, is_swapped);
	f->maker.trailer = &f->events[0].attr;
	f->survey = survey_new(&f->source);
}

static void fixture_fini(struct fixture *f)
{
	survey_free(f->survey);
	record_maker_fini(&f->maker);
}

static const struct survey_report *finish(struct fixture *f)
{
	assert_null(survey_feed(f->survey, f->maker.records, f->maker.n));
	return survey_finish(f->survey);
}

static void add_sample(struct fixture *f, uint32_t event, uint16_t misc, uint32_t pid, uint64_t ip,
		       const uint64_t *chain, uint64_t n_chain)
{
	const struct record_maker_sample sample = {
		.ip = ip, .pid = pid, .tid = pid, .period = 10, .chain = chain, .n_chain = n_chain};
	f->maker.event_index = event;
	record_maker_sample(&f->maker, misc, &f->events[event].attr, &sample);
	f->maker.event_index = 0;
}

static void survey_counts_samples_by_event_and_by_task(void **state)
{
	(void)state;
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture f;
		fixture_init(&f, is_swapped);
		record_maker_comm(&f.maker, 7, 7, "first", true);
		f.maker.time_ns = 500;
		add_sample(&f, 0, USER, 7, 0x1000, NULL, 0);
		f.maker.time_ns = 400;
		add_sample(&f, 1, USER, 7, 0x1000, NULL, 0);
		record_maker_comm(&f.maker, 7, 7, "then", true);
		add_sample(&f, 1, USER, 7, 0x1000, NULL, 0);
		add_sample(&f, 1, USER, 8, 0x1000, NULL, 0);
		const struct survey_report *report = finish(&f);
		assert_int_equal(report->n_samples, 4);
		assert_int_equal(report->first_ns, 400);
		assert_int_equal(report->last_ns, 500);
		assert_int_equal(report->n_events, 2);
		assert_int_equal(report->events[0].n_samples, 1);
		assert_int_equal(report->events[1].n_samples, 3);
		assert_int_equal(report->events[1].period_sum, 30);
		assert_int_equal(report->n_tasks, 3);
		assert_string_equal(report->tasks[0].comm, "first");
		assert_int_equal(report->tasks[0].n_samples, 2);
		assert_string_equal(report->tasks[1].comm, ":8");
		assert_string_equal(report->tasks[2].comm, "then");
		fixture_fini(&f);
	}
}

static void survey_places_addresses_in_files_and_kernel(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	record_maker_kernel(&f.maker, 0xffffffff81000000, 0x1000000, 0, "[kernel.kallsyms]_text");
	record_maker_kernel(&f.maker, 0xffffffffa0000000, 0x1000, 0, "/lib/modules/6/ext4.ko");
	record_maker_ksymbol(&f.maker, 0xffffffffa0001000, 0x100, "bpf_prog_1", false);
	record_maker_mmap(&f.maker, 7, 0x400000, 0x1000, 0x2000, "/bin/app");
	record_maker_mmap(&f.maker, 7, 0x500000, 0x1000, 0, "[vdso]");
	record_maker_mmap(&f.maker, 7, 0x600000, 0x1000, 0, "//anon");
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	add_sample(&f, 0, USER, 7, 0x500020, NULL, 0);
	add_sample(&f, 0, USER, 7, 0x600030, NULL, 0);
	add_sample(&f, 0, USER, 7, 0x700040, NULL, 0);
	add_sample(&f, 0, KERNEL, 7, 0xffffffff81000050, NULL, 0);
	add_sample(&f, 0, KERNEL, 7, 0xffffffffa0000060, NULL, 0);
	add_sample(&f, 0, KERNEL, 7, 0xffffffffa0001000, NULL, 0);
	add_sample(&f, 0, KERNEL, 7, 0xffffffffb0000070, NULL, 0);
	add_sample(&f, 0, PERF_RECORD_MISC_HYPERVISOR, 7, 1, NULL, 0);
	const struct survey_report *report = finish(&f);
	static const uint8_t kinds[] = {SURVEY_FILE,	SURVEY_VDSO,	   SURVEY_ANON,
					SURVEY_KERNEL,	SURVEY_MODULE,	   SURVEY_BPF,
					SURVEY_UNKNOWN, SURVEY_HYPERVISOR, SURVEY_KERNEL_UNMAPPED};
	for (size_t i = 0; i < sizeof(kinds); i++)
		assert_int_equal(report->n_by_kind[kinds[i]], kinds[i] == SURVEY_FILE ? 2 : 1);
	assert_int_equal(report->n_leaves, 9);
	assert_string_equal(report->leaves[0].file, "/bin/app");
	assert_int_equal(report->leaves[0].address, 0x2010);
	assert_int_equal(report->leaves[0].n_samples, 2);
	assert_int_equal(report->leaves[0].period_sum, 20);
	assert_int_equal(report->n_user, 3);
	assert_int_equal(report->n_user_files, 3);
	assert_string_equal(report->user[0].file, "/bin/app");
	assert_int_equal(report->n_kernel, 3);
	assert_string_equal(report->kernel[0].file, "/lib/modules/6/ext4.ko");
	assert_string_equal(report->kernel[1].file, "[kernel.kallsyms]");
	assert_string_equal(report->kernel[2].file, "bpf_prog_1");
	fixture_fini(&f);
}

static void survey_gives_an_unloaded_bpf_program_back_to_the_kernel(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	record_maker_ksymbol(&f.maker, 0xffffffffa0001000, 0x100, "bpf_prog_1", false);
	record_maker_ksymbol(&f.maker, 0xffffffffa0001000, 0x100, "bpf_prog_1", true);
	add_sample(&f, 0, KERNEL, 7, 0xffffffffa0001000, NULL, 0);
	assert_int_equal(finish(&f)->n_by_kind[SURVEY_KERNEL], 1);
	fixture_fini(&f);
}

static void survey_counts_one_file_of_two_processes_once(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	record_maker_mmap(&f.maker, 7, 0x400000, 0x1000, 0, "/bin/app");
	record_maker_task(&f.maker, PERF_RECORD_FORK, 8, 7, 8, 7);
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	add_sample(&f, 0, USER, 8, 0x400010, NULL, 0);
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_user, 2);
	assert_int_equal(report->n_user_files, 1);
	assert_int_equal(report->n_leaves, 1);
	assert_int_equal(report->n_stacks_by_pid, 2);
	fixture_fini(&f);
}

static void survey_splits_chains_at_their_markers(void **state)
{
	(void)state;
	static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000050, PERF_CONTEXT_USER,
					 0x400010, 0x400020};
	static const uint64_t bare[] = {0x400010};
	struct fixture f;
	fixture_init(&f, true);
	add_sample(&f, 0, KERNEL, 7, 0xffffffff81000050, chain, 5);
	add_sample(&f, 1, KERNEL, 7, 0xffffffff81000050, chain, 5);
	add_sample(&f, 0, USER, 7, 0x400010, bare, 1);
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->chains.n_with, 3);
	assert_int_equal(report->chains.n_empty, 1);
	assert_int_equal(report->chains.n_entries, 11);
	assert_int_equal(report->chains.n_frames, 7);
	assert_int_equal(report->chains.n_kernel_frames, 2);
	assert_int_equal(report->chains.n_user_frames, 5);
	assert_int_equal(report->chains.max_frames, 3);
	/* A sample without a chain is the stack of its own address. */
	assert_int_equal(report->n_stacks_by_pid, 2);
	assert_int_equal(report->n_stacks_by_event_pid, 3);
	fixture_fini(&f);
}

static void survey_joins_deferred_chains_with_their_samples(void **state)
{
	(void)state;
	static const uint64_t waiting[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000050,
					   PERF_CONTEXT_USER_DEFERRED, 42};
	static const uint64_t left[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000050,
					PERF_CONTEXT_USER_DEFERRED, 43};
	static const uint64_t user[] = {PERF_CONTEXT_USER, 0x400010, 0x400020};
	struct fixture f;
	fixture_init(&f, false);
	f.maker.pid = f.maker.tid = 7;
	add_sample(&f, 0, KERNEL, 7, 0xffffffff81000050, waiting, 4);
	add_sample(&f, 0, KERNEL, 7, 0xffffffff81000050, left, 4);
	record_maker_deferred(&f.maker, 7, 42, user, 3);
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_samples, 2);
	assert_int_equal(report->n_deferred_records, 1);
	assert_int_equal(report->n_deferred_merged, 1);
	assert_int_equal(report->n_deferred_left, 1);
	assert_int_equal(report->chains.n_frames, 4);
	assert_int_equal(report->chains.n_user_frames, 2);
	assert_int_equal(report->chains.n_entries, 3 + 3 + 2);
	fixture_fini(&f);
}

static void survey_keeps_both_kinds_of_loss_apart(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	record_maker_lost(&f.maker, 5);
	record_maker_lost(&f.maker, 6);
	record_maker_lost_samples(&f.maker, 9);
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_lost_records, 2);
	assert_int_equal(report->n_lost_events, 11);
	assert_int_equal(report->n_lost_samples_records, 1);
	assert_int_equal(report->n_lost_samples, 9);
	fixture_fini(&f);
}

static void survey_counts_what_it_cannot_read(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	f.maker.records[0].size -= 8; /* cut: the chain's length is missing */
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	f.maker.records[1].event_index = PERF_EVENT_INDEX_NONE;
	record_maker_begin(&f.maker, PERF_RECORD_COMM, 0);
	record_maker_end(&f.maker);
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_samples, 0);
	assert_int_equal(report->first_ns, 0);
	assert_int_equal(report->n_malformed, 1);
	assert_int_equal(report->n_no_event, 1);
	assert_int_equal(report->n_malformed_records, 1);
	fixture_fini(&f);
}

static void survey_says_when_a_table_was_full(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	enum { OVER = 10 };
	for (uint64_t i = 0; i < SURVEY_LEAVES_MAX + OVER; i++) {
		add_sample(&f, 0, USER, 7, i, NULL, 0);
		if (f.maker.n == 4096) {
			assert_null(survey_feed(f.survey, f.maker.records, f.maker.n));
			record_maker_clear(&f.maker);
		}
	}
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_samples, SURVEY_LEAVES_MAX + OVER);
	assert_int_equal(report->n_leaves, SURVEY_LEAVES_MAX);
	assert_int_equal(report->n_leaves_over, OVER);
	assert_int_equal(report->n_stacks_over, 0);
	fixture_fini(&f);
}

static void survey_sees_events_that_come_later(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, false);
	f.source.n_events = 1;
	add_sample(&f, 0, USER, 7, 0x400010, NULL, 0);
	assert_null(survey_feed(f.survey, f.maker.records, f.maker.n));
	record_maker_clear(&f.maker);
	f.source.n_events = 2;
	const struct survey_report *report = finish(&f);
	assert_int_equal(report->n_events, 2);
	assert_int_equal(report->events[0].n_samples, 1);
	assert_int_equal(report->events[1].n_samples, 0);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survey_counts_samples_by_event_and_by_task),
		cmocka_unit_test(survey_places_addresses_in_files_and_kernel),
		cmocka_unit_test(survey_gives_an_unloaded_bpf_program_back_to_the_kernel),
		cmocka_unit_test(survey_counts_one_file_of_two_processes_once),
		cmocka_unit_test(survey_splits_chains_at_their_markers),
		cmocka_unit_test(survey_joins_deferred_chains_with_their_samples),
		cmocka_unit_test(survey_keeps_both_kinds_of_loss_apart),
		cmocka_unit_test(survey_counts_what_it_cannot_read),
		cmocka_unit_test(survey_says_when_a_table_was_full),
		cmocka_unit_test(survey_sees_events_that_come_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
