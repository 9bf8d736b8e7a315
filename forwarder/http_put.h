/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One PUT over HTTP/1.1 to a URL that carries its own permission (a signed URL of an object store),
 * over the same connections as gRPC has: TLS, proxies, several addresses. What stands behind the
 * "?" is a secret and stands in no message. Redirects are not followed: they are answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/exporter_config.h"

struct http_put;

struct http_put_request {
	const char *url; /* "https://HOST[:PORT]/PATH?QUERY", or http:// */
	uint64_t n_bytes;
	/* False: the bytes cannot be read any more; the PUT is broken off. */
	bool (*read)(void *context, uint64_t offset, uint8_t *out, size_t n);
	/* Exactly once, unless cancelled, and not within http_put_start. http_status 0: no answer;
	 * message says why, or how the body of the answer begins. */
	void (*done)(void *context, int http_status, const char *message);
	void *context;
	const struct tls_config *tls; /* NULL = the system's trust; borrowed until done */
	const char *proxy;	      /* as in remote_config */
	uint64_t timeout_ns;	      /* without a byte getting on; 0 = 60 s */
};

/* ERROR_USAGE: the URL or the proxy cannot be parsed. */
struct error *http_put_start(uv_loop_t *loop, const struct http_put_request *request,
			     struct http_put **out) MUST_USE;
/* done will not be called. The handle is valid until done has been called. */
void http_put_cancel(struct http_put *put);

/* The head of an answer. */
struct http_head {
	int status;
	size_t n_head;		 /* bytes up to the body; 0 = not whole yet */
	uint64_t content_length; /* UINT64_MAX = not told */
};
enum { HTTP_HEAD_MAX_BYTES = 16 << 10 };
/* ERROR_BAD_DATA: no HTTP/1; ERROR_LIMIT: longer than HTTP_HEAD_MAX_BYTES. */
struct error *http_put_parse_head(const uint8_t *bytes, size_t n, struct http_head *out) MUST_USE;
