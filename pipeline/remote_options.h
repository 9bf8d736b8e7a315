/* SPDX-License-Identifier: Apache-2.0 */
/* How to reach and convince a server: the options that `push` and `symbols upload` share. */
#pragma once

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/forwarder.h"
#include "pipeline/cli.h"

enum { REMOTE_OPTIONS_HEADERS_MAX = 32 };

struct remote_options {
	struct remote_config config;
	struct key_value headers[REMOTE_OPTIONS_HEADERS_MAX];
	size_t n_headers;
};

/* For cli_spec.shared. */
extern const struct cli_option remote_options_table[];

/* Whether an id is of the table; then remote_options_set takes it. */
bool remote_options_has(int id);
struct error *remote_options_set(struct remote_options *options, int id,
				 const char *value) MUST_USE;
/* What the options and PERFPIPE_BEARER_TOKEN say, for the place that target has already. Borrows
 * from options. */
void remote_options_apply(const struct remote_options *options, struct remote_config *target);
void remote_options_fini(struct remote_options *options);

/* "KEY=VALUE", appended to *n pairs of at most max. The keys are the caller's to free. */
struct error *remote_options_add_pair(struct key_value *pairs, size_t *n, size_t max,
				      const char *option, const char *value) MUST_USE;
