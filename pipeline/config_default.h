/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is meant but not written: components that pipelines name and that need no settings, and the
 * pipeline when there is none: all receivers (else perf) → process, gitaly, symbols, relabel (where
 * written), limits → all exporters.
 */
#pragma once

#include "base/arena.h"
#include "pipeline/config_node.h"

/* Adds it to the tree, so that all that reads the tree sees one form. */
void config_default_complete(struct config_node *root, struct arena *arena);
/* "receivers", …: the section that a list of a pipeline refers to has the same name. */
extern const char *const config_default_sections[3];
