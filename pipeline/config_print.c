/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_print.h"

#include <string.h>

#include "pipeline/config_schema.h"
#include "pipeline/json_text.h"

enum { COMMENT_COLUMN = 60, INDENT = 2 };

struct printer {
	FILE *out;
	int column;
};

static void indent(struct printer *printer, int depth)
{
	fprintf(printer->out, "%*s", depth * INDENT, "");
	printer->column = depth * INDENT;
}

static void put(struct printer *printer, const char *text)
{
	fputs(text, printer->out);
	printer->column += (int)strlen(text);
}

/* Texts that mean the same with and without quotes, in lists and maps too. */
static bool is_plain(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_./+%-";
	return text[0] && text[strspn(text, letters)] == '\0' && !strchr("-%", text[0]) &&
	       strcmp(text, "null") != 0;
}

static void put_text(struct printer *printer, const char *text)
{
	if (is_plain(text)) {
		put(printer, text);
		return;
	}
	json_text_write(printer->out, text);
	printer->column += (int)strlen(text) + 2;
}

static void put_scalar(struct printer *printer, const struct config_node *node, bool is_secret)
{
	put_text(printer, is_secret || node->is_secret ? "<redacted>" : node->text);
}

/* node NULL: the default. Ends the line. */
static void put_origin(struct printer *printer, const struct config_node *node)
{
	int width = printer->column < COMMENT_COLUMN ? COMMENT_COLUMN - printer->column : 1;
	fprintf(printer->out, "%*s# ", width, "");
	if (!node || node->origin)
		fputs(node ? node->origin : "default", printer->out);
	else if (node->place.line)
		fprintf(printer->out, "%s:%u", node->place.file,
			node->key ? node->key_place.line : node->place.line);
	else
		fputs("default", printer->out);
	if (node && node->environment)
		fprintf(printer->out, ", environment %s", node->environment);
	fputc('\n', printer->out);
	printer->column = 0;
}

/* "[a, b]" */
static void put_list(struct printer *printer, const struct config_node *node)
{
	put(printer, "[");
	for (const struct config_node *child = node->first; child; child = child->next) {
		if (child != node->first)
			put(printer, ", ");
		put_scalar(printer, child, false);
	}
	put(printer, "]");
}

static void put_default(struct printer *printer, const struct config_key *key)
{
	if (key->type != CONFIG_TYPE_TEXTS) {
		put_text(printer, key->fallback);
		return;
	}
	put(printer, "[");
	put(printer, key->fallback);
	put(printer, "]");
}

static void print_map(struct printer *printer, const struct config_key *keys,
		      const struct config_node *node, int depth, bool has_defaults);

static void print_pairs(struct printer *printer, const struct config_key *key,
			const struct config_node *node, int depth)
{
	put_origin(printer, node);
	for (const struct config_node *child = node->first; child; child = child->next) {
		indent(printer, depth + 1);
		put_text(printer, child->key);
		put(printer, ": ");
		put_scalar(printer, child, key->type == CONFIG_TYPE_SECRET_MAP);
		put_origin(printer, child);
	}
}

static void print_maps(struct printer *printer, const struct config_key *key,
		       const struct config_node *node, int depth)
{
	put_origin(printer, node);
	for (const struct config_node *child = node->first; child; child = child->next) {
		indent(printer, depth + 1);
		put(printer, "-");
		put_origin(printer, child);
		print_map(printer, key->keys, child, depth + 2, false);
	}
}

static void print_components(struct printer *printer, const struct config_key *key,
			     const struct config_node *node, int depth)
{
	put_origin(printer, node);
	for (const struct config_node *child = node->first; child; child = child->next) {
		const struct config_key *type = config_schema_find_component(key->keys, child->key);
		indent(printer, depth + 1);
		put_text(printer, child->key);
		put(printer, ":");
		put_origin(printer, child);
		print_map(printer, type->keys, child, depth + 2, true);
	}
}

static void print_value(struct printer *printer, const struct config_key *key,
			const struct config_node *node, int depth)
{
	switch (key->type) {
	case CONFIG_TYPE_COMPONENTS:
		print_components(printer, key, node, depth);
		return;
	case CONFIG_TYPE_MAPS:
		print_maps(printer, key, node, depth);
		return;
	case CONFIG_TYPE_TEXT_MAP:
	case CONFIG_TYPE_SECRET_MAP:
	case CONFIG_TYPE_INTEGER_MAP:
		print_pairs(printer, key, node, depth);
		return;
	case CONFIG_TYPE_VARIANT:
		if (node->kind == CONFIG_MAP) {
			put_origin(printer, node);
			print_map(printer, key->keys, node, depth + 1, false);
			return;
		}
		break;
	default:
		break;
	}
	put(printer, " ");
	if (node->kind == CONFIG_LIST)
		put_list(printer, node);
	else
		put_scalar(printer, node, key->type == CONFIG_TYPE_SECRET);
	put_origin(printer, node);
}

static bool has_value(const struct config_key *key, const struct config_node *node,
		      bool has_defaults)
{
	if (node && !config_node_is_null(node))
		return true;
	if (!has_defaults)
		return false;
	if (key->type != CONFIG_TYPE_MAP)
		return key->fallback != NULL;
	for (const struct config_key *inner = key->keys; inner->name; inner++) {
		if (has_value(inner, NULL, true))
			return true;
	}
	return false;
}

/* node NULL: all defaults. */
static void print_map(struct printer *printer, const struct config_key *keys,
		      const struct config_node *node, int depth, bool has_defaults)
{
	for (const struct config_key *key = keys; key->name; key++) {
		const struct config_node *child = config_node_find(node, key->name);
		if (!has_value(key, child, has_defaults))
			continue;
		bool is_there = child && !config_node_is_null(child);
		indent(printer, depth);
		put(printer, key->name);
		put(printer, ":");
		if (key->type == CONFIG_TYPE_MAP) {
			put_origin(printer, is_there ? child : NULL);
			print_map(printer, key->keys, child, depth + 1, has_defaults);
		} else if (is_there) {
			print_value(printer, key, child, depth);
		} else {
			put(printer, " ");
			put_default(printer, key);
			put_origin(printer, NULL);
		}
	}
}

void config_print(const struct config *config, FILE *out)
{
	struct printer printer = {.out = out};
	print_map(&printer, config_schema, config->root, 0, true);
}
