/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's perf_event ABI (include/uapi/linux/perf_event.h) up to 7.x and perf's user-space
 * record types (tools/lib/perf/include/perf/event.h), in our own definitions: the distribution's
 * header is older than the files we read. Values are facts of the ABI; names follow the kernel's.
 */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum perf_abi_type {
	PERF_TYPE_HARDWARE = 0,
	PERF_TYPE_SOFTWARE = 1,
	PERF_TYPE_TRACEPOINT = 2,
	PERF_TYPE_HW_CACHE = 3,
	PERF_TYPE_RAW = 4,
	PERF_TYPE_BREAKPOINT = 5,
};

enum perf_abi_hw {
	PERF_COUNT_HW_CPU_CYCLES = 0,
	PERF_COUNT_HW_INSTRUCTIONS = 1,
	PERF_COUNT_HW_CACHE_REFERENCES = 2,
	PERF_COUNT_HW_CACHE_MISSES = 3,
	PERF_COUNT_HW_BRANCH_INSTRUCTIONS = 4,
	PERF_COUNT_HW_BRANCH_MISSES = 5,
	PERF_COUNT_HW_BUS_CYCLES = 6,
	PERF_COUNT_HW_STALLED_CYCLES_FRONTEND = 7,
	PERF_COUNT_HW_STALLED_CYCLES_BACKEND = 8,
	PERF_COUNT_HW_REF_CPU_CYCLES = 9,
};

enum perf_abi_sw {
	PERF_COUNT_SW_CPU_CLOCK = 0,
	PERF_COUNT_SW_TASK_CLOCK = 1,
	PERF_COUNT_SW_PAGE_FAULTS = 2,
	PERF_COUNT_SW_CONTEXT_SWITCHES = 3,
	PERF_COUNT_SW_CPU_MIGRATIONS = 4,
	PERF_COUNT_SW_PAGE_FAULTS_MIN = 5,
	PERF_COUNT_SW_PAGE_FAULTS_MAJ = 6,
	PERF_COUNT_SW_ALIGNMENT_FAULTS = 7,
	PERF_COUNT_SW_EMULATION_FAULTS = 8,
	PERF_COUNT_SW_DUMMY = 9,
	PERF_COUNT_SW_BPF_OUTPUT = 10,
	PERF_COUNT_SW_CGROUP_SWITCHES = 11,
};

enum perf_abi_sample {
	PERF_SAMPLE_IP = 1u << 0,
	PERF_SAMPLE_TID = 1u << 1,
	PERF_SAMPLE_TIME = 1u << 2,
	PERF_SAMPLE_ADDR = 1u << 3,
	PERF_SAMPLE_READ = 1u << 4,
	PERF_SAMPLE_CALLCHAIN = 1u << 5,
	PERF_SAMPLE_ID = 1u << 6,
	PERF_SAMPLE_CPU = 1u << 7,
	PERF_SAMPLE_PERIOD = 1u << 8,
	PERF_SAMPLE_STREAM_ID = 1u << 9,
	PERF_SAMPLE_RAW = 1u << 10,
	PERF_SAMPLE_BRANCH_STACK = 1u << 11,
	PERF_SAMPLE_REGS_USER = 1u << 12,
	PERF_SAMPLE_STACK_USER = 1u << 13,
	PERF_SAMPLE_WEIGHT = 1u << 14,
	PERF_SAMPLE_DATA_SRC = 1u << 15,
	PERF_SAMPLE_IDENTIFIER = 1u << 16,
	PERF_SAMPLE_TRANSACTION = 1u << 17,
	PERF_SAMPLE_REGS_INTR = 1u << 18,
	PERF_SAMPLE_PHYS_ADDR = 1u << 19,
	PERF_SAMPLE_AUX = 1u << 20,
	PERF_SAMPLE_CGROUP = 1u << 21,
	PERF_SAMPLE_DATA_PAGE_SIZE = 1u << 22,
	PERF_SAMPLE_CODE_PAGE_SIZE = 1u << 23,
	PERF_SAMPLE_WEIGHT_STRUCT = 1u << 24,
	PERF_SAMPLE_KNOWN = (1u << 25) - 1,
};

enum perf_abi_branch_sample {
	PERF_SAMPLE_BRANCH_USER = 1u << 0,
	PERF_SAMPLE_BRANCH_KERNEL = 1u << 1,
	PERF_SAMPLE_BRANCH_HV = 1u << 2,
	PERF_SAMPLE_BRANCH_ANY = 1u << 3,
	PERF_SAMPLE_BRANCH_CALL_STACK = 1u << 11,
	PERF_SAMPLE_BRANCH_HW_INDEX = 1u << 17,
	PERF_SAMPLE_BRANCH_COUNTERS = 1u << 19,
};

enum perf_abi_read_format {
	PERF_FORMAT_TOTAL_TIME_ENABLED = 1u << 0,
	PERF_FORMAT_TOTAL_TIME_RUNNING = 1u << 1,
	PERF_FORMAT_ID = 1u << 2,
	PERF_FORMAT_GROUP = 1u << 3,
	PERF_FORMAT_LOST = 1u << 4,
};

/* Bits of perf_event_attr.flags, by position from the least significant (little-endian layout). */
enum perf_abi_attr_flag {
	PERF_ATTR_DISABLED = 0,
	PERF_ATTR_INHERIT = 1,
	PERF_ATTR_PINNED = 2,
	PERF_ATTR_EXCLUSIVE = 3,
	PERF_ATTR_EXCLUDE_USER = 4,
	PERF_ATTR_EXCLUDE_KERNEL = 5,
	PERF_ATTR_EXCLUDE_HV = 6,
	PERF_ATTR_EXCLUDE_IDLE = 7,
	PERF_ATTR_MMAP = 8,
	PERF_ATTR_COMM = 9,
	PERF_ATTR_FREQ = 10,
	PERF_ATTR_INHERIT_STAT = 11,
	PERF_ATTR_ENABLE_ON_EXEC = 12,
	PERF_ATTR_TASK = 13,
	PERF_ATTR_WATERMARK = 14,
	PERF_ATTR_PRECISE_IP = 15, /* two bits */
	PERF_ATTR_MMAP_DATA = 17,
	PERF_ATTR_SAMPLE_ID_ALL = 18,
	PERF_ATTR_EXCLUDE_HOST = 19,
	PERF_ATTR_EXCLUDE_GUEST = 20,
	PERF_ATTR_EXCLUDE_CALLCHAIN_KERNEL = 21,
	PERF_ATTR_EXCLUDE_CALLCHAIN_USER = 22,
	PERF_ATTR_MMAP2 = 23,
	PERF_ATTR_COMM_EXEC = 24,
	PERF_ATTR_USE_CLOCKID = 25,
	PERF_ATTR_CONTEXT_SWITCH = 26,
	PERF_ATTR_WRITE_BACKWARD = 27,
	PERF_ATTR_NAMESPACES = 28,
	PERF_ATTR_KSYMBOL = 29,
	PERF_ATTR_BPF_EVENT = 30,
	PERF_ATTR_AUX_OUTPUT = 31,
	PERF_ATTR_CGROUP = 32,
	PERF_ATTR_TEXT_POKE = 33,
	PERF_ATTR_BUILD_ID = 34,
	PERF_ATTR_INHERIT_THREAD = 35,
	PERF_ATTR_REMOVE_ON_EXEC = 36,
	PERF_ATTR_SIGTRAP = 37,
	PERF_ATTR_DEFER_CALLCHAIN = 38,
	PERF_ATTR_DEFER_OUTPUT = 39,
};

enum {
	PERF_ATTR_SIZE_VER0 = 64,  /* 2.6.31 */
	PERF_ATTR_SIZE_VER8 = 136, /* 6.3: config3 */
	PERF_ATTR_SIZE_VER9 = 144, /* 7.x: config4 */
};

/* In native order and whole length; what an older file or kernel does not have is 0. */
struct perf_event_attr {
	uint32_t type;
	uint32_t size;
	uint64_t config;
	uint64_t sample_period; /* or sample_freq */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags;		/* bit field of the kernel, read with perf_attr_has() */
	uint32_t wakeup_events; /* or wakeup_watermark */
	uint32_t bp_type;
	uint64_t config1;
	uint64_t config2;
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint32_t sample_stack_user;
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack;
	uint16_t reserved_2;
	uint32_t aux_sample_size;
	uint32_t aux_action;
	uint64_t sig_data;
	uint64_t config3;
	uint64_t config4;
};
static_assert(sizeof(struct perf_event_attr) == PERF_ATTR_SIZE_VER9, "kernel ABI");

static inline int perf_attr_has(const struct perf_event_attr *attr, enum perf_abi_attr_flag flag)
{
	return (attr->flags >> flag) & 1;
}

static inline void perf_attr_set(struct perf_event_attr *attr, enum perf_abi_attr_flag flag, int on)
{
	attr->flags = (attr->flags & ~(1ull << flag)) | ((uint64_t) !!on << flag);
}

struct perf_event_header {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
};
static_assert(sizeof(struct perf_event_header) == 8, "kernel ABI");

enum perf_abi_record {
	PERF_RECORD_MMAP = 1,
	PERF_RECORD_LOST = 2,
	PERF_RECORD_COMM = 3,
	PERF_RECORD_EXIT = 4,
	PERF_RECORD_THROTTLE = 5,
	PERF_RECORD_UNTHROTTLE = 6,
	PERF_RECORD_FORK = 7,
	PERF_RECORD_READ = 8,
	PERF_RECORD_SAMPLE = 9,
	PERF_RECORD_MMAP2 = 10,
	PERF_RECORD_AUX = 11,
	PERF_RECORD_ITRACE_START = 12,
	PERF_RECORD_LOST_SAMPLES = 13,
	PERF_RECORD_SWITCH = 14,
	PERF_RECORD_SWITCH_CPU_WIDE = 15,
	PERF_RECORD_NAMESPACES = 16,
	PERF_RECORD_KSYMBOL = 17,
	PERF_RECORD_BPF_EVENT = 18,
	PERF_RECORD_CGROUP = 19,
	PERF_RECORD_TEXT_POKE = 20,
	PERF_RECORD_AUX_OUTPUT_HW_ID = 21,
	PERF_RECORD_CALLCHAIN_DEFERRED = 22,
	PERF_RECORD_KERNEL_MAX = 23,
	/* Written by perf itself, not by the kernel. */
	PERF_RECORD_USER_TYPE_START = 64,
	PERF_RECORD_HEADER_ATTR = 64,
	PERF_RECORD_HEADER_EVENT_TYPE = 65,
	PERF_RECORD_HEADER_TRACING_DATA = 66,
	PERF_RECORD_HEADER_BUILD_ID = 67,
	PERF_RECORD_FINISHED_ROUND = 68,
	PERF_RECORD_ID_INDEX = 69,
	PERF_RECORD_AUXTRACE_INFO = 70,
	PERF_RECORD_AUXTRACE = 71,
	PERF_RECORD_AUXTRACE_ERROR = 72,
	PERF_RECORD_THREAD_MAP = 73,
	PERF_RECORD_CPU_MAP = 74,
	PERF_RECORD_STAT_CONFIG = 75,
	PERF_RECORD_STAT = 76,
	PERF_RECORD_STAT_ROUND = 77,
	PERF_RECORD_EVENT_UPDATE = 78,
	PERF_RECORD_TIME_CONV = 79,
	PERF_RECORD_HEADER_FEATURE = 80,
	PERF_RECORD_COMPRESSED = 81,
	PERF_RECORD_FINISHED_INIT = 82,
	PERF_RECORD_COMPRESSED2 = 83,
	PERF_RECORD_BPF_METADATA = 84,
	PERF_RECORD_USER_MAX = 85,
};

enum perf_abi_misc {
	PERF_RECORD_MISC_CPUMODE_MASK = 7,
	PERF_RECORD_MISC_CPUMODE_UNKNOWN = 0,
	PERF_RECORD_MISC_KERNEL = 1,
	PERF_RECORD_MISC_USER = 2,
	PERF_RECORD_MISC_HYPERVISOR = 3,
	PERF_RECORD_MISC_GUEST_KERNEL = 4,
	PERF_RECORD_MISC_GUEST_USER = 5,
	PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT = 1 << 12,
	PERF_RECORD_MISC_MMAP_DATA = 1 << 13,  /* MMAP, MMAP2 */
	PERF_RECORD_MISC_COMM_EXEC = 1 << 13,  /* COMM */
	PERF_RECORD_MISC_FORK_EXEC = 1 << 13,  /* FORK: the child execs at once, no maps to copy */
	PERF_RECORD_MISC_SWITCH_OUT = 1 << 13, /* SWITCH */
	PERF_RECORD_MISC_EXACT_IP = 1 << 14,   /* SAMPLE */
	PERF_RECORD_MISC_MMAP_BUILD_ID = 1 << 14, /* MMAP2 */
	PERF_RECORD_MISC_SWITCH_OUT_PREEMPT = 1 << 14,
	PERF_RECORD_MISC_BUILD_ID_SIZE = 1 << 15, /* HEADER_BUILD_ID: the size byte is valid */
};

/* Values in a call chain that are switches, not addresses (>= PERF_CONTEXT_MAX). */
#define PERF_CONTEXT_HV		   ((uint64_t)-32)
#define PERF_CONTEXT_KERNEL	   ((uint64_t)-128)
#define PERF_CONTEXT_USER	   ((uint64_t)-512)
#define PERF_CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define PERF_CONTEXT_GUEST	   ((uint64_t)-2048)
#define PERF_CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define PERF_CONTEXT_GUEST_USER	   ((uint64_t)-2560)
#define PERF_CONTEXT_MAX	   ((uint64_t)-4095)

enum perf_abi_ksymbol_type { PERF_RECORD_KSYMBOL_TYPE_BPF = 1, PERF_RECORD_KSYMBOL_TYPE_OOL = 2 };
enum { PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER = 1 };
enum perf_abi_bpf_event { PERF_BPF_EVENT_PROG_LOAD = 1, PERF_BPF_EVENT_PROG_UNLOAD = 2 };

/* perf_event_open(2) flags and ioctls. */
enum {
	PERF_FLAG_FD_NO_GROUP = 1u << 0,
	PERF_FLAG_FD_OUTPUT = 1u << 1,
	PERF_FLAG_PID_CGROUP = 1u << 2,
	PERF_FLAG_FD_CLOEXEC = 1u << 3,
};
#define PERF_EVENT_IOC_ENABLE	  0x2400
#define PERF_EVENT_IOC_DISABLE	  0x2401
#define PERF_EVENT_IOC_REFRESH	  0x2402
#define PERF_EVENT_IOC_RESET	  0x2403
#define PERF_EVENT_IOC_SET_OUTPUT 0x2405
#define PERF_EVENT_IOC_ID	  0x80082407u

/* First page of a ring; only the fields that we use, at the kernel's offsets. */
struct perf_event_mmap_page {
	uint32_t version;
	uint32_t compat_version;
	uint8_t unused[1016];
	uint64_t data_head; /* offset 1024; written by the kernel, read with acquire */
	uint64_t data_tail; /* written by us with release */
	uint64_t data_offset;
	uint64_t data_size;
	uint64_t aux_head;
	uint64_t aux_tail;
	uint64_t aux_offset;
	uint64_t aux_size;
};
static_assert(offsetof(struct perf_event_mmap_page, data_head) == 1024, "kernel ABI");
