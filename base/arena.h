/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that lives as long as one profile window and goes in one call. What was allocated never
 * moves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
	uint8_t *next;
	uint8_t *limit;
	size_t used_bytes; /* taken from the system, for budgets */
	size_t max_bytes;  /* 0 = no cap */
};

/* max_bytes is advisory: allocation goes on past it, arena_is_full() tells the owner to close the
 * window. */
void arena_init(struct arena *arena, size_t max_bytes);
void arena_fini(struct arena *arena);
bool arena_is_full(const struct arena *arena);
/* Aligned to 16 bytes, uninitialised; never NULL. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* Copies n bytes and puts a 0 behind them; not aligned. */
char *arena_copy_string(struct arena *arena, const char *s, size_t n);
