/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server is: parsed from what users write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

struct endpoint {
	char *host; /* name or address, an IPv6 address without brackets; NULL for a socket file */
	uint16_t port;
	char *unix_path; /* begins with '@' for a name without a file; NULL otherwise */
	bool is_plaintext;
	char *authority; /* "host:port", "[::1]:443", "localhost" for a socket file */
	char *shown;	 /* for messages: as authority, or the path of the socket */
};

/*
 * "HOST:PORT", "HOST", "https://HOST[:PORT]" (TLS), "http://HOST[:PORT]" (plaintext),
 * "unix:/PATH", "unix:///PATH", "unix:@NAME" (plaintext). default_port stands in for a port that
 * is not given. insecure asks for plaintext. ERROR_USAGE for all else.
 */
struct error *endpoint_parse(const char *text, uint16_t default_port, bool insecure,
			     struct endpoint *out) MUST_USE;
void endpoint_fini(struct endpoint *endpoint);

/* Whether what is sent stays on this machine: socket files, "localhost", 127.0.0.0/8, ::1. */
bool endpoint_is_loopback(const struct endpoint *endpoint);

/*
 * "HOST[:PORT]" with IPv6 addresses in brackets, or a bare one without a port. ERROR_USAGE.
 * The host belongs to the caller. port is left alone when there is none.
 */
struct error *endpoint_parse_host(const char *text, size_t n, char **host_out,
				  uint16_t *port_out) MUST_USE;
/* Whether it is an IPv4 or IPv6 address in text. */
bool endpoint_host_is_address(const char *host);
