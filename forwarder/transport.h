/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection as a stream of bytes: name resolution off the loop, several addresses raced (RFC
 * 8305), socket files, proxies, TLS. Everything happens on the loop's thread; events never come
 * from within a function of this header.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/error.h"
#include "forwarder/endpoint.h"
#include "forwarder/grpc_status.h"
#include "forwarder/proxy.h"
#include "forwarder/tls.h"

struct transport;

struct transport_events {
	void (*opened)(void *context);
	/* Borrowed for the call. May close the transport, as all events may. */
	void (*received)(void *context, const uint8_t *bytes, size_t n);
	/* What was written has left; only after transport_is_blocked was true. */
	void (*drained)(void *context);
	/* The end of it, also of an orderly one; takes err. Only transport_close may follow. */
	void (*failed)(void *context, enum grpc_failure failure, struct error *err);
	/* Worth a line in the log, not an end; borrowed. */
	void (*warned)(void *context, const struct error *err);
};

/* All borrowed until transport_close. */
struct transport_config {
	const struct endpoint *endpoint;
	const struct proxy *proxy; /* host NULL = none */
	struct tls_context *tls;   /* NULL = plaintext */
	uint64_t connect_timeout_ns;
};

/* Begins to connect. */
struct transport *transport_open(uv_loop_t *loop, const struct transport_config *config,
				 const struct transport_events *events, void *context);
/* No event follows. The memory goes once the loop has run the closing callbacks. */
void transport_close(struct transport *transport);

/* Copies what the kernel does not take at once; the caller writes no more while it is blocked. */
void transport_write(struct transport *transport, const uint8_t *bytes, size_t n);
bool transport_is_blocked(const struct transport *transport);
/* What a connection that is not open yet waits for: "the TLS handshake". */
const char *transport_waits_for(const struct transport *transport);
