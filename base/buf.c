/* SPDX-License-Identifier: Apache-2.0 */
/* One byte beyond the maximum is allowed for, so that buf_string() always finds room for its 0. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_BYTES = 256 };

void buf_init(struct buf *buf, size_t max_bytes)
{
	*buf = (struct buf){.max_bytes = max_bytes};
}

void buf_fini(struct buf *buf)
{
	mem_free(buf->data);
	*buf = (struct buf){0};
}

void buf_clear(struct buf *buf)
{
	buf->size = 0;
}

/* Capacity for at least bytes (which may be max_bytes + 1), doubling on the way. */
static void grow(struct buf *buf, size_t bytes)
{
	if (bytes <= buf->capacity)
		return;
	size_t doubled = buf->capacity < SIZE_MAX / 2 ? buf->capacity * 2 : SIZE_MAX;
	size_t cap = buf->max_bytes < SIZE_MAX ? buf->max_bytes + 1 : SIZE_MAX;
	size_t capacity = doubled > FIRST_BYTES ? doubled : FIRST_BYTES;
	if (capacity > cap)
		capacity = cap;
	if (capacity < bytes)
		capacity = bytes;
	buf->data = mem_realloc(buf->data, capacity, 1);
	buf->capacity = capacity;
}

struct error *buf_reserve(struct buf *buf, size_t extra)
{
	if (extra > buf->max_bytes - buf->size)
		return error_new(ERROR_LIMIT, "more than the maximum of %zu bytes", buf->max_bytes);
	grow(buf, buf->size + extra);
	return NULL;
}

struct error *buf_append(struct buf *buf, const void *p, size_t n)
{
	struct error *err = buf_reserve(buf, n);
	if (err)
		return err;
	if (n)
		memcpy(buf->data + buf->size, p, n);
	buf->size += n;
	return NULL;
}

struct error *buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0)
		return error_new(ERROR_LIMIT, "text too long to format");
	struct error *err = buf_reserve(buf, (size_t)n);
	if (err)
		return err;
	grow(buf, buf->size + (size_t)n + 1); /* vsnprintf writes its 0 too */
	va_start(args, fmt);
	vsnprintf((char *)buf->data + buf->size, (size_t)n + 1, fmt, args);
	va_end(args);
	buf->size += (size_t)n;
	return NULL;
}

const char *buf_string(struct buf *buf)
{
	grow(buf, buf->size + 1);
	buf->data[buf->size] = 0;
	return (const char *)buf->data;
}
