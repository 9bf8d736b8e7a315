/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_ranges.h"

#include "base/mem.h"
#include "symcache/dwarf_constants.h"
#include "symcache/dwarf_leb.h"

/* Whoever shares one list among many DIEs reads it often; compilers do not. */
enum { BUDGET_FACTOR = 8, BUDGET_MORE = 1 << 20 };

void dwarf_ranges_allow(struct dwarf_ranges *ranges, const struct dwarf_info *info)
{
	ranges->budget += (info->sections.items[DEBUG_SECTION_RANGES].size +
			   info->sections.items[DEBUG_SECTION_RNGLISTS].size) *
				  (uint64_t)BUDGET_FACTOR +
			  BUDGET_MORE;
}

void dwarf_ranges_fini(struct dwarf_ranges *ranges)
{
	mem_free(ranges->items);
	*ranges = (struct dwarf_ranges){0};
}

static uint64_t highest_address(const struct dwarf_unit *unit)
{
	return unit->shape.address_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

/* Linkers write the highest address, or the one below, in place of what they removed. */
static bool is_tombstone(const struct dwarf_unit *unit, uint64_t address)
{
	return address >= highest_address(unit) - 1;
}

static void add(struct dwarf_ranges *ranges, const struct dwarf_unit *unit, uint64_t start,
		uint64_t end)
{
	start &= highest_address(unit);
	end &= highest_address(unit);
	if (start >= end || is_tombstone(unit, start) || ranges->n == DWARF_RANGES_MAX)
		return;
	if (ranges->n == ranges->capacity) {
		ranges->capacity += ranges->capacity / 2 + 16;
		ranges->items =
			mem_realloc(ranges->items, ranges->capacity, sizeof(*ranges->items));
	}
	ranges->items[ranges->n++] = (struct dwarf_range){start, end};
}

static uint64_t read_address(const struct dwarf_unit *unit, struct cursor *c)
{
	return unit->shape.address_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
}

/* .debug_ranges of DWARF 2 to 4. */
static void read_pairs(struct dwarf_ranges *ranges, struct dwarf_info *info,
		       const struct dwarf_unit *unit, uint64_t offset)
{
	struct dwarf_info *home = info->skeleton ? info->skeleton : info;
	struct cursor c = dwarf_info_section(home, DEBUG_SECTION_RANGES);
	cursor_seek(&c, offset);
	uint64_t base = unit->low_pc;
	while (cursor_is_ok(&c) && ranges->budget) {
		ranges->budget--;
		uint64_t start = read_address(unit, &c);
		uint64_t end = read_address(unit, &c);
		if (!cursor_is_ok(&c) || (!start && !end))
			return;
		if (start == highest_address(unit))
			base = end;
		else if (!is_tombstone(unit, base))
			add(ranges, unit, base + start, base + end);
	}
}

static bool indexed(struct dwarf_info *info, const struct dwarf_unit *unit, struct cursor *c,
		    uint64_t *out)
{
	return dwarf_info_indexed_address(info, unit, dwarf_leb_unsigned(c), out);
}

/* One entry of .debug_rnglists; false at the end. */
static bool read_entry(struct dwarf_ranges *ranges, struct dwarf_info *info,
		       const struct dwarf_unit *unit, struct cursor *c, uint64_t *base)
{
	uint64_t start = 0, end = 0;
	bool is_found = true;
	switch (cursor_u8(c)) {
	case DW_RLE_base_addressx:
		if (!indexed(info, unit, c, base))
			*base = highest_address(unit);
		return true;
	case DW_RLE_base_address:
		*base = read_address(unit, c);
		return true;
	case DW_RLE_startx_endx:
		is_found = indexed(info, unit, c, &start);
		is_found = indexed(info, unit, c, &end) && is_found;
		break;
	case DW_RLE_startx_length:
		is_found = indexed(info, unit, c, &start);
		end = start + dwarf_leb_unsigned(c);
		break;
	case DW_RLE_offset_pair:
		start = *base + dwarf_leb_unsigned(c);
		end = *base + dwarf_leb_unsigned(c);
		is_found = !is_tombstone(unit, *base);
		break;
	case DW_RLE_start_end:
		start = read_address(unit, c);
		end = read_address(unit, c);
		break;
	case DW_RLE_start_length:
		start = read_address(unit, c);
		end = start + dwarf_leb_unsigned(c);
		break;
	default:
		return false;
	}
	if (cursor_is_ok(c) && is_found && !is_tombstone(unit, start))
		add(ranges, unit, start, end);
	return true;
}

static void read_list(struct dwarf_ranges *ranges, struct dwarf_info *info,
		      const struct dwarf_unit *unit, uint64_t offset)
{
	struct cursor c = dwarf_info_section(info, DEBUG_SECTION_RNGLISTS);
	cursor_seek(&c, offset);
	uint64_t base = unit->low_pc;
	while (cursor_is_ok(&c) && ranges->budget) {
		ranges->budget--;
		if (!read_entry(ranges, info, unit, &c, &base))
			return;
	}
}

/* DW_FORM_rnglistx: the table of offsets stands at the base that they count from. */
static void read_indexed_list(struct dwarf_ranges *ranges, struct dwarf_info *info,
			      const struct dwarf_unit *unit, uint64_t index)
{
	struct cursor c = dwarf_info_section(info, DEBUG_SECTION_RNGLISTS);
	unsigned bytes = unit->shape.offset_bytes;
	if (index > cursor_left(&c) / bytes || unit->rnglists_base > cursor_left(&c))
		return;
	cursor_seek(&c, unit->rnglists_base + index * bytes);
	uint64_t offset = bytes == 8 ? cursor_u64(&c) : cursor_u32(&c);
	if (cursor_is_ok(&c))
		read_list(ranges, info, unit, unit->rnglists_base + offset);
}

static void read_low_high(struct dwarf_ranges *ranges, struct dwarf_info *info,
			  const struct dwarf_unit *unit, const struct dwarf_values *values)
{
	uint64_t low, high = values->items[DWARF_SLOT_HIGH_PC];
	if (!dwarf_info_address(info, unit, values->forms[DWARF_SLOT_LOW_PC],
				values->items[DWARF_SLOT_LOW_PC], &low) ||
	    is_tombstone(unit, low))
		return;
	uint64_t high_form = values->forms[DWARF_SLOT_HIGH_PC];
	uint64_t end;
	/* A constant is the size. */
	if (!dwarf_info_address(info, unit, high_form, high, &end))
		end = low + high;
	add(ranges, unit, low, end);
}

void dwarf_ranges_read(struct dwarf_ranges *ranges, struct dwarf_info *info,
		       const struct dwarf_unit *unit, const struct dwarf_values *values)
{
	ranges->n = 0;
	uint64_t value = values->items[DWARF_SLOT_RANGES];
	if (dwarf_values_have(values, DWARF_SLOT_HIGH_PC)) {
		if (dwarf_values_have(values, DWARF_SLOT_LOW_PC))
			read_low_high(ranges, info, unit, values);
	} else if (!dwarf_values_have(values, DWARF_SLOT_RANGES)) {
		return;
	} else if (values->forms[DWARF_SLOT_RANGES] == DW_FORM_rnglistx) {
		read_indexed_list(ranges, info, unit, value);
	} else if (unit->version >= 5) {
		read_list(ranges, info, unit, value);
	} else {
		read_pairs(ranges, info, unit, value + unit->ranges_base);
	}
}
