/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References in the values of a configuration: ${env:NAME}, ${env:NAME:-default}, ${file:/PATH} and
 * ${credential:NAME} (the path of a credential that systemd passed). It happens after the YAML was
 * read, so that a value never becomes structure. Nothing else is touched: $1 and ${1} belong to
 * relabel rules.
 */
#pragma once

#include "base/arena.h"
#include "pipeline/config.h"

/* Replaces text of all scalars below root; what goes wrong is an error in problems. */
void config_expand(struct config_node *root, const struct config_options *options,
		   struct arena *arena, struct config_problems *problems);
