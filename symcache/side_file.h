/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a build turns out to need. Who asks for them reads hostile input, so a name alone
 * opens nothing: regular files only, ELF of the kind that was asked for, with the right build-id
 * where there is one, and readable for the owner of the binary anyway: his own, or those of root or
 * this user that everybody may read.
 *
 * Places, T being the target's own root first and then this host, R each debug root:
 *   dwz alternate	by build-id, see file_places.h; NAME (from the debug file's folder when
 *			it is relative)
 *   split unit		NAME, FOLDER/NAME, the last part of NAME in the binary's folder
 *   package		BINARY.dwp, DEBUG.dwp, DEBUG without ".debug" + ".dwp"
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "symcache/builder_job.h"
#include "symcache/file_places.h"

struct side_file_places {
	const char *binary_path;  /* within target_root; NULL = unknown */
	const char *debug_path;	  /* of the file with the DWARF, likewise; NULL = the binary's */
	const char *target_root;  /* NULL = this host's */
	const char *const *roots; /* NULL-terminated */
	const struct file_places *caches; /* NULL = none */
	uid_t owner;			  /* of the binary */
	bool is_target_elsewhere;	  /* target_root is a process's, and not ours */
};

/*
 * A descriptor that the caller closes, or -1. is_foreign_out: what is built of the file holds
 * neither for another program of this content nor for this host's own (host_file.h).
 */
int side_file_open(const struct side_file_places *places, const struct builder_wish *wish,
		   bool *is_foreign_out);
