/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing at a load of at most 0.7; removal shifts the followers back, so there are no
 * tombstones. The order of slots is the same in every run until a probe gets longer than chance
 * allows: then keys were chosen to collide, and a secret seed scatters them.
 */
#include "base/hash_map.h"

#include <string.h>

#include "base/hash_seed.h"
#include "base/mem.h"

/* At this load the longest run among 10^9 keys is expected to be near 400 slots. */
enum { FIRST_SLOTS = 16, PROBE_MAX = 1024 };

void hash_map_init(struct hash_map *map)
{
	*map = (struct hash_map){0};
}

void hash_map_fini(struct hash_map *map)
{
	mem_free(map->slots);
	mem_free(map->used);
	*map = (struct hash_map){0};
}

static size_t home(const struct hash_map *map, uint64_t key)
{
	return (size_t)hash_mix(key ^ map->seed) & map->mask;
}

/* The slot of key, or the free one where it belongs. */
static size_t find(const struct hash_map *map, uint64_t key)
{
	size_t i = home(map, key);
	while (map->used[i] && map->slots[i].key != key)
		i = (i + 1) & map->mask;
	return i;
}

static void rehash(struct hash_map *map, size_t n_slots)
{
	struct hash_map old = *map;
	map->slots = mem_realloc(NULL, n_slots, sizeof(*map->slots));
	map->used = mem_zalloc(n_slots, 1);
	map->mask = n_slots - 1;
	for (size_t i = 0; old.used && i <= old.mask; i++) {
		if (!old.used[i])
			continue;
		size_t to = find(map, old.slots[i].key);
		map->slots[to] = old.slots[i];
		map->used[to] = 1;
	}
	mem_free(old.slots);
	mem_free(old.used);
}

uint64_t *hash_map_get(const struct hash_map *map, uint64_t key)
{
	if (map->n == 0)
		return NULL;
	size_t i = find(map, key);
	return map->used[i] ? &map->slots[i].value : NULL;
}

uint64_t *hash_map_put(struct hash_map *map, uint64_t key, bool *is_new_out)
{
	if (!map->slots)
		rehash(map, FIRST_SLOTS);
	size_t i = find(map, key);
	bool is_new = !map->used[i];
	if (is_new) {
		size_t n_slots = map->mask + 1;
		bool is_crowded = ((i - home(map, key)) & map->mask) > PROBE_MAX;
		bool is_loaded = (map->n + 1) > n_slots / 10 * 7;
		if (is_crowded)
			map->seed = hash_seed_make();
		if (is_loaded || is_crowded) {
			rehash(map, is_loaded ? n_slots * 2 : n_slots);
			i = find(map, key);
		}
		map->used[i] = 1;
		map->slots[i] = (struct hash_map_slot){.key = key};
		map->n++;
	}
	if (is_new_out)
		*is_new_out = is_new;
	return &map->slots[i].value;
}

bool hash_map_remove(struct hash_map *map, uint64_t key)
{
	if (map->n == 0)
		return false;
	size_t hole = find(map, key);
	if (!map->used[hole])
		return false;
	for (size_t i = (hole + 1) & map->mask; map->used[i]; i = (i + 1) & map->mask) {
		/* An entry may fill the hole unless that would put it in front of its home. */
		size_t from_home = (i - home(map, map->slots[i].key)) & map->mask;
		size_t from_hole = (i - hole) & map->mask;
		if (from_home >= from_hole) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->used[hole] = 0;
	map->n--;
	return true;
}

void hash_map_clear(struct hash_map *map)
{
	if (map->n)
		memset(map->used, 0, map->mask + 1);
	map->n = 0;
}

bool hash_map_next(const struct hash_map *map, size_t *iterator, uint64_t *key_out,
		   uint64_t **value_out)
{
	if (map->n == 0)
		return false;
	for (size_t i = *iterator; i <= map->mask; i++) {
		if (!map->used[i])
			continue;
		*iterator = i + 1;
		*key_out = map->slots[i].key;
		*value_out = &map->slots[i].value;
		return true;
	}
	*iterator = map->mask + 1;
	return false;
}
