/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters are decided once for each location and each label set, so that a sample costs a walk up
 * its stack and no comparison of texts.
 */
#include "pipeline/report_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "pipeline/pattern.h"

static const char function_key[] = "function";
enum { NAME_BYTES = 512, MAX_KEYS = 64, NO_GROUP = 0 };

/* What the filters say of one location, and the names of its visible frames. */
struct place {
	uint32_t first; /* into names */
	uint32_t n;
	bool is_focused;
	bool is_ignored;
};

struct names {
	uint32_t *items;
	uint32_t n;
	uint32_t capacity;
};

/* One tagfocus option. */
struct tag_filter {
	char *key;
	struct pattern *pattern;
	int64_t low, high;
	bool is_number;
};

struct maker {
	const struct profile *profile;
	struct report_table *table;
	uint32_t column;
	struct pattern *focus, *ignore, *hide;
	struct tag_filter *tags;
	uint32_t n_tags;
	struct place *places; /* by location */
	struct names names;
	uint8_t *is_set_kept;	/* by label set */
	uint32_t *group_of_set; /* by label set */
	struct intern groups;	/* value strings of each combination, as bytes */
	struct hash_map row_of; /* (group, name) → row */
	struct names seen;	/* names of the sample at hand, each once */
	uint32_t *last_seen;	/* by name string: sample + 1 */
	uint32_t rows_capacity;
};

static uint32_t intern(struct report_table *table, const char *text)
{
	return intern_string(&table->strings, text);
}

static void add_name(struct names *names, uint32_t name)
{
	if (names->n == names->capacity) {
		names->capacity = names->capacity ? names->capacity * 2 : 64;
		names->items = mem_realloc(names->items, names->capacity, sizeof(*names->items));
	}
	names->items[names->n++] = name;
}

/* Options */

static struct error *compile(const char *text, const char *option, struct pattern **out)
{
	*out = NULL;
	if (!text || !*text)
		return NULL;
	return error_wrap(pattern_compile(text, out), "%s", option);
}

static bool parse_number(const char *text, size_t size, int64_t *out)
{
	char copy[32];
	if (!size || size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = 0;
	char *end = NULL;
	errno = 0;
	*out = strtoll(copy, &end, 0);
	return !errno && !*end;
}

/* N, N:M, N: or :M */
static bool parse_range(const char *text, int64_t *low, int64_t *high)
{
	*low = INT64_MIN;
	*high = INT64_MAX;
	const char *colon = strchr(text, ':');
	if (!colon) {
		bool is_number = parse_number(text, strlen(text), low);
		*high = *low;
		return is_number;
	}
	if (!colon[1] && colon == text)
		return false;
	return (colon == text || parse_number(text, (size_t)(colon - text), low)) &&
	       (!colon[1] || parse_number(colon + 1, strlen(colon + 1), high));
}

static struct error *make_tag_filter(const char *text, struct tag_filter *out)
{
	const char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return error_new(ERROR_USAGE, "tagfocus '%s': expected KEY=VALUE", text);
	out->key = mem_copy(text, strlen(text) + 1);
	out->key[equals - text] = 0;
	out->is_number = parse_range(equals + 1, &out->low, &out->high);
	return error_wrap(pattern_compile(equals + 1, &out->pattern), "tagfocus");
}

static struct error *choose_column(struct maker *m, const char *wanted)
{
	const struct profile *profile = m->profile;
	const char *name = wanted;
	if (!name && profile->default_sample_type)
		name = profile_text(profile, profile->default_sample_type);
	uint32_t n = profile->sample_types.n;
	m->column = n ? n - 1 : 0;
	for (uint32_t i = 0; name && i < n; i++) {
		if (!strcmp(profile_text(profile, profile->sample_types.items[i].type), name)) {
			m->column = i;
			return NULL;
		}
	}
	if (!wanted)
		return NULL;
	CLEANUP(buf_fini) struct buf list;
	buf_init(&list, 1 << 16);
	struct error *err = NULL;
	for (uint32_t i = 0; i < n && !err; i++)
		err = buf_printf(&list, "%s%s", i ? ", " : "",
				 profile_text(profile, profile->sample_types.items[i].type));
	error_free(err); /* a list cut short still says enough */
	return error_new(ERROR_USAGE, "no column '%s'; the profile has: %s", wanted,
			 buf_string(&list));
}

static struct error *take_options(struct maker *m, const struct report_table_options *options)
{
	struct error *err = compile(options->focus, "focus", &m->focus);
	if (!err)
		err = compile(options->ignore, "ignore", &m->ignore);
	if (!err)
		err = compile(options->hide, "hide", &m->hide);
	m->tags = mem_zalloc(options->n_tagfocus, sizeof(*m->tags));
	for (uint32_t i = 0; i < options->n_tagfocus && !err; i++)
		err = make_tag_filter(options->tagfocus[i], &m->tags[m->n_tags++]);
	if (err)
		return err;
	if (options->n_sort > MAX_KEYS)
		return error_new(ERROR_USAGE, "sort: more than %d labels", MAX_KEYS);
	struct report_table *table = m->table;
	table->has_functions = !options->n_sort;
	table->keys = mem_zalloc(options->n_sort, sizeof(*table->keys));
	for (uint32_t i = 0; i < options->n_sort; i++) {
		if (!strcmp(options->sort[i], function_key))
			table->has_functions = true;
		else
			table->keys[table->n_keys++] = intern(table, options->sort[i]);
	}
	return choose_column(m, options->column);
}

/* Locations */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static const char *module_path(const struct profile *profile,
			       const struct profile_location *location)
{
	if (location->mapping == PROFILE_NONE)
		return "";
	return profile_text(profile, profile->mappings.items[location->mapping].filename);
}

/* Where there is no function: the place in the file, which addr2line and its kin take. */
static uint32_t name_without_function(struct maker *m, const struct profile_location *location)
{
	char text[NAME_BYTES];
	const char *module = base_name(module_path(m->profile, location));
	if (location->mapping == PROFILE_NONE || !*module) {
		snprintf(text, sizeof(text), "0x%" PRIx64, location->address);
		return intern(m->table, text);
	}
	const struct profile_mapping *mapping = &m->profile->mappings.items[location->mapping];
	uint64_t offset = location->address - mapping->memory_start + mapping->file_offset;
	/* Cut in front, so that the offset always fits. */
	snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, NAME_BYTES - 32, module, offset);
	return intern(m->table, text);
}

static struct error *matches(const struct pattern *pattern, const char *text, bool *is_match)
{
	if (*is_match || !*text)
		return NULL;
	return pattern_matches(pattern, text, is_match);
}

static const char *function_text(const struct profile *profile, const struct profile_line *line,
				 bool wants_file)
{
	const struct profile_function *function = &profile->functions.items[line->function];
	return profile_text(profile, wants_file ? function->filename : function->name);
}

static struct error *line_matches(const struct maker *m, const struct pattern *pattern,
				  const struct profile_line *line, bool *is_match)
{
	struct error *err = matches(pattern, function_text(m->profile, line, false), is_match);
	return err ? err : matches(pattern, function_text(m->profile, line, true), is_match);
}

/* Whether a frame of the location, or its module, matches. */
static struct error *location_matches(const struct maker *m, const struct pattern *pattern,
				      const struct profile_location *location, bool *is_match)
{
	struct error *err = matches(pattern, module_path(m->profile, location), is_match);
	for (uint32_t i = 0; i < location->n_lines && !err && !*is_match; i++)
		err = line_matches(m, pattern, &m->profile->lines.items[location->first_line + i],
				   is_match);
	return err;
}

static uint32_t name_line(struct maker *m, const struct profile_location *location,
			  const struct profile_line *line)
{
	const char *name = function_text(m->profile, line, false);
	return *name ? intern(m->table, name) : name_without_function(m, location);
}

static struct error *add_frames(struct maker *m, const struct profile_location *location)
{
	bool is_hidden = false;
	struct error *err =
		m->hide ? matches(m->hide, module_path(m->profile, location), &is_hidden) : NULL;
	if (err || is_hidden)
		return err;
	if (!location->n_lines)
		add_name(&m->names, name_without_function(m, location));
	for (uint32_t i = 0; i < location->n_lines; i++) {
		const struct profile_line *line =
			&m->profile->lines.items[location->first_line + i];
		is_hidden = false;
		err = m->hide ? line_matches(m, m->hide, line, &is_hidden) : NULL;
		if (err)
			return err;
		if (!is_hidden)
			add_name(&m->names, name_line(m, location, line));
	}
	return NULL;
}

static struct error *make_places(struct maker *m)
{
	const struct profile *profile = m->profile;
	m->places = mem_zalloc(profile->locations.n, sizeof(*m->places));
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		struct place *place = &m->places[i];
		place->is_focused = !m->focus;
		struct error *err = NULL;
		if (m->focus)
			err = location_matches(m, m->focus, location, &place->is_focused);
		if (!err && m->ignore)
			err = location_matches(m, m->ignore, location, &place->is_ignored);
		place->first = m->names.n;
		if (!err)
			err = add_frames(m, location);
		if (err)
			return err;
		place->n = m->names.n - place->first;
	}
	return NULL;
}

/* Label sets */

static struct error *tag_holds(const struct maker *m, const struct tag_filter *tag,
			       struct profile_label_set set, bool *holds)
{
	for (uint32_t i = 0; i < set.n && !*holds; i++) {
		const struct profile_label label = profile_label_at(m->profile, set.first + i);
		if (strcmp(profile_text(m->profile, label.key), tag->key) != 0)
			continue;
		if (label.is_number) {
			*holds = tag->is_number && label.num >= tag->low && label.num <= tag->high;
			continue;
		}
		struct error *err =
			pattern_matches(tag->pattern, profile_text(m->profile, label.str), holds);
		if (err)
			return err;
	}
	return NULL;
}

static uint32_t label_value(struct maker *m, struct profile_label_set set, uint32_t key)
{
	const char *wanted = report_table_text(m->table, key);
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(m->profile, set.first + i);
		if (strcmp(profile_text(m->profile, label.key), wanted) != 0)
			continue;
		if (!label.is_number)
			return intern(m->table, profile_text(m->profile, label.str));
		char text[32];
		snprintf(text, sizeof(text), "%" PRId64, label.num);
		return intern(m->table, text);
	}
	return 0;
}

/* The set's combination of values; combinations count from 1 in order of appearance. */
static uint32_t group_of(struct maker *m, struct profile_label_set set)
{
	struct report_table *table = m->table;
	if (!table->n_keys)
		return NO_GROUP;
	uint32_t values[MAX_KEYS];
	for (uint32_t i = 0; i < table->n_keys; i++)
		values[i] = label_value(m, set, table->keys[i]);
	uint32_t group =
		intern_bytes(&m->groups, (const char *)values, table->n_keys * sizeof(values[0]));
	if (group > table->n_values) {
		table->values = mem_realloc(table->values, (size_t)group * table->n_keys,
					    sizeof(*table->values));
		memcpy(table->values + (size_t)(group - 1) * table->n_keys, values,
		       table->n_keys * sizeof(values[0]));
		table->n_values = group;
	}
	return group;
}

static struct error *judge_label_sets(struct maker *m)
{
	const struct profile *profile = m->profile;
	m->is_set_kept = mem_zalloc(profile->label_sets.n, sizeof(*m->is_set_kept));
	m->group_of_set = mem_zalloc(profile->label_sets.n, sizeof(*m->group_of_set));
	for (uint32_t i = 0; i < profile->label_sets.n; i++) {
		struct profile_label_set set = profile->label_sets.items[i];
		bool is_kept = true;
		for (uint32_t tag = 0; tag < m->n_tags && is_kept; tag++) {
			bool holds = false;
			struct error *err = tag_holds(m, &m->tags[tag], set, &holds);
			if (err)
				return err;
			is_kept = holds;
		}
		m->is_set_kept[i] = is_kept;
		if (is_kept)
			m->group_of_set[i] = group_of(m, set);
	}
	return NULL;
}

/* Samples */

static struct report_table_row *row_for(struct maker *m, uint32_t group, uint32_t name)
{
	struct report_table *table = m->table;
	bool is_new = false;
	uint64_t *row = hash_map_put(&m->row_of, (uint64_t)group << 32 | name, &is_new);
	if (is_new) {
		if (table->n_rows == m->rows_capacity) {
			m->rows_capacity = m->rows_capacity ? m->rows_capacity * 2 : 64;
			table->rows =
				mem_realloc(table->rows, m->rows_capacity, sizeof(*table->rows));
		}
		*row = table->n_rows;
		table->rows[table->n_rows++] =
			(struct report_table_row){.name = name, .values = group ? group - 1 : 0};
	}
	return &table->rows[*row];
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return b > 0 ? INT64_MAX : INT64_MIN;
	return sum;
}

static int64_t magnitude(int64_t value)
{
	return value == INT64_MIN ? INT64_MAX : value < 0 ? -value : value;
}

/* Visible names of the stack, leaf first and each once; false when the filters drop the sample. */
static bool see_names(struct maker *m, uint32_t sample, uint32_t stack)
{
	const struct profile_stack_node *nodes = m->profile->stacks.items;
	bool is_focused = !m->focus;
	m->seen.n = 0;
	for (uint32_t node = stack; node; node = nodes[node].parent) {
		const struct place *place = &m->places[nodes[node].location];
		if (place->is_ignored)
			return false;
		is_focused |= place->is_focused;
		for (uint32_t i = 0; i < place->n; i++) {
			uint32_t name = m->names.items[place->first + i];
			if (m->last_seen[name] == sample + 1)
				continue;
			m->last_seen[name] = sample + 1;
			add_name(&m->seen, name);
		}
	}
	/* What had frames and has none left was hidden whole. */
	return is_focused && (m->seen.n || !stack);
}

static void add_sample(struct maker *m, uint32_t index)
{
	const struct profile_sample *sample = &m->profile->samples.items[index];
	struct report_table *table = m->table;
	int64_t value = profile_value(m->profile, index, m->column);
	table->total = add(table->total, magnitude(value));
	if (!m->is_set_kept[sample->label_set] || !see_names(m, index, sample->stack))
		return;
	table->kept = add(table->kept, value);
	table->n_samples++;
	uint32_t group = m->group_of_set[sample->label_set];
	if (!table->has_functions) {
		struct report_table_row *row = row_for(m, group, 0);
		row->flat = add(row->flat, value);
		row->cum = row->flat;
		return;
	}
	for (uint32_t i = 0; i < m->seen.n; i++) {
		struct report_table_row *row = row_for(m, group, m->seen.items[i]);
		row->cum = add(row->cum, value);
		if (!i)
			row->flat = add(row->flat, value);
	}
}

/* Order */

struct order {
	const struct report_table *table;
	bool is_by_cum;
};

static int compare_text(const struct report_table *table, uint32_t a, uint32_t b)
{
	return a == b ? 0 : strcmp(report_table_text(table, a), report_table_text(table, b));
}

static int compare_rows(const void *left, const void *right, void *context)
{
	const struct report_table_row *a = left;
	const struct report_table_row *b = right;
	const struct order *order = context;
	const struct report_table *table = order->table;
	int64_t a_value = magnitude(order->is_by_cum ? a->cum : a->flat);
	int64_t b_value = magnitude(order->is_by_cum ? b->cum : b->flat);
	if (a_value != b_value)
		return a_value > b_value ? -1 : 1;
	int by_name = compare_text(table, a->name, b->name);
	for (uint32_t i = 0; i < table->n_keys && !by_name; i++)
		by_name = compare_text(table, table->values[(size_t)a->values * table->n_keys + i],
				       table->values[(size_t)b->values * table->n_keys + i]);
	return by_name;
}

static void maker_fini(struct maker *m)
{
	pattern_free(m->focus);
	pattern_free(m->ignore);
	pattern_free(m->hide);
	for (uint32_t i = 0; i < m->n_tags; i++) {
		mem_free(m->tags[i].key);
		pattern_free(m->tags[i].pattern);
	}
	mem_free(m->tags);
	mem_free(m->places);
	mem_free(m->names.items);
	mem_free(m->is_set_kept);
	mem_free(m->group_of_set);
	mem_free(m->seen.items);
	mem_free(m->last_seen);
	intern_fini(&m->groups);
	hash_map_fini(&m->row_of);
	report_table_free(m->table);
}

static struct report_table *new_table(const struct profile *profile)
{
	struct report_table *table = mem_zalloc(1, sizeof(*table));
	arena_init(&table->arena, 0);
	intern_init(&table->strings, &table->arena);
	table->profile = profile;
	return table;
}

void report_table_free(struct report_table *table)
{
	if (!table)
		return;
	mem_free(table->rows);
	mem_free(table->keys);
	mem_free(table->values);
	intern_fini(&table->strings);
	arena_fini(&table->arena);
	mem_free(table);
}

struct error *report_table_make(const struct profile *profile,
				const struct report_table_options *options,
				struct report_table **out)
{
	CLEANUP(maker_fini) struct maker m = {.profile = profile, .table = new_table(profile)};
	struct report_table *table = m.table;
	intern_init(&m.groups, &table->arena);
	hash_map_init(&m.row_of);
	struct error *err = take_options(&m, options);
	if (!err)
		err = make_places(&m);
	if (!err)
		err = judge_label_sets(&m);
	if (err)
		return err;
	if (profile->sample_types.n) {
		struct profile_value_type type = profile->sample_types.items[m.column];
		table->type = intern(table, profile_text(profile, type.type));
		table->unit = intern(table, profile_text(profile, type.unit));
	}
	m.last_seen = mem_zalloc(table->strings.n, sizeof(*m.last_seen));
	for (uint32_t i = 0; i < profile->samples.n; i++)
		add_sample(&m, i);
	struct order order = {.table = table, .is_by_cum = options->is_by_cum};
	if (table->n_rows)
		qsort_r(table->rows, table->n_rows, sizeof(*table->rows), compare_rows, &order);
	table->n_all_rows = table->n_rows;
	if (options->node_count && table->n_rows > options->node_count)
		table->n_rows = options->node_count;
	*out = TAKE(m.table);
	return NULL;
}
