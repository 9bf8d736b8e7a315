/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the answer of a server to two calls. The first byte says in how large pieces they
 * come. Each call has to end once, with a result that holds together.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "forwarder/grpc_response.h"
#include "forwarder/h2_session.h"
#include "forwarder/request_body.h"
#include "proto/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_CALLS = 2, MAX_RESPONSE_BYTES = 4096, MAX_SENT_BYTES = 1 << 20 };

struct call {
	struct grpc_response response;
	struct request_body body;
	bool is_open, is_ended;
};

static bool next_message(void *context, uint32_t index, const uint8_t **bytes_out, size_t *n_out)
{
	static const uint8_t message[70000];
	(void)context;
	*bytes_out = message;
	*n_out = sizeof(message);
	return index < 2;
}

static size_t available(void *stream)
{
	return request_body_available(&((struct call *)stream)->body);
}

static void read_body(void *stream, uint8_t *out, size_t n)
{
	request_body_read(&((struct call *)stream)->body, out, n);
}

static void on_header(void *stream, const char *name, size_t n_name, const char *value,
		      size_t n_value)
{
	grpc_response_header(&((struct call *)stream)->response, name, n_name, value, n_value,
			     &clock_system);
}

static void on_headers_end(void *stream)
{
	grpc_response_headers_end(&((struct call *)stream)->response);
}

static bool on_data(void *stream, const uint8_t *bytes, size_t n)
{
	return grpc_response_data(&((struct call *)stream)->response, bytes, n);
}

static void on_ended(void *stream, enum h2_end end, uint32_t code, const char *text)
{
	struct call *call = stream;
	if (call->is_ended)
		abort();
	call->is_ended = true;
	if (end == H2_END_COMPLETE || end == H2_END_STOPPED)
		grpc_response_end(&call->response);
	else if (end == H2_END_RESET)
		grpc_response_end_reset(&call->response, code, text);
	else
		grpc_response_end_failure(&call->response, GRPC_UNAVAILABLE, GRPC_FAILURE_LOST,
					  end == H2_END_REFUSED, text);
}

static const struct h2_stream_ops ops = {available,	 read_body, on_header,
					 on_headers_end, on_data,   on_ended};

static const struct request_header request[] = {
	{":method", "POST", 7, 4, false},
	{":scheme", "http", 7, 4, false},
	{":path", "/a.B/C", 5, 6, false},
	{":authority", "h", 10, 1, false},
};

/* false: the session is at its end. */
static bool pump(struct h2_session *h2)
{
	size_t n_sent = 0;
	while (n_sent < MAX_SENT_BYTES) {
		const uint8_t *bytes;
		size_t n;
		struct error *err = h2_session_output(h2, &bytes, &n);
		if (err) {
			error_free(err);
			return false;
		}
		if (n == 0)
			return true;
		n_sent += n;
	}
	return true;
}

static void check(const struct call *call)
{
	struct grpc_result result;
	if (!call->is_open)
		return;
	if (!call->is_ended)
		abort();
	grpc_response_result(&call->response, &result);
	bool is_fine = utf8_is_valid(result.message, strlen(result.message)) &&
		       result.n_response <= MAX_RESPONSE_BYTES &&
		       (result.code == GRPC_OK) == (result.response != NULL) && result.code >= 0 &&
		       result.code < GRPC_CODE_N;
	if (!is_fine)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct h2_session_config config = {.keepalive_ns = 10000000000, .is_plaintext = true};
	struct call calls[N_CALLS];
	memset(calls, 0, sizeof(calls));
	for (size_t i = 0; i < N_CALLS; i++) {
		grpc_response_init(&calls[i].response, MAX_RESPONSE_BYTES);
		request_body_init(&calls[i].body, next_message, NULL, i == 1);
	}
	struct h2_session *h2 = h2_session_new(&config, 0);
	bool is_fine = pump(h2);
	size_t n_piece = size ? (size_t)data[0] * 16 + 1 : 1;
	uint64_t now_ns = 0;
	for (size_t at = 1; at < size && is_fine; at += n_piece) {
		size_t n = size - at < n_piece ? size - at : n_piece;
		now_ns += 1000000000;
		struct error *err = h2_session_receive(h2, data + at, n, now_ns);
		for (size_t i = 0; i < N_CALLS && !err; i++)
			if (!calls[i].is_open && h2_session_can_open(h2))
				calls[i].is_open =
					h2_session_open(h2, request, 4, &ops, &calls[i], now_ns);
		if (!err && h2_session_next_time(h2) <= now_ns)
			err = h2_session_tick(h2, now_ns);
		is_fine = !err && pump(h2);
		error_free(err);
	}
	h2_session_end(h2, "the end");
	for (size_t i = 0; i < N_CALLS; i++) {
		check(&calls[i]);
		grpc_response_fini(&calls[i].response);
	}
	h2_session_free(h2);
	for (size_t i = 0; i < N_CALLS; i++)
		request_body_fini(&calls[i].body);
	return 0;
}
