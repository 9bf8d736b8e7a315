/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a configuration, by the table of keys, into struct config: types, bounds, defaults.
 */
#pragma once

#include "pipeline/config.h"

/* Of config->root. Errors 201, 202, 204, 207 and 211 go to problems; what they are about keeps its
 * default. */
void config_fill(struct config *config, struct config_problems *problems);
