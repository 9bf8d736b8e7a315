/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was fetched, and what was not there, kept below the store of symbol files or, when there is
 * none that can be used, for the life of this object in a folder of its own. Several processes may
 * share it; whatever is there can be deleted at any time.
 *
 *   fetched/<id>.debuginfo, .executable	checked files, least recently used out
 *   fetched/<id>.debuginfo.absent, …	"until NS" and "servers HASH": not there, for a while,
 *					as far as these servers know
 *   fetched/paused			servers that are left alone, see server_list.h
 *   fetched/work-XXXXXX/		where a worker puts what it gets; locked by who made it
 *
 * A file gets its name only when it is whole and checked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/fetcher_wire.h"
#include "symcache/store.h"

struct fetch_folder;

struct fetch_folder_config {
	const char *store_path;	   /* of a store that was opened; NULL = none */
	uint64_t max_bytes;	   /* of fetched files, 0 = no bound */
	const struct clock *clock; /* NULL = clock_system */
};

/* Removes what killed processes left. */
struct error *fetch_folder_open(const struct fetch_folder_config *config,
				struct fetch_folder **out) MUST_USE;
void fetch_folder_close(struct fetch_folder *folder);

/*
 * The upkeep of store_collect, for what was fetched below that store: adds to summary, names what
 * goes. Nothing there is no error.
 */
struct error *fetch_folder_tend(const char *store_path, uint64_t max_bytes,
				const struct store_listener *listener,
				struct store_summary *summary) MUST_USE;

/* A descriptor that the caller closes, or -1. path_out (may be NULL): its path, caller frees. */
int fetch_folder_find(struct fetch_folder *folder, const struct build_id *id,
		      enum fetcher_kind kind, char **path_out);
bool fetch_folder_is_absent(const struct fetch_folder *folder, const struct build_id *id,
			    enum fetcher_kind kind, uint64_t servers);
void fetch_folder_note_absent(struct fetch_folder *folder, const struct build_id *id,
			      enum fetcher_kind kind, uint64_t servers, uint64_t lifetime_ns);

/* The folder for one worker, which end removes with all that is in it. */
struct fetch_work {
	int fd; /* -1 = none */
	char name[16];
};
struct error *fetch_folder_begin_work(struct fetch_folder *folder, struct fetch_work *out) MUST_USE;
void fetch_folder_end_work(struct fetch_folder *folder, struct fetch_work *work);

/*
 * Takes what a worker left at path in its folder: copies it, so that nobody but us can change it
 * any more, checks it, and keeps it under its name. ERROR_BAD_DATA: it is not what was asked for,
 * with what is wrong as the text. Any other error is this host's.
 */
struct error *fetch_folder_take(struct fetch_folder *folder, const struct fetch_work *work,
				const char *path, const struct build_id *id, enum fetcher_kind kind,
				uint64_t stated_bytes) MUST_USE;

void fetch_folder_load_pauses(const struct fetch_folder *folder, struct server_list *list);
void fetch_folder_save_pauses(struct fetch_folder *folder, const struct server_list *list);
