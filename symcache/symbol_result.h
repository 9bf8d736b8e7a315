/* SPDX-License-Identifier: Apache-2.0 */
/* What a look-up gives: frames, or the reason why there are none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum symcache_demangle { SYMCACHE_DEMANGLE_NORMAL, SYMCACHE_DEMANGLE_FULL, SYMCACHE_DEMANGLE_NONE };

/* Why an address has no name. A reason is a result, to be counted and shown. */
enum symbol_reason {
	SYMBOL_FOUND,
	SYMBOL_NO_FILE,	     /* see module_state */
	SYMBOL_NO_TABLE,     /* the file has no symbol table and no debug file was found */
	SYMBOL_FAILED,	     /* the file's tables could not be read */
	SYMBOL_GAP,	     /* a table, but no symbol covers the address */
	SYMBOL_HIDDEN,	     /* kernel: kptr_restrict */
	SYMBOL_OTHER_KERNEL, /* kernel: recorded under another one than we have names of */
	SYMBOL_DISABLED,     /* no_symbols */
	SYMBOL_REASON_N,
};
/* One function at an address. Texts belong to the module and live as long as the cache. */
struct symbol_frame {
	const char *name;		   /* display form, demangled as configured */
	const char *linkage_name;	   /* as in the symbol table */
	const char *file;		   /* NULL when unknown */
	uint32_t line, column, start_line; /* 0 when unknown */
};

enum { SYMBOL_FRAMES_MAX = 64 };

/* Innermost inlined function first, the real function last. */
struct symbol_result {
	enum symbol_reason reason;
	uint32_t n_frames; /* 0 unless SYMBOL_FOUND */
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	bool is_folded; /* several symbols stand at this address */
};
