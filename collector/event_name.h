/* SPDX-License-Identifier: Apache-2.0 */
/* The name that perf would print for an event, made from its attr alone. Pure. */
#pragma once

#include "base/perf_abi.h"

/*
 * "cpu-clock", "cycles", "L1-dcache-load-misses", "mem:0x601040/4:rw", "r1a8"; "type8:0x4000" for a
 * PMU (or tracepoint) whose names only the recording host knows. The caller frees it.
 */
char *event_name_make(const struct perf_event_attr *attr);
