/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live source: events of a target, their rings, the exec watch, and what a reader has to be
 * told that the kernel does not tell. session_open.c makes one; here it runs. One thread.
 *
 *	rings ──────┐ a drain = a round
 *	exec watch ─┼─► reorder ─► sink
 *	lost counts ┘
 *	synthetic records go to the sink first, once
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "collector/child.h"
#include "collector/collector.h"
#include "collector/cpu_set.h"
#include "collector/exec_watch.h"
#include "collector/pid_filter.h"
#include "collector/reorder.h"
#include "collector/ring_set.h"

enum {
	SESSION_DEFAULT_RING_BYTES = 512 << 10,
	SESSION_MAX_WARNINGS = 16,
};

struct session {
	struct record_source source;
	enum collector_scope scope;
	pid_t *pids;
	int *pid_fds; /* readable when the process is gone; -1 where the kernel gave none */
	size_t n_pids;
	pid_t *tids; /* PIDS: threads that have events, or inherited them; COMMAND: the child */
	size_t n_tids, tids_capacity;
	int cgroup_fd;
	struct child child;
	char *child_name;
	/* PIDS and COMMAND where that is permitted: whole CPUs are sampled, and the filter passes
	 * the pids and their children. */
	bool is_filtered;
	struct pid_filter filter;
	pid_t excluded_pid;   /* whose samples are dropped, 0 = none */
	bool is_pid_nested;   /* in a PID namespace: what is outside of it has pid 0 */
	bool is_proc_foreign; /* /proc has the pids of another PID namespace */

	struct event_opener opener;
	struct perf_source_info info; /* sampling events, then the side band */
	struct sample_layout layout;  /* of all of them */
	uint32_t n_sampling;
	struct cpu_set cpus;
	struct ring_set rings;
	struct exec_watch exec;
	struct reorder reorder;
	struct buf exec_records;
	struct buf synthetic; /* until the first drain */

	bool is_running, is_stopped, is_lost_told;
	bool are_cpus_held;
	uint64_t cpus_checked_ns;
	int *fds;
	size_t n_fds;
	struct collector_live_state state;
	struct collector_warning warnings[SESSION_MAX_WARNINGS]; /* texts are ours */
};

/* number, the reason and the remedy (may be NULL: the usual ones), whole sentence. All copied. */
void session_warn(struct session *session, int number, const char *why, const char *fix,
		  const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Opens the events of one sampled thing on all CPUs; 0 or an errno (ESRCH: it is gone). */
int session_add_target(struct session *session, pid_t pid, unsigned flags, uint32_t *event_out);
/* Opens and closes rings so that they are those of cpus (which is taken). */
struct error *session_set_cpus(struct session *session, struct cpu_set *cpus) MUST_USE;
/* What runs now goes into session->synthetic, which is empty. */
struct error *session_scan(struct session *session) MUST_USE;
/* Notes a thread as covered. */
void session_add_tid(struct session *session, pid_t tid);
extern const struct record_source_ops session_ops;
