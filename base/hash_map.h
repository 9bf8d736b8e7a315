/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to 64-bit values (numbers, indices or pointers), open addressing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_map_slot {
	uint64_t key;
	uint64_t value;
};

struct hash_map {
	struct hash_map_slot *slots;
	uint8_t *used; /* per slot: 0 free, 1 taken */
	size_t n;
	size_t mask;   /* slots - 1; 0 when nothing was allocated yet */
	uint64_t seed; /* 0 until keys were found to collide on purpose */
};

void hash_map_init(struct hash_map *map);
void hash_map_fini(struct hash_map *map);
/* Pointer to the value, NULL if absent; valid until the next put or remove. */
uint64_t *hash_map_get(const struct hash_map *map, uint64_t key);
/* The value's place, made (with value 0) when absent; *is_new_out may be NULL. */
uint64_t *hash_map_put(struct hash_map *map, uint64_t key, bool *is_new_out);
/* Whether it was there. */
bool hash_map_remove(struct hash_map *map, uint64_t key);
void hash_map_clear(struct hash_map *map);
/* Walks all entries in slot order, which no output may depend on: start with *iterator = 0; false
 * at the end. */
bool hash_map_next(const struct hash_map *map, size_t *iterator, uint64_t *key_out,
		   uint64_t **value_out);

/* A good 64-bit mixer (splitmix64's finaliser) for keys and small tuples. */
static inline uint64_t hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	x ^= x >> 31;
	return x;
}
