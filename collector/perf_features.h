/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HEADER features of perf.data, one function each: file mode has them behind the data, pipe
 * mode as records. Only what somebody downstream uses is decoded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "collector/perf_file.h"

/* The numbers of perf (tools/perf/util/header.h). */
enum perf_feature {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_VERSION = 5,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_CPUDESC = 8,
	PERF_FEATURE_CPUID = 9,
	PERF_FEATURE_TOTAL_MEM = 10,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_CPU_TOPOLOGY = 13,
	PERF_FEATURE_NUMA_TOPOLOGY = 14,
	PERF_FEATURE_BRANCH_STACK = 15,
	PERF_FEATURE_PMU_MAPPINGS = 16,
	PERF_FEATURE_GROUP_DESC = 17,
	PERF_FEATURE_AUXTRACE = 18,
	PERF_FEATURE_STAT = 19,
	PERF_FEATURE_CACHE = 20,
	PERF_FEATURE_SAMPLE_TIME = 21,
	PERF_FEATURE_MEM_TOPOLOGY = 22,
	PERF_FEATURE_CLOCKID = 23,
	PERF_FEATURE_DIR_FORMAT = 24,
	PERF_FEATURE_BPF_PROG_INFO = 25,
	PERF_FEATURE_BPF_BTF = 26,
	PERF_FEATURE_COMPRESSED = 27,
	PERF_FEATURE_CPU_PMU_CAPS = 28,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_FEATURE_HYBRID_TOPOLOGY = 30,
	PERF_FEATURE_PMU_CAPS = 31,
	PERF_FEATURE_CPU_DOMAIN_INFO = 32,
	PERF_FEATURE_E_MACHINE = 33,
	PERF_FEATURE_CLN_SIZE = 34,
	PERF_FEATURE_KNOWN = 35, /* one past the last */
};

/* Whether its content is decoded at all. */
bool perf_feature_is_needed(uint8_t feature);
/* Takes over what the payload says; false when it is damaged (what was read before stays). */
bool perf_feature_apply(struct perf_file *file, uint8_t feature, struct cursor *c);
/* The EVENT_DESC payload again, for attrs that came after it. */
void perf_feature_apply_event_desc(struct perf_file *file);
/* One build-id entry; c stands behind the record header. False when it does not fit. */
bool perf_feature_add_build_id(struct perf_file *file, uint16_t misc, struct cursor *c);
