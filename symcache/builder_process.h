/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that builds: it waits for orders and forks a worker for each, so that a crash, a
 * limit or a timeout ends one build. It reads nothing that is hostile itself. It ends when the
 * agent's end of the socket closes, and its workers with it.
 */
#pragma once

#include "symcache/builder_jail.h"
#include "symcache/builder_job.h"

/* Ends of a worker that say nothing about what it read. */
enum { BUILDER_EXIT_NOT_CONFINED = 70, BUILDER_EXIT_SOCKET_GONE = 71 };

typedef struct error *(*builder_work_fn)(const struct builder_job *job);

struct builder_process {
	int socket; /* to the agent */
	builder_work_fn work;
	struct builder_limits limits; /* wall_s is that of the order */
};

/* In the forked child; does not return. */
_Noreturn void builder_process_run(const struct builder_process *process);
