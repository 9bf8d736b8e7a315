/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF 2 to 5 of one file into the symbol model: functions, what was inlined into them, lines.
 * One walk over .debug_info, unit by unit. Of units that describe the same address the first one
 * counts. A damaged unit is left out and counted, the rest stays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/elf_image.h"
#include "symcache/symbol_model.h"

enum {
	DWARF_SOURCE_MAX_DEPTH = 1 << 14, /* of DIEs within DIEs */
	DWARF_SOURCE_MAX_ORIGINS = 16,	  /* from a DIE to the one that names it */
	DWARF_SOURCE_MAX_INLINE_DEPTH = 1 << 10,
	DWARF_SOURCE_MAX_DWO_FILES = 1 << 16, /* asked for */
};

/*
 * Files beside the one that is read, asked for when they turn out to be needed. Each returns NULL
 * when there is no such file; what it returns stays valid until dwarf_source_read returns. Any of
 * the pointers may be NULL.
 */
struct dwarf_source_files {
	void *context;
	/* dwz's shared file; path and id as in .gnu_debugaltlink or .debug_sup, and checked. */
	const struct elf_image *(*find_alternate)(void *context, const char *path,
						  const struct build_id *id);
	/* A .dwo file; folder may be NULL. It is checked for the id afterwards. */
	const struct elf_image *(*find_dwo)(void *context, const char *folder, const char *name,
					    uint64_t id);
	/* The .dwp package of the file. */
	const struct elf_image *(*find_package)(void *context);
	/*
	 * The symbol table's name for the code at svma. Asked for functions of which DWARF has no
	 * linkage name (gcc leaves it out in anonymous namespaces); taken when it is a mangled form
	 * of the name that DWARF has.
	 */
	const char *(*find_symbol)(void *context, uint64_t svma, size_t *n_out);
	/* The image's bytes are a mapping of a file, never written to: read pages may be dropped.
	 */
	bool is_file_mapping;
};

struct dwarf_source_stats {
	uint32_t n_units, n_damaged_units;
	uint32_t n_damaged_sections, n_damaged_line_tables;
	uint32_t n_dwo, n_dwo_missing;
	bool is_alternate_missing;
	uint64_t n_functions, n_inlined; /* with code */
};

/*
 * Appends to model. image is the file with the .debug_ sections, whose section headers tell what is
 * code. No DWARF is success with n_units 0. ERROR_UNSUPPORTED: a relocatable file.
 */
struct error *dwarf_source_read(const struct elf_image *image,
				const struct dwarf_source_files *files, struct symbol_model *model,
				struct dwarf_source_stats *stats) MUST_USE;
