/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf_event_open(2) on kernels of different age and for users of different rights: what was
 * refused once is not asked for again, and a refusal is explained by the gate that made it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_abi.h"

struct event_opener {
	uint32_t refused;  /* bits of event_open.c's table of features, newest first */
	bool is_user_only; /* the kernel's part was refused, or is not wanted */
};

/*
 * A descriptor (close on exec), or a negative errno. attr is changed to what was really opened.
 * An EACCES is first answered by asking for less: no namespaces, then no kernel part
 * (is_user_only is then set).
 */
int event_open(struct event_opener *opener, struct perf_event_attr *attr, pid_t pid, int cpu,
	       unsigned flags);

/* Whether the kernel gives a field of samples that depends on its configuration. */
bool event_open_has_field(uint64_t sample_type);

/* E101: what ("cannot sample this host") and the gate: paranoid, capability, seccomp. */
struct error *event_open_explain(int errno_value, const char *what) MUST_USE;

/* Why this process has not the right to sample all. A static text. */
const char *event_open_describe_perfmon(void);

/* The value of /proc/sys/kernel/NAME; fallback when it cannot be read. */
long event_open_sysctl(const char *name, long fallback);
