/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_node.h"

#include <string.h>

struct config_node *config_node_new(struct arena *arena, enum config_kind kind,
				    struct config_place place)
{
	struct config_node *node = arena_alloc(arena, sizeof(*node));
	*node = (struct config_node){.kind = kind, .place = place, .end = place};
	return node;
}

struct config_node *config_node_new_scalar(struct arena *arena, const char *text,
					   struct config_place place)
{
	struct config_node *node = config_node_new(arena, CONFIG_SCALAR, place);
	node->text = node->source = arena_copy_string(arena, text, strlen(text));
	return node;
}

void config_node_add(struct config_node *parent, struct config_node *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->n++;
}

static struct config_node *find(const struct config_node *node, const char *key, size_t n)
{
	if (!node || node->kind != CONFIG_MAP)
		return NULL;
	for (struct config_node *child = node->first; child; child = child->next) {
		if (strncmp(child->key, key, n) == 0 && child->key[n] == '\0')
			return child;
	}
	return NULL;
}

struct config_node *config_node_find(const struct config_node *node, const char *key)
{
	return find(node, key, strlen(key));
}

struct config_node *config_node_find_path(const struct config_node *node, const char *path)
{
	for (;;) {
		size_t n = strcspn(path, ".");
		struct config_node *child = find(node, path, n);
		if (!child || path[n] == '\0')
			return child;
		node = child;
		path += n + 1;
	}
}

bool config_node_is_null(const struct config_node *node)
{
	return node->kind == CONFIG_SCALAR && node->is_plain &&
	       (node->source[0] == '\0' || strcmp(node->source, "~") == 0 ||
		strcmp(node->source, "null") == 0);
}
