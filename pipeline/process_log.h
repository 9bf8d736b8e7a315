/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON line for every exec that a live source shows: time_ns, pid, comm, argv, cgroup, exe, and
 * where argv comes from (record, proc, none); argv_cut where only its beginning is known. Fed
 * beside the converter, on its thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"

struct process_log;

/*
 * The side band of a cgroup's recording is of the whole host, while its exec records are of the
 * cgroup: the execs of a target are those that have a record.
 */
enum process_log_scope { PROCESS_LOG_ALL, PROCESS_LOG_TARGET };

/* fd is borrowed. */
struct process_log *process_log_new(int fd, enum process_log_scope scope);
void process_log_free(struct process_log *log);
/*
 * A perf_record_sink_fn; context is the log. Records in native byte order. Never fails: a list that
 * cannot be written must not cost the profile, so that trouble waits for process_log_finish.
 */
struct error *process_log_add(void *context, const struct perf_record *records, size_t n) MUST_USE;
/* Writes execs that still wait for their command line, and what is buffered. */
struct error *process_log_finish(struct process_log *log) MUST_USE;
uint64_t process_log_count(const struct process_log *log);
/* Lines with source none, and those with argv_cut. */
void process_log_count_gaps(const struct process_log *log, uint64_t *n_none_out,
			    uint64_t *n_cut_out);
