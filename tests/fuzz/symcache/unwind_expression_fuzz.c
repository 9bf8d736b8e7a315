/* SPDX-License-Identifier: Apache-2.0 */
/* A DWARF expression from elsewhere, checked and run; the first byte says what is known. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/unwind_expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KNOWS_ALL = 1, HAS_CFA = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct unwind_registers registers;
	registers.known = data[0] & KNOWS_ALL ? UINT64_MAX : 1 << 7;
	for (unsigned i = 0; i < UNWIND_N_REGISTERS; i++)
		registers.values[i] = 0x1000 + i;
	/* The expression is the memory too. */
	const struct unwind_memory memory = {.bytes = data, .vaddr = 0x1000, .size = size};
	const struct unwind_expression_input input = {.registers = &registers,
						      .memory = &memory,
						      .has_cfa = data[0] & HAS_CFA,
						      .cfa = 0x1008};
	uint64_t value, read;
	enum unwind_expression_outcome outcome =
		unwind_expression_run(data + 1, size - 1, &input, &value);
	bool is_checked = unwind_expression_check(data + 1, size - 1, &read);
	/* A checked one reads what the check said. */
	if (is_checked && outcome == UNWIND_EXPRESSION_NO_REGISTER)
		assert(read & ~registers.known);
	return 0;
}
