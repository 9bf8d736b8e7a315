/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of symbol files by build-id, and of failures that are worth remembering. Several
 * processes may share it. Whatever is there can be deleted at any time: it is made anew.
 *
 *   <id>.sym      a symbol file; ids of other kinds than GNU's are go-<hex> and hash-<hex>
 *   <id>.miss     a failure: how good a source failed, until when it counts, and why
 *   lock, .new    who holds the lock writes .new and renames it
 *
 * Only files that belong to this user and that nobody else may write are read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/symbol_file.h"

enum {
	STORE_MAX_REASON_BYTES = 512,
	STORE_DEFAULT_WAIT_MS = 2000,
};

struct store;

struct store_config {
	const char *path;	   /* NULL = $XDG_CACHE_HOME/perfpipe/symbols, or below ~/.cache */
	uint64_t max_bytes;	   /* on disk; least recently used files go first. 0 = no bound */
	uint32_t lock_wait_ms;	   /* for another process's write; 0 = STORE_DEFAULT_WAIT_MS */
	const struct clock *clock; /* NULL = clock_system */
	bool must_exist;	   /* a missing folder is not made but ERROR_NO_ENTRY */
};

/*
 * Makes the folder when it is missing, unless it must exist. ERROR_DENIED: it belongs to somebody
 * else, or others may write there.
 */
struct error *store_open(const struct store_config *config, struct store **out) MUST_USE;
void store_close(struct store *store);
const char *store_get_path(const struct store *store);

/* What is known of a build-id. */
struct store_entry {
	struct build_id build_id;
	bool has_file;
	enum symbol_quality quality; /* of the file */
	uint64_t file_bytes;
	uint64_t used_ns; /* when the file was last used or made, wall time */

	bool has_failure;		    /* one whose time is not over */
	enum symbol_quality failed_quality; /* no better source was tried */
	uint64_t failure_end_ns;
	char reason[STORE_MAX_REASON_BYTES];
};

/* Cheap: looks at the file's header only. Nothing known is no error. */
struct error *store_find(struct store *store, const struct build_id *id,
			 struct store_entry *out) MUST_USE;
/*
 * Whether a source of that quality is worth building from: it is better than the file there, and
 * none as good has failed lately.
 */
bool store_wants(const struct store_entry *entry, enum symbol_quality source);

/* ERROR_NO_ENTRY when there is none. A damaged file is removed and counts as none. */
struct error *store_load(struct store *store, const struct build_id *id,
			 enum symcache_demangle demangle, struct symbol_file **out) MUST_USE;

/*
 * Puts a symbol file in, after decoding all of it. One of the same or a better quality that is
 * there already stays. ERROR_BAD_DATA: the bytes are no such file, or of another build-id;
 * ERROR_LIMIT: larger than the store may be; ERROR_AGAIN: another process held the lock too long.
 */
struct error *store_publish(struct store *store, const struct build_id *id, const void *bytes,
			    size_t size) MUST_USE;
/* Remembers that a source of that quality gave nothing. Never touches a file. */
struct error *store_fail(struct store *store, const struct build_id *id, enum symbol_quality source,
			 uint64_t lifetime_ns, const char *reason) MUST_USE;
/* Forgets all about it; ERROR_NO_ENTRY when nothing was known. */
struct error *store_remove(struct store *store, const struct build_id *id) MUST_USE;

/* In the order of names; fn may not change the store. Its error ends the walk. */
typedef struct error *(*store_walk_fn)(void *context, const struct store_entry *entry);
struct error *store_walk(struct store *store, store_walk_fn fn, void *context) MUST_USE;

struct store_summary {
	uint64_t n_files, n_failures; /* what is left */
	uint64_t bytes;
	uint64_t n_removed; /* evicted, expired, damaged, left over */
	uint64_t removed_bytes;
};

/* Called for each file that was removed, with its name in the folder and the reason. */
struct store_listener {
	void (*removed)(void *context, const char *name, const char *reason);
	void *context;
};

/* Removes what is expired, left over or over the bound. listener: NULL = nobody. */
struct error *store_collect(struct store *store, const struct store_listener *listener,
			    struct store_summary *out) MUST_USE;
/* The same, and first decodes every file whole and removes what is damaged or misnamed. */
struct error *store_verify(struct store *store, const struct store_listener *listener,
			   struct store_summary *out) MUST_USE;
