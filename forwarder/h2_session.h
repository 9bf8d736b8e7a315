/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of one HTTP/2 connection (RFC 9113), without I/O: bytes in, bytes out, time is
 * a parameter. Takes care of SETTINGS, flow control, GOAWAY, PING and keepalive, and ends the
 * connection when the peer breaks the protocol or makes us work for nothing.
 *
 * Order of calls: h2_session_new; then, as bytes and times come, h2_session_receive and
 * h2_session_tick; after each call of any kind h2_session_output until it gives no more;
 * h2_session_free. Once one of them returned an error the connection is to be closed:
 * h2_session_end tells the streams.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/credentials.h"

struct h2_session;
struct h2_stream;

/* Why a stream ended. */
enum h2_end {
	H2_END_COMPLETE, /* the peer ended it, after all it had to say */
	H2_END_RESET,	 /* RST_STREAM from the peer */
	H2_END_REFUSED,	 /* GOAWAY says that the peer did not look at it */
	H2_END_BROKEN,	 /* the peer broke the protocol on this stream */
	H2_END_STOPPED,	 /* data() returned false */
	H2_END_LOST,	 /* with the connection */
};

/* What a stream needs and is told; none may call into the session. No call follows ended. */
struct h2_stream_ops {
	/* Bytes of the request that can be read now, 0 at its end. */
	size_t (*available)(void *stream);
	/* n is at most what is available. */
	void (*read)(void *stream, uint8_t *out, size_t n);
	void (*header)(void *stream, const char *name, size_t n_name, const char *value,
		       size_t n_value);
	void (*headers_end)(void *stream);
	/* false: nothing more is wanted. */
	bool (*data)(void *stream, const uint8_t *bytes, size_t n);
	/* code and text, as far as there are: HTTP/2 error code; for people. */
	void (*ended)(void *stream, enum h2_end end, uint32_t code, const char *text);
};

struct h2_session_config {
	uint64_t keepalive_ns; /* 0 = off: PING after that time without a byte from the peer, while
				  streams are open */
	bool is_plaintext;     /* for messages */
};

enum {
	H2_SESSION_MAX_HEADER_BYTES = 64 << 10, /* of a block, unpacked, 32 for each header */
	H2_SESSION_MAX_STREAMS = 1000,
};

struct h2_session *h2_session_new(const struct h2_session_config *config, uint64_t now_ns);
void h2_session_free(struct h2_session *session);

/* ERROR_BAD_DATA: the peer does not speak HTTP/2, or not well; ERROR_LIMIT: it floods. */
struct error *h2_session_receive(struct h2_session *session, const uint8_t *bytes, size_t n,
				 uint64_t now_ns) MUST_USE;
/* To be called at h2_session_next_time. ERROR_UNAVAILABLE: the peer does not answer. */
struct error *h2_session_tick(struct h2_session *session, uint64_t now_ns) MUST_USE;
uint64_t h2_session_next_time(const struct h2_session *session); /* UINT64_MAX = none */
/* What is to be written next, valid until the next call on the session; nothing: *n_out = 0. */
struct error *h2_session_output(struct h2_session *session, const uint8_t **bytes_out,
				size_t *n_out) MUST_USE;

/* The peer's SETTINGS have come: streams can be opened. */
bool h2_session_is_ready(const struct h2_session *session);
/* A new stream is allowed now. */
bool h2_session_can_open(const struct h2_session *session);
/* Sends the headers, so their texts need not last; NULL: no stream could be opened. */
struct h2_stream *h2_session_open(struct h2_session *session, const struct request_header *headers,
				  size_t n, const struct h2_stream_ops *ops, void *stream,
				  uint64_t now_ns);
/* RST_STREAM with CANCEL; ended is not called. */
void h2_session_cancel(struct h2_session *session, struct h2_stream *stream);

/* After GOAWAY, ours or the peer's: running streams go on, new ones need another connection. */
bool h2_session_is_draining(const struct h2_session *session);
/* Opens no more streams: the connection is not trusted any more. */
void h2_session_drain(struct h2_session *session);
size_t h2_session_n_streams(const struct h2_session *session);
/* The peer complained about the frequency of our PINGs. */
bool h2_session_has_too_many_pings(const struct h2_session *session);
/* What the peer's GOAWAY said, "" if there was none. */
const char *h2_session_goaway_text(const struct h2_session *session);
/* What keeps a stream from going on, for the message of a deadline; never NULL. */
const char *h2_session_waits_for(const struct h2_session *session, const struct h2_stream *stream);
uint64_t h2_session_last_read_ns(const struct h2_session *session);
/* Ends all streams with H2_END_LOST. */
void h2_session_end(struct h2_session *session, const char *text);
/* Queues a GOAWAY: to be sent before a connection in good order is closed. */
void h2_session_say_goodbye(struct h2_session *session);

/* "ENHANCE_YOUR_CALM" */
const char *h2_session_error_name(uint32_t code);
