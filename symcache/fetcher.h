/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches files by build-id from debuginfod servers, in a process of its own (fetcher_process.h),
 * several at a time. The process is forked by fetcher_new, so before threads and large memory, and
 * again when it was lost. Belongs to one thread. Order of calls: fetcher_new; fetcher_start while
 * fetcher_has_place; fetcher_step until fetcher_n_running is 0; fetcher_free.
 *
 * A fetch is over only when its worker is gone. The worker has deadlines of its own; a process that
 * keeps none of them is killed and started anew.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symcache/fetcher_wire.h"

struct fetcher;

struct fetcher_config {
	uint32_t max_fetches; /* at a time; 0 = FETCHER_MAX_FETCHES */
	uint32_t answer_s;    /* until the first byte; 0 = FETCHER_ANSWER_S */
	uint32_t whole_s;     /* from there until the last one; 0 = FETCHER_WHOLE_S */
	uint64_t max_bytes;   /* of a file; 0 = FETCHER_MAX_FILE_BYTES */
};

enum { FETCHER_MAX_FETCHES = 8, FETCHER_ANSWER_S = 5, FETCHER_WHOLE_S = 120 };
#define FETCHER_MAX_FILE_BYTES ((uint64_t)2 << 30)

enum fetcher_verdict {
	FETCHER_FOUND,	    /* a file is there; what it is worth has to be seen */
	FETCHER_ABSENT,	    /* all servers that were asked say so */
	FETCHER_TOO_LARGE,  /* larger than the maximum */
	FETCHER_FAILED,	    /* no such proof: see what each server did */
	FETCHER_LOST,	    /* the process was lost or the fetch cancelled: nobody's fault */
	FETCHER_NO_LIBRARY, /* libdebuginfod is not installed */
	FETCHER_NOT_CONFINED,
};

struct fetcher_result {
	enum fetcher_verdict verdict;
	const struct fetcher_report_message
		*report; /* FOUND, ABSENT, TOO_LARGE, FAILED; borrowed */
};

/* Once for each fetch. No fetch is started from within. */
typedef void (*fetcher_done_fn)(void *context, const struct fetcher_result *result);

struct fetcher_order {
	struct build_id id; /* of GNU kind */
	enum fetcher_kind kind;
	const char *urls;   /* with a space between two; copied */
	uint32_t n_servers; /* in urls */
	int folder;	    /* empty, for the worker alone, see fetcher_own_folder */
	fetcher_done_fn done;
	void *context;
};

struct fetcher *fetcher_new(const struct fetcher_config *config);
/* Fetches that still run are dropped without a word. */
void fetcher_free(struct fetcher *fetcher);
bool fetcher_has_place(const struct fetcher *fetcher);
uint32_t fetcher_n_running(const struct fetcher *fetcher);
/* With a place only. The folder may be closed afterwards. */
void fetcher_start(struct fetcher *fetcher, const struct fetcher_order *order);
/* Waits up to wait_ms for something to happen, and does what follows from it. */
void fetcher_step(struct fetcher *fetcher, uint32_t wait_ms);
/* All that run end as FETCHER_LOST. */
void fetcher_cancel(struct fetcher *fetcher);
/* 0 when there is none. */
pid_t fetcher_get_pid(const struct fetcher *fetcher);
/* Makes the folder one that workers may write in. */
struct error *fetcher_own_folder(int folder) MUST_USE;
