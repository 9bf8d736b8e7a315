/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call sends, as bytes: each message with its prefix, compressed when asked for, in pieces
 * of any size. Messages are fetched when their first byte is due.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "forwarder/grpc_frame.h"

/* As in grpc_channel.h: message index, false when there are no more. */
typedef bool (*request_body_fn)(void *context, uint32_t index, const uint8_t **bytes_out,
				size_t *n_out);

struct request_body {
	request_body_fn next_message;
	void *context;
	bool is_gzip;
	uint32_t index; /* of the next message to fetch */
	uint8_t prefix[GRPC_FRAME_PREFIX_BYTES];
	const uint8_t *message;
	size_t n_message;
	size_t offset; /* in prefix and message together */
	bool has_message;
	bool is_over;
	struct buf packed;
};

void request_body_init(struct request_body *body, request_body_fn next_message, void *context,
		       bool is_gzip);
void request_body_fini(struct request_body *body);
/* Back to the first message, for a call that is tried anew. */
void request_body_rewind(struct request_body *body);
/* Bytes that can be read now; 0 only at the end of the body. */
size_t request_body_available(struct request_body *body);
/* n is at most what is available. */
void request_body_read(struct request_body *body, uint8_t *out, size_t n);
