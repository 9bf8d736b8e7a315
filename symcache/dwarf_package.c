/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_package.h"

enum { MAX_COLUMNS = 16, HEADER_BYTES = 16 };

/* Numbers of the index's columns; 8 is .debug_macro in version 2. */
enum {
	COLUMN_INFO = 1,
	COLUMN_ABBREV = 3,
	COLUMN_LINE = 4,
	COLUMN_STR_OFFSETS = 6,
	COLUMN_RNGLISTS_5 = 8
};

/*
 *   header | ids, 8 bytes a slot | rows, 4 bytes a slot | column numbers | offsets by row and
 * column
 */
struct index {
	struct cursor section;
	bool is_5;
	uint32_t n_columns, n_units, n_slots;
};

static bool open_index(struct dwarf_info *info, struct index *index)
{
	index->section = dwarf_info_section(info, DEBUG_SECTION_CU_INDEX);
	struct cursor c = index->section;
	/* Version 2 is a word of 4 bytes, version 5 one of 2 and padding. */
	uint32_t word = cursor_u32(&c);
	uint32_t version_5 = c.is_swapped ? 5u << 16 : 5;
	index->is_5 = word == 5 || word == version_5;
	index->n_columns = cursor_u32(&c);
	index->n_units = cursor_u32(&c);
	index->n_slots = cursor_u32(&c);
	if (!cursor_is_ok(&c) || (!index->is_5 && word != 2) || index->n_columns > MAX_COLUMNS)
		return false;
	uint64_t n_bytes = (uint64_t)index->n_slots * 12 + (uint64_t)index->n_columns * 4 +
			   (uint64_t)index->n_units * index->n_columns * 4;
	/* Slots are a power of two. */
	return n_bytes <= cursor_left(&c) && index->n_slots &&
	       !(index->n_slots & (index->n_slots - 1));
}

/* The row of id, from 1; 0 = not there. */
static uint32_t find_row(const struct index *index, uint64_t id)
{
	uint64_t mask = index->n_slots - 1;
	uint64_t step = ((id >> 32) & mask) | 1;
	uint64_t slot = id & mask;
	for (uint32_t i = 0; i < index->n_slots; i++, slot = (slot + step) & mask) {
		struct cursor c = index->section;
		cursor_seek(&c, HEADER_BYTES + slot * 8);
		uint64_t found = cursor_u64(&c);
		cursor_seek(&c, HEADER_BYTES + (uint64_t)index->n_slots * 8 + slot * 4);
		uint32_t row = cursor_u32(&c);
		if (!row)
			return 0;
		if (found == id)
			return row <= index->n_units ? row : 0;
	}
	return 0;
}

bool dwarf_package_find(struct dwarf_info *info, uint64_t id, struct dwarf_parts *out)
{
	struct index index;
	if (!open_index(info, &index))
		return false;
	uint32_t row = find_row(&index, id);
	if (!row)
		return false;
	*out = (struct dwarf_parts){0};
	struct cursor columns = index.section;
	cursor_seek(&columns, HEADER_BYTES + (uint64_t)index.n_slots * 12);
	struct cursor offsets = index.section;
	cursor_seek(&offsets, HEADER_BYTES + (uint64_t)index.n_slots * 12 +
				      (uint64_t)index.n_columns * 4 * row);
	bool has_info = false;
	for (uint32_t i = 0; i < index.n_columns; i++) {
		uint32_t column = cursor_u32(&columns);
		uint32_t offset = cursor_u32(&offsets);
		if (column == COLUMN_INFO)
			out->info = offset;
		else if (column == COLUMN_ABBREV)
			out->abbrev = offset;
		else if (column == COLUMN_LINE)
			out->line = offset;
		else if (column == COLUMN_STR_OFFSETS)
			out->str_offsets = offset;
		else if (column == COLUMN_RNGLISTS_5 && index.is_5)
			out->rnglists = offset;
		has_info = has_info || column == COLUMN_INFO;
	}
	return has_info && cursor_is_ok(&offsets);
}
