/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "collector/event_name.h"

static void assert_name(const struct perf_event_attr *attr, const char *want)
{
	char *name = event_name_make(attr);
	assert_string_equal(name, want);
	mem_free(name);
}

static void event_name_knows_generic_events(void **state)
{
	(void)state;
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *want;
	} cases[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, "ref-cycles"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES, "cgroup-switches"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_name(
			&(struct perf_event_attr){.type = cases[i].type, .config = cases[i].config},
			cases[i].want);
}

static void event_name_leaves_the_core_type_of_hybrid_cpus_out(void **state)
{
	(void)state;
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HARDWARE,
					      .config = 10ull << 32 | PERF_COUNT_HW_CPU_CYCLES},
		    "cycles");
}

static void event_name_spells_cache_events(void **state)
{
	(void)state;
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HW_CACHE, .config = 0x10000},
		    "L1-dcache-load-misses");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HW_CACHE, .config = 0x00102},
		    "LLC-stores");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HW_CACHE, .config = 0x10203},
		    "dTLB-prefetch-misses");
}

static void event_name_falls_back_to_numbers(void **state)
{
	(void)state;
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_RAW, .config = 0x1a8}, "r1a8");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_TRACEPOINT, .config = 0x5b},
		    "type2:0x5b");
	assert_name(&(struct perf_event_attr){.type = 8, .config = 0x4000}, "type8:0x4000");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HARDWARE, .config = 99},
		    "type0:0x63");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_SOFTWARE, .config = 1ull << 40},
		    "type1:0x10000000000");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_HW_CACHE, .config = 0x20000},
		    "type3:0x20000");
}

static void event_name_shows_a_breakpoints_place_and_access(void **state)
{
	(void)state;
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_BREAKPOINT,
					      .bp_type = 3,
					      .config1 = 0x601040,
					      .config2 = 4},
		    "mem:0x601040/4:rw");
	assert_name(&(struct perf_event_attr){.type = PERF_TYPE_BREAKPOINT,
					      .bp_type = 4,
					      .config1 = 0x401000},
		    "mem:0x401000:x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_name_knows_generic_events),
		cmocka_unit_test(event_name_leaves_the_core_type_of_hybrid_cpus_out),
		cmocka_unit_test(event_name_spells_cache_events),
		cmocka_unit_test(event_name_falls_back_to_numbers),
		cmocka_unit_test(event_name_shows_a_breakpoints_place_and_access),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
