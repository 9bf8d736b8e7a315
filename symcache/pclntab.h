/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's table of functions and lines, which the run time needs and no stripping takes away, of the
 * four layouts that there were: Go 1.2, 1.16, 1.18, 1.20 (debug/gosym and cmd/link/internal/ld,
 * pcln.go; "Go 1.2 Runtime Symbol Information" by R. Cox).
 *
 *   1.2    header | count, (entry, place of function)… | functions, names, pc tables, files
 *   1.16+  header with offsets of: names, files by unit, files, pc tables, functions
 *
 * A pc table gives a number (file, line, inlined call) for each instruction, as a run of steps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symcache/elf_image.h"
#include "symcache/elf_pointers.h"

enum {
	PCLNTAB_MAX_FUNCTIONS = 1 << 22,
	PCLNTAB_MAX_TEXT_BYTES = 1 << 16, /* of a name or a path */
	PCLNTAB_NO_TABLE = 0,		  /* place of a pc table that a function lacks */
};

enum pclntab_layout { PCLNTAB_1_2, PCLNTAB_1_16, PCLNTAB_1_18, PCLNTAB_1_20 };

struct pclntab {
	enum pclntab_layout layout;
	uint8_t pc_quantum, pointer_bytes;
	uint64_t svma;	   /* of the header */
	uint64_t text;	   /* entries count from here in 1.18 and later; 0 = not told */
	struct cursor all; /* from the header */
	struct cursor names, unit_files, files, pc_tables, functions;
	uint64_t n_functions;
};

struct pclntab_function {
	uint64_t entry, next_entry;
	uint64_t name;		      /* offset in names */
	uint32_t files, lines, calls; /* places of pc tables */
	uint32_t unit;		      /* first of its unit's files */
	uint32_t start_line;	      /* 0 before 1.20 */
	uint64_t call_tree;	      /* svma of what calls number, 0 = none */
};

/* One step of a pc table. */
struct pclntab_run {
	uint64_t start, end; /* svma */
	int32_t value;
};

/* A walk over one pc table. */
struct pclntab_walk {
	struct cursor c;
	uint64_t pc, limit, quantum;
	int32_t value;
	bool is_started;
};

/* The section, NULL when the file has none: it is no Go program. */
const struct elf_section *pclntab_find(const struct elf_image *image);
/* False: none there, of an unknown layout, or damaged. image outlives table. */
bool pclntab_open(struct pclntab *table, const struct elf_image *image);
/*
 * Function number index; false when it is damaged. call_data: what the references to call trees
 * count from (go_module.h), 0 = unknown.
 */
bool pclntab_read_function(const struct pclntab *table, const struct elf_pointers *pointers,
			   uint64_t index, uint64_t call_data, struct pclntab_function *out);
/* Texts end in the table; NULL when they do not. */
const char *pclntab_name(const struct pclntab *table, uint64_t name);
/* The file that a value of the function's pc table of files means; NULL = unknown. */
const char *pclntab_file(const struct pclntab *table, const struct pclntab_function *function,
			 int32_t value);

void pclntab_walk_start(struct pclntab_walk *walk, const struct pclntab *table,
			const struct pclntab_function *function, uint32_t place);
/* Runs ascend, touch each other, and end by the function's end. */
bool pclntab_walk_next(struct pclntab_walk *walk, struct pclntab_run *out);
