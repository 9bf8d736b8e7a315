/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/location.h"

#include <string.h>

#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 1 << 10 };

void location_table_init(struct location_table *table)
{
	*table = (struct location_table){
		.mask = FIRST_SLOTS - 1,
		.seed = hash_seed_make(),
	};
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

static uint32_t pack(const struct location *location)
{
	return location->image << 1 | location->is_return;
}

static uint32_t place(const struct location_table *table, uint64_t address,
		      uint32_t image_and_return)
{
	return (uint32_t)hash_mix(address ^ (uint64_t)image_and_return << 43 ^ table->seed) &
	       table->mask;
}

static void grow(struct location_table *table)
{
	struct location_slot *old = table->slots;
	uint32_t n_old = table->mask + 1;
	table->mask = table->mask * 2 + 1;
	table->slots = mem_zalloc((size_t)table->mask + 1, sizeof(*table->slots));
	for (uint32_t i = 0; i < n_old; i++) {
		if (!old[i].index_plus_1)
			continue;
		uint32_t at = place(table, old[i].address, old[i].image_and_return);
		while (table->slots[at].index_plus_1)
			at = (at + 1) & table->mask;
		table->slots[at] = old[i];
	}
	mem_free(old);
}

void location_table_prefetch(const struct location_table *table, const struct location *location)
{
	__builtin_prefetch(&table->slots[place(table, location->address, pack(location))]);
}

uint32_t location_table_intern(struct location_table *table, struct profile *profile,
			       const struct location *location)
{
	uint32_t key = pack(location);
	uint32_t at = place(table, location->address, key);
	for (; table->slots[at].index_plus_1; at = (at + 1) & table->mask) {
		const struct location_slot *slot = &table->slots[at];
		if (slot->address == location->address && slot->image_and_return == key)
			return slot->index_plus_1 - 1;
	}
	if (table->n == table->capacity) {
		table->capacity = table->capacity ? table->capacity * 2 : 512;
		table->items = mem_realloc(table->items, table->capacity, sizeof(*table->items));
	}
	uint32_t index = profile_add_location(profile, PROFILE_NONE, location->address);
	table->items[index] = *location;
	table->n = index + 1;
	table->slots[at] = (struct location_slot){location->address, key, index + 1};
	if ((uint64_t)table->n * 3 > (uint64_t)table->mask * 2)
		grow(table);
	return index;
}
