/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/location.h"

#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 1 << 10 };

void location_table_init(struct location_table *table)
{
	*table = (struct location_table){.mask = FIRST_SLOTS - 1};
	table->slots = mem_zalloc(FIRST_SLOTS, sizeof(*table->slots));
}

void location_table_fini(struct location_table *table)
{
	mem_free(table->items);
	mem_free(table->slots);
	*table = (struct location_table){0};
}

void location_table_clear(struct location_table *table)
{
	location_table_fini(table);
	location_table_init(table);
}

static uint64_t hash_location(const struct location *location)
{
	return hash_mix(location->address ^ (uint64_t)location->image << 44 ^
			(uint64_t)location->is_return << 43);
}

static void grow(struct location_table *table)
{
	uint32_t mask = table->mask * 2 + 1;
	uint32_t *slots = mem_zalloc((size_t)mask + 1, sizeof(*slots));
	for (uint32_t i = 0; i < table->n; i++) {
		uint32_t at = (uint32_t)hash_location(&table->items[i]) & mask;
		while (slots[at])
			at = (at + 1) & mask;
		slots[at] = i + 1;
	}
	mem_free(table->slots);
	table->slots = slots;
	table->mask = mask;
}

uint32_t location_table_intern(struct location_table *table, struct profile *profile,
			       const struct location *location)
{
	uint32_t at = (uint32_t)hash_location(location) & table->mask;
	for (; table->slots[at]; at = (at + 1) & table->mask) {
		const struct location *item = &table->items[table->slots[at] - 1];
		if (item->address == location->address && item->image == location->image &&
		    item->is_return == location->is_return)
			return table->slots[at] - 1;
	}
	if (table->n == table->capacity) {
		table->capacity = table->capacity ? table->capacity * 2 : 512;
		table->items = mem_realloc(table->items, table->capacity, sizeof(*table->items));
	}
	uint32_t index = profile_add_location(profile, PROFILE_NONE, location->address);
	table->items[index] = *location;
	table->n = index + 1;
	table->slots[at] = index + 1;
	if ((uint64_t)table->n * 4 > (uint64_t)table->mask * 3)
		grow(table);
	return index;
}
