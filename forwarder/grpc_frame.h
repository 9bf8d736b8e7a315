/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Length-prefixed gRPC messages (PROTOCOL-HTTP2.md): a byte that is 1 for a compressed message,
 * the length in 4 bytes, big endian, and the message. HTTP/2 cuts them where it likes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

enum { GRPC_FRAME_PREFIX_BYTES = 5 };

void grpc_frame_put_prefix(uint8_t out[GRPC_FRAME_PREFIX_BYTES], bool is_compressed, uint32_t n);
/* Appends message as gzip to out. ERROR_LIMIT: it would not become smaller than max_bytes. */
struct error *grpc_frame_compress(const uint8_t *message, size_t n, size_t max_bytes,
				  struct buf *out) MUST_USE;

/* Puts a message together. Memory grows with what arrived, never with what a length claims. */
struct grpc_frame_reader {
	uint8_t prefix[GRPC_FRAME_PREFIX_BYTES];
	size_t n_prefix;
	uint32_t n_message; /* of the message under way */
	bool is_gzip;	    /* the answer's grpc-encoding is gzip: set by the caller */
	size_t max_bytes;
	struct buf message; /* as it came */
	struct buf unpacked;
};

/* max_bytes bounds a message before and after decompression. */
void grpc_frame_reader_init(struct grpc_frame_reader *reader, size_t max_bytes);
void grpc_frame_reader_fini(struct grpc_frame_reader *reader);
/*
 * Takes bytes up to the end of a message and says how many. A whole message is handed out once,
 * in *message_out (else NULL), valid until the next call. ERROR_LIMIT: larger than max_bytes;
 * ERROR_BAD_DATA; ERROR_UNSUPPORTED: compressed though no encoding was named.
 */
struct error *grpc_frame_read(struct grpc_frame_reader *reader, const uint8_t *bytes, size_t n,
			      size_t *n_used, const uint8_t **message_out,
			      size_t *n_message_out) MUST_USE;
/* Whether a message has begun and is not whole. */
bool grpc_frame_is_partial(const struct grpc_frame_reader *reader);
