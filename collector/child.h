/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command to be profiled: forked first, so that events can be opened on it, and let go later.
 *
 *	parent  child_fork ─────────── open events ── child_run ─────────► returns: it runs
 *	child          └─ waits on a socket ……………………………………………┘ execvp ─┘ or its errno comes back
 */
#pragma once

#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

struct child {
	pid_t pid;	/* 0 = none */
	int go_fd;	/* writing lets it run */
	int failure_fd; /* gives the errno of a failed exec, or ends at the exec */
};

struct error *child_fork(char *const *argv, struct child *out) MUST_USE;
/*
 * E111 when the program cannot be executed: code NO_ENTRY (shells say 127) or another (126). The
 * child is then reaped.
 */
struct error *child_run(struct child *child, const char *name) MUST_USE;
/* A child that was not let go ends; one that runs is left alone. Accepts a zeroed child. */
void child_close(struct child *child);
