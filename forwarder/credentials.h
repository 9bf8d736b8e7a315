/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call says about who sends it: authorization, tenant and the user's own headers, as HTTP/2
 * wants them. Secrets are wiped when they go and stand in no message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/endpoint.h"
#include "forwarder/exporter_config.h"

/* A header of a request. Names are lower case. */
struct request_header {
	const char *name, *value;
	size_t n_name, n_value;
	/* Never enters a compression table: a secret, or what would only push others out. */
	bool is_unindexed;
};

struct credentials {
	struct request_header *headers;
	size_t n;
};

/*
 * What of the configuration can be judged without reading files: names and values of headers, and
 * that no secret travels in clear to another host. ERROR_USAGE.
 */
struct error *credentials_check(const struct remote_config *config,
				const struct endpoint *endpoint) MUST_USE;
/* Reads token and password files. Errors name the file, never its content. */
struct error *credentials_load(const struct remote_config *config,
			       struct credentials *out) MUST_USE;
void credentials_fini(struct credentials *credentials);
bool credentials_are_equal(const struct credentials *a, const struct credentials *b);

/* "Basic …" of user and password; the caller wipes it with credentials_wipe_string. */
char *credentials_basic(const char *user, const char *password);
/* Zeroes and frees; NULL is fine. */
void credentials_wipe_string(char *secret);
