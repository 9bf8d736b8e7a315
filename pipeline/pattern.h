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
/*
 * For relabel rules: the dialect of RE2 (pattern_dialect.h), '.' matches line breaks too, and only
 * a whole text matches, as in Prometheus. ERROR_USAGE.
 */
struct error *pattern_compile_whole(const char *text, struct pattern **out) MUST_USE;
/*
 * Of a pattern from pattern_compile_whole: the places of the groups as pairs of offsets (group 0 is
 * the whole text; PATTERN_UNSET for groups that took no part), NULL when it does not match. Valid
 * until the next call with the pattern. Bytes that are not UTF-8 are matched by nothing.
 * ERROR_LIMIT when the pattern is too costly on it.
 */
#define PATTERN_UNSET (~(size_t)0)
struct error *pattern_capture(struct pattern *pattern, const char *text, size_t n,
			      const size_t **places_out) MUST_USE;
/* Without group 0. */
unsigned pattern_n_groups(const struct pattern *pattern);
/* 0 = there is no group of that name. */
unsigned pattern_find_group(const struct pattern *pattern, const char *name, size_t n);
/* text is valid UTF-8. ERROR_LIMIT when the pattern is too costly on it. */
struct error *pattern_matches(const struct pattern *pattern, const char *text, bool *out) MUST_USE;
