/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds-checked reader for all binary input. A read past the end returns 0 and makes the
 * cursor bad for good, so a parser reads a whole struct and asks cursor_is_ok() once. `position`
 * of the first byte is kept for messages. With `is_swapped`, integers are of the other byte order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *begin;
	const uint8_t *next;
	const uint8_t *end;
	uint64_t origin; /* offset of begin in the file, for messages */
	bool is_swapped;
	bool is_bad;
};

static inline struct cursor cursor_make(const void *data, size_t size, bool is_swapped)
{
	const uint8_t *p = data;
	return (struct cursor){
		.begin = p, .next = p, .end = size ? p + size : p, .is_swapped = is_swapped};
}

static inline bool cursor_is_ok(const struct cursor *c)
{
	return !c->is_bad;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->next);
}

static inline uint64_t cursor_position(const struct cursor *c)
{
	return c->origin + (uint64_t)(c->next - c->begin);
}

/* The next n bytes, NULL if there are fewer. */
static inline const uint8_t *cursor_bytes(struct cursor *c, size_t n)
{
	if (n > cursor_left(c)) {
		c->is_bad = true;
		c->next = c->end;
		return NULL;
	}
	const uint8_t *p = c->next;
	c->next += n;
	return p;
}

static inline void cursor_skip(struct cursor *c, size_t n)
{
	(void)cursor_bytes(c, n);
}

/* Absolute offset from begin. */
static inline void cursor_seek(struct cursor *c, size_t offset)
{
	if (offset > (size_t)(c->end - c->begin)) {
		c->is_bad = true;
		c->next = c->end;
		return;
	}
	c->next = c->begin + offset;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 1);
	return p ? *p : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
	uint16_t v = 0;
	const uint8_t *p = cursor_bytes(c, sizeof(v));
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->is_swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t cursor_u32(struct cursor *c)
{
	uint32_t v = 0;
	const uint8_t *p = cursor_bytes(c, sizeof(v));
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->is_swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t cursor_u64(struct cursor *c)
{
	uint64_t v = 0;
	const uint8_t *p = cursor_bytes(c, sizeof(v));
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->is_swapped ? __builtin_bswap64(v) : v;
}

/*
 * A string that ends within the next max bytes; NULL (and bad) if no 0 is found. The cursor moves
 * behind the 0.
 */
static inline const char *cursor_string(struct cursor *c, size_t max)
{
	size_t left = cursor_left(c);
	size_t n = left < max ? left : max;
	const uint8_t *zero = n ? memchr(c->next, 0, n) : NULL;
	if (!zero) {
		c->is_bad = true;
		c->next = c->end;
		return NULL;
	}
	const char *s = (const char *)c->next;
	c->next = zero + 1;
	return s;
}

/* A cursor over the next n bytes; this one moves behind them. Bad if there are fewer. */
static inline struct cursor cursor_sub(struct cursor *c, size_t n)
{
	uint64_t position = cursor_position(c);
	const uint8_t *p = cursor_bytes(c, n);
	struct cursor sub = cursor_make(p ? p : c->end, p ? n : 0, c->is_swapped);
	sub.origin = position;
	sub.is_bad = !p;
	return sub;
}
