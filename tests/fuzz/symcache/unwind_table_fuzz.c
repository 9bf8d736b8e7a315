/* SPDX-License-Identifier: Apache-2.0 */
/* An unwind table from elsewhere: opened, asked, and its expressions run. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symcache/unwind_expression.h"
#include "symcache/unwind_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_value(const struct unwind_table *table, const struct unwind_value *value)
{
	static const uint8_t stack[64] = {1};
	const struct unwind_memory memory = {.bytes = stack, .vaddr = 0x1000, .size = 64};
	const struct unwind_registers registers = {.values = {[7] = 0x1000}, .known = 1 << 7};
	const struct unwind_expression_input input = {.registers = &registers, .memory = &memory};
	assert(value->kind < UNWIND_KIND_N && value->register_number < UNWIND_N_REGISTERS);
	if (value->kind != UNWIND_EXPRESSION && value->kind != UNWIND_AT_EXPRESSION)
		return;
	size_t n;
	uint64_t result;
	const uint8_t *bytes = unwind_table_expression(table, value->offset, &n);
	(void)unwind_expression_run(bytes, n, &input, &result);
}

static void find(const struct unwind_table *table, uint64_t svma)
{
	const struct unwind_rule *rule = unwind_table_find(table, svma);
	if (!rule)
		return;
	assert(rule->cfa.kind == UNWIND_REGISTER || rule->cfa.kind == UNWIND_EXPRESSION);
	use_value(table, &rule->cfa);
	use_value(table, &rule->return_address);
	use_value(table, &rule->frame_pointer);
	use_value(table, &rule->extra);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table table;
	struct error *err = unwind_table_open(data, size, &table);
	if (err) {
		error_free(err);
		return 0;
	}
	find(&table, 0);
	find(&table, UINT64_MAX);
	for (uint64_t at = 0; at < 4096; at++)
		find(&table, table.start + at * (table.length / 4096 + 1));
	/* Addresses as the table's own words say them. */
	for (size_t at = 0; at + sizeof(uint64_t) <= size && at < 4096; at++) {
		uint64_t svma;
		memcpy(&svma, data + at, sizeof(svma));
		find(&table, svma);
		find(&table, svma - 1);
	}
	unwind_table_close(&table);
	return 0;
}
