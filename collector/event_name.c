/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/event_name.h"

#include "base/compiler.h"
#include "base/mem.h"

static const char *const hardware_names[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
	[PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
	[PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
	[PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
	[PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses",
	[PERF_COUNT_HW_BUS_CYCLES] = "bus-cycles",
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = "stalled-cycles-frontend",
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = "stalled-cycles-backend",
	[PERF_COUNT_HW_REF_CPU_CYCLES] = "ref-cycles",
};

static const char *const software_names[] = {
	[PERF_COUNT_SW_CPU_CLOCK] = "cpu-clock",
	[PERF_COUNT_SW_TASK_CLOCK] = "task-clock",
	[PERF_COUNT_SW_PAGE_FAULTS] = "page-faults",
	[PERF_COUNT_SW_CONTEXT_SWITCHES] = "context-switches",
	[PERF_COUNT_SW_CPU_MIGRATIONS] = "cpu-migrations",
	[PERF_COUNT_SW_PAGE_FAULTS_MIN] = "minor-faults",
	[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = "major-faults",
	[PERF_COUNT_SW_ALIGNMENT_FAULTS] = "alignment-faults",
	[PERF_COUNT_SW_EMULATION_FAULTS] = "emulation-faults",
	[PERF_COUNT_SW_DUMMY] = "dummy",
	[PERF_COUNT_SW_BPF_OUTPUT] = "bpf-output",
	[PERF_COUNT_SW_CGROUP_SWITCHES] = "cgroup-switches",
};

static const char *const cache_names[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					  "iTLB",      "branch",    "node"};
static const char *const cache_accesses[] = {"loads", "stores", "prefetches"};
static const char *const cache_misses[] = {"load-misses", "store-misses", "prefetch-misses"};

/* config: cache in byte 0, operation in byte 1, result in byte 2. */
static char *name_cache(uint32_t config)
{
	uint32_t cache = config & 0xff;
	uint32_t operation = config >> 8 & 0xff;
	uint32_t result = config >> 16;
	if (cache >= ARRAY_LEN(cache_names) || operation >= ARRAY_LEN(cache_accesses) || result > 1)
		return NULL;
	return mem_format("%s-%s", cache_names[cache],
			  result ? cache_misses[operation] : cache_accesses[operation]);
}

/* bp_type: 1 read, 2 write, 4 execute; config1 is the address, config2 the length. */
static char *name_breakpoint(const struct perf_event_attr *attr)
{
	char access[5];
	size_t n = 0;
	if (attr->bp_type & 7)
		access[n++] = ':';
	for (unsigned bit = 0; bit < 3; bit++)
		if (attr->bp_type >> bit & 1)
			access[n++] = "rwx"[bit];
	access[n] = 0;
	if (!attr->config2)
		return mem_format("mem:0x%llx%s", (unsigned long long)attr->config1, access);
	return mem_format("mem:0x%llx/%llu%s", (unsigned long long)attr->config1,
			  (unsigned long long)attr->config2, access);
}

char *event_name_make(const struct perf_event_attr *attr)
{
	/* Hybrid machines keep the core type's PMU in the upper half of config. */
	uint32_t generic = (uint32_t)attr->config;
	char *name = NULL;
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		if (generic < ARRAY_LEN(hardware_names))
			return mem_copy_string(hardware_names[generic]);
		break;
	case PERF_TYPE_SOFTWARE:
		if (attr->config < ARRAY_LEN(software_names))
			return mem_copy_string(software_names[attr->config]);
		break;
	case PERF_TYPE_HW_CACHE:
		name = name_cache(generic);
		break;
	case PERF_TYPE_BREAKPOINT:
		return name_breakpoint(attr);
	case PERF_TYPE_RAW:
		return mem_format("r%llx", (unsigned long long)attr->config);
	default:
		break;
	}
	if (name)
		return name;
	return mem_format("type%u:0x%llx", attr->type, (unsigned long long)attr->config);
}
