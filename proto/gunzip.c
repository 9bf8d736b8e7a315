/* SPDX-License-Identifier: Apache-2.0 */
/* gzip through zlib's inflate, a block at a time. */
#include "proto/gunzip.h"

#include <string.h>
#include <zlib.h>

enum {
	GZIP_ONLY = 15 + 16, /* zlib's window bits, and its way to ask for the gzip header */
	FIRST_RESERVE = 64 << 10,
	STEP_BYTES = 1 << 30, /* zlib counts in 32 bits */
};

bool gunzip_is_gzip(const void *bytes, size_t size)
{
	return size >= 2 && !memcmp(bytes, "\x1f\x8b", 2);
}

/* Bytes that may be written behind out's content, at least one. limit counts from begin. */
static struct error *make_room(struct buf *out, size_t begin, uint64_t limit, size_t *room_out)
{
	uint64_t made = out->size - begin;
	if (made >= limit)
		return error_new(ERROR_LIMIT, "gzip: unpacks to more than %llu bytes",
				 (unsigned long long)limit);
	if (out->size == out->capacity) {
		uint64_t want = made < FIRST_RESERVE ? FIRST_RESERVE : made;
		struct error *err = buf_reserve(out, want < limit - made ? want : limit - made);
		if (err)
			return err;
	}
	size_t room = out->capacity - out->size;
	*room_out = room < limit - made ? room : limit - made;
	return NULL;
}

static struct error *inflate_member(z_stream *z, size_t *left, struct buf *out, size_t begin,
				    uint64_t limit)
{
	for (;;) {
		size_t room = 0;
		struct error *err = make_room(out, begin, limit, &room);
		if (err)
			return err;
		uInt in_step = (uInt)(*left < STEP_BYTES ? *left : STEP_BYTES);
		uInt out_step = (uInt)(room < STEP_BYTES ? room : STEP_BYTES);
		z->avail_in = in_step;
		z->next_out = out->data + out->size;
		z->avail_out = out_step;
		int status = inflate(z, Z_NO_FLUSH);
		*left -= in_step - z->avail_in;
		out->size += out_step - z->avail_out;
		if (status == Z_STREAM_END)
			return NULL;
		if (status == Z_BUF_ERROR || (status == Z_OK && !*left && z->avail_out))
			return error_new(ERROR_BAD_DATA, "gzip: ends in the middle");
		if (status != Z_OK)
			return error_new(ERROR_BAD_DATA, "gzip: %s",
					 z->msg ? z->msg : "broken stream");
	}
}

struct error *gunzip_all(const void *bytes, size_t size, struct buf *out)
{
	z_stream z = {.next_in = (uint8_t *)bytes}; /* zlib does not write to it */
	if (inflateInit2(&z, GZIP_ONLY) != Z_OK)
		return error_new(ERROR_UNSUPPORTED, "gzip: the decompressor does not start");
	size_t begin = out->size;
	uint64_t limit = GUNZIP_FREE_BYTES + (uint64_t)GUNZIP_MAX_RATIO * size;
	if (limit > out->max_bytes - begin)
		limit = out->max_bytes - begin;
	size_t left = size;
	struct error *err = NULL;
	do {
		err = inflate_member(&z, &left, out, begin, limit);
		if (!err && inflateReset(&z) != Z_OK)
			err = error_new(ERROR_BAD_DATA, "gzip: broken stream");
		/* Zeros may pad the last member, other bytes behind it are not ours. */
	} while (!err && gunzip_is_gzip(z.next_in, left));
	inflateEnd(&z);
	return error_number(err, 605);
}
