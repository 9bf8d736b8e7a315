/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys as a JSON Schema, for editors. */
#include <inttypes.h>
#include <string.h>

#include "pipeline/config_print.h"
#include "pipeline/config_schema.h"
#include "pipeline/json_text.h"

/* Everything may be written as a reference, or as a quoted text. */
static const char reference_pattern[] = "\\$\\{(env|file|credential):";

static void line(FILE *out, int depth, const char *text)
{
	fprintf(out, "\n%*s%s", 2 * depth, "", text);
}

static void put_pattern(FILE *out, const char *pattern)
{
	char text[256];
	snprintf(text, sizeof(text), "%s|%s", pattern, reference_pattern);
	fputs("\"type\": \"string\", \"pattern\": ", out);
	json_text_write(out, text);
}

static void put_choices(FILE *out, const struct config_key *key)
{
	fputs("\"anyOf\": [{\"enum\": [", out);
	for (size_t i = 0; key->choices[i]; i++) {
		fputs(i ? ", " : "", out);
		json_text_write(out, key->choices[i]);
	}
	fputs("]}, {", out);
	put_pattern(out, "^$");
	fputs("}]", out);
}

static void put_number(FILE *out, const struct config_key *key)
{
	fprintf(out, "\"anyOf\": [{\"type\": \"integer\"");
	if (key->max)
		fprintf(out, ", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64, key->min,
			key->max);
	fputs("}, {", out);
	put_pattern(out, "^[0-9]+$");
	fputs("}]", out);
}

static void put_object(FILE *out, const struct config_key *keys, bool is_components, int depth);

static void put_text(FILE *out, const struct config_key *key)
{
	if (key->choices)
		put_choices(out, key);
	else if (key->type == CONFIG_TYPE_PATH)
		put_pattern(out, "^/");
	else
		fputs("\"type\": [\"string\", \"number\", \"boolean\"]", out);
}

static void put_array(FILE *out, const struct config_key *key, int depth)
{
	fputs("\"type\": \"array\", \"items\": {", out);
	if (key->type == CONFIG_TYPE_MAPS)
		put_object(out, key->keys, false, depth);
	else if (key->type == CONFIG_TYPE_INTEGERS)
		put_number(out, key);
	else
		put_text(out, key);
	fputc('}', out);
}

static void put_variant(FILE *out, const struct config_key *key, int depth)
{
	fputs("\"anyOf\": [{", out);
	put_choices(out, key);
	fputs("}, {", out);
	put_object(out, key->keys, false, depth);
	fputs(", \"minProperties\": 1, \"maxProperties\": 1}]", out);
}

static void put_type(FILE *out, const struct config_key *key, int depth)
{
	switch (key->type) {
	case CONFIG_TYPE_MAP:
	case CONFIG_TYPE_COMPONENTS:
		put_object(out, key->keys, key->type == CONFIG_TYPE_COMPONENTS, depth);
		break;
	case CONFIG_TYPE_MAPS:
	case CONFIG_TYPE_TEXTS:
	case CONFIG_TYPE_INTEGERS:
		put_array(out, key, depth);
		break;
	case CONFIG_TYPE_VARIANT:
		put_variant(out, key, depth);
		break;
	case CONFIG_TYPE_TEXT:
	case CONFIG_TYPE_PATH:
	case CONFIG_TYPE_SECRET:
		put_text(out, key);
		break;
	case CONFIG_TYPE_BOOL:
		fputs("\"anyOf\": [{\"type\": \"boolean\"}, {", out);
		put_pattern(out, "^(true|false)$");
		fputs("}]", out);
		break;
	case CONFIG_TYPE_INTEGER:
		put_number(out, key);
		break;
	case CONFIG_TYPE_DURATION:
		fputs("\"anyOf\": [{\"const\": 0}, {", out);
		put_pattern(out, "^(0|([0-9]+(d|h|ms|m|s|us|ns))+)$");
		fputs("}]", out);
		break;
	case CONFIG_TYPE_SIZE:
		fputs("\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0}, {", out);
		put_pattern(out, "^[0-9]+(B|KiB|MiB|GiB|TiB)?$");
		fputs("}]", out);
		break;
	case CONFIG_TYPE_PERCENT:
		put_pattern(out, "^[0-9]+([.][0-9]+)?%$");
		break;
	case CONFIG_TYPE_SHARE:
		fputs("\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0}, {", out);
		put_pattern(out, "^[0-9]+([.][0-9]+)?%$|^[0-9]+(B|KiB|MiB|GiB|TiB)?$");
		fputs("}]", out);
		break;
	case CONFIG_TYPE_CHOICE:
		put_choices(out, key);
		break;
	case CONFIG_TYPE_TEXT_MAP:
	case CONFIG_TYPE_SECRET_MAP:
		fputs("\"type\": \"object\", \"additionalProperties\": {\"type\": [\"string\", "
		      "\"number\", \"boolean\"]}",
		      out);
		break;
	case CONFIG_TYPE_INTEGER_MAP:
		fputs("\"type\": \"object\", \"additionalProperties\": {", out);
		put_number(out, key);
		fputc('}', out);
		break;
	}
}

/* An empty map may be written as nothing at all. */
static void put_key(FILE *out, const struct config_key *key, bool is_component, int depth)
{
	fputc('\n', out);
	fprintf(out, "%*s", 2 * depth, "");
	if (is_component)
		fprintf(out, "\"^%s(/[A-Za-z0-9_.-]{1,64})?$\"", key->name);
	else
		json_text_write(out, key->name);
	fputs(": {\"description\": ", out);
	json_text_write(out, key->what);
	if (key->fallback) {
		fputs(", \"default\": ", out);
		/* As written in a file; lists are told by their items. */
		json_text_write(out, key->fallback);
	}
	fputs(", ", out);
	put_type(out, key, depth);
	fputc('}', out);
}

/* Without the braces around it. */
static void put_object(FILE *out, const struct config_key *keys, bool is_components, int depth)
{
	fprintf(out, "\"type\": [\"object\", \"null\"], \"additionalProperties\": false,");
	line(out, depth + 1, is_components ? "\"patternProperties\": {" : "\"properties\": {");
	bool has_required = false;
	for (const struct config_key *key = keys; key->name; key++) {
		fputs(key == keys ? "" : ",", out);
		put_key(out, key, is_components, depth + 2);
		has_required |= (key->flags & CONFIG_REQUIRED) != 0;
	}
	fputc('}', out);
	if (!has_required)
		return;
	fputs(", \"required\": [", out);
	bool is_first = true;
	for (const struct config_key *key = keys; key->name; key++) {
		if (!(key->flags & CONFIG_REQUIRED))
			continue;
		fputs(is_first ? "" : ", ", out);
		json_text_write(out, key->name);
		is_first = false;
	}
	fputc(']', out);
}

void config_print_json_schema(FILE *out)
{
	fputs("{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
	      "  \"title\": \"perfpipe.yaml\",\n  ",
	      out);
	put_object(out, config_schema, false, 0);
	fputs("}\n", out);
}
