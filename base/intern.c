/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash folds 8 bytes a step through a 128-bit product, under two secret numbers per table:
 * names come from other users' programs and could be made to collide. Indices do not depend on it.
 */
#include "base/intern.h"

#include <assert.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/mem.h"

enum { FIRST_ENTRIES = 64, FIRST_SLOTS = 128 };

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const char *p, size_t n)
{
	uint64_t word = 0;
	memcpy(&word, p, n);
	return word;
}

static uint32_t hash_text(const struct intern *intern, const char *text, size_t size)
{
	uint64_t hash = intern->seed[1] ^ size;
	for (; size > 8; text += 8, size -= 8)
		hash = fold(load(text, 8) ^ intern->seed[0], hash ^ intern->seed[1]);
	if (size)
		hash = fold(load(text, size) ^ intern->seed[0], hash ^ intern->seed[1]);
	return (uint32_t)hash_mix(hash);
}

static void grow_table(struct intern *intern)
{
	size_t n_slots = intern->table ? ((size_t)intern->table_mask + 1) * 2 : FIRST_SLOTS;
	assert(n_slots - 1 <= UINT32_MAX);
	mem_free(intern->table);
	intern->table = mem_zalloc(n_slots, sizeof(*intern->table));
	intern->table_mask = (uint32_t)(n_slots - 1);
	for (uint32_t i = 0; i < intern->n; i++) {
		uint32_t slot = intern->entries[i].hash & intern->table_mask;
		while (intern->table[slot])
			slot = (slot + 1) & intern->table_mask;
		intern->table[slot] = i + 1;
	}
}

/* The slot of the text, or the free one where it belongs. */
static uint32_t find(const struct intern *intern, const char *text, size_t size, uint32_t hash)
{
	uint32_t slot = hash & intern->table_mask;
	while (intern->table[slot]) {
		const struct intern_entry *entry = &intern->entries[intern->table[slot] - 1];
		if (entry->hash == hash && entry->size == size &&
		    memcmp(entry->text, text, size) == 0)
			break;
		slot = (slot + 1) & intern->table_mask;
	}
	return slot;
}

void intern_init(struct intern *intern, struct arena *arena)
{
	*intern = (struct intern){
		.arena = arena,
		.seed = {hash_seed_make(), hash_seed_make()},
	};
	grow_table(intern);
	intern_bytes(intern, "", 0);
}

void intern_fini(struct intern *intern)
{
	mem_free(intern->entries);
	mem_free(intern->table);
	*intern = (struct intern){0};
}

uint32_t intern_bytes(struct intern *intern, const char *text, size_t size)
{
	assert(size <= UINT32_MAX); /* callers cap what they read */
	uint32_t hash = hash_text(intern, text, size);
	uint32_t slot = find(intern, text, size, hash);
	if (intern->table[slot])
		return intern->table[slot] - 1;
	if (intern->n >= intern->table_mask / 2) {
		grow_table(intern);
		slot = find(intern, text, size, hash);
	}
	if (intern->n == intern->capacity) {
		intern->capacity = intern->capacity ? intern->capacity * 2 : FIRST_ENTRIES;
		intern->entries =
			mem_realloc(intern->entries, intern->capacity, sizeof(*intern->entries));
	}
	intern->entries[intern->n] = (struct intern_entry){
		.text = arena_copy_string(intern->arena, text, size),
		.size = (uint32_t)size,
		.hash = hash,
	};
	intern->table[slot] = ++intern->n;
	return intern->n - 1;
}

uint32_t intern_string(struct intern *intern, const char *text)
{
	return text ? intern_bytes(intern, text, strlen(text)) : 0;
}
