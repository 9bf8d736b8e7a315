/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line number programs of DWARF 2 to 5: the table of files, and the rows. A table belongs to one
 * unit, whose folder makes relative names whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/address_claims.h"
#include "symcache/dwarf_info.h"
#include "symcache/symbol_model.h"

enum {
	DWARF_LINE_MAX_FILES = 1 << 20, /* of one table, and as many folders */
	DWARF_LINE_MAX_FORMATS = 32,	/* columns of a table of files */
	DWARF_LINE_MAX_PATH_BYTES = 8192,
};

struct dwarf_line_name {
	const char *bytes;
	uint32_t n;
	uint32_t folder; /* of files */
	uint32_t id;	 /* in the model, UINT32_MAX = not asked for yet */
};

struct dwarf_line_names {
	struct dwarf_line_name *items;
	uint32_t n, capacity;
};

struct dwarf_line_table {
	uint64_t offset, end; /* in .debug_line */
	uint64_t program;
	const char *comp_dir;
	uint16_t version;
	uint8_t address_bytes, min_instruction_bytes, max_operations;
	uint8_t line_range, opcode_base;
	int8_t line_base;
	uint8_t operand_counts[256];
	struct dwarf_line_names folders, files;
};

/* False: damaged, or none there; the table is empty then. */
bool dwarf_line_open(struct dwarf_line_table *table, struct dwarf_info *info,
		     const struct dwarf_unit *unit, const char *comp_dir);
void dwarf_line_close(struct dwarf_line_table *table);
/* The file that DW_AT_decl_file and the like mean; 0 = unknown. */
uint32_t dwarf_line_file(struct dwarf_line_table *table, struct symbol_model *model,
			 uint64_t index);
/*
 * Appends the rows of what nobody claimed before. False when the program is damaged: the rows up to
 * there stay.
 */
bool dwarf_line_run(struct dwarf_line_table *table, struct dwarf_info *info,
		    struct address_claims *claims, struct symbol_model *model);
