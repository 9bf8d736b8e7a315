/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts with $1, ${1} and ${name} in them, with the meaning of Regexp.Expand of Go: a name is the
 * longest run of letters, digits and '_', so $1x is ${1x}; groups that do not exist are empty; $$
 * is a '$', and a '$' before anything else stands for itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/pattern.h"

struct template_part {
	const char *text; /* NULL: the group instead */
	size_t n;
	unsigned group;
};

struct template_text {
	char *source;
	struct template_part *parts;
	size_t n_parts;
	bool has_groups; /* a $1 or ${name}, also of a group that does not exist */
};

/* Groups are those of pattern, which is not kept. */
void template_text_init(struct template_text *template_text, const char *source,
			const struct pattern *pattern);
void template_text_fini(struct template_text *template_text);
/* Whether it can become the name of a label. */
bool template_text_may_be_name(const struct template_text *template_text);
/* out is cleared first. places are those of pattern_capture over text. ERROR_LIMIT. */
struct error *template_text_expand(const struct template_text *template_text, const char *text,
				   const size_t *places, struct buf *out) MUST_USE;
