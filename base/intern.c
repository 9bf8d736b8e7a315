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

enum { FIRST_ENTRIES = 64 };

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

static uint32_t hash_of_entry(const void *context, uint32_t index)
{
	const struct intern *intern = context;
	return intern->entries[index].hash;
}

void intern_init(struct intern *intern, struct arena *arena)
{
	*intern = (struct intern){
		.arena = arena,
		.seed = {hash_seed_make(), hash_seed_make()},
	};
	intern_bytes(intern, "", 0);
}

void intern_fini(struct intern *intern)
{
	mem_free(intern->entries);
	index_table_fini(&intern->table);
	*intern = (struct intern){0};
}

uint32_t intern_bytes(struct intern *intern, const char *text, size_t size)
{
	assert(size <= UINT32_MAX); /* callers cap what they read */
	uint32_t hash = hash_text(intern, text, size);
	index_table_reserve(&intern->table, 1, hash_of_entry, intern);
	for (struct index_probe probe = index_table_probe(&intern->table, hash);
	     index_probe_next(&intern->table, &probe);) {
		const struct intern_entry *entry = &intern->entries[probe.index];
		if (entry->hash == hash && entry->size == size &&
		    memcmp(entry->text, text, size) == 0)
			return probe.index;
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
	intern->n++;
	return index_table_add(&intern->table, hash);
}

uint32_t intern_string(struct intern *intern, const char *text)
{
	return text ? intern_bytes(intern, text, strlen(text)) : 0;
}
