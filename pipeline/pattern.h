/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions of users over texts of others: PCRE2 with limits, so that no pattern and no
 * name can keep us busy. Matches anywhere in the text unless the pattern is anchored.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

struct pattern;

/* ERROR_USAGE with the place in the pattern. */
struct error *pattern_compile(const char *text, struct pattern **out) MUST_USE;
void pattern_free(struct pattern *pattern);
/* text is valid UTF-8. ERROR_LIMIT when the pattern is too costly on it. */
struct error *pattern_matches(const struct pattern *pattern, const char *text, bool *out) MUST_USE;
