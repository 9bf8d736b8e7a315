/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/location.h"

#include <assert.h>

#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/mem.h"

enum { FIRST_ITEMS = 512, LARGE_FROM_ITEMS = 1 << 16 };

static uint32_t hash_item(const struct location_table *table, uint64_t address,
			  uint32_t image_and_return)
{
	return (uint32_t)(hash_mix(address ^ (uint64_t)image_and_return << 43 ^ table->seed) >> 32);
}

/* An index_table_hash_fn. */
static uint32_t hash_of_item(const void *context, uint32_t index)
{
	const struct location_table *table = context;
	const struct location_item *item = &table->items[index];
	return hash_item(table, item->address, item->image_and_return);
}

static void reserve(struct location_table *table)
{
	index_table_reserve(&table->table, 1, hash_of_item, table);
	if (table->n < table->capacity)
		return;
	/* By a quarter when it is large: the system moves its pages then. */
	uint32_t more = table->capacity < LARGE_FROM_ITEMS ? table->capacity : table->capacity / 4;
	table->capacity += more ? more : FIRST_ITEMS;
	table->items = mem_realloc(table->items, table->capacity, sizeof(*table->items));
}

void location_table_init(struct location_table *table)
{
	*table = (struct location_table){.seed = hash_seed_make()};
	reserve(table);
}

void location_table_fini(struct location_table *table)
{
	mem_free(table->items);
	index_table_fini(&table->table);
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

void location_table_prefetch(const struct location_table *table, const struct location *location)
{
	index_table_prefetch(&table->table, hash_item(table, location->address, pack(location)));
}

uint32_t location_table_intern(struct location_table *table, const struct location *location)
{
	uint32_t packed = pack(location);
	uint32_t hash = hash_item(table, location->address, packed);
	reserve(table);
	for (struct index_probe probe = index_table_probe(&table->table, hash);
	     index_probe_next(&table->table, &probe);) {
		const struct location_item *item = &table->items[probe.index];
		if (item->address == location->address && item->image_and_return == packed)
			return probe.index;
	}
	table->items[table->n++] = (struct location_item){location->address, packed};
	return index_table_add(&table->table, hash);
}

void location_table_move(struct location_table *table, struct profile *profile)
{
	static_assert(sizeof(struct location_item) < sizeof(struct profile_location),
		      "widened from the last to the first, in place");
	uint32_t n = table->n;
	index_table_fini(&table->table);
	struct profile_location *locations =
		mem_realloc(table->items, (size_t)n + 1, sizeof(*locations));
	const struct location_item *items = (const struct location_item *)locations;
	for (uint32_t i = n; i-- > 0;) {
		const struct location_item item = items[i];
		locations[i] = (struct profile_location){.address = item.address,
							 .mapping = item.image_and_return};
	}
	table->items = NULL;
	table->n = table->capacity = 0;
	profile_adopt_locations(profile, locations, n);
}
