/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of the unwind section that its writer and its reader share; docs/symbol-file.md
 * describes the layout and why it is so.
 */
#pragma once

#include <stdint.h>

#include "symcache/unwind_table.h"

enum {
	UNWIND_TABLE_VERSION = 1,
	UNWIND_HEADER_BYTES = 48,
	UNWIND_SPAN_BYTES = 24,
	UNWIND_RULE_BYTES = 4,
	UNWIND_RULE_WITH_EXTRA_BYTES = 5,
	UNWIND_WIDE_RULE_BYTES = 36,
	UNWIND_TAIL_BYTES = 8, /* at the end: offsets and distances are read 8 at a time */
	UNWIND_MAX_PAGE_BITS = 8,
	UNWIND_MAX_SHIFT = 2,
	UNWIND_MAX_RULES = UINT16_MAX,
	UNWIND_MAX_WIDE_RULES = UINT16_MAX,
	UNWIND_OFFSET_UNIT = 8, /* of offsets in short rules */
	UNWIND_MAX_ROWS = 1 << 23,
	UNWIND_MAX_PAGES = 1 << 26,
	UNWIND_MAX_EXPRESSION_BYTES = 1 << 20,
	UNWIND_MAX_DISTANCE = 254, /* of a phrase's rows from its first; 255 is behind all */
};

/* Header fields. */
enum {
	UNWIND_AT_VERSION = 0,
	UNWIND_AT_MACHINE = 1,
	UNWIND_AT_SHIFT = 2,
	UNWIND_AT_PAGE_BITS = 3,
	UNWIND_AT_CODE_BYTES = 4,
	UNWIND_AT_PHRASE_RULE_BYTES = 5,
	UNWIND_AT_EXTRA_REGISTER = 6,
	UNWIND_AT_PAGE_BYTES = 7, /* of an entry of the page index */
	UNWIND_AT_SPANS = 8,
	UNWIND_AT_PAGES = 12,
	UNWIND_AT_ROWS = 16,
	UNWIND_AT_RULES = 20,
	UNWIND_AT_WIDE_RULES = 24,
	UNWIND_AT_EXPRESSION_BYTES = 28,
	UNWIND_AT_PHRASES = 32, /* u16 each: phrases of 2, 3 … UNWIND_MAX_PHRASE rows */
};

/*
 * A short rule: u8 shape, u8 where frame pointer or return address are saved (units below the CFA),
 * u16 the CFA's offset in units, of which the highest bit says UNWIND_RETURN_ADDRESS_SIGNED; then
 * u8 where the extra register is saved, when the table has one. The shape has a bit and three
 * fields. Others have the number of a wide rule, or the bound of a PLT slot, in place of the u16.
 */
enum {
	UNWIND_SHAPE_CFA_FP = 1 << 0, /* CFA from the frame pointer, not the stack pointer */
	UNWIND_SHAPE_RETURN_SHIFT = 1,
	UNWIND_SHAPE_FP_SHIFT = 3,
	UNWIND_SHAPE_EXTRA_SHIFT = 5,
	UNWIND_SHAPE_FIELD_MASK = 3,
	UNWIND_SHAPE_LAST_SHORT = 0x7f,
	UNWIND_SHAPE_PLT = 0xfd,
	UNWIND_SHAPE_WIDE = 0xfe,
	UNWIND_SHAPE_NONE = 0xff,
	UNWIND_RULE_AT_SAVED = 1,
	UNWIND_RULE_AT_CFA = 2,
	UNWIND_RULE_AT_EXTRA = 4,
	UNWIND_CFA_SIGNED = 1 << 15,
	UNWIND_CFA_MASK = UNWIND_CFA_SIGNED - 1,
};

/*
 * Values of the fields. A return address at the CFA is right below it on x86-64; on arm64 behind
 * the frame pointer where that is saved too (stp x29, x30), else at the saved place itself.
 */
enum {
	UNWIND_SHAPE_UNDEFINED,
	UNWIND_SHAPE_SAME, /* of the return address: in the link register */
	UNWIND_SHAPE_AT_CFA,
};

/*
 * Slots of the x86-64 PLT are so many bytes; in the upper part of one an index was pushed. The
 * rule there is rsp + 8, or rsp + 16 from the bound on.
 */
enum { UNWIND_PLT_SLOT_BYTES = 16, UNWIND_PLT_PUSHED_BYTES = 8 };
