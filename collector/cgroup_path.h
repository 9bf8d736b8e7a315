/* SPDX-License-Identifier: Apache-2.0 */
/* Where the cgroups live that perf events know: v1's perf_event hierarchy, else cgroup v2. */
#pragma once

#include "base/compiler.h"
#include "base/error.h"

/* The mount point, owned by the caller; NULL when there is none. */
char *cgroup_path_find_root(void);
/* path: absolute, or below the hierarchy as /proc/PID/cgroup writes it. E104 when not found. */
struct error *cgroup_path_open(const char *path, int *fd_out) MUST_USE;
/* Pure part of cgroup_path_find_root: picks from the text of mountinfo. */
char *cgroup_path_pick_root(const char *mountinfo);
