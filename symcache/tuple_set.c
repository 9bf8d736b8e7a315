/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/tuple_set.h"

#include <assert.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"

enum { FIRST_SLOTS = 256 };

void tuple_set_init(struct tuple_set *set)
{
	*set = (struct tuple_set){.mask = FIRST_SLOTS - 1};
	set->slots = mem_zalloc(FIRST_SLOTS, sizeof(*set->slots));
}

void tuple_set_fini(struct tuple_set *set)
{
	mem_free(set->items);
	mem_free(set->slots);
	*set = (struct tuple_set){0};
}

static uint32_t hash_tuple(const struct tuple *tuple)
{
	uint64_t low = (uint64_t)tuple->v[1] << 32 | tuple->v[0];
	uint64_t high = (uint64_t)tuple->v[3] << 32 | tuple->v[2];
	return (uint32_t)hash_mix(low * 0x9e3779b97f4a7c15u ^ hash_mix(high));
}

static uint32_t *find(const struct tuple_set *set, const struct tuple *tuple)
{
	uint32_t slot = hash_tuple(tuple) & set->mask;
	while (set->slots[slot] &&
	       memcmp(&set->items[set->slots[slot] - 1], tuple, sizeof(*tuple)) != 0)
		slot = (slot + 1) & set->mask;
	return &set->slots[slot];
}

static void grow(struct tuple_set *set)
{
	assert(set->mask < UINT32_MAX / 2);
	mem_free(set->slots);
	set->mask = set->mask * 2 + 1;
	set->slots = mem_zalloc((size_t)set->mask + 1, sizeof(*set->slots));
	for (uint32_t i = 0; i < set->n; i++)
		*find(set, &set->items[i]) = i + 1;
}

uint32_t tuple_set_add(struct tuple_set *set, struct tuple tuple)
{
	uint32_t *slot = find(set, &tuple);
	if (*slot)
		return *slot - 1;
	if (set->n >= set->mask / 2) {
		grow(set);
		slot = find(set, &tuple);
	}
	if (set->n == set->capacity) {
		set->capacity = set->capacity ? set->capacity + set->capacity / 2 : FIRST_SLOTS;
		set->items = mem_realloc(set->items, set->capacity, sizeof(*set->items));
	}
	set->items[set->n++] = tuple;
	*slot = set->n;
	return set->n - 1;
}
