/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocation from chunks that grow with the arena; the newest chunk is being filled. */
#include "base/arena.h"

#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

enum { ALIGNMENT = 16, CHUNK_MIN_BYTES = 64 << 10, CHUNK_MAX_BYTES = 1 << 20 };

struct arena_chunk {
	struct arena_chunk *older;
	size_t bytes;
};
static_assert(sizeof(struct arena_chunk) % ALIGNMENT == 0, "the first object is aligned");

void arena_init(struct arena *arena, size_t max_bytes)
{
	*arena = (struct arena){.max_bytes = max_bytes};
}

void arena_fini(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;
	while (chunk) {
		struct arena_chunk *older = chunk->older;
		mem_free(chunk);
		chunk = older;
	}
	*arena = (struct arena){0};
}

bool arena_is_full(const struct arena *arena)
{
	return arena->max_bytes && arena->used_bytes >= arena->max_bytes;
}

/* A quarter of what is there: few calls when it is large, little waste when it is small. */
static size_t next_chunk_bytes(const struct arena *arena)
{
	size_t bytes = arena->used_bytes / 4;
	if (bytes < CHUNK_MIN_BYTES)
		return CHUNK_MIN_BYTES;
	return bytes < CHUNK_MAX_BYTES ? bytes & ~(size_t)(ALIGNMENT - 1) : CHUNK_MAX_BYTES;
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
	struct arena_chunk *chunk = mem_alloc(bytes);
	chunk->bytes = bytes;
	arena->used_bytes += bytes;
	return chunk;
}

/* bytes is rounded up already. */
static void *alloc_slow(struct arena *arena, size_t bytes)
{
	size_t whole;
	if (__builtin_add_overflow(bytes, sizeof(struct arena_chunk), &whole))
		whole = SIZE_MAX; /* mem_alloc refuses it */
	size_t chunk_bytes = next_chunk_bytes(arena);
	if (arena->chunks && whole > chunk_bytes / 2) {
		/* A large object gets its own chunk, behind the one that still has room. */
		struct arena_chunk *own = add_chunk(arena, whole);
		own->older = arena->chunks->older;
		arena->chunks->older = own;
		return own + 1;
	}
	struct arena_chunk *chunk = add_chunk(arena, whole > chunk_bytes ? whole : chunk_bytes);
	chunk->older = arena->chunks;
	arena->chunks = chunk;
	uint8_t *p = (uint8_t *)(chunk + 1);
	arena->next = p + bytes;
	arena->limit = (uint8_t *)chunk + chunk->bytes;
	return p;
}

/* Texts stand side by side; the next object is aligned again. */
static void align_next(struct arena *arena)
{
	size_t gap = -(uintptr_t)arena->next & (ALIGNMENT - 1);
	size_t left = (size_t)(arena->limit - arena->next);
	if (gap)
		arena->next += gap < left ? gap : left;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	align_next(arena);
	size_t rounded = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (UNLIKELY(rounded < bytes))
		rounded = SIZE_MAX;
	if (rounded == 0)
		rounded = ALIGNMENT;
	if (UNLIKELY(rounded > (size_t)(arena->limit - arena->next)))
		return alloc_slow(arena, rounded);
	uint8_t *p = arena->next;
	arena->next += rounded;
	return p;
}

char *arena_copy_string(struct arena *arena, const char *s, size_t n)
{
	char *copy = (char *)arena->next;
	if (n < (size_t)(arena->limit - arena->next))
		arena->next += n + 1;
	else
		copy = arena_alloc(arena, n + 1);
	if (n)
		memcpy(copy, s, n);
	copy[n] = 0;
	return copy;
}
