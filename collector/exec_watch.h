/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process was started with, also when it lives a few milliseconds: a PERFPIPE_EXEC record
 * (base/perf_record.h) for every exec.
 *
 * The tracepoint sched:sched_process_exec wakes us for each exec and carries a copy of the new
 * program's stack, where argv lies. When the copy does not hold all of it, /proc/PID/cmdline is
 * read at once. That value is believed only when no later exec of the pid had come before the
 * read, which the rings tell when they are looked at once more after it, and when the process
 * there now did not start after the exec (a pid used again). A gap of a few microseconds stays:
 * the kernel shows a new cmdline shortly before it writes the exec's record.
 *
 * Above a rate of execs nobody is woken and /proc is left alone: the stack copies have to do.
 * Without tracefs COMM records of execs take the tracepoint's place, and /proc the copy's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"
#include "collector/ring_set.h"

enum { EXEC_WATCH_MAX_RATE = 300, EXEC_WATCH_ARGV_MAX_BYTES = 16 << 10 };

struct exec_event;

struct exec_watch {
	bool is_open;
	bool has_tracepoint; /* else the comm fallback */
	struct event_opener opener;
	struct perf_event_info event;
	struct ring_set rings;
	bool is_proc_foreign;	   /* /proc has other pids than the records: not read */
	uint32_t filename_offset;  /* in the tracepoint's raw data, 0 = unknown */
	int64_t boot_offset_ns;	   /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
	struct exec_event *events; /* of the drain that runs */
	size_t n_events, events_capacity;
	struct hash_map last_of_pid; /* index into events */
	struct buf words;	     /* their texts */
	struct buf scratch, ring_copy;
	uint64_t rate_since_ns;
	uint64_t n_in_window;
	bool is_asleep; /* too many execs: nobody is to be woken */
	uint64_t n_seen, n_argv_record, n_argv_proc, n_argv_none;
};

/*
 * Rings for cpus; events are added by exec_watch_add. *why_out: what is missing when only the
 * fallback is there (a static text), else NULL. An error: nothing works.
 */
struct error *exec_watch_open(struct exec_watch *watch, const struct cpu_set *cpus,
			      bool is_inherited, const char **why_out) MUST_USE;
void exec_watch_close(struct exec_watch *watch);
/* Opens and enables the watch on one CPU; 0 or an errno. */
int exec_watch_add(struct exec_watch *watch, uint32_t cpu_index, pid_t pid,
		   unsigned flags) MUST_USE;
/* Appends what was seen since, as PERFPIPE_EXEC records, a CPU after the other. */
void exec_watch_drain(struct exec_watch *watch, uint64_t now_ns, struct buf *records);

/* The cgroup that says most, from the text of /proc/PID/cgroup; n_out bytes of text. */
const char *exec_watch_pick_cgroup(const char *text, size_t *n_out);
