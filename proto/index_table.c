/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of the profile's hash tables. */
#include "proto/index_table.h"

#include "base/mem.h"

enum { FIRST_BITS = 6, LAST_BITS = 31 };

void index_table_fini(struct index_table *table)
{
	mem_free(table->slots);
	*table = (struct index_table){0};
}

/* Five eighths: short probes, and at most 26 bytes of slots for each entry. */
static uint32_t load_limit(unsigned bits)
{
	return (uint32_t)(((uint64_t)5 << bits) / 8);
}

void index_table_grow(struct index_table *table, uint32_t extra)
{
	uint64_t want = (uint64_t)table->n + extra;
	unsigned bits = table->slots ? 32 - table->shift : FIRST_BITS;
	while (load_limit(bits) < want && bits < LAST_BITS)
		bits++;
	struct index_table grown = {
		/* Past the last size there is no memory for it either: this aborts. */
		.slots = mem_zalloc(load_limit(bits) < want ? SIZE_MAX : (size_t)1 << bits,
				    sizeof(*grown.slots)),
		.n_max = load_limit(bits),
		.mask = (uint32_t)(((uint64_t)1 << bits) - 1),
		.shift = 32 - bits,
	};
	for (uint64_t i = 0; table->slots && i <= table->mask; i++) {
		struct index_slot slot = table->slots[i];
		if (slot.value)
			index_table_put(&grown, slot.hash, slot.value);
	}
	mem_free(table->slots);
	*table = grown;
}
