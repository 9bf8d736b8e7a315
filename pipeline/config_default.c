/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_default.h"

#include <string.h>

#include "base/compiler.h"
#include "pipeline/config_schema.h"

enum { RECEIVERS, PROCESSORS, EXPORTERS };
const char *const config_default_sections[3] = {"receivers", "processors", "exporters"};

static const char *const chain[] = {"process", "gitaly", "symbols", "relabel", "limits"};

struct completer {
	struct arena *arena;
	struct config_place place;
};

static struct config_node *add(struct completer *completer, struct config_node *parent,
			       const char *key, enum config_kind kind)
{
	struct config_node *node = config_node_new(completer->arena, kind, completer->place);
	node->key = key;
	node->key_place = completer->place;
	node->origin = "default";
	config_node_add(parent, node);
	return node;
}

/* The map of that name, made when it is missing or empty; NULL when something else is there. */
static struct config_node *get_map(struct completer *completer, struct config_node *parent,
				   const char *key)
{
	struct config_node *node = config_node_find(parent, key);
	if (!node)
		return add(completer, parent, key, CONFIG_MAP);
	if (config_node_is_null(node))
		node->kind = CONFIG_MAP;
	return node->kind == CONFIG_MAP ? node : NULL;
}

static void add_name(struct completer *completer, struct config_node *list, const char *name)
{
	struct config_node *node = config_node_new_scalar(completer->arena, name, completer->place);
	node->origin = "default";
	config_node_add(list, node);
}

static bool needs_settings(const struct config_key *type)
{
	for (const struct config_key *key = type->keys; key->name; key++) {
		if (key->flags & CONFIG_REQUIRED)
			return true;
	}
	return false;
}

/* A bare type that does without settings exists once it is named. */
static void define(struct completer *completer, struct config_node *section, const char *name)
{
	if (!section || config_node_find(section, name))
		return;
	const struct config_key *key = config_schema_find(config_schema, section->key);
	const struct config_key *type = config_schema_find(key->keys, name);
	if (type && !needs_settings(type))
		add(completer, section, type->name, CONFIG_MAP);
}

/* Adds the names of all components of that type; type NULL: of all types. */
static void add_written(struct completer *completer, struct config_node *list,
			const struct config_node *section, const char *type)
{
	for (const struct config_node *child = section ? section->first : NULL; child;
	     child = child->next) {
		size_t n = strcspn(child->key, "/");
		if (!type || (strlen(type) == n && memcmp(type, child->key, n) == 0))
			add_name(completer, list, child->key);
	}
}

static void add_pipeline(struct completer *completer, struct config_node *pipelines,
			 struct config_node *const sections[3])
{
	struct config_node *pipeline = add(completer, pipelines, "profiles", CONFIG_MAP);
	struct config_node *lists[3];
	for (size_t i = 0; i < 3; i++)
		lists[i] = add(completer, pipeline, config_default_sections[i], CONFIG_LIST);
	if (sections[RECEIVERS] && sections[RECEIVERS]->n == 0)
		define(completer, sections[RECEIVERS], "perf");
	add_written(completer, lists[RECEIVERS], sections[RECEIVERS], NULL);
	for (size_t i = 0; i < ARRAY_LEN(chain); i++) {
		uint32_t before = lists[PROCESSORS]->n;
		add_written(completer, lists[PROCESSORS], sections[PROCESSORS], chain[i]);
		if (lists[PROCESSORS]->n > before || strcmp(chain[i], "relabel") == 0)
			continue;
		define(completer, sections[PROCESSORS], chain[i]);
		add_name(completer, lists[PROCESSORS], chain[i]);
	}
	add_written(completer, lists[EXPORTERS], sections[EXPORTERS], NULL);
}

void config_default_complete(struct config_node *root, struct arena *arena)
{
	struct completer completer = {arena, {root->place.file, 0, 0}};
	struct config_node *sections[3];
	for (size_t i = 0; i < 3; i++)
		sections[i] = get_map(&completer, root, config_default_sections[i]);
	struct config_node *service = get_map(&completer, root, "service");
	struct config_node *pipelines = service ? get_map(&completer, service, "pipelines") : NULL;
	if (!pipelines)
		return;
	if (pipelines->n == 0)
		add_pipeline(&completer, pipelines, sections);
	for (struct config_node *pipeline = pipelines->first; pipeline; pipeline = pipeline->next) {
		for (size_t i = 0; i < 3; i++) {
			const struct config_node *list =
				config_node_find(pipeline, config_default_sections[i]);
			const struct config_node *name = list ? list->first : NULL;
			for (; name; name = name->next) {
				if (name->kind == CONFIG_SCALAR && name->text)
					define(&completer, sections[i], name->text);
			}
		}
	}
}
