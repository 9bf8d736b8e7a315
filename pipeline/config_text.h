/* SPDX-License-Identifier: Apache-2.0 */
/* How values of a configuration, and what is expected of them, read in messages. */
#pragma once

#include <stddef.h>

#include "pipeline/config_node.h"
#include "pipeline/config_schema.h"

enum { CONFIG_TEXT_BYTES = 320 };

/* "\"fast\"", "a list", "empty"; secrets as <redacted>. Long ones are cut. */
void config_text_show(const struct config_key *key, const struct config_node *node, char *out,
		      size_t size);
/* "a number from 1 to 10000". */
void config_text_expected(const struct config_key *key, char *out, size_t size);
