/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of symcache: (build-id, ELF address) → frames or a reason.
 *
 * Order of calls: symcache_new; symcache_module for each binary that appears (as early as it
 * appears: the file may vanish); module_segments to translate addresses; symcache_prepare for those
 * that names are wanted of; symcache_resolve for each distinct address; symcache_free. Kernel:
 * symcache_kernel, then symcache_resolve_kernel.
 * Everything belongs to one thread. The store of symbol files has a door of its own, store.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/fetch_report.h"
#include "symcache/jit_file.h"
#include "symcache/store.h"
#include "symcache/symbol_result.h"
#include "symcache/unwind_expression.h"
#include "symcache/unwind_table.h"

struct symcache;
struct module;
struct file_places;

struct symcache_config {
	bool is_live;	   /* binaries may be opened through /proc/PID of running processes */
	bool trust_paths;  /* believe a path when nothing in the record can confirm it */
	bool no_symbols;   /* modules give segments and build-ids, resolve gives nothing */
	bool wants_unwind; /* unwind tables are wanted even with no_symbols */
	enum symcache_demangle demangle;
	const char *const *debug_roots; /* NULL-terminated; NULL = { "/usr/lib/debug" } */
	const char *sysroot;	/* prefix for paths in records, NULL = none; for files of another
				   machine */
	const char *vmlinux;	/* NULL = look in the usual places */
	const char *kallsyms;	/* NULL = /proc/kallsyms */
	const char *cache_path; /* NULL = $XDG_CACHE_HOME/perfpipe/symbols, or below ~/.cache */
	uint64_t cache_bytes;	/* 0 = SYMCACHE_DEFAULT_CACHE_BYTES */
	bool no_cache;		/* what is built is used and forgotten */
	bool retry_failures;	/* builds that failed lately are tried again */
	/* Servers that files may be fetched from, by symcache_prepare alone; NULL = none. */
	const struct symcache_debuginfod *debuginfod;
	const struct file_places *places; /* symcache_new fills it in */
};
#define SYMCACHE_DEFAULT_CACHE_BYTES ((uint64_t)2 << 30)

/*
 * Starts a process that reads tables of symbols (unless no_symbols, and not wants_unwind), and
 * another one when files are to be fetched (unless no_symbols), so before threads.
 */
struct symcache *symcache_new(const struct symcache_config *config);
void symcache_free(struct symcache *cache);
/* Whether names were asked for at all. */
bool symcache_gives_names(const struct symcache *cache);

/* What a mapping record says about its file. Texts are borrowed for the call. */
struct module_query {
	const char *path;	     /* as in the record, " (deleted)" and all */
	int32_t pid;		     /* process that maps it, 0 or -1 when unknown */
	uint64_t map_start, map_end; /* for /proc/PID/map_files */
	struct build_id build_id;    /* empty when the record has none */
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
	bool has_inode;
	/* Wall time (ns) by which the recording was made: a file without a build-id that was
	 * written to after that is another one. 0 = any will do. */
	uint64_t recorded_at_ns;
};

/* Why the file behind a module is or is not used. */
enum module_state {
	MODULE_OK,	      /* opened; identity proven by build-id or by device and inode */
	MODULE_OK_TRUSTED,    /* opened on the path alone (trust_paths) */
	MODULE_NOT_FOUND,     /* no such file */
	MODULE_DENIED,	      /* may not be read */
	MODULE_OTHER_FILE,    /* another build-id or inode: replaced, or of another root */
	MODULE_NOT_CONFIRMED, /* nothing in the record confirms the file there, and paths are not
				 trusted */
	MODULE_NOT_ELF,	      /* a file, but not ELF, or a damaged one */
	MODULE_NO_FILE,	      /* not a file at all: [vdso], //anon, memfd that is gone */
	MODULE_NO_DESCRIPTOR, /* the process has no file descriptor left */
};
const char *module_state_text(enum module_state state);

/* One PT_LOAD. svma = address in the ELF. */
struct load_segment {
	uint64_t file_offset, svma;
	uint64_t file_bytes, memory_bytes;
	bool is_executable;
};

/*
 * The module for a mapping; the same pointer for the same binary (build-id, else path, device and
 * inode), however often and for whichever process it is asked. Never NULL, owned by the cache and
 * valid as long as it. Opens the file at once. Live, a file that was not found is looked for again
 * when another process maps it; if it is found then, a new module takes the identity over from
 * there, while the old one stays as it was.
 */
struct module *symcache_module(struct symcache *cache, const struct module_query *query);

/* The module of that path and build-id (may be empty) among those asked for, NULL if there is none.
 */
const struct module *symcache_find_module(const struct symcache *cache, const char *path,
					  const struct build_id *build_id);

enum module_state module_get_state(const struct module *module);
/* Build-id from the record, else from the file (GNU note, Go note or content hash: see its kind).
 */
const struct build_id *module_get_build_id(const struct module *module);
/* All PT_LOADs in file order; none unless the state is MODULE_OK or MODULE_OK_TRUSTED. */
const struct load_segment *module_segments(const struct module *module, size_t *n_out);
/*
 * Whether the code at svma is the trampoline that a signal handler returns to. Its first byte is
 * the return address itself, so the address before it belongs to something else.
 */
bool module_is_signal_return(struct module *module, uint64_t svma);
/* Path without " (deleted)", for people. */
const char *module_get_path(const struct module *module);

/*
 * Opens the file that says most of a module's addresses: its separate debug file when that has
 * DWARF and the binary has none, else the binary; without a binary the debug file that lies where
 * its build-id says (which is not compared). *fd_out and *path_out are the caller's.
 * ERROR_NO_ENTRY: there is none.
 */
struct error *symcache_open_source(const struct symcache *cache, const struct module *module,
				   int *fd_out, char **path_out) MUST_USE;

/* Where a separate debug file was looked for, "PATH: outcome" each; empty before the first resolve.
 */
const char *const *module_debug_places(const struct module *module, size_t *n_out);

const char *symbol_reason_text(enum symbol_reason reason);

/*
 * Makes the symbols of modules ready, several at once, and fetches what this host lacks; symcache_
 * resolve does it one by one for the others, and fetches nothing. Waits, at most a deadline for
 * each. progress (may be NULL) gets what is done and n.
 */
void symcache_prepare(struct symcache *cache, struct module *const *modules, size_t n,
		      void (*progress)(void *, uint64_t, uint64_t), void *progress_context);
/* For the progress of symcache_prepare: what is not fetched by now is given up. */
void symcache_cancel_fetches(struct symcache *cache);
/* What came of fetching so far; all zero when nothing was to be fetched. */
void symcache_get_fetch_report(const struct symcache *cache, struct symcache_fetch_report *out);
/*
 * What store_collect does, for fetched files below that store, which may have half of max_bytes:
 * adds to summary.
 */
struct error *symcache_tend_fetched(const char *store_path, uint64_t max_bytes,
				    const struct store_listener *listener,
				    struct store_summary *summary) MUST_USE;
/* Whether that text names servers, see symcache_debuginfod; ERROR_USAGE. */
struct error *symcache_check_urls(const char *urls) MUST_USE;
/* Why the module has no symbols; NULL unless SYMBOL_FAILED. */
/* After symcache_prepare: what names the module's addresses; NULL when there is none. Borrowed. */
struct symbol_file *module_get_symbols(const struct module *module);
const char *module_failure(const struct module *module);
/* What the store knows its symbols by, once they were asked for: begins with the build-id. */
const struct build_id *module_get_symbols_id(const struct module *module);

enum unwind_state {
	UNWIND_READY,
	UNWIND_NOT_ASKED, /* symcache_prepare makes it */
	UNWIND_PENDING,	  /* being made */
	UNWIND_NO_FILE,	  /* the binary is not at hand: see module_get_state */
	UNWIND_FAILED,	  /* could not be made: see module_failure */
	UNWIND_NO_TABLE,  /* the binary has no call frame information, or none that can be used:
			     of another machine, over a limit */
};
const char *unwind_state_text(enum unwind_state state);
/*
 * The module's unwind table, made together with its symbols; valid as long as the module. NULL with
 * the reason in state_out (may be NULL). Never waits, and costs a few loads.
 */
const struct unwind_table *module_unwind(struct module *module, enum unwind_state *state_out);

/* svma: an address in the ELF, already adjusted for return addresses. */
void symcache_resolve(struct symcache *cache, struct module *module, uint64_t svma,
		      struct symbol_result *out);

/* What a source says about its kernel. */
struct kernel_query {
	struct build_id build_id; /* empty when unknown */
	const char *os_release;	  /* NULL when unknown */
	bool is_this_host;	  /* live: names of the running kernel are right by definition */
	bool is_same_release; /* host, release and machine are this host's: taken for it, in want of
				 a build-id, when the relocation symbol lies where it lay */
	uint64_t text_start;  /* recorded address of relocation_symbol, 0 when unknown */
	const char *relocation_symbol; /* "_text" or "_stext", NULL when unknown */
	bool has_addresses;	       /* some will be asked for: a vmlinux is worth fetching */
};

/*
 * Chooses kallsyms or vmlinux for the queries of symcache_resolve_kernel; may be called again.
 * Texts are borrowed until then, as symcache_prepare fetches a vmlinux where neither is at hand.
 */
void symcache_kernel(struct symcache *cache, const struct kernel_query *query);
/* vaddr as recorded. module_name_out gets "" for the kernel itself, else e.g. "nf_tables". */
void symcache_resolve_kernel(struct symcache *cache, uint64_t vaddr, struct symbol_result *out,
			     const char **module_name_out);
/* This host's kernel build-id from /sys/kernel/notes; empty when it cannot be read. */
struct build_id symcache_host_kernel_build_id(void);
/* Where a process's JIT compilers name their code; closed by the caller. See jit_file.h. */
void symcache_open_jit_place(const struct symcache *cache, const struct jit_process *process,
			     struct jit_place *out);
