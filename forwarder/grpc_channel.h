/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel carries gRPC calls to one endpoint: it connects when there is a call to carry (name
 * resolution, proxy, TLS, HTTP/2), keeps the connection while it is good, and makes a new one with
 * back-off when it is not. Many calls run at once on one connection. Everything happens on the
 * loop's thread; callbacks never run inside the function that starts a call.
 *
 * Order of calls: grpc_channel_new, any number of grpc_channel_call, grpc_channel_close (calls
 * that still run end as cancelled; the memory goes once the loop has run the closing callbacks).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/exporter_config.h"
#include "forwarder/grpc_status.h"

struct grpc_channel;
struct grpc_call;

/* Reads what the configuration names only when it connects. ERROR_USAGE: the endpoint cannot be
 * parsed, or a token would travel in clear. config is copied. */
struct error *grpc_channel_new(uv_loop_t *loop, const struct clock *clock,
			       const struct remote_config *config,
			       struct grpc_channel **out) MUST_USE;
void grpc_channel_close(struct grpc_channel *channel);
/* New calls go over a new connection, for which everything is read again; the old one ends with
 * its last call. */
void grpc_channel_refresh(struct grpc_channel *channel);

/*
 * The next message of the request: true and the bytes (borrowed until the next call of the
 * function or the end of the call), false when there are no more. A unary call has exactly one.
 * Called again from the start when the call is tried anew without having been processed.
 */
typedef bool (*grpc_message_fn)(void *context, uint32_t index, const uint8_t **bytes_out,
				size_t *n_out);
typedef void (*grpc_result_fn)(void *context, const struct grpc_result *result);

struct grpc_request {
	const char *path; /* "/package.Service/Method", borrowed until the call ends */
	grpc_message_fn next_message;
	grpc_result_fn done; /* exactly once, unless the call was cancelled */
	void *context;
	uint64_t timeout_ns; /* from now; over all transparent retries; 0 = remote_config's */
	bool wait_for_ready; /* keep trying to connect until the deadline instead of failing with
				the first connection error */
	size_t max_response_bytes; /* 0 = 4 MiB */
};

/* The handle is valid until done has been called. */
struct grpc_call *grpc_channel_call(struct grpc_channel *channel,
				    const struct grpc_request *request);
/* done will not be called. */
void grpc_call_cancel(struct grpc_call *call);
