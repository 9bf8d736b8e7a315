/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte strings to dense indices 0, 1, 2 …, each kept once in an arena. Index 0 is always the empty
 * string, as pprof's string table wants it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/index_table.h"

struct intern_entry {
	const char *text; /* 0-terminated, may hold 0 bytes before its end */
	uint32_t size;
	uint32_t hash;
};

struct intern {
	struct arena *arena;
	struct intern_entry *entries;
	uint32_t n;
	uint32_t capacity;
	struct index_table table;
	uint64_t seed[2];
};

/* The texts live in arena, which must outlive the table. */
void intern_init(struct intern *intern, struct arena *arena);
void intern_fini(struct intern *intern);
uint32_t intern_bytes(struct intern *intern, const char *text, size_t size);
/* NULL counts as "". */
uint32_t intern_string(struct intern *intern, const char *text);
/* index must come from this table. */
static inline const char *intern_text(const struct intern *intern, uint32_t index)
{
	return intern->entries[index].text;
}
