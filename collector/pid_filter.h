/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets through what concerns some processes and their later children, out of the ordered records of
 * whole CPUs. A sink that stands before another one.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/hash_map.h"
#include "base/perf_record.h"

struct pid_filter {
	struct hash_map pids;
	uint32_t not_started;	/* a command that has to exec before its samples count; 0 = none */
	uint16_t sample_pid_at; /* in a sample record */
	perf_record_sink_fn sink;
	void *context;
};

void pid_filter_init(struct pid_filter *filter);
void pid_filter_fini(struct pid_filter *filter);
void pid_filter_add(struct pid_filter *filter, uint32_t pid);
/* A perf_record_sink_fn; context is the filter. Records in native byte order, of the kernel or exec
 * records. */
struct error *pid_filter_pass(void *context, const struct perf_record *records, size_t n) MUST_USE;
