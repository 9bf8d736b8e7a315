/* SPDX-License-Identifier: Apache-2.0 */
/* The header list of a gRPC request, in the order that PROTOCOL-HTTP2.md gives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forwarder/credentials.h"

enum {
	REQUEST_HEADERS_OWN = 12,
	REQUEST_TIMEOUT_BYTES = 10, /* 8 digits, a unit, 0 */
};

struct request_headers_options {
	const char *path, *authority, *user_agent;
	bool is_plaintext;
	bool is_gzip;	     /* messages may be compressed */
	uint64_t timeout_ns; /* what is left of it */
	uint32_t n_previous_attempts;
	const struct credentials *credentials;
};

/* Texts of a list, which therefore has to stay where it is. */
struct request_headers {
	char timeout[REQUEST_TIMEOUT_BYTES];
	char attempts[12];
};

/*
 * Fills list, of REQUEST_HEADERS_OWN + credentials->n elements, and returns how many there are.
 * The texts are borrowed from options and from texts.
 */
size_t request_headers_list(const struct request_headers_options *options,
			    struct request_headers *texts, struct request_header *list);
/* grpc-timeout: at most 8 digits and a unit, rounded up, at least 1 ns. */
void request_headers_put_timeout(uint64_t timeout_ns, char out[REQUEST_TIMEOUT_BYTES]);
