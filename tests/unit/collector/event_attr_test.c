/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "collector/event_attr.h"
#include "collector/tracepoint.h"

static struct error *fake_tracepoint_id(const char *system, const char *name, uint64_t *out)
{
	if (strcmp(system, "sched") == 0 && strcmp(name, "sched_switch") == 0) {
		*out = 310;
		return NULL;
	}
	if (strcmp(system, "hidden") == 0)
		return error_new(ERROR_UNAVAILABLE, "tracefs is not mounted");
	return error_new(ERROR_NO_ENTRY, "no tracepoint %s:%s", system, name);
}

static void fake_tracepoint_names(struct buf *names)
{
	error_free(buf_printf(names, "sched:sched_switch\nsched:sched_waking\nirq:irq_handler\n"));
}

static bool fake_pfm_encode(const char *name, struct pfm_event *out)
{
	if (strcmp(name, "INST_RETIRED:ANY_P:u") != 0)
		return false;
	*out = (struct pfm_event){
		.type = PERF_TYPE_RAW, .config = 0xc0, .exclude_kernel = true, .precise_ip = 1};
	return true;
}

static const struct event_attr_host fake_host = {
	.tracepoint_id = fake_tracepoint_id,
	.tracepoint_names = fake_tracepoint_names,
	.pfm_encode = fake_pfm_encode,
};

static struct event_attr_list list;

static const struct perf_event_attr *parse(const char *text)
{
	struct error *err = event_attr_parse(text, &fake_host, &list);
	if (err)
		print_error("%s\n", error_text(err));
	assert_null(err);
	return &list.events[0].attr;
}

static void refuse(const char *text, const char *part)
{
	struct error *err = event_attr_parse(text, &fake_host, &list);

	assert_non_null(err);
	assert_int_equal(error_get_number(err), 105);
	if (!strstr(error_text(err), part))
		print_error("%s lacks %s\n", error_text(err), part);
	assert_non_null(strstr(error_text(err), part));
	error_free(err);
}

static void names_give_type_and_config(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{"cycles", PERF_TYPE_HARDWARE, 0},
		{"instructions", PERF_TYPE_HARDWARE, 1},
		{"branch-misses", PERF_TYPE_HARDWARE, 5},
		{"cpu-clock", PERF_TYPE_SOFTWARE, 0},
		{"faults", PERF_TYPE_SOFTWARE, 2},
		{"cs", PERF_TYPE_SOFTWARE, 3},
		{"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000},
		{"LLC-stores", PERF_TYPE_HW_CACHE, 0x102},
		{"dTLB-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10203},
		{"r1A8", PERF_TYPE_RAW, 0x1a8},
		{"rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX},
		{"sched:sched_switch", PERF_TYPE_TRACEPOINT, 310},
		{"INST_RETIRED:ANY_P:u", PERF_TYPE_RAW, 0xc0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct perf_event_attr *attr = parse(cases[i].text);
		assert_int_equal(attr->type, cases[i].type);
		assert_true(attr->config == cases[i].config);
		assert_string_equal(list.events[0].name, cases[i].text);
	}
	assert_true(perf_attr_has(parse("INST_RETIRED:ANY_P:u"), PERF_ATTR_EXCLUDE_KERNEL));
}

static void modifiers_choose_levels(void **state)
{
	(void)state;
	const struct perf_event_attr *attr = parse("cycles:u");
	assert_false(perf_attr_has(attr, PERF_ATTR_EXCLUDE_USER));
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_KERNEL));
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_HV));
	attr = parse("cycles:kpp");
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_USER));
	assert_false(perf_attr_has(attr, PERF_ATTR_EXCLUDE_KERNEL));
	assert_int_equal(attr->flags >> PERF_ATTR_PRECISE_IP & 3, 2);
	attr = parse("cycles:G");
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_HOST));
	assert_false(perf_attr_has(attr, PERF_ATTR_EXCLUDE_GUEST));
	attr = parse("cycles:DeI");
	assert_true(perf_attr_has(attr, PERF_ATTR_PINNED));
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUSIVE));
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_IDLE));
	attr = parse("sched:sched_switch:k");
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_USER));
	refuse("cycles:x", "modifiers");
	refuse("cycles:pppp", "modifiers");
}

static void breakpoints_have_address_length_and_access(void **state)
{
	(void)state;
	const struct perf_event_attr *attr = parse("mem:0x601040");
	assert_int_equal(attr->type, PERF_TYPE_BREAKPOINT);
	assert_int_equal(attr->config1, 0x601040);
	assert_int_equal(attr->config2, 4);
	assert_int_equal(attr->bp_type, 3);
	attr = parse("mem:0x601040/8:w:u");
	assert_int_equal(attr->config2, 8);
	assert_int_equal(attr->bp_type, 2);
	assert_true(perf_attr_has(attr, PERF_ATTR_EXCLUDE_KERNEL));
	attr = parse("mem:0x401000:x");
	assert_int_equal(attr->config2, sizeof(long));
	assert_int_equal(attr->bp_type, 4);
	attr = parse("mem:0x601040:u");
	assert_int_equal(attr->bp_type, 3);
	refuse("mem:here", "breakpoint");
	refuse("mem:0x10/3", "breakpoint");
}

static void lists_are_taken_in_order(void **state)
{
	(void)state;
	parse("cpu-clock,page-faults:u,sched:sched_switch");
	assert_int_equal(list.n, 3);
	assert_string_equal(list.events[1].name, "page-faults:u");
	assert_int_equal(list.events[2].attr.config, 310);
	refuse("cycles,,cs", "empty");
	refuse("", "empty");
	refuse("cycles,", "empty");
}

static void unknown_names_list_near_ones(void **state)
{
	(void)state;
	refuse("cycels", "near: cycles");
	refuse("page-fault", "page-faults");
	refuse("L1-dcache-load-miss", "L1-dcache-load-misses");
	refuse("sched:sched_swich", "sched:sched_switch");
	refuse("qqqqqqqqqqqq", "event not known");
	refuse("hidden:tracepoint", "tracefs is not mounted");
	char name[200];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	refuse(name, "too long");
}

static void too_many_events_are_refused(void **state)
{
	(void)state;
	char text[EVENT_ATTR_MAX_EVENTS * 3 + 3];

	for (size_t i = 0; i <= EVENT_ATTR_MAX_EVENTS; i++)
		memcpy(text + i * 3, "cs,", 3);
	text[sizeof(text) - 1] = 0;
	refuse(text, "more than");
}

static void sampling_attr_is_what_the_converter_reads(void **state)
{
	(void)state;
	struct perf_event_attr attr = *parse("cpu-clock");
	struct event_attr_sampling sampling = {0};

	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
						   PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_IDENTIFIER);
	assert_int_equal(attr.read_format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
	assert_int_equal(attr.sample_period, 99);
	assert_true(perf_attr_has(&attr, PERF_ATTR_FREQ));
	assert_true(perf_attr_has(&attr, PERF_ATTR_SAMPLE_ID_ALL));
	assert_true(perf_attr_has(&attr, PERF_ATTR_USE_CLOCKID));
	assert_int_equal(attr.clockid, CLOCK_MONOTONIC);
	assert_true(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_IDLE));
	assert_true(perf_attr_has(&attr, PERF_ATTR_DISABLED));

	attr = *parse("cycles");
	sampling.period = 1000000;
	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_period, 1000000);
	assert_false(perf_attr_has(&attr, PERF_ATTR_FREQ));
	assert_false(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_IDLE));

	attr = *parse("sched:sched_switch");
	sampling = (struct event_attr_sampling){0};
	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_period, 1);
	assert_false(perf_attr_has(&attr, PERF_ATTR_FREQ));
	attr = *parse("sched:sched_switch");
	sampling.frequency_hz = 50;
	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_period, 50);
	assert_true(perf_attr_has(&attr, PERF_ATTR_FREQ));
}

static void side_band_has_the_same_trailer_and_no_samples(void **state)
{
	(void)state;
	struct perf_event_attr sample = *parse("cpu-clock"), side_band, keeper;
	struct event_attr_sampling sampling = {0};

	event_attr_set_sampling(&sample, &sampling);
	event_attr_set_side_band(&side_band);
	event_attr_set_keeper(&keeper, 4096);
	assert_int_equal(side_band.config, PERF_COUNT_SW_DUMMY);
	assert_int_equal(side_band.sample_type, sample.sample_type);
	assert_true(perf_attr_has(&side_band, PERF_ATTR_MMAP2));
	assert_false(perf_attr_has(&side_band, PERF_ATTR_BUILD_ID));
	assert_true(perf_attr_has(&side_band, PERF_ATTR_COMM_EXEC));
	assert_true(perf_attr_has(&side_band, PERF_ATTR_TASK));
	assert_false(perf_attr_has(&keeper, PERF_ATTR_MMAP2));
	assert_int_equal(keeper.wakeup_events, 4096);
}

static void copied_stack_takes_the_place_of_the_user_chain(void **state)
{
	(void)state;
	struct perf_event_attr attr = *parse("cpu-clock");
	struct event_attr_sampling sampling = {.call_graph = COLLECTOR_CALL_GRAPH_DWARF};
	const uint64_t copied = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_type & copied, copied);
	assert_true(attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	assert_true(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_CALLCHAIN_USER));
	assert_int_equal(attr.sample_stack_user, COLLECTOR_STACK_BYTES_DEFAULT);
	assert_int_not_equal(attr.sample_regs_user, 0);

	attr = *parse("cpu-clock");
	sampling.call_graph = COLLECTOR_CALL_GRAPH_AUTO;
	sampling.stack_bytes = 8192;
	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_type & copied, copied);
	assert_false(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_CALLCHAIN_USER));
	assert_int_equal(attr.sample_stack_user, 8192);

	attr = *parse("cpu-clock");
	sampling.call_graph = COLLECTOR_CALL_GRAPH_NONE;
	event_attr_set_sampling(&attr, &sampling);
	assert_int_equal(attr.sample_type & (copied | PERF_SAMPLE_CALLCHAIN), 0);
	assert_int_equal(attr.sample_stack_user, 0);
}

static void fallback_keeps_levels_and_rate(void **state)
{
	(void)state;
	struct perf_event_attr attr = *parse("cycles:up");
	struct event_attr_sampling sampling = {.frequency_hz = 499};

	assert_true(event_attr_is_cycles(&attr));
	event_attr_set_sampling(&attr, &sampling);
	event_attr_set_fallback(&attr);
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(attr.flags >> PERF_ATTR_PRECISE_IP & 3, 0);
	assert_true(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_KERNEL));
	assert_true(perf_attr_has(&attr, PERF_ATTR_EXCLUDE_IDLE));
	assert_int_equal(attr.sample_period, 499);
	assert_false(event_attr_is_cycles(&attr));
}

static void tracepoint_field_is_found_in_its_format(void **state)
{
	(void)state;
	static const char format[] =
		"name: sched_process_exec\nID: 365\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
		"\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n";

	assert_int_equal(tracepoint_find_field(format, "filename"), 8);
	assert_int_equal(tracepoint_find_field(format, "pid"), 12);
	assert_int_equal(tracepoint_find_field(format, "name"), 0);
	assert_int_equal(tracepoint_find_field("field:", "name"), 0);
	assert_int_equal(tracepoint_find_field("", "name"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_give_type_and_config),
		cmocka_unit_test(modifiers_choose_levels),
		cmocka_unit_test(breakpoints_have_address_length_and_access),
		cmocka_unit_test(lists_are_taken_in_order),
		cmocka_unit_test(unknown_names_list_near_ones),
		cmocka_unit_test(too_many_events_are_refused),
		cmocka_unit_test(sampling_attr_is_what_the_converter_reads),
		cmocka_unit_test(side_band_has_the_same_trailer_and_no_samples),
		cmocka_unit_test(copied_stack_takes_the_place_of_the_user_chain),
		cmocka_unit_test(fallback_keeps_levels_and_rate),
		cmocka_unit_test(tracepoint_field_is_found_in_its_format),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
