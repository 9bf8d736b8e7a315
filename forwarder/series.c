/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile is copied, changed in place, and copied again: the second copy adds up samples that
 * became equal and leaves behind what is no longer referred to.
 */
#include "forwarder/series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/series_name.h"
#include "proto/profile_copy.h"

enum {
	NUMBER_TEXT_BYTES = 24,
	TYPE_BYTES = 256,
	CLASH_ROOM = 32, /* for "exported_" and a number */
};

static struct profile *copy_whole(const struct profile *from)
{
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, from);
	profile_copy_begin(&copy);
	for (uint32_t i = 0; i < from->samples.n; i++)
		profile_copy_sample(&copy, i, NULL, 0);
	return profile_copy_end(&copy);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static bool is_dropped(const struct series_rules *rules, const char *name)
{
	if (!strncmp(name, "__", 2) || is_among(name, rules->dropped, rules->n_dropped))
		return true;
	for (size_t i = 0; rules->withheld && rules->withheld[i]; i++) {
		if (!strcmp(name, rules->withheld[i]))
			return true;
	}
	return false;
}

static void make_name(const struct series_rules *rules, const char *name,
		      char out[SERIES_MAX_NAME_BYTES])
{
	if (rules->translate)
		name = rules->translate(name);
	/* Leaves room for what a clash puts around it. */
	size_t n = SERIES_MAX_NAME_BYTES - CLASH_ROOM;
	if (rules->is_flat || !*name)
		series_name_make(name, out, n);
	else
		series_name_make_value(name, out, n);
}

/* Capped and valid; lives in the arena. */
static const char *make_value(const struct series_rules *rules, struct arena *arena,
			      const char *value)
{
	size_t n = strlen(value) * 3 + 1; /* as repaired text grows */
	if (rules->max_value_bytes && n > rules->max_value_bytes)
		n = (size_t)rules->max_value_bytes + 1;
	if (n < 2)
		n = 2;
	char *out = arena_alloc(arena, n);
	series_name_make_value(value, out, n);
	return out;
}

static uint32_t max_labels(const struct series_rules *rules)
{
	return rules->max_labels ? rules->max_labels : SERIES_MAX_LABELS;
}

static bool has_label(const struct series *series, const char *name)
{
	for (size_t i = 0; i < series->n_labels; i++) {
		if (!strcmp(series->labels[i].key, name))
			return true;
	}
	return false;
}

static void take_labels(struct series *series, const struct series_rules *rules,
			const struct outgoing_profile *outgoing)
{
	char name[SERIES_MAX_NAME_BYTES];
	series->labels = mem_zalloc(outgoing->n_labels, sizeof(*series->labels));
	for (size_t i = 0; i < outgoing->n_labels; i++) {
		const struct key_value *label = &outgoing->labels[i];
		if (series->n_labels == max_labels(rules))
			break;
		if (!strncmp(label->key, "__", 2) || !*label->value)
			continue;
		make_name(rules, label->key, name);
		if (has_label(series, name))
			continue;
		series->labels[series->n_labels++] = (struct key_value){
			.key = arena_copy_string(&series->arena, name, strlen(name)),
			.value = make_value(rules, &series->arena, label->value)};
	}
}

/* The labels of one sample while they are made. */
struct label_maker {
	const struct series_rules *rules;
	const struct series *series;
	struct profile *profile;
	struct profile_label labels[SERIES_MAX_LABELS];
	uint32_t n, max;
};

static bool is_same_value(const struct profile_label *a, const struct profile_label *b)
{
	return a->is_number == b->is_number && a->str == b->str && a->num == b->num &&
	       a->unit == b->unit;
}

/* Whether name is taken; *is_known_out: with this very value. */
static bool is_taken(const struct label_maker *maker, const char *name,
		     const struct profile_label *label, bool *is_known_out)
{
	*is_known_out = false;
	for (uint32_t i = 0; i < maker->n; i++) {
		if (strcmp(profile_text(maker->profile, maker->labels[i].key), name) != 0)
			continue;
		*is_known_out = is_same_value(&maker->labels[i], label);
		return true;
	}
	for (size_t i = 0; maker->rules->is_flat && i < maker->series->n_labels; i++) {
		if (strcmp(maker->series->labels[i].key, name) != 0)
			continue;
		*is_known_out = !strcmp(maker->series->labels[i].value,
					profile_text(maker->profile, label->str));
		return true;
	}
	return false;
}

/* A name that is free; false when the label says nothing new. */
static bool find_free_name(const struct label_maker *maker, const struct profile_label *label,
			   char name[SERIES_MAX_NAME_BYTES])
{
	bool is_known;
	if (!is_taken(maker, name, label, &is_known))
		return true;
	char wanted[SERIES_MAX_NAME_BYTES];
	memcpy(wanted, name, SERIES_MAX_NAME_BYTES);
	for (int try = 1; !is_known; try++) {
		if (try == 1)
			snprintf(name, SERIES_MAX_NAME_BYTES, "exported_%.*s",
				 SERIES_MAX_NAME_BYTES - CLASH_ROOM, wanted);
		else
			snprintf(name, SERIES_MAX_NAME_BYTES, "exported_%.*s_%d",
				 SERIES_MAX_NAME_BYTES - CLASH_ROOM, wanted, try);
		if (!is_taken(maker, name, label, &is_known))
			return true;
	}
	return false;
}

/* Sizes and times: what pprof calls numeric tags, where each value is its own. */
static bool is_measure(const char *unit)
{
	static const char *const units[] = {
		"bytes",	"byte", "b",	       "kb", "kilobyte",     "mb",
		"gb",		"ns",	"nanoseconds", "us", "microseconds", "ms",
		"milliseconds", "s",	"seconds",
	};
	return is_among(unit, units, ARRAY_LEN(units));
}

static void make_flat(struct label_maker *maker, struct profile_label *label)
{
	struct profile *profile = maker->profile;
	char number[NUMBER_TEXT_BYTES];
	const char *text = profile_text(profile, label->str);
	if (label->is_number) {
		snprintf(number, sizeof(number), "%lld", (long long)label->num);
		text = number;
	}
	uint32_t max = maker->rules->max_value_bytes;
	uint32_t str;
	if (max && strlen(text) > max) {
		CLEANUP(cleanup_mem) char *cut = mem_alloc((size_t)max + 1);
		series_name_make_value(text, cut, (size_t)max + 1);
		str = profile_string(profile, cut);
	} else {
		str = profile_string(profile, text);
	}
	*label = (struct profile_label){.key = label->key, .str = str};
}

static void make_label(struct label_maker *maker, struct profile_label label)
{
	const struct series_rules *rules = maker->rules;
	const char *key = profile_text(maker->profile, label.key);
	if (maker->n == maker->max || is_dropped(rules, key))
		return;
	if (label.is_number && rules->drops_measures &&
	    is_measure(profile_text(maker->profile, label.unit)))
		return;
	if (rules->is_flat)
		make_flat(maker, &label);
	if (label.unit == label.key) /* as pprof has it where there is none */
		label.unit = 0;
	if (!label.is_number && !label.str)
		return;
	char name[SERIES_MAX_NAME_BYTES];
	make_name(rules, key, name);
	if (!find_free_name(maker, &label, name))
		return;
	label.key = profile_string(maker->profile, name);
	maker->labels[maker->n++] = label;
}

static int compare_labels(const void *a, const void *b, void *context)
{
	const struct profile *profile = context;
	const struct profile_label *x = a, *y = b;
	return strcmp(profile_text(profile, x->key), profile_text(profile, y->key));
}

/* In place: no set grows. */
static void make_labels(struct series *series, const struct series_rules *rules)
{
	struct profile *profile = series->profile;
	uint32_t max = max_labels(rules);
	if (max > SERIES_MAX_LABELS)
		max = SERIES_MAX_LABELS;
	if (rules->is_flat)
		max = series->n_labels < max ? max - (uint32_t)series->n_labels : 0;
	struct label_maker maker = {
		.rules = rules, .series = series, .profile = profile, .max = max};
	for (uint32_t i = 1; i < profile->label_sets.n; i++) {
		struct profile_label_set set = profile->label_sets.items[i];
		maker.n = 0;
		for (uint32_t k = 0; k < set.n; k++)
			make_label(&maker, profile_label_at(profile, set.first + k));
		qsort_r(maker.labels, maker.n, sizeof(maker.labels[0]), compare_labels, profile);
		profile->label_sets.items[i].n = maker.n;
		for (uint32_t k = 0; k < maker.n; k++)
			profile_set_label(profile, set.first + k, &maker.labels[k]);
	}
}

static bool is_column_taken(const struct profile *profile, uint32_t column,
			    const struct profile_value_type *type)
{
	for (uint32_t i = 0; i < column; i++) {
		const struct profile_value_type *other = &profile->sample_types.items[i];
		if (other->type == type->type && other->unit == type->unit)
			return true;
	}
	return false;
}

static struct profile_value_type make_type(struct profile *profile, struct profile_value_type type)
{
	char text[TYPE_BYTES];
	series_name_make_type(profile_text(profile, type.type), text, sizeof(text));
	type.type = profile_string(profile, text);
	series_name_make_type(profile_text(profile, type.unit), text, sizeof(text));
	type.unit = profile_string(profile, text);
	return type;
}

static void make_types(struct profile *profile)
{
	uint32_t n = profile->sample_types.n;
	uint32_t main_column = n ? n - 1 : 0;
	for (uint32_t i = n; i-- > 0 && profile->default_sample_type;) {
		if (profile->sample_types.items[i].type == profile->default_sample_type)
			main_column = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profile_value_type type = make_type(profile, profile->sample_types.items[i]);
		const struct profile_value_type first = type;
		for (uint32_t try = 2; is_column_taken(profile, i, &type); try++) {
			char text[TYPE_BYTES + CLASH_ROOM];
			snprintf(text, sizeof(text), "%s_%u", profile_text(profile, first.type),
				 try);
			type.type = profile_string(profile, text);
		}
		profile->sample_types.items[i] = type;
	}
	if (profile->default_sample_type && n)
		profile->default_sample_type = profile->sample_types.items[main_column].type;
	if (profile->period_type.type || profile->period_type.unit)
		profile->period_type = make_type(profile, profile->period_type);
	else if (n)
		profile->period_type = profile->sample_types.items[main_column];
}

static uint32_t add_named_location(struct profile *profile, const char *name)
{
	uint32_t string = profile_string(profile, name);
	const struct profile_function function = {.name = string, .system_name = string};
	const struct profile_line line = {.function = profile_function(profile, &function)};
	uint32_t location = profile_add_location(profile, PROFILE_NONE, 0);
	profile_set_lines(profile, location, &line, 1);
	return location;
}

/*
 * Too deep stacks keep both ends: the root, which the graph is drawn from, and the leaf, where time
 * was spent.
 */
static void cut_stacks(struct profile *profile, uint32_t max_depth)
{
	CLEANUP(cleanup_mem) uint32_t *depth = mem_zalloc(profile->stacks.n, sizeof(*depth));
	uint32_t deepest = 0;
	for (uint32_t i = 1; i < profile->stacks.n; i++) {
		depth[i] = depth[profile->stacks.items[i].parent] + 1;
		deepest = depth[i] > deepest ? depth[i] : deepest;
	}
	if (deepest <= max_depth)
		return;
	uint32_t mark = add_named_location(profile, SERIES_TRUNCATED);
	CLEANUP(cleanup_mem) uint32_t *kept = mem_zalloc(max_depth, sizeof(*kept)); /* leaf first */
	uint32_t n_leaf = max_depth / 2, n_root = max_depth - n_leaf - 1;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		uint32_t node = profile->samples.items[i].stack;
		uint32_t n = 0;
		if (depth[node] <= max_depth)
			continue;
		for (; n < n_leaf; node = profile->stacks.items[node].parent)
			kept[n++] = profile->stacks.items[node].location;
		kept[n++] = mark;
		while (depth[node] > n_root)
			node = profile->stacks.items[node].parent;
		for (; node; node = profile->stacks.items[node].parent)
			kept[n++] = profile->stacks.items[node].location;
		profile->samples.items[i].stack = profile_stack(profile, kept, n);
	}
}

static void cut_string(struct profile *profile, uint32_t *string, uint32_t max)
{
	const struct intern_entry *entry = &profile->strings.entries[*string];
	if (entry->size <= max)
		return;
	CLEANUP(cleanup_mem) char *cut = mem_alloc((size_t)max + 1);
	series_name_make_value(entry->text, cut, (size_t)max + 1);
	*string = profile_string(profile, cut);
}

static void cut_strings(struct profile *profile, uint32_t max)
{
	for (uint32_t i = 0; i < profile->functions.n; i++) {
		struct profile_function *function = &profile->functions.items[i];
		cut_string(profile, &function->name, max);
		cut_string(profile, &function->system_name, max);
		cut_string(profile, &function->filename, max);
	}
	for (uint32_t i = 0; i < profile->mappings.n; i++) {
		cut_string(profile, &profile->mappings.items[i].filename, max);
		cut_string(profile, &profile->mappings.items[i].build_id, max);
	}
}

static void give_places(struct profile *profile)
{
	uint32_t none = PROFILE_NONE, unnamed = PROFILE_NONE;
	uint32_t n = profile->locations.n;
	for (uint32_t i = 0; i < n; i++) {
		struct profile_location *location = &profile->locations.items[i];
		if (location->mapping == PROFILE_NONE) {
			if (none == PROFILE_NONE)
				none = profile_add_mapping(profile, &(struct profile_mapping){0});
			location->mapping = none;
		}
		if (location->n_lines || location->address)
			continue;
		if (unnamed == PROFILE_NONE) {
			uint32_t named = add_named_location(profile, "[unknown]");
			unnamed = profile->locations.items[named].first_line;
		}
		profile->locations.items[i].first_line = unnamed;
		profile->locations.items[i].n_lines = 1;
	}
	profile_set_symbol_flags(profile);
}

void series_init(struct series *series, const struct series_rules *rules,
		 const struct outgoing_profile *outgoing)
{
	char name[SERIES_MAX_NAME_BYTES];
	*series = (struct series){0};
	arena_init(&series->arena, 0);
	series_name_make(outgoing->name && *outgoing->name ? outgoing->name : "profile", name,
			 sizeof(name));
	series->name = arena_copy_string(&series->arena, name, strlen(name));
	take_labels(series, rules, outgoing);
	struct profile *changed = copy_whole(outgoing->profile);
	series->profile = changed;
	make_labels(series, rules);
	if (!rules->keeps_types)
		make_types(changed);
	if (rules->max_depth)
		cut_stacks(changed, rules->max_depth);
	if (rules->max_string_bytes)
		cut_strings(changed, rules->max_string_bytes);
	if (rules->needs_places)
		give_places(changed);
	series->profile = copy_whole(changed);
	profile_free(changed);
}

void series_fini(struct series *series)
{
	profile_free(series->profile);
	mem_free(series->labels);
	arena_fini(&series->arena);
	*series = (struct series){0};
}

struct series_rules series_rules_make(const struct exporter_config *config,
				      const char *const *kind_drops, size_t n_kind_drops)
{
	if (config->drop_labels)
		return (struct series_rules){.dropped = config->drop_labels,
					     .n_dropped = config->n_drop_labels};
	return (struct series_rules){.dropped = kind_drops, .n_dropped = n_kind_drops};
}

uint64_t series_count_samples(const struct profile *profile)
{
	if (!profile->sample_types.n ||
	    strcmp(profile_text(profile, profile->sample_types.items[0].unit), "count") != 0)
		return profile->samples.n;
	uint64_t total = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		total += (uint64_t)profile_value(profile, i, 0);
	return total;
}

void series_add_to_summary(struct request_summary *summary, const struct profile *profile)
{
	uint64_t time_ns = profile->time_nanos > 0 ? (uint64_t)profile->time_nanos : 0;
	summary->n_samples += series_count_samples(profile);
	if (!summary->n_profiles || time_ns < summary->first_time_ns)
		summary->first_time_ns = time_ns;
	if (!summary->n_profiles || time_ns > summary->last_time_ns)
		summary->last_time_ns = time_ns;
	summary->n_profiles++;
}

char *series_describe(const char *name, const struct key_value *labels, size_t n_labels)
{
	size_t n = strlen(name) + sizeof("{}");
	for (size_t i = 0; i < n_labels; i++)
		n += strlen(labels[i].key) + strlen(labels[i].value) + strlen(",=\"\"");
	char *text = mem_alloc(n);
	size_t used = (size_t)snprintf(text, n, "%s{", name);
	for (size_t i = 0; i < n_labels; i++)
		used += (size_t)snprintf(text + used, n - used, "%s%s=\"%s\"", i ? "," : "",
					 labels[i].key, labels[i].value);
	snprintf(text + used, n - used, "}");
	return text;
}
