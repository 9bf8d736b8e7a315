/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds symbol files in a process of its own (builder_process.h), several at a time. The process
 * is forked by builder_new, so before threads and large memory, and again when it was lost. Belongs
 * to one thread. Order of calls: builder_new; builder_start for each build; builder_wait;
 * builder_free.
 *
 * A build is over only when its worker is gone, so that nobody writes to the output any more. Each
 * has a deadline; the worker is ended then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symcache/builder_process.h"

struct builder;

struct builder_config {
	uint32_t max_builds;   /* at a time; 0 = one for each processor */
	uint32_t deadline_s;   /* per build, of time and of CPU time; 0 = BUILDER_DEADLINE_S */
	builder_work_fn work;  /* NULL = builder_job_run */
	uint64_t memory_bytes; /* 0 = builder_jail_memory_bytes() */
};

enum { BUILDER_DEADLINE_S = 120, BUILDER_MAX_BUILDS = 32, BUILDER_MAX_WISHES = 1 << 16 };

/*
 * What came of a build, once for each. NULL: the output holds the file. Otherwise the callee owns
 * err. ERROR_UNAVAILABLE: the build was lost through no fault of its own, it may be tried again.
 * No build is started from within.
 */
typedef void (*builder_done_fn)(void *context, struct error *err);

struct builder_order {
	struct build_id id;
	int binary_fd, debug_fd, out_fd; /* debug_fd -1 = none; may be closed after the start */
	bool no_dwarf;			 /* symbol tables alone */
	builder_find_fn find;		 /* NULL = nothing is found */
	builder_done_fn done;
	void *context; /* of both */
};

struct builder *builder_new(const struct builder_config *config);
/* Builds that still run are dropped without a word. */
void builder_free(struct builder *builder);
/* Waits for a place first when all are taken; done may be called from within. */
void builder_start(struct builder *builder, const struct builder_order *order);
/* Until no build runs. */
void builder_wait(struct builder *builder);
/* Does what can be done without waiting; whether builds run. */
bool builder_poll(struct builder *builder);
/* 0 when there is none. */
pid_t builder_get_pid(const struct builder *builder);
