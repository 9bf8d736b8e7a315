/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 80 };

void config_text_show(const struct config_key *key, const struct config_node *node, char *out,
		      size_t size)
{
	bool is_secret = node->is_secret || key->type == CONFIG_TYPE_SECRET;
	if (node->kind == CONFIG_MAP)
		snprintf(out, size, "a map");
	else if (node->kind == CONFIG_LIST)
		snprintf(out, size, "a list");
	else if (config_node_is_null(node))
		snprintf(out, size, "empty");
	else if (is_secret)
		snprintf(out, size, "<redacted>");
	else
		snprintf(out, size, "\"%.*s%s\"", SHOWN_BYTES, node->text,
			 strlen(node->text) > SHOWN_BYTES ? "…" : "");
}

static void append(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);
	snprintf(out + used, size - used, "%s", text);
}

static void list_choices(const struct config_key *key, char *out, size_t size)
{
	for (size_t i = 0; key->choices[i]; i++) {
		bool is_last = i && !key->choices[i + 1] && key->type != CONFIG_TYPE_VARIANT;
		append(out, size, i == 0 ? "" : is_last ? " or " : ", ");
		append(out, size, key->choices[i]);
	}
}

static void put_duration(uint64_t ns, char *out, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{UINT64_C(86400000000000), "d"},
		     {UINT64_C(3600000000000), "h"},
		     {UINT64_C(60000000000), "m"},
		     {UINT64_C(1000000000), "s"},
		     {UINT64_C(1000000), "ms"}};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns >= units[i].ns && ns % units[i].ns == 0) {
			snprintf(out, size, "%" PRIu64 "%s", ns / units[i].ns, units[i].name);
			return;
		}
	}
	snprintf(out, size, "%" PRIu64, ns);
}

static void put_size(uint64_t bytes, char *out, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, size, "%" PRIu64 "%s", bytes, units[unit]);
}

static void expect_number(const struct config_key *key, const char *what, char *out, size_t size)
{
	char least[32];
	char most[32];
	if (key->type == CONFIG_TYPE_DURATION) {
		put_duration(key->min, least, sizeof(least));
		put_duration(key->max, most, sizeof(most));
	} else if (key->type == CONFIG_TYPE_SIZE) {
		put_size(key->min, least, sizeof(least));
		put_size(key->max, most, sizeof(most));
	} else {
		snprintf(least, sizeof(least), "%" PRIu64, key->min);
		snprintf(most, sizeof(most), "%" PRIu64, key->max);
	}
	bool may_be_zero = key->min && key->fallback && strcmp(key->fallback, "0") == 0;
	const char *zero = may_be_zero ? "0, or " : "";
	const char *sign = key->type == CONFIG_TYPE_PERCENT ? "%" : "";
	if (key->max == UINT64_MAX)
		snprintf(out, size, "%s%s of at least %s", zero, what, least);
	else
		snprintf(out, size, "%s%s from %s%s to %s%s", zero, what, least, sign, most, sign);
}

void config_text_expected(const struct config_key *key, char *out, size_t size)
{
	out[0] = '\0';
	switch (key->type) {
	case CONFIG_TYPE_MAP:
	case CONFIG_TYPE_COMPONENTS:
		append(out, size, "a map");
		break;
	case CONFIG_TYPE_MAPS:
		append(out, size, "a list of maps");
		break;
	case CONFIG_TYPE_VARIANT:
		list_choices(key, out, size);
		for (const struct config_key *inner = key->keys; inner->name; inner++) {
			append(out, size, inner[1].name ? ", {" : " or {");
			append(out, size, inner->name);
			append(out, size, ": […]}");
		}
		break;
	case CONFIG_TYPE_TEXT:
	case CONFIG_TYPE_SECRET:
		if (key->choices)
			list_choices(key, out, size);
		else
			append(out, size, "a text without control characters");
		break;
	case CONFIG_TYPE_CHOICE:
		list_choices(key, out, size);
		break;
	case CONFIG_TYPE_PATH:
		append(out, size, "a whole path, from / on");
		break;
	case CONFIG_TYPE_BOOL:
		append(out, size, "true or false");
		break;
	case CONFIG_TYPE_INTEGER:
		expect_number(key, "a number", out, size);
		break;
	case CONFIG_TYPE_DURATION:
		expect_number(key, "a duration like 90s or 1h30m,", out, size);
		break;
	case CONFIG_TYPE_SIZE:
		expect_number(key, "a size like 512MiB,", out, size);
		break;
	case CONFIG_TYPE_PERCENT:
		expect_number(key, "a share like 5%,", out, size);
		break;
	case CONFIG_TYPE_SHARE:
		append(out, size, "a share like 5% or a size like 512MiB");
		break;
	case CONFIG_TYPE_TEXTS:
		append(out, size, "a list");
		if (key->choices) {
			append(out, size, " of ");
			list_choices(key, out, size);
		}
		break;
	case CONFIG_TYPE_INTEGERS:
		append(out, size, "a list of numbers");
		break;
	case CONFIG_TYPE_TEXT_MAP:
	case CONFIG_TYPE_SECRET_MAP:
		append(out, size, "a map of texts");
		break;
	case CONFIG_TYPE_INTEGER_MAP:
		append(out, size, "a map of numbers");
		break;
	}
}
