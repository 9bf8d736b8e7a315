/* SPDX-License-Identifier: Apache-2.0 */
/* Reading YAML, by libyaml, and putting files, environment and command line together. */
#include "pipeline/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "pipeline/config_check.h"
#include "pipeline/config_default.h"
#include "pipeline/config_expand.h"
#include "pipeline/config_fill.h"
#include "pipeline/config_schema.h"

enum {
	MAX_FILE_BYTES = 1 << 20,
	MAX_FILES = 256,   /* of conf.d */
	MAX_DEPTH = 32,	   /* maps and lists in each other */
	MAX_NODES = 20000, /* of one file, aliases counted as what they stand for */
	MAX_CHILDREN = 2000,
	MAX_ANCHORS = 200,
	MAX_KEY_BYTES = 256,
};

/* --- YAML --- */

struct anchor {
	const char *name;
	struct config_node *node;
};

struct reader {
	yaml_parser_t parser;
	struct arena *arena;
	struct config_problems *problems;
	const char *file;
	struct config_node *root;
	struct config_node *open[MAX_DEPTH]; /* maps and lists that are not closed yet */
	struct config_node *keys[MAX_DEPTH]; /* of the map at that depth: waits for its value */
	size_t depth;
	struct anchor anchors[MAX_ANCHORS];
	size_t n_anchors;
	size_t n_nodes;
	unsigned n_documents;
	bool is_failed;
};

static struct config_place make_place(const struct reader *reader, yaml_mark_t mark)
{
	return (struct config_place){reader->file, (unsigned)mark.line + 1,
				     (unsigned)mark.column + 1};
}

static void refuse(struct reader *reader, struct config_place place, const char *what)
{
	config_error_numbered(reader->problems, 206, place, "%s", what);
	reader->is_failed = true;
}

/* libyaml states only the byte when the text is no UTF-8 or holds control characters. */
static struct config_place place_of_byte(const struct reader *reader, const char *text,
					 size_t offset)
{
	struct config_place place = {reader->file, 1, 1};
	for (size_t i = 0; i < offset; i++) {
		bool is_break = text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n');
		if (is_break)
			place = (struct config_place){reader->file, place.line + 1, 1};
		else
			place.column += ((unsigned char)text[i] & 0xc0) != 0x80;
	}
	return place;
}

/* The brace of an unquoted ${…} opens a map inside of { }, where none may stand. */
static bool is_at_reference(const char *text, size_t size, size_t n_characters)
{
	size_t i = 0;
	for (; i < size && n_characters > 0; n_characters--) {
		do
			i++;
		while (i < size && ((unsigned char)text[i] & 0xc0) == 0x80);
	}
	return i > 0 && i < size && text[i] == '{' && text[i - 1] == '$';
}

static void fail_syntax(struct reader *reader, const char *text, size_t size)
{
	const yaml_parser_t *parser = &reader->parser;
	const char *what = parser->problem ? parser->problem : "unreadable";
	bool is_bytes = parser->error == YAML_READER_ERROR;
	size_t offset = parser->problem_offset < size ? parser->problem_offset : size;
	struct config_place place = is_bytes ? place_of_byte(reader, text, offset)
					     : make_place(reader, parser->problem_mark);
	bool is_reference = is_at_reference(text, size, parser->problem_mark.index);
	if (parser->context && !is_bytes)
		config_error_numbered(
			reader->problems, 206, place, "not YAML: %s (%s that began in line %zu)%s",
			what, parser->context, parser->context_mark.line + 1,
			is_reference ? "; put quotes around ${…} inside of { } and [ ]" : "");
	else
		config_error_numbered(reader->problems, 206, place, "not YAML: %s", what);
	reader->is_failed = true;
}

/* Whether one more fits. */
static bool count_node(struct reader *reader, struct config_place place)
{
	if (reader->n_nodes++ < MAX_NODES)
		return true;
	if (!reader->is_failed)
		refuse(reader, place, "more than 20000 values in one file");
	return false;
}

static bool check_tag(struct reader *reader, const yaml_char_t *tag, struct config_place place)
{
	if (!tag || strcmp((const char *)tag, "!") == 0)
		return true;
	refuse(reader, place, "tags like !!str are not supported");
	return false;
}

static void note_anchor(struct reader *reader, const yaml_char_t *name, struct config_node *node)
{
	if (!name)
		return;
	if (reader->n_anchors == MAX_ANCHORS) {
		refuse(reader, node->place, "more than 200 anchors in one file");
		return;
	}
	const char *text = (const char *)name;
	reader->anchors[reader->n_anchors++] =
		(struct anchor){arena_copy_string(reader->arena, text, strlen(text)), node};
}

static void take_key(struct reader *reader, struct config_node *node)
{
	if (node->kind != CONFIG_SCALAR)
		refuse(reader, node->place, "a map's key has to be a text");
	else if (strlen(node->text) > MAX_KEY_BYTES)
		refuse(reader, node->place, "a key longer than 256 bytes");
	else
		reader->keys[reader->depth - 1] = node;
}

/* Where the node belongs: the root, an element, a key, or the value of a key. */
static void place_node(struct reader *reader, struct config_node *node)
{
	if (reader->depth == 0) {
		reader->root = node;
		return;
	}
	struct config_node *parent = reader->open[reader->depth - 1];
	if (parent->n == MAX_CHILDREN) {
		refuse(reader, node->place, "more than 2000 entries in one map or list");
		return;
	}
	if (parent->kind == CONFIG_LIST) {
		config_node_add(parent, node);
		return;
	}
	struct config_node *key = reader->keys[reader->depth - 1];
	if (!key) {
		take_key(reader, node);
		return;
	}
	reader->keys[reader->depth - 1] = NULL;
	node->key = key->text;
	node->key_place = key->place;
	const struct config_node *twin = config_node_find(parent, node->key);
	if (twin)
		config_error_numbered(reader->problems, 203, node->key_place,
				      "key \"%s\" stands twice in this map, first in line %u",
				      node->key, twin->key_place.line);
	else
		config_node_add(parent, node);
}

static struct config_node *copy_node(struct reader *reader, const struct config_node *node,
				     struct config_place alias)
{
	struct config_node *copy = arena_alloc(reader->arena, sizeof(*copy));
	*copy = *node;
	copy->first = copy->last = copy->next = NULL;
	copy->n = 0;
	for (const struct config_node *child = node->first; child; child = child->next) {
		if (!count_node(reader, alias))
			break;
		config_node_add(copy, copy_node(reader, child, alias));
	}
	return copy;
}

static void take_alias(struct reader *reader, const yaml_event_t *event)
{
	struct config_place place = make_place(reader, event->start_mark);
	const char *name = (const char *)event->data.alias.anchor;
	const struct config_node *node = NULL;
	/* The last one of that name counts. */
	for (size_t i = reader->n_anchors; i > 0 && !node; i--) {
		if (strcmp(reader->anchors[i - 1].name, name) == 0)
			node = reader->anchors[i - 1].node;
	}
	for (size_t i = 0; i < reader->depth; i++) {
		if (reader->open[i] == node && node) {
			refuse(reader, place, "an alias inside of what it stands for");
			return;
		}
	}
	if (!node)
		refuse(reader, place, "an alias of an anchor that is not there");
	else if (count_node(reader, place))
		place_node(reader, copy_node(reader, node, place));
}

static void take_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct config_place place = make_place(reader, event->start_mark);
	const char *value = (const char *)event->data.scalar.value;
	if (!check_tag(reader, event->data.scalar.tag, place) || !count_node(reader, place))
		return;
	if (strlen(value) != event->data.scalar.length) {
		refuse(reader, place, "a text with a 0 byte");
		return;
	}
	struct config_node *node = config_node_new_scalar(reader->arena, value, place);
	node->end = make_place(reader, event->end_mark);
	node->is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	note_anchor(reader, event->data.scalar.anchor, node);
	place_node(reader, node);
}

static void open_node(struct reader *reader, const yaml_event_t *event)
{
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	struct config_place place = make_place(reader, event->start_mark);
	const yaml_char_t *tag =
		is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
	if (!check_tag(reader, tag, place) || !count_node(reader, place))
		return;
	if (reader->depth == MAX_DEPTH) {
		refuse(reader, place, "maps and lists nested more than 32 deep");
		return;
	}
	struct config_node *node =
		config_node_new(reader->arena, is_map ? CONFIG_MAP : CONFIG_LIST, place);
	note_anchor(reader,
		    is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
		    node);
	place_node(reader, node);
	reader->keys[reader->depth] = NULL;
	reader->open[reader->depth++] = node;
}

/* False at the end of the text. */
static bool take_event(struct reader *reader, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (reader->n_documents++)
			refuse(reader, make_place(reader, event->start_mark),
			       "a second document (---); a file holds one");
		break;
	case YAML_ALIAS_EVENT:
		take_alias(reader, event);
		break;
	case YAML_SCALAR_EVENT:
		take_scalar(reader, event);
		break;
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		open_node(reader, event);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		reader->open[--reader->depth]->end = make_place(reader, event->end_mark);
		break;
	default:
		break;
	}
	return event->type != YAML_STREAM_END_EVENT && event->type != YAML_NO_EVENT;
}

static const char byte_order_mark[] = "\xef\xbb\xbf";

/* The map at the top of a text that problems owns; NULL after an error. */
static struct config_node *read_yaml(const char *file, const char *text, size_t size,
				     struct arena *arena, struct config_problems *problems)
{
	struct reader reader = {.arena = arena, .problems = problems, .file = file};
	if (size >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
		text += 3;
		size -= 3;
	}
	/* Fails only without memory. */
	if (!yaml_parser_initialize(&reader.parser))
		return NULL;
	yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, size);
	bool is_going_on = true;
	while (is_going_on && !reader.is_failed) {
		yaml_event_t event;
		if (!yaml_parser_parse(&reader.parser, &event)) {
			fail_syntax(&reader, text, size);
			break;
		}
		is_going_on = take_event(&reader, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&reader.parser);
	struct config_place top = {file, 1, 1};
	if (reader.is_failed)
		return NULL;
	if (!reader.root || config_node_is_null(reader.root))
		return config_node_new(arena, CONFIG_MAP, top);
	if (reader.root->kind == CONFIG_MAP)
		return reader.root;
	config_error_numbered(problems, 202, reader.root->place,
			      "the top level is %s, expected a map with keys like exporters",
			      reader.root->kind == CONFIG_LIST ? "a list" : "a text");
	return NULL;
}

/* --- files --- */

static struct config_node *read_text(const char *name, const char *text, size_t size,
				     struct config *config, struct config_problems *problems)
{
	char *copy = mem_alloc(size + 1);
	memcpy(copy, text, size);
	copy[size] = '\0';
	const char *file = config_problems_take_source(problems, name, copy, size);
	return read_yaml(file, copy, size, &config->arena, problems);
}

static struct config_node *read_file(const char *path, struct config *config,
				     struct config_problems *problems)
{
	struct buf content;
	buf_init(&content, MAX_FILE_BYTES);
	struct error *err = file_read_all(path, &content);
	struct config_node *root = NULL;
	if (err)
		config_error_numbered(problems, 210, (struct config_place){0},
				      "cannot read the configuration: %s", error_text(err));
	else
		root = read_text(path, buf_string(&content), content.size, config, problems);
	error_free(err);
	buf_fini(&content);
	return root;
}

/* path: of the map, "" at the top. Takes the children of extra. */
static void merge(struct config_node *base, struct config_node *extra, const char *path,
		  struct config_problems *problems)
{
	struct config_node *next;
	for (struct config_node *child = extra->first; child; child = next) {
		next = child->next;
		child->next = NULL;
		struct config_node *twin = config_node_find(base, child->key);
		CLEANUP(cleanup_mem)
		char *shown = mem_format("%s%s%s", path, *path ? "." : "", child->key);
		if (!twin) {
			config_node_add(base, child);
		} else if (twin->kind == CONFIG_MAP && child->kind == CONFIG_MAP) {
			merge(twin, child, shown, problems);
		} else if (config_node_is_null(twin) && child->kind == CONFIG_MAP) {
			twin->kind = CONFIG_MAP;
			merge(twin, child, shown, problems);
		} else if (strcmp(shown, "tests") == 0 && twin->kind == CONFIG_LIST &&
			   child->kind == CONFIG_LIST) {
			for (struct config_node *test = child->first; test;) {
				struct config_node *after = test->next;
				test->next = NULL;
				config_node_add(twin, test);
				test = after;
			}
		} else if (!config_node_is_null(child)) {
			config_error_numbered(problems, 203, child->key_place,
					      "%s is set twice: here and in %s:%u", shown,
					      twin->key_place.file, twin->key_place.line);
		}
	}
}

static int is_yaml_name(const struct dirent *entry)
{
	size_t n = strlen(entry->d_name);
	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".yaml") == 0;
}

/* conf.d beside the file, in the order of names; is_good is false after errors of form. */
static void read_additions(const char *path, struct config *config,
			   struct config_problems *problems, bool *is_good)
{
	const char *slash = strrchr(path, '/');
	CLEANUP(cleanup_mem)
	char *folder = mem_format("%.*sconf.d", slash ? (int)(slash + 1 - path) : 0, path);
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_yaml_name, alphasort);
	if (n < 0 && errno != ENOENT && errno != ENOTDIR)
		config_error_numbered(problems, 210, (struct config_place){0},
				      "cannot read the configuration: %s: %s", folder,
				      strerror(errno));
	if (n > MAX_FILES)
		config_error_numbered(problems, 210, (struct config_place){folder, 0, 0},
				      "more than %d files", MAX_FILES);
	for (int i = 0; i < n; i++) {
		if (i < MAX_FILES) {
			CLEANUP(cleanup_mem)
			char *name = mem_format("%s/%s", folder, entries[i]->d_name);
			struct config_node *extra = read_file(name, config, problems);
			if (extra)
				merge(config->root, extra, "", problems);
			*is_good &= extra != NULL;
		}
		free(entries[i]);
	}
	free(entries);
}

/* --- environment and command line --- */

static void override(struct config *config, const char *path, const char *value,
		     const char *origin_kind, const char *origin)
{
	size_t n = strlen(origin_kind) + strlen(origin);
	char *shown = arena_alloc(&config->arena, n + 1);
	snprintf(shown, n + 1, "%s%s", origin_kind, origin);
	struct config_place place = {shown, 0, 0};
	struct config_node *node = config->root;
	while (node->kind == CONFIG_MAP) {
		size_t length = strcspn(path, ".");
		const char *key = arena_copy_string(&config->arena, path, length);
		bool is_leaf = path[length] == '\0';
		struct config_node *child = config_node_find(node, key);
		if (!child) {
			child = config_node_new(&config->arena, CONFIG_MAP, place);
			child->key = key;
			child->key_place = place;
			config_node_add(node, child);
		}
		if (config_node_is_null(child))
			child->kind = CONFIG_MAP;
		if (is_leaf) {
			child->kind = CONFIG_SCALAR;
			child->text = child->source =
				arena_copy_string(&config->arena, value, strlen(value));
			child->environment = NULL;
			child->is_plain = child->is_secret = false;
			child->is_unknown = child->has_other_reference = false;
			child->place = child->end = place;
			child->origin = shown;
			child->first = child->last = NULL;
			child->n = 0;
			return;
		}
		node = child;
		path += length + 1;
	}
}

static void override_by_environment(struct config *config, const struct config_options *options,
				    const struct config_key *keys, const char *path)
{
	for (const struct config_key *key = keys; key->name; key++) {
		CLEANUP(cleanup_mem)
		char *inner = mem_format("%s%s%s", path, *path ? "." : "", key->name);
		if (key->type == CONFIG_TYPE_MAP)
			override_by_environment(config, options, key->keys, inner);
		if (!key->environment)
			continue;
		const char *value =
			options->get_environment
				? options->get_environment(options->context, key->environment)
				: getenv(key->environment);
		if (value)
			override(config, inner, value, "environment ", key->environment);
	}
}

/* --- loading --- */

const char *config_default_path(void)
{
	const char *path = getenv("PERFPIPE_CONFIG");
	return path && *path ? path : "/etc/perfpipe/perfpipe.yaml";
}

static const struct config_options no_options;

/* Everything behind reading; takes config. */
static bool finish(struct config *config, const struct config_options *options,
		   struct config_problems *problems, struct config **out)
{
	config_expand(config->root, options, &config->arena, problems);
	override_by_environment(config, options, config_schema, "");
	for (size_t i = 0; i < options->n_overrides; i++)
		override(config, options->overrides[i].path, options->overrides[i].value, "",
			 options->overrides[i].origin);
	config_default_complete(config->root, &config->arena);
	config_fill(config, problems);
	config_check(config, problems);
	if (problems->n_errors) {
		config_free(config);
		return false;
	}
	*out = config;
	return true;
}

static struct config *new_config(void)
{
	struct config *config = mem_zalloc(1, sizeof(*config));
	arena_init(&config->arena, 0);
	return config;
}

bool config_load(const char *path, const struct config_options *options,
		 struct config_problems *problems, struct config **out)
{
	struct config *config = new_config();
	*out = NULL;
	config->root = read_file(path, config, problems);
	bool is_good = config->root != NULL;
	/* The others are read all the same, for their errors. */
	if (!config->root)
		config->root = config_node_new(&config->arena, CONFIG_MAP,
					       (struct config_place){path, 0, 0});
	read_additions(path, config, problems, &is_good);
	if (!is_good) {
		config_free(config);
		return false;
	}
	return finish(config, options ? options : &no_options, problems, out);
}

bool config_load_text(const char *name, const char *text, size_t size,
		      const struct config_options *options, struct config_problems *problems,
		      struct config **out)
{
	struct config *config = new_config();
	*out = NULL;
	config->root = read_text(name, text, size, config, problems);
	if (!config->root) {
		config_free(config);
		return false;
	}
	return finish(config, options ? options : &no_options, problems, out);
}

void config_free(struct config *config)
{
	if (!config)
		return;
	for (size_t i = 0; i < config->n_relabel; i++)
		relabel_free(config->relabel[i].compiled);
	arena_fini(&config->arena);
	mem_free(config);
}

/* --- use --- */

struct exporter_config *config_list_exporters(struct config *config, size_t *n_out)
{
	struct exporter_config *list =
		arena_alloc(&config->arena, config->n_exporters * sizeof(*list) + 1);
	for (size_t i = 0; i < config->n_exporters; i++)
		list[i] = config->exporters[i].exporter;
	*n_out = config->n_exporters;
	return list;
}

const struct config_pipeline *config_find_pipeline(const struct config *config, const char *name)
{
	if (!name)
		return config->n_pipelines ? &config->pipelines[0] : NULL;
	for (size_t i = 0; i < config->n_pipelines; i++) {
		if (strcmp(config->pipelines[i].component.name, name) == 0)
			return &config->pipelines[i];
	}
	return NULL;
}

enum relabel_verdict config_relabel(const struct config *config,
				    const struct config_pipeline *pipeline, struct label_set *set)
{
	for (size_t i = 0; i < pipeline->n_processors; i++) {
		const struct config_reference *reference = &pipeline->processors[i];
		if (reference->type != CONFIG_COMPONENT_RELABEL)
			continue;
		enum relabel_verdict verdict =
			relabel_apply(config->relabel[reference->index].compiled, set);
		if (verdict != RELABEL_KEPT)
			return verdict;
	}
	return RELABEL_KEPT;
}
