/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP CONNECT proxies: which one to use for an endpoint, what to ask it, what it answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/endpoint.h"

struct proxy {
	char *host; /* NULL = none */
	uint16_t port;
	char *authority;
	char *authorization; /* "Basic …", secret; NULL = none */
};

/* "http://[USER:PASSWORD@]HOST[:PORT]", or without the scheme. ERROR_USAGE, without the password.
 */
struct error *proxy_parse(const char *text, struct proxy *out) MUST_USE;
void proxy_fini(struct proxy *proxy);

/*
 * The proxy for an endpoint; out->host stays NULL for none. setting is remote_config's: a proxy,
 * "" for none, or NULL: then https_proxy of the environment (or HTTPS_PROXY) counts for endpoints
 * with TLS that no_proxy (or NO_PROXY) does not name. Socket files have none.
 */
struct error *proxy_choose(const char *setting, const struct endpoint *endpoint,
			   struct proxy *out) MUST_USE;
/*
 * Whether a no_proxy list names a host: "*", "example.com" and ".example.com" (and what is below),
 * an address, a network as "10.0.0.0/8" or "fd00::/8", each with ":port" if need be, by commas.
 */
bool proxy_is_exempt(const char *no_proxy, const char *host, uint16_t port);

/* The request that asks for a tunnel to authority. */
struct error *proxy_put_request(const struct proxy *proxy, const char *authority,
				struct buf *out) MUST_USE;
enum { PROXY_MAX_ANSWER_BYTES = 8 << 10 };
/*
 * What the proxy has sent so far. *n_out: bytes of its answer, 0 while it is not whole; what
 * follows them comes through the tunnel. ERROR_DENIED: the proxy refused; ERROR_BAD_DATA.
 */
struct error *proxy_read_answer(const struct proxy *proxy, const char *authority,
				const uint8_t *bytes, size_t n, size_t *n_out) MUST_USE;
