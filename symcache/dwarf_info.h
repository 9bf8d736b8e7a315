/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .debug_info of one file: its units one after the other, units by offset, and what DIEs refer to
 * in other sections. Walked in order, it holds only the current unit in memory; the first far
 * reference (link-time optimisation, dwz) makes it keep what it unpacks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "symcache/debug_sections.h"
#include "symcache/dwarf_leb.h"
#include "symcache/dwarf_unit.h"

enum {
	DWARF_INFO_MAX_DAMAGED_UNITS = 10000, /* after that the rest is left alone */
	DWARF_INFO_MAX_STRING_BYTES = 1 << 20,
	DWARF_INFO_KEPT_ABBREV_BYTES = 4 << 20, /* in the section, before tables are dropped */
};

struct dwarf_extent {
	uint64_t offset, end;
};

/* Where the parts of one unit begin in the sections of a package; all 0 elsewhere. */
struct dwarf_parts {
	uint64_t info, abbrev, line, str_offsets, rnglists;
};

struct dwarf_info {
	struct debug_sections sections;
	/* Where .debug_addr is, and .debug_ranges of GNU's split units: the binary's. NULL = here.
	 */
	struct dwarf_info *skeleton;
	struct dwarf_info *alternate;  /* dwz's shared file, NULL = none */
	struct dwarf_parts parts;      /* of the unit that is read next */
	struct hash_map abbrev_tables; /* offset and shape → struct dwarf_abbrev_table */
	uint64_t abbrev_bytes;	       /* that the tables were read from */
	uint64_t abbrev_budget;	       /* left to be read, in all */
	struct dwarf_extent *extents; /* of all units, by offset; made at the first far reference */
	size_t n_extents;
	bool is_indexed;
	bool is_pinned;	       /* nothing is forgotten any more */
	struct hash_map units; /* offset → struct dwarf_unit, of far references */
	uint32_t n_damaged_units;
};

struct dwarf_text {
	const char *bytes;
	size_t n;
	uint64_t key; /* equal keys are equal texts of one dwarf_info; 0 = no key */
};

/* image outlives info. */
void dwarf_info_init(struct dwarf_info *info, const struct elf_image *image, bool is_dwo,
		     bool is_file_mapping);
void dwarf_info_fini(struct dwarf_info *info);

enum dwarf_info_step { DWARF_INFO_UNIT, DWARF_INFO_DAMAGED, DWARF_INFO_END };
/*
 * The unit at *position (0 at first), which moves to the next. unit->abbrevs is valid until the
 * call after. A damaged unit is counted and has nothing in it.
 */
enum dwarf_info_step dwarf_info_next(struct dwarf_info *info, uint64_t *position,
				     struct dwarf_unit *unit);
/* The unit that covers offset; valid until fini, NULL when none does. Pins the file. */
const struct dwarf_unit *dwarf_info_find_unit(struct dwarf_info *info, uint64_t offset);
/* Lets unit and all before it go, unless the file is pinned. */
void dwarf_info_forget(struct dwarf_info *info, const struct dwarf_unit *unit);

/* A DIE: reads its code and gives its abbreviation; NULL at a null entry or an unknown code, which
 * makes c bad. */
static inline const struct dwarf_abbrev *dwarf_info_read_code(const struct dwarf_unit *unit,
							      struct cursor *c)
{
	uint64_t code = dwarf_leb_unsigned(c);
	if (!code)
		return NULL;
	const struct dwarf_abbrev *abbrev = dwarf_abbrev_find(unit->abbrevs, code);
	if (!abbrev)
		c->is_bad = true;
	return abbrev;
}
/* A cursor over the section that ends with the unit, at offset. */
struct cursor dwarf_info_unit_cursor(const struct dwarf_info *info, const struct dwarf_unit *unit,
				     uint64_t offset);

/* The whole section. */
struct cursor dwarf_info_section(struct dwarf_info *info, enum debug_section_kind kind);
bool dwarf_info_string(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t form,
		       uint64_t value, struct dwarf_text *out);
/* A value of an address form. */
bool dwarf_info_address(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t form,
			uint64_t value, uint64_t *out);
/* Address number index of the unit. */
bool dwarf_info_indexed_address(struct dwarf_info *info, const struct dwarf_unit *unit,
				uint64_t index, uint64_t *out);
