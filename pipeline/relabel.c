/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/relabel.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pipeline/md5.h"
#include "pipeline/pattern.h"
#include "pipeline/template_text.h"

enum { SCRATCH_BYTES = LABEL_SET_TEXT_BYTES };

static const char *const action_names[RELABEL_ACTION_N] = {
	[RELABEL_REPLACE] = "replace",	   [RELABEL_KEEP] = "keep",
	[RELABEL_DROP] = "drop",	   [RELABEL_KEEPEQUAL] = "keepequal",
	[RELABEL_DROPEQUAL] = "dropequal", [RELABEL_HASHMOD] = "hashmod",
	[RELABEL_LABELMAP] = "labelmap",   [RELABEL_LABELDROP] = "labeldrop",
	[RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LOWERCASE] = "lowercase",
	[RELABEL_UPPERCASE] = "uppercase",
};

static const char default_regex[] = "(.*)";

struct source {
	char *name;
	size_t size;
};

struct rule {
	enum relabel_action action;
	struct source *sources;
	size_t n_sources;
	char *separator;
	size_t separator_size;
	struct pattern *pattern; /* NULL = the default, which matches all */
	struct template_text target, replacement;
	char *target_label;
	size_t target_size;
	uint64_t modulus;
};

struct relabel {
	struct rule *rules;
	size_t n, capacity;
	struct buf joined, expanded, name;
	locale_t locale; /* 0 = ASCII only */
};

const char *relabel_action_name(enum relabel_action action)
{
	return action_names[action];
}

struct relabel *relabel_new(void)
{
	struct relabel *relabel = mem_zalloc(1, sizeof(*relabel));
	buf_init(&relabel->joined, SCRATCH_BYTES);
	buf_init(&relabel->expanded, SCRATCH_BYTES);
	buf_init(&relabel->name, SCRATCH_BYTES);
	return relabel;
}

static void rule_fini(struct rule *rule)
{
	for (size_t i = 0; i < rule->n_sources; i++)
		mem_free(rule->sources[i].name);
	mem_free(rule->sources);
	mem_free(rule->separator);
	mem_free(rule->target_label);
	pattern_free(rule->pattern);
	template_text_fini(&rule->target);
	template_text_fini(&rule->replacement);
	*rule = (struct rule){0};
}

void relabel_free(struct relabel *relabel)
{
	if (!relabel)
		return;
	for (size_t i = 0; i < relabel->n; i++)
		rule_fini(&relabel->rules[i]);
	mem_free(relabel->rules);
	buf_fini(&relabel->joined);
	buf_fini(&relabel->expanded);
	buf_fini(&relabel->name);
	if (relabel->locale)
		freelocale(relabel->locale);
	mem_free(relabel);
}

size_t relabel_n_rules(const struct relabel *relabel)
{
	return relabel->n;
}

/* --- checks --- */

/* Which fields an action may have, as bits 1 << enum relabel_field, and whether it needs a target.
 */
enum {
	SOURCE_LABELS = 1 << RELABEL_FIELD_SOURCE_LABELS,
	SEPARATOR = 1 << RELABEL_FIELD_SEPARATOR,
	REGEX = 1 << RELABEL_FIELD_REGEX,
	TARGET_LABEL = 1 << RELABEL_FIELD_TARGET_LABEL,
	REPLACEMENT = 1 << RELABEL_FIELD_REPLACEMENT,
	MODULUS = 1 << RELABEL_FIELD_MODULUS,
	/* Written but without effect in Prometheus, so taken here too. */
	IDLE = SOURCE_LABELS | SEPARATOR | REGEX | TARGET_LABEL | REPLACEMENT | MODULUS,
};

static const struct action_rules {
	unsigned fields;
	bool needs_target;
} action_rules[RELABEL_ACTION_N] = {
	[RELABEL_REPLACE] = {IDLE, true},
	[RELABEL_KEEP] = {IDLE, false},
	[RELABEL_DROP] = {IDLE, false},
	[RELABEL_KEEPEQUAL] = {SOURCE_LABELS | TARGET_LABEL, true},
	[RELABEL_DROPEQUAL] = {SOURCE_LABELS | TARGET_LABEL, true},
	[RELABEL_HASHMOD] = {IDLE, true},
	[RELABEL_LABELMAP] = {IDLE, false},
	[RELABEL_LABELDROP] = {REGEX, false},
	[RELABEL_LABELKEEP] = {REGEX, false},
	[RELABEL_LOWERCASE] = {IDLE & ~REPLACEMENT, true},
	[RELABEL_UPPERCASE] = {IDLE & ~REPLACEMENT, true},
};

static const char *const field_names[] = {
	[RELABEL_FIELD_RULE] = "rule",
	[RELABEL_FIELD_SOURCE_LABELS] = "source_labels",
	[RELABEL_FIELD_SEPARATOR] = "separator",
	[RELABEL_FIELD_REGEX] = "regex",
	[RELABEL_FIELD_TARGET_LABEL] = "target_label",
	[RELABEL_FIELD_REPLACEMENT] = "replacement",
	[RELABEL_FIELD_MODULUS] = "modulus",
};

const char *relabel_field_name(enum relabel_field field)
{
	return field_names[field];
}

/* Fields that differ from what stands for "not given". */
static unsigned given_fields(const struct relabel_rule *rule)
{
	unsigned given = 0;
	if (rule->n_source_labels)
		given |= SOURCE_LABELS;
	if (rule->separator && strcmp(rule->separator, ";") != 0)
		given |= SEPARATOR;
	if (rule->regex && strcmp(rule->regex, default_regex) != 0)
		given |= REGEX;
	if (rule->target_label && rule->target_label[0])
		given |= TARGET_LABEL;
	if (rule->replacement && strcmp(rule->replacement, "$1") != 0)
		given |= REPLACEMENT;
	if (rule->modulus)
		given |= MODULUS;
	return given;
}

static struct error *check_fields(const struct relabel_rule *rule, enum relabel_field *field)
{
	const char *action = action_names[rule->action];
	const struct action_rules *allowed = &action_rules[rule->action];
	unsigned given = given_fields(rule);
	for (unsigned i = RELABEL_FIELD_SOURCE_LABELS; i <= RELABEL_FIELD_MODULUS; i++) {
		if (!(given & ~allowed->fields & 1u << i))
			continue;
		*field = (enum relabel_field)i;
		return error_new(ERROR_USAGE, "action %s takes no %s", action, field_names[i]);
	}
	*field = RELABEL_FIELD_RULE;
	if (allowed->needs_target && !(given & TARGET_LABEL))
		return error_new(ERROR_USAGE, "action %s needs a target_label", action);
	if (rule->action == RELABEL_HASHMOD && !rule->modulus)
		return error_new(ERROR_USAGE, "action hashmod needs a modulus above 0");
	for (size_t i = 0; i < rule->n_source_labels; i++) {
		const char *name = rule->source_labels[i];
		*field = RELABEL_FIELD_SOURCE_LABELS;
		if (!label_name_is_valid(name, strlen(name)))
			return error_new(ERROR_USAGE, "\"%s\" is no name of a label", name);
	}
	return NULL;
}

/* Names with $1 and the like in them are checked when they have been put together. */
static struct error *check_names(const struct relabel_rule *rule, const struct rule *compiled,
				 enum relabel_field *field)
{
	if (action_rules[rule->action].needs_target) {
		bool may_vary = rule->action == RELABEL_REPLACE;
		*field = RELABEL_FIELD_TARGET_LABEL;
		if (may_vary && compiled->target.has_groups
			    ? !template_text_may_be_name(&compiled->target)
			    : !label_name_is_valid(rule->target_label, strlen(rule->target_label)))
			return error_new(ERROR_USAGE, "\"%s\" is no name of a label",
					 rule->target_label);
	}
	*field = RELABEL_FIELD_REPLACEMENT;
	if (rule->action == RELABEL_LABELMAP && !template_text_may_be_name(&compiled->replacement))
		return error_new(ERROR_USAGE, "\"%s\" gives no name of a label", rule->replacement);
	return NULL;
}

static struct error *compile(const struct relabel_rule *rule, struct rule *compiled,
			     enum relabel_field *field)
{
	struct error *err = check_fields(rule, field);
	if (err)
		return err;
	compiled->action = rule->action;
	compiled->modulus = rule->modulus;
	const char *regex = rule->regex ? rule->regex : default_regex;
	*field = RELABEL_FIELD_REGEX;
	err = pattern_compile_whole(regex, &compiled->pattern);
	if (err)
		return err;
	const char *target = rule->target_label ? rule->target_label : "";
	template_text_init(&compiled->target, target, compiled->pattern);
	template_text_init(&compiled->replacement, rule->replacement ? rule->replacement : "$1",
			   compiled->pattern);
	err = check_names(rule, compiled, field);
	if (err)
		return err;
	compiled->target_label = mem_copy_string(target);
	compiled->target_size = strlen(target);
	compiled->separator = mem_copy_string(rule->separator ? rule->separator : ";");
	compiled->separator_size = strlen(compiled->separator);
	compiled->sources = mem_zalloc(rule->n_source_labels, sizeof(struct source));
	compiled->n_sources = rule->n_source_labels;
	for (size_t i = 0; i < rule->n_source_labels; i++) {
		compiled->sources[i].name = mem_copy_string(rule->source_labels[i]);
		compiled->sources[i].size = strlen(rule->source_labels[i]);
	}
	/* Most rules have it, and it needs no matching. */
	if (strcmp(regex, default_regex) == 0) {
		pattern_free(compiled->pattern);
		compiled->pattern = NULL;
	}
	return NULL;
}

struct error *relabel_add(struct relabel *relabel, const struct relabel_rule *rule,
			  enum relabel_field *field_out)
{
	struct rule compiled = {0};
	struct error *err = compile(rule, &compiled, field_out);
	if (err) {
		rule_fini(&compiled);
		return err;
	}
	bool is_case = rule->action == RELABEL_LOWERCASE || rule->action == RELABEL_UPPERCASE;
	if (is_case && !relabel->locale)
		relabel->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (relabel->n == relabel->capacity) {
		relabel->capacity = relabel->capacity ? 2 * relabel->capacity : 8;
		relabel->rules =
			mem_realloc(relabel->rules, relabel->capacity, sizeof(*relabel->rules));
	}
	relabel->rules[relabel->n++] = compiled;
	return NULL;
}

/* --- application --- */

struct text {
	const char *bytes;
	size_t n;
};

static enum relabel_verdict limit(struct error *err)
{
	error_free(err);
	return RELABEL_LIMIT;
}

/* The values of the source labels with separators between them. */
static struct error *join(struct relabel *relabel, const struct rule *rule,
			  const struct label_set *set, struct text *out)
{
	*out = (struct text){"", 0};
	if (rule->n_sources == 1) {
		const struct label *label =
			label_set_find(set, rule->sources[0].name, rule->sources[0].size);
		if (label)
			*out = (struct text){label->value, label->value_size};
		return NULL;
	}
	buf_clear(&relabel->joined);
	for (size_t i = 0; i < rule->n_sources; i++) {
		struct error *err =
			i ? buf_append(&relabel->joined, rule->separator, rule->separator_size)
			  : NULL;
		const struct label *label =
			label_set_find(set, rule->sources[i].name, rule->sources[i].size);
		if (!err && label)
			err = buf_append(&relabel->joined, label->value, label->value_size);
		if (err)
			return err;
	}
	if (relabel->joined.size)
		*out = (struct text){(const char *)relabel->joined.data, relabel->joined.size};
	return NULL;
}

/* *places_out is NULL when it does not match; whole has room for two groups. */
static struct error *match(const struct rule *rule, struct text text, size_t whole[4],
			   const size_t **places_out)
{
	if (rule->pattern)
		return pattern_capture(rule->pattern, text.bytes, text.n, places_out);
	whole[0] = whole[2] = 0;
	whole[1] = whole[3] = text.n;
	*places_out = whole;
	return NULL;
}

static void put(struct label_set *set, const struct rule *rule, const char *value, size_t n)
{
	label_set_put(set, rule->target_label, rule->target_size, value, n);
}

static enum relabel_verdict replace(struct relabel *relabel, const struct rule *rule,
				    struct text value, struct label_set *set)
{
	size_t whole[4];
	const size_t *places;
	struct error *err = match(rule, value, whole, &places);
	if (err)
		return limit(err);
	if (!places)
		return RELABEL_KEPT;
	err = template_text_expand(&rule->target, value.bytes, places, &relabel->name);
	if (!err)
		err = template_text_expand(&rule->replacement, value.bytes, places,
					   &relabel->expanded);
	if (err)
		return limit(err);
	const char *name = (const char *)relabel->name.data;
	if (label_name_is_valid(name, relabel->name.size))
		label_set_put(set, name, relabel->name.size, buf_string(&relabel->expanded),
			      relabel->expanded.size);
	return RELABEL_KEPT;
}

static enum relabel_verdict filter(const struct rule *rule, struct text value)
{
	size_t whole[4];
	const size_t *places;
	struct error *err = match(rule, value, whole, &places);
	if (err)
		return limit(err);
	return (places != NULL) == (rule->action == RELABEL_KEEP) ? RELABEL_KEPT : RELABEL_DROPPED;
}

static enum relabel_verdict compare(const struct rule *rule, struct text value,
				    const struct label_set *set)
{
	const struct label *label = label_set_find(set, rule->target_label, rule->target_size);
	size_t n = label ? label->value_size : 0;
	bool is_equal = n == value.n && (n == 0 || memcmp(label->value, value.bytes, n) == 0);
	return is_equal == (rule->action == RELABEL_KEEPEQUAL) ? RELABEL_KEPT : RELABEL_DROPPED;
}

static void put_hash(const struct rule *rule, struct text value, struct label_set *set)
{
	uint8_t digest[MD5_BYTES];
	md5_digest(value.bytes, value.n, digest);
	uint64_t last = 0;
	for (size_t i = MD5_BYTES - 8; i < MD5_BYTES; i++)
		last = last << 8 | digest[i];
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRIu64, last % rule->modulus);
	put(set, rule, text, (size_t)n);
}

/* labelmap, labeldrop and labelkeep see the labels as they were before the rule. */
static enum relabel_verdict change_names(struct relabel *relabel, const struct rule *rule,
					 struct label_set *set)
{
	struct label before[LABEL_SET_MAX];
	uint32_t n = set->n;
	memcpy(before, set->labels, n * sizeof(*before));
	for (uint32_t i = 0; i < n; i++) {
		const struct label *label = &before[i];
		size_t whole[4];
		const size_t *places;
		struct error *err =
			match(rule, (struct text){label->name, label->name_size}, whole, &places);
		if (err)
			return limit(err);
		if (rule->action != RELABEL_LABELMAP) {
			if ((places != NULL) == (rule->action == RELABEL_LABELDROP))
				label_set_delete(set, label->name, label->name_size);
			continue;
		}
		if (!places)
			continue;
		err = template_text_expand(&rule->replacement, label->name, places, &relabel->name);
		if (err)
			return limit(err);
		const char *name = (const char *)relabel->name.data;
		if (label_name_is_valid(name, relabel->name.size))
			label_set_put(set, name, relabel->name.size, label->value,
				      label->value_size);
	}
	return RELABEL_KEPT;
}

/* --- case --- */

/* A character of well-formed UTF-8 at p: its length, 0 for anything else. */
static size_t decode(const unsigned char *p, size_t n, uint32_t *out)
{
	size_t length = p[0] < 0x80   ? 1
			: p[0] < 0xc2 ? 0
			: p[0] < 0xe0 ? 2
			: p[0] < 0xf0 ? 3
			: p[0] < 0xf5 ? 4
				      : 0;
	if (length == 0 || length > n)
		return 0;
	uint32_t c = length == 1 ? p[0] : p[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	*out = c;
	return length;
}

static size_t encode(uint32_t c, unsigned char out[4])
{
	if (c < 0x80) {
		out[0] = (unsigned char)c;
		return 1;
	}
	size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = length - 1; i > 0; i--, c >>= 6)
		out[i] = (unsigned char)(0x80 | (c & 0x3f));
	out[0] = (unsigned char)(0xf00u >> length | c);
	return length;
}

static enum relabel_verdict change_case(struct relabel *relabel, const struct rule *rule,
					struct text value, struct label_set *set)
{
	bool is_lower = rule->action == RELABEL_LOWERCASE;
	buf_clear(&relabel->expanded);
	for (size_t at = 0; at < value.n;) {
		const unsigned char *p = (const unsigned char *)value.bytes + at;
		uint32_t c;
		unsigned char out[4] = {*p};
		size_t n_out = 1;
		size_t length = decode(p, value.n - at, &c);
		if (length == 1)
			out[0] = (unsigned char)(is_lower ? tolower(*p) : toupper(*p));
		else if (length > 1 && relabel->locale)
			n_out = encode((uint32_t)(is_lower ? towlower_l(c, relabel->locale)
							   : towupper_l(c, relabel->locale)),
				       out);
		else if (length > 1)
			memcpy(out, p, n_out = length);
		struct error *err = buf_append(&relabel->expanded, out, n_out);
		if (err)
			return limit(err);
		at += length ? length : 1;
	}
	put(set, rule, (const char *)relabel->expanded.data, relabel->expanded.size);
	return RELABEL_KEPT;
}

enum relabel_verdict relabel_apply_rule(struct relabel *relabel, size_t index,
					struct label_set *set)
{
	const struct rule *rule = &relabel->rules[index];
	struct text value;
	struct error *err = join(relabel, rule, set, &value);
	if (err)
		return limit(err);
	enum relabel_verdict verdict = RELABEL_KEPT;
	switch (rule->action) {
	case RELABEL_REPLACE:
		verdict = replace(relabel, rule, value, set);
		break;
	case RELABEL_KEEP:
	case RELABEL_DROP:
		verdict = filter(rule, value);
		break;
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		verdict = compare(rule, value, set);
		break;
	case RELABEL_HASHMOD:
		put_hash(rule, value, set);
		break;
	case RELABEL_LABELMAP:
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		verdict = change_names(relabel, rule, set);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		verdict = change_case(relabel, rule, value, set);
		break;
	case RELABEL_ACTION_N:
		break;
	}
	return set->is_full ? RELABEL_LIMIT : verdict;
}

enum relabel_verdict relabel_apply(struct relabel *relabel, struct label_set *set)
{
	for (size_t i = 0; i < relabel->n; i++) {
		enum relabel_verdict verdict = relabel_apply_rule(relabel, i, set);
		if (verdict != RELABEL_KEPT)
			return verdict;
	}
	return RELABEL_KEPT;
}
