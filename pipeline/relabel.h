/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relabel rules with the meaning that they have in Prometheus
 * (prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config). Compiled
 * once; applying takes no memory. One thread uses a struct relabel at a time. Callers keep the
 * result per label set: rules depend on nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/label_set.h"

enum relabel_action {
	RELABEL_REPLACE,
	RELABEL_KEEP,
	RELABEL_DROP,
	RELABEL_KEEPEQUAL,
	RELABEL_DROPEQUAL,
	RELABEL_HASHMOD,
	RELABEL_LABELMAP,
	RELABEL_LABELDROP,
	RELABEL_LABELKEEP,
	RELABEL_LOWERCASE,
	RELABEL_UPPERCASE,
	RELABEL_ACTION_N,
};

/* As written; NULL and 0 stand for what was not given. */
struct relabel_rule {
	enum relabel_action action;
	const char *const *source_labels;
	size_t n_source_labels;
	const char *separator;	  /* ";" */
	const char *regex;	  /* "(.*)" */
	const char *target_label; /* of replace: may hold $1, ${1}, ${name} */
	const char *replacement;  /* "$1" */
	uint64_t modulus;
};

/* What of a rule is off. */
enum relabel_field {
	RELABEL_FIELD_RULE, /* something is missing */
	RELABEL_FIELD_SOURCE_LABELS,
	RELABEL_FIELD_SEPARATOR,
	RELABEL_FIELD_REGEX,
	RELABEL_FIELD_TARGET_LABEL,
	RELABEL_FIELD_REPLACEMENT,
	RELABEL_FIELD_MODULUS,
};

struct relabel;

/* "replace", … */
const char *relabel_action_name(enum relabel_action action);
/* As it is called in a rule: "source_labels", …; "rule" for RELABEL_FIELD_RULE. */
const char *relabel_field_name(enum relabel_field field);

struct relabel *relabel_new(void);
void relabel_free(struct relabel *relabel);
/* Copies what it needs. ERROR_USAGE; *field_out says where, and the rule is not added. */
struct error *relabel_add(struct relabel *relabel, const struct relabel_rule *rule,
			  enum relabel_field *field_out) MUST_USE;
size_t relabel_n_rules(const struct relabel *relabel);

enum relabel_verdict {
	RELABEL_KEPT,
	RELABEL_DROPPED,
	RELABEL_LIMIT, /* too costly or too large: what the labels are now is not what was meant */
};

/* Labels that begin with "__" stay: label_set_drop_meta. */
enum relabel_verdict relabel_apply(struct relabel *relabel, struct label_set *set);
/* One rule alone, for explanations. */
enum relabel_verdict relabel_apply_rule(struct relabel *relabel, size_t rule,
					struct label_set *set);
