/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a DIE: DW_AT_low_pc and DW_AT_high_pc, .debug_ranges, .debug_rnglists. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symcache/dwarf_info.h"

enum { DWARF_RANGES_MAX = 1 << 20 }; /* of one DIE */

struct dwarf_range {
	uint64_t start, end;
};

struct dwarf_ranges {
	struct dwarf_range *items;
	size_t n, capacity;
	uint64_t budget; /* entries left to be read, in all: lists may be shared */
};

/* The lists of one more file may be read. */
void dwarf_ranges_allow(struct dwarf_ranges *ranges, const struct dwarf_info *info);
void dwarf_ranges_fini(struct dwarf_ranges *ranges);
/* Replaces the content. What is damaged or was removed by the linker is left out. */
void dwarf_ranges_read(struct dwarf_ranges *ranges, struct dwarf_info *info,
		       const struct dwarf_unit *unit, const struct dwarf_values *values);
