/* SPDX-License-Identifier: Apache-2.0 */
/* What is in effect, as a configuration of its own, with the origin of each value beside it. */
#pragma once

#include <stdio.h>

#include "pipeline/config.h"

/* Secrets are <redacted>. */
void config_print(const struct config *config, FILE *out);
/* The JSON Schema (json-schema.org, draft 2020-12) of configuration files. */
void config_print_json_schema(FILE *out);
