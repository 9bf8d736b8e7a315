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
 * When there is none, and the record has a build-id, files that lie by build-id are looked for
 * (file_places.h).
 * Names are those of the file as it was when its symbols were built. One that was written to before
 * that (cp over a library) gives none: what the mapping holds then is another build's, or nothing.
 * [vdso] is read out of this process: live, or when the build-id in the record is its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/debug_file.h"
#include "symcache/elf_image.h"
#include "symcache/symbol_supply.h"
#include "symcache/symcache.h"

/* What changes when a file is written to. */
struct file_stamp {
	uint64_t device, inode, size;
	int64_t modified_s, modified_ns;
};

/* What fetches a module's files (module_fetch.h); lives as long as the module. */
struct module_fetch;

struct module {
	char *path;
	enum module_state state;
	struct build_id build_id;
	int32_t pid;
	int fd;	       /* of the file; -1 = opened again when it is needed */
	uint8_t *copy; /* [vdso] */
	struct elf_image image;
	bool has_image;
	char *opened_path; /* where the file was found, for this process */
	struct file_stamp stamp;
	int64_t changed_s, changed_ns; /* ctime at that time */
	uint32_t owner;		       /* of the file */
	bool is_elsewhere;	       /* seen by its process, in another root than ours */
	bool is_foreign;	    /* its build-id proves nothing: elsewhere, or another user's */
	struct build_id content_id; /* empty = not asked for yet */
	bool is_lost;  /* written to before its symbols were built: they are not to be had */
	bool is_asked; /* for symbols */
	struct symbol_outcome symbols;
	struct unwind_table unwind; /* of symbols.file, once unwind_state is UNWIND_READY */
	enum unwind_state unwind_state;
	struct build_id symbols_id; /* what the store knows them by */
	struct debug_file *debug;   /* released: only its places; NULL before it was looked for */
	struct module_fetch *fetch; /* NULL = nothing of it was ever fetched */
};

/* config has debug_roots filled in. Never NULL. */
struct module *module_new(const struct symcache_config *config, const struct module_query *query);
void module_free(struct module *module);
/* Saves the descriptor. One without a path is lost for names then. */
void module_close_file(struct module *module);
/* Whether the file is none of this host's own: of neither root nor this user, or elsewhere. */
bool module_is_foreign(const struct module *module);
/*
 * Whether open module b may be taken for module a, of the same build-id, from now on. Build-ids can
 * be forged: where b is foreign, it is its bytes that count, and whose it is, as with a foreign one
 * come its debug files; one of this host's is never taken for a foreign one.
 */
bool module_is_same_binary(struct module *a, struct module *b);
/* The path of a record without " (deleted)"; the length is returned. */
size_t module_path_length(const char *path);
/*
 * Asks for the module's symbols, once; they may be pending in supply afterwards. The same in two
 * steps, between which other files may be had: module_seek looks for what is at hand, and when it
 * says true, module_build is to follow.
 */
bool module_seek(struct module *module, const struct symcache_config *config,
		 struct symbol_supply *supply) MUST_USE;
void module_build(struct module *module, const struct symcache_config *config,
		  struct symbol_supply *supply);
/* After module_seek: of the best file at hand. */
enum symbol_quality module_quality(const struct module *module);
/* After module_seek: a debug file that was found elsewhere. Takes fd. */
void module_offer_debug_file(struct module *module, int fd, const char *path);
/*
 * After module_seek: the file that dwz moved debug information to, when it is needed and not on
 * this host.
 */
bool module_lacks_alternate(struct module *module, const struct symcache_config *config,
			    struct build_id *id_out);
/* For a module without file: takes fd when the file is of its build-id. */
bool module_adopt_file(struct module *module, int fd, const char *path);
/* As symcache_open_source. */
struct error *module_open_source(const struct module *module, const struct symcache_config *config,
				 int *fd_out, char **path_out) MUST_USE;
void module_ask(struct module *module, const struct symcache_config *config,
		struct symbol_supply *supply);
/* supply is NULL with no_symbols alone. */
void module_resolve(struct module *module, const struct symcache_config *config,
		    struct symbol_supply *supply, uint64_t svma, struct symbol_result *out);
