/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are not on this host, by build-id: what was fetched before, or else from debuginfod
 * servers (fetcher.h), as far as these are well (server_list.h) and did not say lately that they
 * have no such file. Nothing here waits unless it is told to. Belongs to one thread.
 *
 * Order of calls: remote_supply_new; remote_supply_want for each file; remote_supply_step until
 * remote_supply_is_idle; remote_supply_get_report; remote_supply_free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "symcache/fetch_report.h"
#include "symcache/fetcher.h"

struct remote_supply;

struct remote_supply_config {
	const struct symcache_debuginfod *debuginfod; /* its texts are copied */
	const char *store_path;			      /* see fetch_folder_config */
	uint64_t max_kept_bytes;
	bool retry_failures;	   /* what was not there lately is asked for again */
	const struct clock *clock; /* NULL = clock_system */
};

/* Forks. */
struct error *remote_supply_new(const struct remote_supply_config *config,
				struct remote_supply **out) MUST_USE;
/* What is still wanted is dropped without a word. */
void remote_supply_free(struct remote_supply *supply);

/* Only GNU build-ids of sane length may leave this host. */
bool remote_supply_may_ask(const struct build_id *id);

/* What was fetched before: a descriptor that the caller closes, or -1. Asks nobody. */
int remote_supply_find(struct remote_supply *supply, const struct build_id *id,
		       enum fetcher_kind kind, char **path_out);

/* fd -1: it could not be had; else the callee's, with its path, which is borrowed. */
typedef void (*remote_supply_done_fn)(void *context, int fd, const char *path);

/*
 * done is called once, now or from a later step; more may be wanted from within. An id that is
 * wanted twice is fetched once.
 */
void remote_supply_want(struct remote_supply *supply, const struct build_id *id,
			enum fetcher_kind kind, remote_supply_done_fn done, void *context);

bool remote_supply_is_idle(const struct remote_supply *supply);
/* How many were wanted, and how many of these are over. */
void remote_supply_progress(const struct remote_supply *supply, uint64_t *done_out,
			    uint64_t *all_out);
/*
 * Does what there is to do, and waits up to wait_ms for something to happen. What is not over by
 * the end of the time for all fetches together, which begins with the first one, is given up.
 */
void remote_supply_step(struct remote_supply *supply, uint32_t wait_ms);
/* All that is wanted is given up. */
void remote_supply_cancel(struct remote_supply *supply);

void remote_supply_get_report(const struct remote_supply *supply,
			      struct symcache_fetch_report *out);
/* 0 when there is none. */
pid_t remote_supply_get_pid(const struct remote_supply *supply);
