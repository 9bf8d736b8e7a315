/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration as written: maps, lists and scalars with their places, made by config.c from YAML
 * and read by all that checks, fills and prints. Everything lives in the configuration's arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "pipeline/config_problem.h"

enum config_kind { CONFIG_SCALAR, CONFIG_MAP, CONFIG_LIST };

struct config_node {
	enum config_kind kind;
	const char *key; /* in a map; NULL elsewhere */
	struct config_place key_place;
	struct config_place place, end;
	struct config_node *first, *last, *next; /* children; siblings */
	uint32_t n;				 /* children */

	/* Scalars. */
	const char *text;	  /* after expansion */
	const char *source;	  /* before */
	const char *environment;  /* a variable that text holds the value of */
	bool is_plain;		  /* without quotes */
	bool is_secret;		  /* holds what ${file:…} read: never shown */
	bool is_unknown;	  /* a reference could not be replaced, which was told */
	bool has_other_reference; /* a "${" that stayed as it was */

	const char *origin; /* "default", "environment X"; NULL = a file */
};

struct config_node *config_node_new(struct arena *arena, enum config_kind kind,
				    struct config_place place);
struct config_node *config_node_new_scalar(struct arena *arena, const char *text,
					   struct config_place place);
/* As the last child; key is NULL in lists and must not be there already. */
void config_node_add(struct config_node *parent, struct config_node *child);
/* NULL when node is NULL, no map, or has no such child. */
struct config_node *config_node_find(const struct config_node *node, const char *key);
/* "tls.ca_file": down through maps. */
struct config_node *config_node_find_path(const struct config_node *node, const char *path);
/* Nothing, ~ or null, unquoted. */
bool config_node_is_null(const struct config_node *node);
