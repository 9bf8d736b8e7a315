/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of unwind rules (DWARF 5, section 2.5), over registers and a copied stack. The
 * operations are those that section 6.4.2 allows in call frame information; none that needs a
 * symbol, a frame base, an object or another thread. Without allocation, in a bounded number of
 * steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symcache/unwind_table.h"

enum {
	UNWIND_EXPRESSION_MAX_BYTES = 1024,
	UNWIND_EXPRESSION_MAX_STEPS = 1024,
	UNWIND_EXPRESSION_MAX_DEPTH = 32,
};

/* Registers of a frame by DWARF number. */
struct unwind_registers {
	uint64_t values[UNWIND_N_REGISTERS];
	uint64_t known; /* bit n: values[n] is known */
};

/* Memory of a thread as it was copied: size bytes from vaddr on. */
struct unwind_memory {
	const uint8_t *bytes;
	uint64_t vaddr;
	size_t size;
};

/* n is at most 8. False when not all of it was copied. */
static inline bool unwind_memory_read(const struct unwind_memory *memory, uint64_t vaddr, size_t n,
				      uint64_t *out)
{
	uint64_t offset = vaddr - memory->vaddr;
	if (offset > memory->size || memory->size - offset < n)
		return false;
	uint64_t value = 0;
	memcpy(&value, memory->bytes + offset, n);
	*out = value;
	return true;
}

enum unwind_expression_outcome {
	UNWIND_EXPRESSION_OK,
	UNWIND_EXPRESSION_BAD,	       /* malformed, or it did not end */
	UNWIND_EXPRESSION_NO_REGISTER, /* one that is not known */
	UNWIND_EXPRESSION_NO_MEMORY,   /* at an address that was not copied */
};

struct unwind_expression_input {
	const struct unwind_registers *registers;
	const struct unwind_memory *memory;
	/* On the stack at the start: the CFA, for all but the rule of the CFA. */
	bool has_cfa;
	uint64_t cfa;
};

/*
 * Whether all operations are known ones, their operands are there and branches lead to operations;
 * run relies on it not at all, but what fails here never works. registers_out (may be NULL): a bit
 * for each register that it reads.
 */
bool unwind_expression_check(const uint8_t *bytes, size_t n, uint64_t *registers_out);

enum unwind_expression_outcome unwind_expression_run(const uint8_t *bytes, size_t n,
						     const struct unwind_expression_input *input,
						     uint64_t *out);
