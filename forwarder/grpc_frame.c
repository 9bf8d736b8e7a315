/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC messages in and out of a byte stream. */
#include "forwarder/grpc_frame.h"

#include <string.h>

#include <zlib.h>

#include "base/cursor.h"
#include "proto/gunzip.h"

void grpc_frame_put_prefix(uint8_t out[GRPC_FRAME_PREFIX_BYTES], bool is_compressed, uint32_t n)
{
	out[0] = is_compressed;
	out[1] = (uint8_t)(n >> 24);
	out[2] = (uint8_t)(n >> 16);
	out[3] = (uint8_t)(n >> 8);
	out[4] = (uint8_t)n;
}

struct error *grpc_frame_compress(const uint8_t *message, size_t n, size_t max_bytes,
				  struct buf *out)
{
	if (n > UINT32_MAX || max_bytes > UINT32_MAX)
		return error_new(ERROR_LIMIT, "a message of %zu bytes", n);
	struct error *err = buf_reserve(out, max_bytes);
	if (err)
		return err;
	/* 15 + 16: a gzip header around a window of 32 KiB. Level 1: profiles halve, cheaply. */
	z_stream stream = {0};
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return error_new(ERROR_LIMIT, "deflateInit2 failed");
	stream.next_in = (Bytef *)(uintptr_t)message;
	stream.avail_in = (uInt)n;
	stream.next_out = out->data + out->size;
	stream.avail_out = (uInt)max_bytes;
	int result = deflate(&stream, Z_FINISH);
	size_t written = max_bytes - stream.avail_out;
	deflateEnd(&stream);
	if (result != Z_STREAM_END)
		return error_new(ERROR_LIMIT, "does not fit into %zu bytes", max_bytes);
	out->size += written;
	return NULL;
}

void grpc_frame_reader_init(struct grpc_frame_reader *reader, size_t max_bytes)
{
	*reader = (struct grpc_frame_reader){.max_bytes = max_bytes};
	buf_init(&reader->message, max_bytes);
	buf_init(&reader->unpacked, max_bytes);
}

void grpc_frame_reader_fini(struct grpc_frame_reader *reader)
{
	buf_fini(&reader->message);
	buf_fini(&reader->unpacked);
}

/* The prefix is whole. */
static struct error *begin_message(struct grpc_frame_reader *reader)
{
	struct cursor c = cursor_make(reader->prefix, sizeof(reader->prefix), true);
	uint8_t flag = cursor_u8(&c);
	reader->n_message = cursor_u32(&c);
	if (flag > 1)
		return error_new(ERROR_BAD_DATA, "message begins with flag %u, not 0 or 1", flag);
	if (flag == 1 && !reader->is_gzip)
		return error_new(
			ERROR_UNSUPPORTED,
			"message is compressed, but the answer names no encoding known here");
	if (reader->n_message > reader->max_bytes)
		return error_new(ERROR_LIMIT, "message of %u bytes is larger than %zu",
				 reader->n_message, reader->max_bytes);
	buf_clear(&reader->message);
	return NULL;
}

/* The message is whole: unpacked if need be. */
static struct error *end_message(struct grpc_frame_reader *reader, const uint8_t **message_out,
				 size_t *n_message_out)
{
	static const uint8_t nothing[1];
	const struct buf *result = &reader->message;
	if (reader->prefix[0] == 1) {
		buf_clear(&reader->unpacked);
		struct error *err =
			gunzip_all(reader->message.data, reader->message.size, &reader->unpacked);
		if (err)
			return error_wrap(err, "compressed message");
		result = &reader->unpacked;
	}
	reader->n_prefix = 0;
	*message_out = result->size ? result->data : nothing;
	*n_message_out = result->size;
	return NULL;
}

struct error *grpc_frame_read(struct grpc_frame_reader *reader, const uint8_t *bytes, size_t n,
			      size_t *n_used, const uint8_t **message_out, size_t *n_message_out)
{
	*message_out = NULL;
	*n_used = 0;
	size_t used = 0;
	if (reader->n_prefix < GRPC_FRAME_PREFIX_BYTES) {
		size_t missing = GRPC_FRAME_PREFIX_BYTES - reader->n_prefix;
		used = missing < n ? missing : n;
		if (used)
			memcpy(reader->prefix + reader->n_prefix, bytes, used);
		reader->n_prefix += used;
		*n_used = used;
		if (reader->n_prefix < GRPC_FRAME_PREFIX_BYTES)
			return NULL;
		struct error *err = begin_message(reader);
		if (err)
			return err;
	}
	size_t missing = reader->n_message - reader->message.size;
	size_t take = missing < n - used ? missing : n - used;
	struct error *err = buf_append(&reader->message, bytes + used, take);
	if (err)
		return err;
	*n_used = used + take;
	if (take < missing)
		return NULL;
	return end_message(reader, message_out, n_message_out);
}

bool grpc_frame_is_partial(const struct grpc_frame_reader *reader)
{
	return reader->n_prefix > 0;
}
