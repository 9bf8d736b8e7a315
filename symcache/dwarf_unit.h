/* SPDX-License-Identifier: Apache-2.0 */
/* One unit of .debug_info: its header, and the values of its DIEs by an abbreviation's plan. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "symcache/dwarf_abbrev.h"
#include "symcache/dwarf_constants.h"

enum { DWARF_UNIT_MAX_HEADER_BYTES = 40 };

struct dwarf_unit {
	uint64_t offset, first_die, end; /* in .debug_info */
	uint64_t abbrev_offset;
	uint64_t dwo_id;
	uint8_t version, type; /* enum dwarf_unit_type */
	struct dwarf_shape shape;
	const struct dwarf_abbrev_table *abbrevs;
	/* From its first DIE; bases are absolute offsets in their sections. */
	uint64_t low_pc, str_offsets_base, addr_base, rnglists_base;
	uint64_t gnu_ranges_base; /* of the split unit that belongs to this one */
	uint64_t ranges_base;	  /* of this one, when it is a split unit of version 4 */
	uint64_t stmt_list;
	const char *comp_dir, *dwo_name; /* NULL when there is none */
	bool has_stmt_list;
};

/* Raw values of one DIE, as its forms hold them: references of a unit are made absolute, values of
 * strings and blocks inside .debug_info are their place there. */
struct dwarf_values {
	uint32_t present; /* bit per slot */
	uint16_t forms[DWARF_SLOTS];
	uint64_t items[DWARF_SLOTS];
};

static inline bool dwarf_values_have(const struct dwarf_values *values, enum dwarf_slot slot)
{
	return values->present >> slot & 1;
}

/*
 * The header at c's place; c is a cursor from the section's begin. False when what is there is no
 * unit of DWARF 2 to 5: *end_out is then where the next one may begin, 0 if even that is unknown.
 */
bool dwarf_unit_read_header(struct dwarf_unit *unit, struct cursor *c, uint64_t *end_out);
/* Values of the DIE whose code was just read; c moves behind it. */
void dwarf_unit_read_values(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
			    struct cursor *c, struct dwarf_values *out);
/* One value of a form, for tables outside of DIEs too. */
uint64_t dwarf_unit_read_form(const struct dwarf_shape *shape, uint64_t form, struct cursor *c);
void dwarf_unit_skip_form(const struct dwarf_shape *shape, uint64_t form, struct cursor *c);

/* Past a DIE of which only the sibling matters: its offset in the section, 0 = not told. */
static inline uint64_t dwarf_unit_skip_die(const struct dwarf_unit *unit,
					   const struct dwarf_abbrev *abbrev, struct cursor *c)
{
	const struct dwarf_step *step = &unit->abbrevs->steps[abbrev->first_step];
	uint64_t sibling = 0;
	for (unsigned i = 0; i < abbrev->n_steps; i++, step++) {
		cursor_skip(c, step->skip);
		if (step->slot != DWARF_SLOT_SIBLING) {
			dwarf_unit_skip_form(&unit->shape, step->form, c);
		} else if (step->form == DW_FORM_ref4) {
			sibling = cursor_u32(c) + unit->offset;
		} else {
			sibling = dwarf_unit_read_form(&unit->shape, step->form, c);
			sibling += step->form == DW_FORM_ref_addr ? 0 : unit->offset;
		}
	}
	cursor_skip(c, abbrev->tail);
	return sibling;
}
