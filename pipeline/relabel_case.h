/* SPDX-License-Identifier: Apache-2.0 */
/* The `tests:` of a configuration: labels in, labels out of a pipeline's relabel rules. */
#pragma once

#include "pipeline/config.h"

/* Failures are errors 209 in problems. Returns the number of tests that passed. */
size_t relabel_case_run_all(const struct config *config, struct config_problems *problems);
