/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Abbreviation tables, turned into reading plans: for each kind of DIE the few attributes that a
 * profile needs, and how many bytes lie between them. A DIE without any is skipped in one step when
 * its size is fixed. Plans hold for one shape of unit (sizes of addresses and offsets).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum {
	DWARF_ABBREV_MAX_ATTRIBUTES = 512,	 /* of one declaration */
	DWARF_ABBREV_MAX_DECLARATIONS = 1 << 20, /* of one table */
};

/* What a DIE is to us. */
enum dwarf_abbrev_kind {
	DWARF_ABBREV_OTHER,    /* its children may hold code */
	DWARF_ABBREV_DATA,     /* nothing below it holds code */
	DWARF_ABBREV_TYPE,     /* a class: what lies in it is no part of the function around it */
	DWARF_ABBREV_FUNCTION, /* DW_TAG_subprogram */
	DWARF_ABBREV_INLINED,  /* DW_TAG_inlined_subroutine */
	DWARF_ABBREV_UNIT,
};

/* Attributes that are read; the rest is skipped. */
enum dwarf_slot {
	DWARF_SLOT_SIBLING,
	DWARF_SLOT_LOW_PC,
	DWARF_SLOT_HIGH_PC,
	DWARF_SLOT_RANGES,
	DWARF_SLOT_ORIGIN,
	DWARF_SLOT_SPECIFICATION,
	DWARF_SLOT_NAME,
	DWARF_SLOT_LINKAGE_NAME,
	DWARF_SLOT_DECL_FILE,
	DWARF_SLOT_DECL_LINE,
	DWARF_SLOT_CALL_FILE,
	DWARF_SLOT_CALL_LINE,
	DWARF_SLOT_CALL_COLUMN,
	DWARF_SLOT_STMT_LIST,
	DWARF_SLOT_COMP_DIR,
	DWARF_SLOT_STR_OFFSETS_BASE,
	DWARF_SLOT_ADDR_BASE,
	DWARF_SLOT_RNGLISTS_BASE,
	DWARF_SLOT_GNU_RANGES_BASE,
	DWARF_SLOT_DWO_NAME,
	DWARF_SLOT_DWO_ID,
	DWARF_SLOTS,
};

enum dwarf_step_op {
	DWARF_STEP_READ, /* a value of form into slot */
	DWARF_STEP_SKIP, /* a value of form */
};

/* skip bytes lie before the value. */
struct dwarf_step {
	uint32_t skip;
	uint16_t form;
	uint8_t op, slot;
	int64_t constant; /* DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first_step;
	uint16_t n_steps;
	uint16_t tail; /* bytes behind the last step */
	uint16_t tag;
	uint8_t kind; /* enum dwarf_abbrev_kind */
	bool has_children;
	bool has_code; /* addresses, of its own */
};

struct dwarf_shape {
	uint8_t address_bytes, offset_bytes;
	bool is_version_2; /* DW_FORM_ref_addr has the size of an address */
};

struct dwarf_abbrev_table {
	struct dwarf_abbrev *items;
	uint32_t n, capacity;
	bool is_dense; /* item i has code i + 1 */
	struct dwarf_step *steps;
	uint32_t n_steps, steps_capacity;
	uint64_t n_bytes; /* that it was read from */
};

/* c stands at the table's begin. False: damaged, over a cap; the table is empty then. */
bool dwarf_abbrev_read(struct dwarf_abbrev_table *table, struct cursor c,
		       const struct dwarf_shape *shape);
void dwarf_abbrev_fini(struct dwarf_abbrev_table *table);
const struct dwarf_abbrev *dwarf_abbrev_find_slow(const struct dwarf_abbrev_table *table,
						  uint64_t code);
/* NULL when the table has no such code. */
static inline const struct dwarf_abbrev *dwarf_abbrev_find(const struct dwarf_abbrev_table *table,
							   uint64_t code)
{
	if (table->is_dense)
		return code - 1 < table->n ? &table->items[code - 1] : NULL;
	return dwarf_abbrev_find_slow(table, code);
}
/* Size of a value of form: bytes, or -1 when the value itself tells. */
int dwarf_abbrev_form_bytes(uint64_t form, const struct dwarf_shape *shape);
/* Whether the form is one that we can step over. */
bool dwarf_abbrev_is_form_known(uint64_t form);
