/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What crosses from collector to converter: one record as its source had it, with what the
 * collector had to find out anyway to order and route it. And what a source knows beside records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/error.h"
#include "base/perf_abi.h"
#include "base/sample_layout.h"

#define PERF_EVENT_INDEX_NONE UINT32_MAX

/*
 * bytes is the whole record, header included, in the source's byte order; the header's fields are
 * repeated here in native order. Both ends of size were checked: 8 <= size <= bytes at hand.
 */
struct perf_record {
	const uint8_t *bytes;
	uint64_t time_ns;     /* 0 when the record carries none */
	uint32_t type;	      /* enum perf_abi_record */
	uint32_t event_index; /* into perf_source.events, or PERF_EVENT_INDEX_NONE */
	uint32_t size;
	uint16_t misc;
	bool is_synthetic; /* made from /proc by the collector: a real record wins over it */
};

/*
 * Our own record: what is known of a program at its exec, made by the collector's exec watch.
 * Native byte order. Behind the struct: argv_bytes of words, each with its 0; then the cgroup path
 * and the executable's path, each with its 0 and maybe empty; padded to 8.
 */
enum { PERF_RECORD_PERFPIPE_EXEC = 0x50500001 };

enum perf_exec_source {
	PERF_EXEC_FROM_RECORD = 1, /* argv read from the stack copied at the exec */
	PERF_EXEC_FROM_PROC = 2,   /* argv read from /proc/PID/cmdline in time */
	PERF_EXEC_UNKNOWN = 3,	   /* missed; argv is empty */
};

struct perf_record_perfpipe_exec {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t source; /* enum perf_exec_source */
	uint32_t argv_bytes;
	uint8_t is_argv_cut; /* more words than fit */
	uint8_t reserved[7];
};

/* One event (one attr with its ids). */
struct perf_event_info {
	struct perf_event_attr attr;
	struct sample_layout layout;
	char *name; /* as the file names it, else made from the attr: "cpu-clock",
		       "sched:sched_switch" */
	bool is_name_from_file;
	uint64_t *ids;
	uint32_t n_ids;
	uint32_t attr_size; /* as stored; attr.size may be rounded */
	uint32_t leader;    /* index of the group's leader (GROUP_DESC), own index when alone */
	char *unit;	    /* EVENT_UPDATE, may be NULL */
	double scale;	    /* EVENT_UPDATE, 1 by default */
};

/* A build-id table entry (HEADER_BUILD_ID record or BUILD_ID feature). */
struct perf_build_id_entry {
	int32_t pid; /* -1 for all */
	uint16_t misc;
	struct build_id id;
	char *filename;
};

/*
 * What a source knows beside its records. Owned by the source and valid until it closes; in pipe
 * mode events, build_ids and the texts grow while records are read, so a consumer looks again
 * rather than copies. Texts are NULL when unknown.
 */
struct perf_source_info {
	bool is_live;	 /* records come from this running host, now */
	bool is_swapped; /* records are of the other byte order */
	struct perf_event_info *events;
	uint32_t n_events;
	struct perf_build_id_entry *build_ids;
	uint32_t n_build_ids;
	char *hostname;
	char *os_release;
	char *perf_version;
	char *arch;    /* as uname -m: "x86_64", "aarch64", "s390x", "armv7l" */
	char *cmdline; /* words joined by spaces */
	uint32_t n_cpus_available;
	uint32_t n_cpus_online;
	uint64_t total_memory_kib;
	int32_t clockid;	     /* -1 = perf's default clock */
	bool has_clock_pair;	     /* CLOCK_DATA: the same moment on both clocks */
	uint64_t clock_pair_wall_ns; /* CLOCK_REALTIME */
	uint64_t clock_pair_event_ns;
	uint64_t recorded_at_ns; /* wall time of the file's making (mtime) when nothing better is
				    known, 0 if unknown */
	uint64_t first_sample_ns, last_sample_ns; /* SAMPLE_TIME feature, 0 if absent */
};

/* Gets records in the order that reorder.h states; they are valid until it returns. */
typedef struct error *(*perf_record_sink_fn)(void *context, const struct perf_record *records,
					     size_t n);
