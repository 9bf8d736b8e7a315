/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a unary or client-streaming call, as a state machine without I/O: headers, data
 * and the end of the stream go in, a grpc_result comes out. All that peers may send is accepted:
 * trailers only, interim answers (1xx), answers that are not gRPC, more or fewer messages than one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "forwarder/grpc_frame.h"
#include "forwarder/grpc_status.h"

enum {
	GRPC_RESPONSE_MESSAGE_BYTES = 1024, /* of text for people */
	GRPC_RESPONSE_FIRST_BYTES = 120,    /* shown of a body that is not gRPC */
	GRPC_RESPONSE_DETAILS_BYTES = 16 << 10,
};

struct grpc_response {
	/* Of the header block under way. */
	int block_status;
	bool is_interim;
	/* Of the answer. */
	bool has_headers, has_trailers;
	int http_status;
	char content_type[80];
	bool is_grpc;
	bool has_grpc_status;
	enum grpc_code code;
	bool is_encoding_unknown;
	char encoding[32];
	uint64_t retry_delay_ns;
	bool has_retry_info, has_push_back, must_not_retry;
	struct grpc_frame_reader reader;
	uint32_t n_messages;
	uint8_t *details;
	size_t n_details;
	uint8_t first[GRPC_RESPONSE_FIRST_BYTES]; /* of a body that is not gRPC */
	size_t n_first;
	/* How it ended. */
	bool is_ended;
	enum grpc_failure failure;
	bool is_unprocessed;
	int error_number;
	char message[GRPC_RESPONSE_MESSAGE_BYTES];
	/* The one message of the answer. */
	struct buf body;
};

void grpc_response_init(struct grpc_response *response, size_t max_bytes);
void grpc_response_fini(struct grpc_response *response);
/* As it was after init, for a call that is tried anew. */
void grpc_response_reset(struct grpc_response *response);

/* Each header of a block, then the end of the block. The clock is for Retry-After. */
void grpc_response_header(struct grpc_response *response, const char *name, size_t n_name,
			  const char *value, size_t n_value, const struct clock *clock);
void grpc_response_headers_end(struct grpc_response *response);
/* false: the answer is decided and nothing more of it is wanted; the stream is to be reset. */
bool grpc_response_data(struct grpc_response *response, const uint8_t *bytes, size_t n);

/* One of these ends it; the first counts. */
void grpc_response_end(struct grpc_response *response);
/* RST_STREAM from the peer. name is that of the error, "REFUSED_STREAM". */
void grpc_response_end_reset(struct grpc_response *response, uint32_t h2_error, const char *name);
/* Our own side ends it; text is for people. */
void grpc_response_end_failure(struct grpc_response *response, enum grpc_code code,
			       enum grpc_failure failure, bool is_unprocessed, const char *text);

/* After an end. Borrows from response. */
void grpc_response_result(const struct grpc_response *response, struct grpc_result *out);
