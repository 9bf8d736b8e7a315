/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte buffer with a maximum. What would pass the maximum is refused, not cut. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct buf {
	uint8_t *data;
	size_t size;
	size_t capacity;
	size_t max_bytes;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_fini(struct buf *buf);
/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *buf);
/* Makes room for extra bytes at data + size; ERROR_LIMIT past the maximum. */
struct error *buf_reserve(struct buf *buf, size_t extra) MUST_USE;
struct error *buf_append(struct buf *buf, const void *p, size_t n) MUST_USE;
struct error *buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE;
/* 0-terminated view of the content (the 0 is not counted in size); valid until the next change. */
const char *buf_string(struct buf *buf);
