/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_info.h"

#include <string.h>

#include "base/mem.h"
#include "symcache/dwarf_constants.h"

enum { ABBREV_BUDGET_FACTOR = 8, ABBREV_BUDGET_MORE = 16 << 20, SHAPE_SHIFT = 48 };

void dwarf_info_init(struct dwarf_info *info, const struct elf_image *image, bool is_dwo,
		     bool is_file_mapping)
{
	*info = (struct dwarf_info){0};
	debug_sections_init(&info->sections, image, is_dwo, is_file_mapping);
	hash_map_init(&info->abbrev_tables);
	hash_map_init(&info->units);
	info->abbrev_budget =
		info->sections.items[DEBUG_SECTION_ABBREV].size * (uint64_t)ABBREV_BUDGET_FACTOR +
		ABBREV_BUDGET_MORE;
}

static void drop_abbrev_tables(struct dwarf_info *info)
{
	size_t i = 0;
	uint64_t key, *value;
	while (hash_map_next(&info->abbrev_tables, &i, &key, &value)) {
		struct dwarf_abbrev_table *table = (struct dwarf_abbrev_table *)(uintptr_t)*value;
		dwarf_abbrev_fini(table);
		mem_free(table);
	}
	hash_map_clear(&info->abbrev_tables);
	info->abbrev_bytes = 0;
}

void dwarf_info_fini(struct dwarf_info *info)
{
	drop_abbrev_tables(info);
	hash_map_fini(&info->abbrev_tables);
	size_t i = 0;
	uint64_t key, *value;
	while (hash_map_next(&info->units, &i, &key, &value))
		mem_free((void *)(uintptr_t)*value);
	hash_map_fini(&info->units);
	mem_free(info->extents);
	debug_sections_fini(&info->sections);
	*info = (struct dwarf_info){0};
}

struct cursor dwarf_info_section(struct dwarf_info *info, enum debug_section_kind kind)
{
	(void)debug_sections_need(&info->sections, kind, 0, info->sections.items[kind].size);
	return debug_sections_cursor(&info->sections, kind);
}

/* Tables stay while units of far references point at them; then their number has a cap. */
static const struct dwarf_abbrev_table *find_abbrevs(struct dwarf_info *info, uint64_t offset,
						     const struct dwarf_shape *shape)
{
	uint64_t shape_bits = shape->address_bytes | (uint64_t)shape->offset_bytes << 4 |
			      (uint64_t)shape->is_version_2 << 8;
	if (offset >> SHAPE_SHIFT)
		return NULL;
	uint64_t key = offset | shape_bits << SHAPE_SHIFT;
	uint64_t *found = hash_map_get(&info->abbrev_tables, key);
	if (found)
		return (struct dwarf_abbrev_table *)(uintptr_t)*found;
	struct cursor c = dwarf_info_section(info, DEBUG_SECTION_ABBREV);
	uint64_t section_bytes = cursor_left(&c);
	cursor_seek(&c, offset);
	if (!cursor_is_ok(&c) || !info->abbrev_budget ||
	    (info->is_pinned && info->abbrev_bytes > 2 * section_bytes + (1 << 20)))
		return NULL;
	struct dwarf_abbrev_table *table = mem_alloc(sizeof(*table));
	/* What is damaged costs as much as if it were not. */
	uint64_t n_read = cursor_left(&c);
	if (dwarf_abbrev_read(table, c, shape))
		n_read = table->n_bytes;
	info->abbrev_budget -= n_read < info->abbrev_budget ? n_read : info->abbrev_budget;
	info->abbrev_bytes += table->n_bytes;
	*hash_map_put(&info->abbrev_tables, key, NULL) = (uintptr_t)table;
	return table;
}

struct cursor dwarf_info_unit_cursor(const struct dwarf_info *info, const struct dwarf_unit *unit,
				     uint64_t offset)
{
	struct cursor c = debug_sections_cursor(&info->sections, DEBUG_SECTION_INFO);
	if (unit->end <= cursor_left(&c))
		c.end = c.begin + unit->end;
	cursor_seek(&c, offset);
	return c;
}

static const char *root_string(struct dwarf_info *info, const struct dwarf_unit *unit,
			       const struct dwarf_values *values, enum dwarf_slot slot)
{
	struct dwarf_text text;
	if (!dwarf_values_have(values, slot) ||
	    !dwarf_info_string(info, unit, values->forms[slot], values->items[slot], &text))
		return NULL;
	return text.bytes;
}

static void take_root(struct dwarf_info *info, struct dwarf_unit *unit,
		      const struct dwarf_values *values)
{
	const uint64_t *items = values->items;
	bool is_5 = unit->version == 5;
	unsigned header_bytes = unit->shape.offset_bytes == 8 ? 16 : 8;
	if (dwarf_values_have(values, DWARF_SLOT_STR_OFFSETS_BASE))
		unit->str_offsets_base = items[DWARF_SLOT_STR_OFFSETS_BASE];
	else if (is_5)
		unit->str_offsets_base = header_bytes;
	unit->str_offsets_base += info->parts.str_offsets;
	if (dwarf_values_have(values, DWARF_SLOT_ADDR_BASE))
		unit->addr_base = items[DWARF_SLOT_ADDR_BASE];
	else if (is_5)
		unit->addr_base = header_bytes;
	if (dwarf_values_have(values, DWARF_SLOT_RNGLISTS_BASE))
		unit->rnglists_base = items[DWARF_SLOT_RNGLISTS_BASE];
	else if (is_5)
		unit->rnglists_base = header_bytes + 4;
	unit->rnglists_base += info->parts.rnglists;
	if (dwarf_values_have(values, DWARF_SLOT_GNU_RANGES_BASE))
		unit->gnu_ranges_base = items[DWARF_SLOT_GNU_RANGES_BASE];
	if (dwarf_values_have(values, DWARF_SLOT_DWO_ID))
		unit->dwo_id = items[DWARF_SLOT_DWO_ID];
	unit->has_stmt_list = dwarf_values_have(values, DWARF_SLOT_STMT_LIST);
	if (unit->has_stmt_list)
		unit->stmt_list = items[DWARF_SLOT_STMT_LIST] + info->parts.line;
	unit->comp_dir = root_string(info, unit, values, DWARF_SLOT_COMP_DIR);
	unit->dwo_name = root_string(info, unit, values, DWARF_SLOT_DWO_NAME);
	if (dwarf_values_have(values, DWARF_SLOT_LOW_PC) &&
	    !dwarf_info_address(info, unit, values->forms[DWARF_SLOT_LOW_PC],
				items[DWARF_SLOT_LOW_PC], &unit->low_pc))
		unit->low_pc = 0;
}

/* Reads all but the DIEs below the first. */
static bool load_unit(struct dwarf_info *info, uint64_t offset, struct dwarf_unit *unit,
		      uint64_t *end_out)
{
	const struct debug_section *section = &info->sections.items[DEBUG_SECTION_INFO];
	uint64_t header_end = offset + DWARF_UNIT_MAX_HEADER_BYTES;
	if (header_end > section->size)
		header_end = section->size;
	*end_out = 0;
	if (!debug_sections_need(&info->sections, DEBUG_SECTION_INFO, offset, header_end))
		return false;
	struct cursor c = debug_sections_cursor(&info->sections, DEBUG_SECTION_INFO);
	cursor_seek(&c, offset);
	if (!dwarf_unit_read_header(unit, &c, end_out) ||
	    !debug_sections_need(&info->sections, DEBUG_SECTION_INFO, offset, unit->end))
		return false;
	if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
		return true;
	unit->abbrev_offset += info->parts.abbrev;
	unit->abbrevs = find_abbrevs(info, unit->abbrev_offset, &unit->shape);
	if (!unit->abbrevs)
		return false;
	c = dwarf_info_unit_cursor(info, unit, unit->first_die);
	const struct dwarf_abbrev *abbrev = dwarf_info_read_code(unit, &c);
	struct dwarf_values values;
	if (!abbrev || abbrev->kind != DWARF_ABBREV_UNIT)
		return false;
	dwarf_unit_read_values(unit, abbrev, &c, &values);
	if (!cursor_is_ok(&c))
		return false;
	take_root(info, unit, &values);
	return true;
}

enum dwarf_info_step dwarf_info_next(struct dwarf_info *info, uint64_t *position,
				     struct dwarf_unit *unit)
{
	if (*position >= info->sections.items[DEBUG_SECTION_INFO].size ||
	    info->n_damaged_units > DWARF_INFO_MAX_DAMAGED_UNITS)
		return DWARF_INFO_END;
	if (!info->is_pinned && info->abbrev_bytes > DWARF_INFO_KEPT_ABBREV_BYTES)
		drop_abbrev_tables(info);
	uint64_t end;
	bool is_ok = load_unit(info, *position, unit, &end);
	*position = end > *position ? end : UINT64_MAX;
	if (is_ok)
		return DWARF_INFO_UNIT;
	info->n_damaged_units++;
	return DWARF_INFO_DAMAGED;
}

/* Where units begin and end, by their headers alone. */
static void index_units(struct dwarf_info *info)
{
	info->is_indexed = true;
	info->is_pinned = true;
	struct cursor c = dwarf_info_section(info, DEBUG_SECTION_INFO);
	size_t capacity = 0;
	while (cursor_left(&c)) {
		struct dwarf_unit unit;
		uint64_t end;
		uint64_t offset = cursor_position(&c);
		(void)dwarf_unit_read_header(&unit, &c, &end);
		if (end <= offset || end > (uint64_t)(c.end - c.begin))
			break;
		if (info->n_extents == capacity) {
			capacity += capacity / 2 + 256;
			info->extents =
				mem_realloc(info->extents, capacity, sizeof(*info->extents));
		}
		info->extents[info->n_extents++] = (struct dwarf_extent){offset, end};
		c.is_bad = false;
		cursor_seek(&c, end);
	}
}

const struct dwarf_unit *dwarf_info_find_unit(struct dwarf_info *info, uint64_t offset)
{
	if (!info->is_indexed)
		index_units(info);
	size_t low = 0;
	for (size_t high = info->n_extents; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (info->extents[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == info->n_extents || offset < info->extents[low].offset)
		return NULL;
	bool is_new;
	uint64_t *slot = hash_map_put(&info->units, info->extents[low].offset, &is_new);
	if (!is_new)
		return (const struct dwarf_unit *)(uintptr_t)*slot;
	struct dwarf_unit *unit = mem_zalloc(1, sizeof(*unit));
	uint64_t end;
	if (!load_unit(info, info->extents[low].offset, unit, &end) || !unit->abbrevs) {
		mem_free(unit);
		unit = NULL;
	}
	*slot = (uintptr_t)unit;
	return unit;
}

void dwarf_info_forget(struct dwarf_info *info, const struct dwarf_unit *unit)
{
	if (!info->is_pinned)
		debug_sections_forget(&info->sections, DEBUG_SECTION_INFO, unit->end);
}

/* A text in a section; the key tells sections apart. */
static bool take_text(struct dwarf_info *info, enum debug_section_kind kind, uint64_t offset,
		      struct dwarf_text *out)
{
	struct cursor c = kind == DEBUG_SECTION_INFO
				  ? debug_sections_cursor(&info->sections, DEBUG_SECTION_INFO)
				  : dwarf_info_section(info, kind);
	cursor_seek(&c, offset);
	out->bytes = cursor_string(&c, DWARF_INFO_MAX_STRING_BYTES);
	if (!out->bytes)
		return false;
	out->n = (size_t)((const char *)c.next - out->bytes) - 1;
	out->key = kind == DEBUG_SECTION_INFO ? 0 : (offset + 1) << 4 | (uint64_t)kind;
	return true;
}

static bool indexed_text(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t index,
			 struct dwarf_text *out)
{
	struct cursor c = dwarf_info_section(info, DEBUG_SECTION_STR_OFFSETS);
	unsigned bytes = unit->shape.offset_bytes;
	if (index > cursor_left(&c) / bytes)
		return false;
	cursor_seek(&c, unit->str_offsets_base + index * bytes);
	uint64_t offset = bytes == 8 ? cursor_u64(&c) : cursor_u32(&c);
	return cursor_is_ok(&c) && take_text(info, DEBUG_SECTION_STR, offset, out);
}

bool dwarf_info_string(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t form,
		       uint64_t value, struct dwarf_text *out)
{
	switch (form) {
	case DW_FORM_string:
		return take_text(info, DEBUG_SECTION_INFO, value, out);
	case DW_FORM_strp:
		return take_text(info, DEBUG_SECTION_STR, value, out);
	case DW_FORM_line_strp:
		return take_text(info, DEBUG_SECTION_LINE_STR, value, out);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_text(info, unit, value, out);
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		if (!info->alternate || !take_text(info->alternate, DEBUG_SECTION_STR, value, out))
			return false;
		out->key |= (uint64_t)1 << 63;
		return true;
	default:
		return false;
	}
}

bool dwarf_info_indexed_address(struct dwarf_info *info, const struct dwarf_unit *unit,
				uint64_t index, uint64_t *out)
{
	struct dwarf_info *home = info->skeleton ? info->skeleton : info;
	struct cursor c = dwarf_info_section(home, DEBUG_SECTION_ADDR);
	unsigned bytes = unit->shape.address_bytes;
	if (index > cursor_left(&c) / bytes || unit->addr_base > cursor_left(&c))
		return false;
	cursor_seek(&c, unit->addr_base + index * bytes);
	*out = bytes == 8 ? cursor_u64(&c) : cursor_u32(&c);
	return cursor_is_ok(&c);
}

bool dwarf_info_address(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t form,
			uint64_t value, uint64_t *out)
{
	switch (form) {
	case DW_FORM_addr:
		*out = value;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return dwarf_info_indexed_address(info, unit, value, out);
	default:
		return false;
	}
}
