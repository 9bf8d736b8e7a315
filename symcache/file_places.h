/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where files lie by build-id on this host, ab/cdef… being its digits:
 *
 *   debug roots R		R/.build-id/ab/cdef….debug, R/ab/cdef…/debuginfo	debug files
 *				R/.build-id/ab/cdef…, R/ab/cdef…/executable		programs
 *   perf's cache P		P/.build-id/ab/cdef…/debug, …/elf, or a link to the file itself
 *   elfutils' client cache C	C/ID/debuginfo, C/ID/executable
 *
 * P: $PERF_BUILDID_DIR, or ~/.debug; see perf-buildid-cache(1) and perf-archive(1). C:
 * $DEBUGINFOD_CACHE_PATH, ~/.debuginfod_client_cache, $XDG_CACHE_HOME/debuginfod_client,
 * ~/.cache/debuginfod_client; see debuginfod_find_debuginfo(3). Both are read only. What lies there
 * proves nothing: whoever opens a place compares the build-id.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/build_id.h"

enum { FILE_PLACES_CACHES_MAX = 4, FILE_PLACES_MAX = 32 };

struct file_places {
	char *perf;			       /* NULL = none */
	char *clients[FILE_PLACES_CACHES_MAX]; /* NULL = none */
};

/* From the environment of this process. */
void file_places_init(struct file_places *places);
void file_places_fini(struct file_places *places);

/* One path. Those of caches belong to this user, and so has what lies there (file_places_may_use).
 */
struct file_place {
	char *path;
	bool is_of_cache;
};

struct file_place_list {
	struct file_place items[FILE_PLACES_MAX];
	size_t n;
};

/* roots: NULL-terminated. places may be NULL: roots alone. Empty for ids without two bytes. */
void file_places_list(const struct file_places *places, const char *const *roots,
		      const struct build_id *id, bool is_executable, struct file_place_list *out);
void file_place_list_fini(struct file_place_list *list);

/* Whether an open file may be used from that place: of caches, those of root and of this user. */
bool file_places_may_use(const struct file_place *place, int fd);
