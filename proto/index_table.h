/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open-addressing table behind each interned array of a profile: 32-bit hashes to 32-bit
 * values, linear probing. The caller compares keys, this keeps places. A place is the hash's upper
 * bits, so that growth reads the old table and writes the new one from front to back.
 */
#pragma once

#include <stdint.h>

/* value 0 = free; tables of arrays that use index 0 store index + 1. */
struct index_slot {
	uint32_t hash;
	uint32_t value;
};

struct index_table {
	struct index_slot *slots;
	uint32_t n;
	uint32_t n_max; /* load at which it grows, 0 before the first reserve */
	uint32_t mask;
	uint32_t shift;
};

void index_table_fini(struct index_table *table);
void index_table_grow(struct index_table *table, uint32_t extra);

/* Room for extra more entries; slots do not move until that many were put. */
static inline void index_table_reserve(struct index_table *table, uint32_t extra)
{
	if (table->n_max - table->n < extra)
		index_table_grow(table, extra);
}

static inline uint32_t index_table_place(const struct index_table *table, uint32_t hash)
{
	return hash >> table->shift;
}

static inline void index_table_prefetch(const struct index_table *table, uint32_t hash)
{
	__builtin_prefetch(&table->slots[index_table_place(table, hash)]);
}

/* Behind all entries of the same place; room was reserved. */
static inline void index_table_put(struct index_table *table, uint32_t hash, uint32_t value)
{
	uint32_t i = index_table_place(table, hash);
	while (table->slots[i].value)
		i = (i + 1) & table->mask;
	table->slots[i] = (struct index_slot){.hash = hash, .value = value};
	table->n++;
}
