/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic records for what runs already, read from /proc: FORK and COMM per thread, MMAP2 per
 * executable mapping, NAMESPACES. What vanishes or may not be read while it is looked at is left
 * out. The side band is switched on before, so what changes meanwhile comes as a real record.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/record_writer.h"

/* Every process; ERROR_LIMIT when the writer's buffer is full. */
struct error *proc_scan_all(struct record_writer *writer) MUST_USE;
struct error *proc_scan_process(struct record_writer *writer, pid_t pid) MUST_USE;
/* The name of pid 0 in a PID namespace, where it is all that runs outside. */
struct error *proc_scan_write_outside(struct record_writer *writer) MUST_USE;
/* The threads of a process, rising; *tids_out is the caller's. n is 0 when it is gone. */
void proc_scan_tids(pid_t pid, pid_t **tids_out, size_t *n_out);

/* One line of /proc/PID/maps (without its end) as MMAP2 if it is executable; for tests. */
struct error *proc_scan_write_map(struct record_writer *writer, pid_t pid, const char *line,
				  size_t n) MUST_USE;
