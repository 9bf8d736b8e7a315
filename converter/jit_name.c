/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/jit_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"

static const char python_tag[] = "py::";

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A qualified name has no colon, a path may. */
static struct jit_name split_python(const char *raw)
{
	struct jit_name out = {.name_bytes = strlen(raw)};
	const char *name = raw + strlen(python_tag);
	const char *colon = strchr(name, ':');
	if (!colon || colon == name || !colon[1])
		return out;
	out.name_bytes = (size_t)(colon - raw);
	out.file = colon + 1;
	out.file_bytes = strlen(out.file);
	return out;
}

/* Takes ":NUMBER" from the end of text; 0 when there is none. */
static uint32_t take_number(const char *text, size_t *n)
{
	size_t begin = *n;
	uint64_t value = 0, unit = 1;
	while (begin && text[begin - 1] >= '0' && text[begin - 1] <= '9' && *n - begin < 9) {
		value += (uint64_t)(text[--begin] - '0') * unit;
		unit *= 10;
	}
	if (begin == *n || !begin || text[begin - 1] != ':' || !value)
		return 0;
	*n = begin - 1;
	return (uint32_t)value;
}

/* Where the path begins in "NAME PATH": behind the only blank, or where nothing but a path can. */
static const char *find_path(const char *text, size_t n)
{
	static const char *const beginnings[] = {" /", " file://", " node:", " http://",
						 " https://"};
	const char *first = NULL;
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
		const char *at = memmem(text, n, beginnings[i], strlen(beginnings[i]));
		if (at && (!first || at < first))
			first = at;
	}
	if (first)
		return first + 1;
	const char *blank = memchr(text, ' ', n);
	bool is_only = blank && !memchr(blank + 1, ' ', n - (size_t)(blank + 1 - text));
	return is_only ? blank + 1 : NULL;
}

static struct jit_name split_v8(const char *raw, const char *rest)
{
	struct jit_name out = {.name_bytes = strlen(raw)};
	size_t n = strlen(rest);
	uint32_t last = take_number(rest, &n);
	uint32_t line = take_number(rest, &n);
	if (!line)
		line = last; /* older ones give no column */
	const char *path = line ? find_path(rest, n) : NULL;
	if (!path || path == rest + n)
		return out;
	out.file = path;
	out.file_bytes = (size_t)(rest + n - path);
	out.start_line = line;
	return out;
}

struct jit_name jit_name_split(const char *raw)
{
	static const char *const v8_tags[] = {
		"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
	if (starts_with(raw, python_tag))
		return split_python(raw);
	for (size_t i = 0; i < ARRAY_LEN(v8_tags); i++) {
		if (starts_with(raw, v8_tags[i]))
			return split_v8(raw, raw + strlen(v8_tags[i]));
	}
	return (struct jit_name){.name_bytes = strlen(raw)};
}
