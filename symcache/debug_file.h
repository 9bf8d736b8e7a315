/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The separate debug file of a stripped binary. Places, in this order; each debug root R (default
 * /usr/lib/debug) in the configured order; each place but those of caches first under the target's
 * own root (/proc/PID/root, or the sysroot), then on this host:
 *
 *   1. by build-id, see file_places.h	the build-id must be the binary's
 *   2. FOLDER/LINK			LINK from .gnu_debuglink, FOLDER that of the binary;
 *   3. FOLDER/.debug/LINK		the build-ids must be equal, and where one of the two
 *   4. R/FOLDER/LINK			has none, the CRC-32 of the whole file that of the link
 *
 * The first file with DWARF ends the search; one with a symbol table alone is used when there is no
 * better one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/elf_image.h"
#include "symcache/file_places.h"

enum {
	DEBUG_FILE_MAX_PLACES = 64,
	/* Larger files are not read whole for their CRC. */
	DEBUG_FILE_MAX_CRC_BYTES = 1 << 30,
};

struct debug_file_query {
	const struct elf_image *image;	  /* the stripped binary */
	const char *path;		  /* its path within target_root; NULL = unknown */
	const char *target_root;	  /* NULL = this host's */
	const char *const *roots;	  /* NULL-terminated */
	const struct file_places *places; /* caches; NULL = none */
	bool is_target_elsewhere;	  /* target_root is a process's, and not ours */
};

struct debug_file {
	struct elf_image image;
	bool is_open;
	bool is_foreign; /* its build-id proves nothing (host_file.h); only when open */
	int fd;		 /* only when open */
	char *path;	 /* of the file in use, within its root */
	/* Each place looked at, with what was found there. */
	char *places[DEBUG_FILE_MAX_PLACES];
	size_t n_places;
};

/* Whether one was found. The places are recorded either way; close in both cases. */
bool debug_file_open(const struct debug_file_query *query, struct debug_file *out);
void debug_file_close(struct debug_file *file);
/*
 * Another file that may be the debug file of that binary, found by its build-id. Takes fd. True
 * when it is, and better than the one there, which it replaces.
 */
bool debug_file_offer(struct debug_file *file, const struct elf_image *binary, int fd,
		      const char *path);

/* The file that dwz moved shared debug information to, as .gnu_debugaltlink names it. */
struct debug_alternate {
	const char *path; /* in the image */
	struct build_id id;
};
/* False when there is none. */
bool debug_file_alternate(const struct elf_image *image, struct debug_alternate *out);
/* Closes the file and keeps the places. */
void debug_file_release(struct debug_file *file);
