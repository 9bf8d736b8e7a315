/* SPDX-License-Identifier: Apache-2.0 */
/* LEB128 numbers out of a cursor. Bits past the 64th are lost; a number that runs on
 * past 16 bytes makes the cursor bad. */
#pragma once

#include "base/compiler.h"
#include "base/cursor.h"

enum { DWARF_LEB_MAX_BYTES = 16 };

static inline uint64_t dwarf_leb_unsigned(struct cursor *c)
{
	if (LIKELY(c->next < c->end && *c->next < 0x80))
		return *c->next++;
	uint64_t value = 0;
	for (unsigned i = 0; i < DWARF_LEB_MAX_BYTES && c->next < c->end; i++) {
		uint8_t byte = *c->next++;
		if (i < 10)
			value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80)
			return value;
	}
	c->is_bad = true;
	c->next = c->end;
	return 0;
}

static inline int64_t dwarf_leb_signed(struct cursor *c)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < DWARF_LEB_MAX_BYTES && c->next < c->end; i++) {
		uint8_t byte = *c->next++;
		if (i < 10)
			value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			if (i < 9 && byte & 0x40)
				value |= UINT64_MAX << (7 * (i + 1));
			return (int64_t)value;
		}
	}
	c->is_bad = true;
	c->next = c->end;
	return 0;
}
