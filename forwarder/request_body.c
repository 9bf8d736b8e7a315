/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a request. A message of which gzip makes no less is sent as it is (flag 0). */
#include "forwarder/request_body.h"

#include <string.h>

void request_body_init(struct request_body *body, request_body_fn next_message, void *context,
		       bool is_gzip)
{
	*body = (struct request_body){
		.next_message = next_message, .context = context, .is_gzip = is_gzip};
	buf_init(&body->packed, UINT32_MAX);
}

void request_body_fini(struct request_body *body)
{
	buf_fini(&body->packed);
}

void request_body_rewind(struct request_body *body)
{
	body->index = 0;
	body->has_message = false;
	body->is_over = false;
}

static void fetch(struct request_body *body)
{
	const uint8_t *message;
	size_t n;
	body->has_message = body->next_message(body->context, body->index, &message, &n);
	body->offset = 0;
	if (!body->has_message) {
		body->is_over = true;
		return;
	}
	body->index++;
	bool is_packed = false;
	if (body->is_gzip && n > 1) {
		buf_clear(&body->packed);
		struct error *err = grpc_frame_compress(message, n, n - 1, &body->packed);
		is_packed = !err;
		error_free(err);
	}
	body->message = is_packed ? body->packed.data : message;
	body->n_message = is_packed ? body->packed.size : n;
	grpc_frame_put_prefix(body->prefix, is_packed, (uint32_t)body->n_message);
}

size_t request_body_available(struct request_body *body)
{
	if (!body->has_message && !body->is_over)
		fetch(body);
	return body->has_message ? GRPC_FRAME_PREFIX_BYTES + body->n_message - body->offset : 0;
}

void request_body_read(struct request_body *body, uint8_t *out, size_t n)
{
	if (body->offset < GRPC_FRAME_PREFIX_BYTES) {
		size_t left = GRPC_FRAME_PREFIX_BYTES - body->offset;
		size_t take = n < left ? n : left;
		memcpy(out, body->prefix + body->offset, take);
		body->offset += take;
		out += take;
		n -= take;
	}
	if (n > 0) {
		memcpy(out, body->message + (body->offset - GRPC_FRAME_PREFIX_BYTES), n);
		body->offset += n;
	}
	if (body->offset == GRPC_FRAME_PREFIX_BYTES + body->n_message)
		body->has_message = false;
}
