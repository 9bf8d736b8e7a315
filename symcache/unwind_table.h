/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind table of one binary: address in the ELF → how the caller's registers are found. It is
 * the unwind section of a symbol file, used in place; its bytes are described in
 * docs/symbol-file.md. Only what unwinding needs is kept: CFA, return address, frame pointer.
 *
 * A step, given the registers of a frame and svma of its pc (of pc - 1 for a return address, unless
 * the frame below it has UNWIND_SIGNAL_FRAME):
 *   1. the canonical frame address (CFA) by rule.cfa; it is the caller's stack pointer;
 *   2. the caller's pc by rule.return_address: UNWIND_UNDEFINED = this was the outermost frame;
 *      with UNWIND_RETURN_ADDRESS_SIGNED its authentication bits have to be cleared;
 *   3. the caller's frame pointer by rule.frame_pointer;
 *   4. one more register by rule.extra, see there. What others hold is not known any more.
 *
 * Registers have their DWARF numbers: System V ABI, AMD64 supplement, figure 3.36; DWARF for the
 * Arm 64-bit Architecture, section 4.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

enum unwind_machine {
	UNWIND_X86_64 = 1,
	UNWIND_ARM64,
};

enum {
	UNWIND_X86_64_FP = 6,
	UNWIND_X86_64_SP = 7,
	UNWIND_X86_64_PC = 16,
	UNWIND_ARM64_FP = 29,
	UNWIND_ARM64_LR = 30,
	UNWIND_ARM64_SP = 31,
	UNWIND_ARM64_PC = 32,
	UNWIND_N_REGISTERS = 33,
};

enum { UNWIND_MAX_PHRASE = 8 }; /* rows that one code may stand for */

/* Where a value of the caller is. */
enum unwind_kind {
	UNWIND_UNDEFINED,     /* nowhere */
	UNWIND_SAME,	      /* as in this frame */
	UNWIND_AT_CFA,	      /* in memory, 8 bytes at CFA + offset */
	UNWIND_CFA,	      /* CFA + offset itself */
	UNWIND_REGISTER,      /* this frame's register + offset */
	UNWIND_AT_EXPRESSION, /* in memory, 8 bytes at the address that an expression gives */
	UNWIND_EXPRESSION,    /* what an expression gives */
	UNWIND_KIND_N,
};

struct unwind_value {
	uint8_t kind;		 /* enum unwind_kind */
	uint8_t register_number; /* UNWIND_REGISTER; below UNWIND_N_REGISTERS */
	uint16_t reserved;	 /* 0 */
	int32_t offset;		 /* expressions: for unwind_table_expression */
};

/* Flags of a rule. */
enum {
	/* The frame of a signal trampoline: the caller's pc is where it was interrupted, not behind
	 * a call. */
	UNWIND_SIGNAL_FRAME = 1 << 0,
	/* The return address carries a pointer authentication code (arm64). */
	UNWIND_RETURN_ADDRESS_SIGNED = 1 << 1,
	/* Not from the binary's own tables, but made from its code: PLT, trampoline, entry. */
	UNWIND_SYNTHETIC = 1 << 2,
};

struct unwind_rule {
	struct unwind_value cfa; /* UNWIND_REGISTER, UNWIND_EXPRESSION */
	/* UNWIND_UNDEFINED, _AT_CFA, _CFA, _REGISTER (offset 0), _AT_EXPRESSION, _EXPRESSION */
	struct unwind_value return_address;
	struct unwind_value frame_pointer; /* any */
	/*
	 * One more register, whose number is extra_register; 0 = none. Where some CFA of the binary
	 * is kept in a register that calls preserve (rbx in ld.so), all rules of the binary tell of
	 * it. In signal frames of arm64 it is the link register.
	 */
	struct unwind_value extra;
	uint8_t extra_register;
	uint8_t flags;
	uint16_t reserved; /* the table's own */
};

/* A table in use; its bytes are borrowed. */
struct unwind_table {
	enum unwind_machine machine;
	uint32_t n_rules, n_rows, n_pages, n_spans, n_phrases; /* for statistics */
	/* The rest is the reader's own. */
	uint64_t start, length; /* of the first span */
	struct unwind_rule *rules;
	const uint8_t *pages, *offsets, *codes, *spans, *expressions;
	const uint8_t *phrases[UNWIND_MAX_PHRASE + 1]; /* by number of rows */
	uint16_t phrase_limits[UNWIND_MAX_PHRASE];     /* codes below it have fewer rows */
	uint8_t shift, page_shift, page_mask;	       /* bytes → units, pages, unit of a page */
	uint8_t page_bytes, code_bytes, phrase_rule_bytes, rule_bytes; /* of an item */
	uint8_t extra_register;
	uint32_t expression_bytes;
};

/*
 * Checks all of it: no find reads outside of the bytes afterwards, which stay where they are for as
 * long as the table is used. ERROR_BAD_DATA: damaged; ERROR_UNSUPPORTED: of another version. On
 * error out need not be closed.
 */
struct error *unwind_table_open(const void *bytes, size_t size, struct unwind_table *out) MUST_USE;
/* Accepts a zeroed table. */
void unwind_table_close(struct unwind_table *table);

/*
 * The rule for the code at svma, valid until close. NULL: there is none, as svma is outside of the
 * binary's code, or its tables leave this code out. Allocates nothing.
 */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t svma);

/* The expression that offset stands for in a rule of this table; for unwind_expression_run. */
const uint8_t *unwind_table_expression(const struct unwind_table *table, int32_t offset,
				       size_t *n_out);
