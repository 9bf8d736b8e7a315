/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching from debuginfod servers, for those who ask for it: settings, and what came of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SYMCACHE_FETCH_SERVERS_MAX = 8 };

/* Zero in a number stands for the default. */
struct symcache_debuginfod {
	const char *urls;  /* as in DEBUGINFOD_URLS: base URLs with spaces between */
	uint32_t answer_s; /* until the first byte of a file; 5 */
	uint32_t whole_s;  /* from there until its last one; 120 */
	uint32_t all_s;	   /* for all files that are wanted at once; 180 */
	uint32_t absent_s; /* how long a server's "not here" counts, also for later runs; 600 */
	uint64_t max_file_bytes; /* 2 GiB */
};

/* A server that failed, or was left alone because it failed before. */
struct symcache_fetch_trouble {
	char host[128];
	char reason[160];  /* goes on from the host: "did not answer in 5s" */
	uint32_t paused_s; /* not asked for that long; 0 = goes on being asked */
	bool is_new;	   /* it failed since the symcache was made */
};

/* Files wanted, by what became of each. */
struct symcache_fetch_report {
	uint32_t n_found;  /* fetched, or fetched before */
	uint32_t n_absent; /* no server has it */
	uint32_t n_too_large;
	uint32_t n_failed;    /* servers failed, so nobody knows */
	uint32_t n_paused;    /* not asked for: all servers were left alone */
	uint32_t n_given_up;  /* not asked for, or not to the end, for another reason: */
	bool is_out_of_time;  /* the time for all was over */
	bool has_no_library;  /* libdebuginfod is not installed */
	bool is_not_confined; /* the fetcher may not confine itself on this machine */
	uint32_t answer_s;
	uint32_t n_servers;
	struct symcache_fetch_trouble servers[SYMCACHE_FETCH_SERVERS_MAX];
};
