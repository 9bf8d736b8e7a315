/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbol file, mapped and used in place: address in the ELF → function, line, and all calls
 * inlined there. Belongs to one thread. A look-up decodes a bounded number of steps within a few
 * cache lines; a function's or a source file's text is put together when it is first met and kept.
 * Whatever the bytes are, no look-up reads outside them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/symbol_result.h"

struct symbol_file;

/* The best source that a file was made from, poorest first. */
enum symbol_quality {
	SYMBOL_QUALITY_NONE,   /* no symbols at all */
	SYMBOL_QUALITY_DYNSYM, /* dynamic symbols, PLT */
	SYMBOL_QUALITY_SYMTAB, /* .symtab, .gnu_debugdata, Go's table of functions */
	SYMBOL_QUALITY_DWARF,
	SYMBOL_QUALITY_N,
};

struct symbol_file_info {
	struct build_id build_id;
	enum symbol_quality quality;
	uint32_t n_functions, n_sites, n_edges, n_paths;
	uint64_t n_segments;
	bool has_lines, has_columns, has_inlines;
	size_t size;
};

enum {
	SYMBOL_FILE_MAX_BYTES = 1 << 28,
};

/* What tells whether a file is worth opening. */
struct symbol_file_header {
	struct build_id build_id;
	enum symbol_quality quality;
};

/* Reads the first bytes only: their checksum is not looked at, as it covers more. */
struct error *symbol_file_read_header(int fd, struct symbol_file_header *out) MUST_USE;

/* The path must lead to a regular file. ERROR_BAD_DATA: not a symbol file, or a damaged one;
 * ERROR_UNSUPPORTED: of a version that this reader does not know. */
struct error *symbol_file_open(const char *path, enum symcache_demangle demangle,
			       struct symbol_file **out) MUST_USE;
/* The descriptor stays the caller's and may be closed. */
struct error *symbol_file_open_fd(int fd, enum symcache_demangle demangle,
				  struct symbol_file **out) MUST_USE;
/* Borrows the bytes until close. */
struct error *symbol_file_open_bytes(const void *bytes, size_t size,
				     enum symcache_demangle demangle,
				     struct symbol_file **out) MUST_USE;
void symbol_file_close(struct symbol_file *file);

struct symbol_file_info symbol_file_get_info(const struct symbol_file *file);

/*
 * Frames at svma into out, the innermost inlined call first; SYMBOL_GAP when no function covers it.
 * Texts live until close. True when something was found.
 */
bool symbol_file_lookup(struct symbol_file *file, uint64_t svma, struct symbol_result *out);

/* Bytes of the unwind section; NULL without one. */
const uint8_t *symbol_file_unwind(const struct symbol_file *file, size_t *n_out);

/*
 * Decodes all there is, which open leaves to the look-ups: for files that come from elsewhere and
 * for `perfpipe symbols verify`.
 */
struct error *symbol_file_verify(struct symbol_file *file) MUST_USE;
