/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One binary: where its file was found, whether it may be believed, and what its tables say.
 *
 * Files are looked for in this order. Live: /proc/PID/map_files/START-END (the mapped file itself,
 * also when it was deleted or replaced), /proc/PID/exe, the path below /proc/PID/root, the path on
 * this host. Recorded: the path below the sysroot, or on this host. The first one that is
 * confirmed is taken:
 *   - the record has a build-id: the file's is equal, else it was replaced;
 *   - it has device and inode: the file's are equal, and its generation where both are known;
 *   - map_files and exe without either: the link reads as the path in the record;
 *   - otherwise only with trust_paths.
 * A file that is written to while it is mapped here (cp over a library) gives no more new names:
 * what the mapping holds then is another build's, or nothing.
 * [vdso] is read out of this process: live, or when the build-id in the record is its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/file.h"
#include "symcache/debug_file.h"
#include "symcache/elf_image.h"
#include "symcache/symbol_text.h"
#include "symcache/symcache.h"
#include "symcache/symtab_source.h"

#define MODULE_MAX_FILE_BYTES ((size_t)16 << 30)

/* What changes when a file is written to. */
struct file_stamp {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns;
};

struct module {
	char *path;
	enum module_state state;
	struct build_id build_id;
	int32_t pid;
	struct file_map map; /* of the file, unless the bytes are in copy */
	uint8_t *copy;	     /* [vdso] */
	struct elf_image image;
	bool has_image;
	char *opened_path; /* where the file was found, for this process */
	struct file_stamp stamp;
	bool is_lost;	/* written to since: its names are not to be had */
	bool has_table; /* table, debug and texts were made */
	struct symtab_source table;
	struct debug_file debug;
	struct symbol_texts texts;
};

/* config has debug_roots filled in. Never NULL. */
struct module *module_new(const struct symcache_config *config, const struct module_query *query);
void module_free(struct module *module);
/* Unmaps the file but keeps segments and build-id: no more names from it. */
void module_drop_file(struct module *module);
/* The path of a record without " (deleted)"; the length is returned. */
size_t module_path_length(const char *path);
void module_resolve(struct module *module, const struct symcache_config *config,
		    struct arena *arena, uint64_t svma, struct symbol_result *out);
