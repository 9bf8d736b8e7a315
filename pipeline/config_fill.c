/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_fill.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "pipeline/cli.h"
#include "pipeline/config_schema.h"
#include "pipeline/config_text.h"
#include "pipeline/config_value.h"

enum { PATH_BYTES = 256 };

struct filler {
	struct config *config;
	struct arena *arena;
	struct config_problems *problems;
};

/* What is being filled: a struct of the configuration. */
struct target {
	char *base;
	char path[PATH_BYTES]; /* "receivers.perf", "" at the top level */
};

static void make_path(const struct target *target, const char *name, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%.150s%s%.100s", target->path, target->path[0] ? "." : "", name);
}

static void *zalloc(struct filler *filler, size_t n, size_t bytes)
{
	/* A list that is there but empty is not NULL. n is bounded by the nodes of the files. */
	void *p = arena_alloc(filler->arena, n ? n * bytes : 1);
	memset(p, 0, n ? n * bytes : 1);
	return p;
}

/* Field, and for lists the count behind it. */
static void put_pointer(const struct config_key *key, const struct target *target, const void *p)
{
	memcpy(target->base + key->offset, &p, sizeof(p));
}

static void put_list(const struct config_key *key, const struct target *target, const void *list,
		     size_t n)
{
	put_pointer(key, target, list);
	memcpy(target->base + key->offset + sizeof(list), &n, sizeof(n));
}

/* --- errors --- */

static void unexpected(struct filler *filler, const struct config_key *key,
		       const struct config_node *node, const char *path)
{
	char shown[CONFIG_TEXT_BYTES];
	char expected[CONFIG_TEXT_BYTES];
	config_text_show(key, node, shown, sizeof(shown));
	config_text_expected(key, expected, sizeof(expected));
	const char *nearest = NULL;
	if (key->choices && node->kind == CONFIG_SCALAR && key->type != CONFIG_TYPE_TEXTS) {
		size_t n = 0;
		while (key->choices[n])
			n++;
		nearest = cli_nearest(node->text, key->choices, n);
	}
	if (nearest)
		config_error_numbered(filler->problems, 202, node->place,
				      "%s is %s, expected %s; did you mean \"%s\"?", path, shown,
				      expected, nearest);
	else
		config_error_numbered(filler->problems, 202, node->place, "%s is %s, expected %s",
				      path, shown, expected);
}

static bool is_secret(const struct config_key *key)
{
	return key->type == CONFIG_TYPE_SECRET || key->type == CONFIG_TYPE_SECRET_MAP;
}

static void hide(struct filler *filler, const struct config_key *key,
		 const struct config_node *node)
{
	bool has_names = key->type == CONFIG_TYPE_SECRET_MAP && node->kind == CONFIG_MAP;
	if (!has_names)
		config_problems_hide(filler->problems, node->place, node->end);
	for (const struct config_node *child = has_names ? node->first : NULL; child;
	     child = child->next)
		config_problems_hide(filler->problems, child->place, child->end);
}

/* The value may be a secret under a mistyped key. */
static void hide_beside_secrets(struct filler *filler, const struct config_key *keys,
				const struct config_node *node)
{
	for (; keys->name; keys++) {
		if (is_secret(keys))
			config_problems_hide(filler->problems, node->place, node->end);
	}
}

/* How many maps below these keys have that name; where the last one stands. */
static unsigned find_inside(const struct config_key *keys, const char *name,
			    const struct target *target, char where[PATH_BYTES])
{
	unsigned n = 0;
	for (const struct config_key *key = keys; key->name; key++) {
		if (!key->keys)
			continue;
		struct target inner = {0};
		make_path(target, key->name, inner.path);
		if (config_schema_find(key->keys, name)) {
			memcpy(where, inner.path, PATH_BYTES);
			n++;
		}
		n += find_inside(key->keys, name, &inner, where);
	}
	return n;
}

static void unknown(struct filler *filler, const struct config_key *keys,
		    const struct config_node *node, const struct target *target,
		    const char *nearest)
{
	char where[PATH_BYTES + 32];
	snprintf(where, sizeof(where), "%s%s", target->path[0] ? "in " : "at the top level",
		 target->path);
	hide_beside_secrets(filler, keys, node);
	char place[PATH_BYTES];
	const struct target top = {0};
	bool is_misplaced = find_inside(keys, node->key, target, place) == 1 ||
			    (!nearest && find_inside(config_schema, node->key, &top, place) == 1);
	if (is_misplaced)
		config_error_numbered(filler->problems, 201, node->key_place,
				      "unknown key \"%s\" %s; it belongs in %s", node->key, where,
				      place);
	else if (nearest)
		config_error_numbered(filler->problems, 201, node->key_place,
				      "unknown key \"%s\" %s; did you mean \"%s\"?", node->key,
				      where, nearest);
	else
		config_error_numbered(filler->problems, 201, node->key_place,
				      "unknown key \"%s\" %s", node->key, where);
}

/* --- scalars --- */

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

static bool is_choice(const struct config_key *key, const char *text, unsigned *index_out)
{
	for (unsigned i = 0; key->choices && key->choices[i]; i++) {
		if (strcmp(key->choices[i], text) == 0 ||
		    (key->flags & CONFIG_ANY_CASE && strcasecmp(key->choices[i], text) == 0)) {
			*index_out = i;
			return true;
		}
	}
	return false;
}

static bool is_in_bounds(const struct config_key *key, uint64_t value)
{
	bool may_be_zero = key->fallback && strcmp(key->fallback, "0") == 0;
	return key->max == 0 || (value >= key->min && value <= key->max) ||
	       (value == 0 && may_be_zero);
}

static bool put_text(const struct config_key *key, const struct target *target, const char *text)
{
	unsigned index;
	if (key->type == CONFIG_TYPE_PATH && text[0] != '/')
		return false;
	if (key->choices && !is_choice(key, text, &index))
		return false;
	if (!(key->flags & CONFIG_TEMPLATE) && has_control(text))
		return false;
	put_pointer(key, target, text);
	return true;
}

static bool put_number(const struct config_key *key, const struct target *target, const char *text)
{
	uint64_t value = 0;
	bool is_read = key->type == CONFIG_TYPE_INTEGER	   ? config_value_integer(text, &value)
		       : key->type == CONFIG_TYPE_DURATION ? config_value_duration(text, &value)
							   : config_value_size(text, &value);
	if (!is_read || !is_in_bounds(key, value))
		return false;
	/* Bounds of a field of 32 bits are below 2^32. */
	uint32_t small = (uint32_t)value;
	if (key->bytes == sizeof(small))
		memcpy(target->base + key->offset, &small, sizeof(small));
	else
		memcpy(target->base + key->offset, &value, sizeof(value));
	return true;
}

static bool put_percent(const struct config_key *key, const struct target *target, const char *text)
{
	double percent;
	if (!config_value_percent(text, &percent) || percent < (double)key->min ||
	    percent > (double)key->max)
		return false;
	memcpy(target->base + key->offset, &percent, sizeof(percent));
	return true;
}

static bool put_share(const struct config_key *key, const struct target *target, const char *text)
{
	struct config_share share = {0};
	bool is_percent = config_value_percent(text, &share.percent);
	if (is_percent ? share.percent > (double)key->max : !config_value_size(text, &share.bytes))
		return false;
	memcpy(target->base + key->offset, &share, sizeof(share));
	return true;
}

/* text has to live as long as the configuration. */
static bool put_scalar(const struct config_key *key, const struct target *target, const char *text)
{
	unsigned index;
	bool truth;
	switch (key->type) {
	case CONFIG_TYPE_TEXT:
	case CONFIG_TYPE_PATH:
	case CONFIG_TYPE_SECRET:
		return put_text(key, target, text);
	case CONFIG_TYPE_BOOL:
		if (!config_value_bool(text, &truth))
			return false;
		memcpy(target->base + key->offset, &truth, sizeof(truth));
		return true;
	case CONFIG_TYPE_INTEGER:
	case CONFIG_TYPE_DURATION:
	case CONFIG_TYPE_SIZE:
		return put_number(key, target, text);
	case CONFIG_TYPE_PERCENT:
		return put_percent(key, target, text);
	case CONFIG_TYPE_SHARE:
		return put_share(key, target, text);
	case CONFIG_TYPE_CHOICE:
	case CONFIG_TYPE_VARIANT:
		if (!is_choice(key, text, &index))
			return false;
		memcpy(target->base + key->offset, &index, sizeof(index));
		return true;
	case CONFIG_TYPE_MAP:
	case CONFIG_TYPE_COMPONENTS:
	case CONFIG_TYPE_MAPS:
	case CONFIG_TYPE_TEXTS:
	case CONFIG_TYPE_INTEGERS:
	case CONFIG_TYPE_TEXT_MAP:
	case CONFIG_TYPE_SECRET_MAP:
	case CONFIG_TYPE_INTEGER_MAP:
		break;
	}
	return false;
}

/* "${X}" that nobody replaced, where it cannot have a meaning. */
static bool is_left_over(struct filler *filler, const struct config_key *key,
			 const struct config_node *node, const char *path)
{
	if (!node->has_other_reference || key->flags & CONFIG_TEMPLATE)
		return false;
	config_error_numbered(filler->problems, 205, node->place,
			      "%s holds a reference of no known kind; known are ${env:NAME}, "
			      "${file:/PATH} and ${credential:NAME}",
			      path);
	return true;
}

static bool check_scalar(struct filler *filler, const struct config_key *key,
			 const struct config_node *node, const char *path)
{
	if (node->kind != CONFIG_SCALAR || config_node_is_null(node)) {
		unexpected(filler, key, node, path);
		return false;
	}
	return !node->is_unknown && !is_left_over(filler, key, node, path);
}

static void fill_scalar(struct filler *filler, const struct config_key *key,
			const struct config_node *node, const struct target *target,
			const char *path)
{
	if (check_scalar(filler, key, node, path) && !put_scalar(key, target, node->text))
		unexpected(filler, key, node, path);
}

/* --- lists and maps of scalars --- */

/* One element with the bounds and choices of the list. */
static void fill_element(struct filler *filler, const struct config_key *list,
			 const struct config_node *node, enum config_type type, void *element,
			 size_t bytes, const char *path)
{
	struct config_key key = *list;
	key.type = type;
	key.offset = 0;
	key.bytes = bytes;
	key.fallback = NULL;
	struct target target = {.base = element};
	fill_scalar(filler, &key, node, &target, path);
}

static void fill_list(struct filler *filler, const struct config_key *key,
		      const struct config_node *node, const struct target *target, const char *path)
{
	if (node->kind != CONFIG_LIST) {
		unexpected(filler, key, node, path);
		return;
	}
	bool is_text = key->type == CONFIG_TYPE_TEXTS;
	size_t bytes = is_text ? sizeof(char *) : sizeof(uint32_t);
	char *list = zalloc(filler, node->n, bytes);
	size_t n = 0;
	/* What cannot be read stays "" or 0, so that others need not look for holes. */
	for (size_t i = 0; is_text && i < node->n; i++)
		((const char **)list)[i] = "";
	for (const struct config_node *child = node->first; child; child = child->next)
		fill_element(filler, key, child, is_text ? CONFIG_TYPE_TEXT : CONFIG_TYPE_INTEGER,
			     list + bytes * n++, bytes, path);
	put_list(key, target, list, n);
}

static const char *make_key(struct filler *filler, const struct config_key *key,
			    const struct config_node *node)
{
	size_t n = strlen(node->key);
	char *name = arena_copy_string(filler->arena, node->key, n);
	for (size_t i = 0; i < n && key->flags & CONFIG_LOWER; i++) {
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] = (char)(name[i] + ('a' - 'A'));
	}
	return name;
}

static void fill_pairs(struct filler *filler, const struct config_key *key,
		       const struct config_node *node, const struct target *target,
		       const char *path)
{
	bool is_empty = config_node_is_null(node) && !(key->flags & CONFIG_REQUIRED);
	if (node->kind != CONFIG_MAP && !is_empty) {
		unexpected(filler, key, node, path);
		return;
	}
	bool is_count = key->type == CONFIG_TYPE_INTEGER_MAP;
	struct key_value *pairs = is_count ? NULL : zalloc(filler, node->n, sizeof(*pairs));
	struct config_count *counts = is_count ? zalloc(filler, node->n, sizeof(*counts)) : NULL;
	enum config_type type = is_count			      ? CONFIG_TYPE_INTEGER
				: key->type == CONFIG_TYPE_SECRET_MAP ? CONFIG_TYPE_SECRET
								      : CONFIG_TYPE_TEXT;
	size_t n = 0;
	for (const struct config_node *child = node->first; child; child = child->next, n++) {
		char element[2 * PATH_BYTES];
		snprintf(element, sizeof(element), "%s.%.100s", path, child->key);
		if (key->flags & CONFIG_LABELS &&
		    !label_name_is_valid(child->key, strlen(child->key)))
			config_error_numbered(filler->problems, 202, child->key_place,
					      "\"%s\" is no name of a label: letters, digits and _",
					      child->key);
		if (is_count) {
			counts[n].key = make_key(filler, key, child);
			fill_element(filler, key, child, type, &counts[n].n, sizeof(uint32_t),
				     element);
		} else {
			pairs[n].key = make_key(filler, key, child);
			pairs[n].value = "";
			fill_element(filler, key, child, type, &pairs[n].value, sizeof(char *),
				     element);
		}
	}
	put_list(key, target, is_count ? (void *)counts : (void *)pairs, n);
}

/* --- structs --- */

static void fill_map(struct filler *filler, const struct config_key *keys,
		     const struct config_node *node, const struct target *target);

/* One of several maps, each with a struct of its own. */
static void fill_struct(struct filler *filler, const struct config_key *keys,
			const struct config_key *shown_as, const struct config_node *node,
			char *base, const char *path)
{
	struct target target = {.base = base};
	snprintf(target.path, sizeof(target.path), "%s", path);
	if (node->kind != CONFIG_MAP && !config_node_is_null(node)) {
		unexpected(filler, shown_as, node, path);
		node = NULL;
	}
	fill_map(filler, keys, node, &target);
}

static void fill_maps(struct filler *filler, const struct config_key *key,
		      const struct config_node *node, const struct target *target, const char *path)
{
	static const struct config_key map = {.type = CONFIG_TYPE_MAP};
	if (node->kind != CONFIG_LIST && !config_node_is_null(node)) {
		unexpected(filler, key, node, path);
		return;
	}
	char *list = zalloc(filler, node->n, key->bytes);
	size_t n = 0;
	for (const struct config_node *child = node->first; child; child = child->next, n++) {
		char element[PATH_BYTES];
		snprintf(element, sizeof(element), "%.200s[%zu]", path, n);
		/* The node stands first in such structs. */
		memcpy(list + n * key->bytes, &child, sizeof(const struct config_node *));
		fill_struct(filler, key->keys, &map, child, list + n * key->bytes, element);
	}
	put_list(key, target, list, n);
}

static size_t count_type(const struct config_key *keys, const struct config_key *type,
			 const struct config_node *node)
{
	size_t n = 0;
	for (const struct config_node *child = node->first; child; child = child->next)
		n += config_schema_find_component(keys, child->key) == type;
	return n;
}

static void check_component_names(struct filler *filler, const struct config_key *keys,
				  const struct config_node *node, const struct target *section)
{
	for (const struct config_node *child = node->first; child; child = child->next) {
		if (config_schema_find_component(keys, child->key))
			continue;
		char type[64];
		size_t n = strcspn(child->key, "/");
		snprintf(type, sizeof(type), "%.*s", n < 63 ? (int)n : 63, child->key);
		if (config_schema_find(keys, type))
			config_error_numbered(filler->problems, 201, child->key_place,
					      "\"%s\" in %s: behind '/' stands a name of letters, "
					      "digits, _, . and -, at most 64",
					      child->key, section->path);
		else
			unknown(filler, keys, child, section, config_schema_nearest(keys, type));
	}
}

static void fill_components(struct filler *filler, const struct config_key *key,
			    const struct config_node *node, const struct target *target)
{
	struct target section = {.base = target->base};
	make_path(target, key->name, section.path);
	if (node->kind != CONFIG_MAP && !config_node_is_null(node)) {
		unexpected(filler, key, node, section.path);
		return;
	}
	check_component_names(filler, key->keys, node, &section);
	for (const struct config_key *type = key->keys; type->name; type++) {
		char *list = zalloc(filler, count_type(key->keys, type, node), type->bytes);
		size_t n = 0;
		for (const struct config_node *child = node->first; child; child = child->next) {
			if (config_schema_find_component(key->keys, child->key) != type)
				continue;
			char path[PATH_BYTES];
			make_path(&section, child->key, path);
			char *element = list + n++ * type->bytes;
			struct config_component component = {child->key, child};
			memcpy(element, &component, sizeof(component));
			fill_struct(filler, type->keys, type, child, element, path);
		}
		put_list(type, target, list, n);
	}
}

/* A scalar of choices, or a map with one of the keys: {cgroup: […]}. */
static void fill_variant(struct filler *filler, const struct config_key *key,
			 const struct config_node *node, const struct target *target,
			 const char *path)
{
	if (node->kind != CONFIG_MAP) {
		fill_scalar(filler, key, node, target, path);
		return;
	}
	struct target inner = {.base = target->base};
	snprintf(inner.path, sizeof(inner.path), "%s", path);
	fill_map(filler, key->keys, node, &inner);
	unsigned number = 0;
	while (key->choices[number])
		number++;
	const struct config_key *given =
		node->n ? config_schema_find(key->keys, node->first->key) : NULL;
	if (node->n != 1)
		unexpected(filler, key, node, path);
	if (given) {
		number += (unsigned)(given - key->keys);
		memcpy(target->base + key->offset, &number, sizeof(number));
	}
}

static void fill_default(struct filler *filler, const struct config_key *key,
			 const struct target *target)
{
	if (!key->fallback)
		return;
	if (key->type != CONFIG_TYPE_TEXTS) {
		put_scalar(key, target, key->fallback);
		return;
	}
	const char **list = zalloc(filler, strlen(key->fallback), sizeof(*list));
	size_t n = 0;
	for (const char *p = key->fallback; *p; n++) {
		size_t length = strcspn(p, ",");
		list[n] = arena_copy_string(filler->arena, p, length);
		p += length;
		p += strspn(p, ", ");
	}
	put_list(key, target, list, n);
}

static void fill_value(struct filler *filler, const struct config_key *key,
		       const struct config_node *node, const struct target *target)
{
	char path[PATH_BYTES];
	make_path(target, key->name, path);
	if (is_secret(key))
		hide(filler, key, node);
	switch (key->type) {
	case CONFIG_TYPE_COMPONENTS:
		fill_components(filler, key, node, target);
		break;
	case CONFIG_TYPE_MAPS:
		fill_maps(filler, key, node, target, path);
		break;
	case CONFIG_TYPE_VARIANT:
		fill_variant(filler, key, node, target, path);
		break;
	case CONFIG_TYPE_TEXTS:
	case CONFIG_TYPE_INTEGERS:
		fill_list(filler, key, node, target, path);
		break;
	case CONFIG_TYPE_TEXT_MAP:
	case CONFIG_TYPE_SECRET_MAP:
	case CONFIG_TYPE_INTEGER_MAP:
		fill_pairs(filler, key, node, target, path);
		break;
	default:
		fill_scalar(filler, key, node, target, path);
		break;
	}
}

static bool is_newer(struct filler *filler, const struct config_key *key,
		     const struct config_node *node)
{
	uint64_t version;
	if (key != &config_schema[0] || node->kind != CONFIG_SCALAR ||
	    !config_value_integer(node->text, &version) || version <= CONFIG_SCHEMA_VERSION)
		return false;
	config_error_numbered(filler->problems, 211, node->place,
			      "schema_version %" PRIu64
			      " is newer than this perfpipe, which knows up to %d",
			      version, CONFIG_SCHEMA_VERSION);
	return true;
}

/* node NULL: all defaults. */
static void fill_map(struct filler *filler, const struct config_key *keys,
		     const struct config_node *node, const struct target *target)
{
	const struct config_node *first = node && node->kind == CONFIG_MAP ? node->first : NULL;
	for (const struct config_node *child = first; child; child = child->next) {
		if (!config_schema_find(keys, child->key))
			unknown(filler, keys, child, target,
				config_schema_nearest(keys, child->key));
	}
	for (const struct config_key *key = keys; key->name; key++) {
		const struct config_node *child = first ? config_node_find(node, key->name) : NULL;
		if (key->type == CONFIG_TYPE_MAP) {
			struct target inner = {.base = target->base};
			make_path(target, key->name, inner.path);
			bool is_map = child && child->kind == CONFIG_MAP;
			if (child && !is_map && !config_node_is_null(child))
				unexpected(filler, key, child, inner.path);
			fill_map(filler, key->keys, is_map ? child : NULL, &inner);
			continue;
		}
		fill_default(filler, key, target);
		if (child && !is_newer(filler, key, child))
			fill_value(filler, key, child, target);
		else if (!child && node && key->flags & CONFIG_REQUIRED)
			config_error_numbered(filler->problems, 207,
					      node->key ? node->key_place : node->place,
					      "%s needs %s", target->path, key->name);
	}
}

void config_fill(struct config *config, struct config_problems *problems)
{
	struct filler filler = {config, &config->arena, problems};
	struct target target = {.base = (char *)config};
	fill_map(&filler, config_schema, config->root, &target);
}
