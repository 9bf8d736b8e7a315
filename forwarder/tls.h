/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of TLS, without I/O: ciphertext in and out, plaintext in and out.
 * A context is what connections to one server share (files, session tickets); a link is one
 * connection. Certificates are always checked, and for the host, unless the configuration says
 * skip_verify.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/exporter_config.h"

struct tls_context;
struct tls_link;

/*
 * Reads no file yet. config (borrowed as long as the context lives) and texts; host is what the
 * certificate has to be for; server is the server for messages ("grpc.example:443"); protocol is
 * the one to agree on with ALPN: "h2", or "http/1.1", which silence means too. ERROR_USAGE.
 */
struct error *tls_context_new(const struct tls_config *config, const char *host, const char *server,
			      const char *protocol, struct tls_context **out) MUST_USE;
void tls_context_free(struct tls_context *context);

/*
 * Begins a handshake. Files are read the first time and again when they have changed; when the new
 * ones cannot be used, those read before stay in use and *warning_out, which the caller frees,
 * says why (NULL otherwise).
 */
struct error *tls_open(struct tls_context *context, struct error **warning_out,
		       struct tls_link **out) MUST_USE;
void tls_close(struct tls_link *link);

/* Ciphertext from the peer, borrowed until tls_shake_hands and tls_read have used it up: the
 * caller calls them until they give nothing more. */
struct error *tls_receive(struct tls_link *link, const uint8_t *bytes, size_t n) MUST_USE;
/* Goes on with the handshake; call until true, after each tls_receive. Errors carry number 301 and
 * say which host, and what is wrong with its certificate. */
struct error *tls_shake_hands(struct tls_link *link, bool *is_done_out) MUST_USE;
/* Plaintext from the peer: *n_out = 0 when there is none for now, or at its end. */
struct error *tls_read(struct tls_link *link, uint8_t *out, size_t size, size_t *n_out) MUST_USE;
/* The peer said that it will send no more. */
bool tls_is_at_end(const struct tls_link *link);
/* What to say when the connection ends during the handshake. */
struct error *tls_end_of_stream(struct tls_link *link) MUST_USE;
struct error *tls_write(struct tls_link *link, const uint8_t *bytes, size_t n) MUST_USE;
void tls_say_goodbye(struct tls_link *link);
/*
 * Where ciphertext may go at once, while nothing is pending: takes bytes (a record or more), says
 * how many. What it does not take is pending. Spares a copy, and is fresh in the cache.
 */
typedef size_t (*tls_sink_fn)(void *context, const uint8_t *bytes, size_t n);
void tls_set_sink(struct tls_link *link, tls_sink_fn sink, void *context);
/* Ciphertext for the peer, valid until the next call; then tell how much of it was taken. */
size_t tls_pending(struct tls_link *link, const uint8_t **bytes_out);
void tls_take_pending(struct tls_link *link, size_t n);

/* "TLSv1.3", and whether the handshake was shortened by an earlier session. */
const char *tls_version(const struct tls_link *link);
bool tls_is_resumed(const struct tls_link *link);
