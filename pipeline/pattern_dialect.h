/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which regular expressions relabel rules may use: those of RE2 (github.com/google/re2/wiki/Syntax,
 * as Go's regexp/syntax reads them), so that a rule means here what it means in Prometheus. PCRE2
 * knows more; what only it knows is refused. Faults of form are left to PCRE2.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"

/* ERROR_USAGE: names the construct and its place, counted from 1. */
struct error *pattern_dialect_check(const char *text) MUST_USE;
