/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of collector: open a source for a target or a file, drain it into a sink, close it.
 *
 * Recorded: collector_open_file; record_source_drain until ERROR_NO_ENTRY; collector_file_verdict
 * (what was damaged or skipped); record_source_close.
 * Live: collector_open_live; collector_live_start; poll collector_live_fds and record_source_drain
 * on each wake-up; collector_live_stop; drain until nothing comes; record_source_close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/record_source.h"

/* --- perf.data --- */

struct collector_file_options {
	/* Called now and then with bytes read and bytes in all (0 = unknown); may be NULL. */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
};

/*
 * path: a file, a folder of `perf record --threads`, or "-" for standard input (pipe mode, also
 * file mode from a pipe). Errors carry the numbers of docs: E601 damaged beyond use, E603 not a
 * perf.data file, E604 empty.
 */
struct error *collector_open_file(const char *path, const struct collector_file_options *options,
				  struct record_source **out) MUST_USE;

/* One kind of trouble that did not stop the reading. */
struct collector_warning {
	int number;	  /* 601 truncated or damaged, 602 unknown things skipped, … */
	const char *text; /* whole sentence with byte offsets and counts */
	const char *why;  /* NULL if there is nothing to add */
	const char *fix;  /* what to do about it, NULL for the usual thing */
	bool is_damage;	  /* --strict turns it into exit code 65 */
};

/* Valid until the source closes; complete once drain has returned. */
const struct collector_warning *collector_file_warnings(struct record_source *source,
							size_t *n_out);

/* Records of a type that nobody here knows. */
struct collector_unknown_type {
	uint32_t type;
	uint64_t n;
};

/* What a perf.data file looked like, for inspect; texts and lists belong to the source. */
struct collector_file_format {
	bool is_pipe, is_directory;
	bool is_big_endian;
	uint64_t header_size;	 /* 104 file mode, 16 pipe mode */
	uint32_t attr_size;	 /* of the file header, 0 in pipe mode */
	const uint8_t *features; /* feature numbers in file order */
	size_t n_features;
	uint64_t n_compressed_records;
	uint64_t bytes_read;
	uint64_t n_records_by_type[96];		      /* types below 96, after decompression */
	const struct collector_unknown_type *unknown; /* the first types met, 96 and above too */
	size_t n_unknown;
	const char *stream_stopped; /* where and why reading ended early, NULL if it did not */
};
const struct collector_file_format *collector_file_format(struct record_source *source);
/* "HOSTNAME" …; NULL for an unknown number. */
const char *collector_feature_name(uint8_t feature);

/* --- live --- */

enum collector_scope { COLLECTOR_SYSTEM, COLLECTOR_PIDS, COLLECTOR_CGROUP, COLLECTOR_COMMAND };

struct collector_live_options {
	enum collector_scope scope;
	const pid_t *pids; /* COLLECTOR_PIDS: each with its threads and later children */
	size_t n_pids;
	const char *cgroup;    /* COLLECTOR_CGROUP: path below the hierarchy, or absolute */
	char *const *command;  /* COLLECTOR_COMMAND: argv, NULL-terminated */
	const char *events;    /* comma list as -e takes it; NULL = cycles, else cpu-clock */
	uint32_t frequency_hz; /* 0 = 99 */
	uint64_t period;       /* not 0: by count instead of frequency */
	uint64_t ring_bytes;   /* per CPU, 0 = default; halved while the kernel refuses */
	bool is_user_only;     /* exclude_kernel even where the kernel part is allowed */
	bool watch_execs;      /* exec watch: argv of every new program (see exec_watch.h) */
	bool exclude_self;     /* drop samples of this process */
};

struct error *collector_open_live(const struct collector_live_options *options,
				  struct record_source **out) MUST_USE;
/* Enables the events, and lets the command run. */
struct error *collector_live_start(struct record_source *source) MUST_USE;
/* Disables the events at once, also from within a drain; a stop follows. */
void collector_live_disable(struct record_source *source);
/* Disables the events; what is in the rings stays to be drained. */
struct error *collector_live_stop(struct record_source *source) MUST_USE;
/* Descriptors that become readable when a ring wants to be drained; may change after a drain
 * (hotplug). */
const int *collector_live_fds(struct record_source *source, size_t *n_out);
/*
 * COLLECTOR_COMMAND: the child's pid, else 0. The caller waits for it (pidfd or SIGCHLD) and owns
 * its status.
 */
pid_t collector_live_child(struct record_source *source);
/*
 * For a file that begins in the middle: the next drain first gives out what runs now, as the first
 * one did. Until is_held is false again the CPUs, and so the events' ids, stay as they are.
 */
struct error *collector_live_describe_anew(struct record_source *source) MUST_USE;
void collector_live_hold_cpus(struct record_source *source, bool is_held);
/* True when all target processes are gone (PIDS, COMMAND) or the cgroup was removed. */
bool collector_live_is_target_gone(struct record_source *source);

/* What was asked for and what the host gave; texts belong to the source. */
struct collector_live_state {
	uint32_t n_cpus, n_rings;
	uint64_t ring_bytes;
	bool is_user_only;	/* kernel frames were refused or not wanted */
	bool is_event_fallback; /* cycles was asked for, cpu-clock is used */
	bool has_exec_watch;	/* the tracepoint works; else the comm fallback or nothing */
	const struct collector_warning *warnings; /* degradations, each with its number and fix */
	size_t n_warnings;
	uint64_t n_execs_seen, n_execs_argv_record, n_execs_argv_proc, n_execs_argv_none;
};
const struct collector_live_state *collector_live_state(struct record_source *source);

/* --- writing perf.data --- */

struct perf_file_writer;

/*
 * A perf.data file (file mode, host byte order) with info's events; read by perf report. fd is
 * borrowed and must be seekable.
 */
struct error *perf_file_writer_open(int fd, const struct perf_source_info *info,
				    struct perf_file_writer **out) MUST_USE;
/* A perf_record_sink_fn; context is the writer. Records of our own types are left out. */
struct error *perf_file_writer_add(void *context, const struct perf_record *records,
				   size_t n) MUST_USE;
/* Writes sections and header. */
struct error *perf_file_writer_finish(struct perf_file_writer *writer) MUST_USE;
void perf_file_writer_close(struct perf_file_writer *writer);

/* --- tests --- */

/*
 * A source that gives the listed records (native order, headers included, concatenated) once, in
 * the list's order, and then ERROR_NO_ENTRY. info and bytes are borrowed.
 */
struct record_source *fake_source_new(const struct perf_source_info *info, const void *bytes,
				      size_t size);
