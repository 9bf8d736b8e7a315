/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/template_text.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

enum { GROUP_MAX = 65535 };

static size_t name_length(const char *p)
{
	size_t n = 0;
	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	return n;
}

/*
 * The group named at p, which is behind a '$': its name and the bytes that it takes. False when
 * there is no group.
 */
static bool read_name(const char *p, const char **name_out, size_t *n_name_out, size_t *taken_out)
{
	bool has_braces = *p == '{';
	*name_out = p + has_braces;
	*n_name_out = name_length(*name_out);
	*taken_out = *n_name_out + 2 * (size_t)has_braces;
	return *n_name_out && (!has_braces || (*name_out)[*n_name_out] == '}');
}

/* GROUP_MAX + 1 stands for a group that does not exist. */
static unsigned find_group(const struct pattern *pattern, const char *name, size_t n)
{
	unsigned number = 0;
	bool is_number = true;
	for (size_t i = 0; i < n && is_number; i++) {
		is_number = isdigit((unsigned char)name[i]);
		if (is_number && number <= GROUP_MAX)
			number = 10 * number + (unsigned)(name[i] - '0');
	}
	if (is_number)
		return number <= pattern_n_groups(pattern) ? number : GROUP_MAX + 1;
	unsigned group = pattern_find_group(pattern, name, n);
	return group ? group : GROUP_MAX + 1;
}

static void add(struct template_text *template_text, struct template_part part)
{
	if (!part.text || part.n)
		template_text->parts[template_text->n_parts++] = part;
}

void template_text_init(struct template_text *template_text, const char *source,
			const struct pattern *pattern)
{
	/* A part takes at least one byte of the source. */
	*template_text = (struct template_text){
		.source = mem_copy_string(source),
		.parts = mem_zalloc(strlen(source) + 1, sizeof(struct template_part)),
	};
	const char *p = template_text->source;
	const char *literal = p;
	while (*p) {
		const char *name;
		size_t n_name;
		size_t taken;
		if (*p != '$') {
			p++;
		} else if (p[1] == '$') {
			add(template_text,
			    (struct template_part){literal, (size_t)(p + 1 - literal), 0});
			p += 2;
			literal = p;
		} else if (read_name(p + 1, &name, &n_name, &taken)) {
			add(template_text,
			    (struct template_part){literal, (size_t)(p - literal), 0});
			add(template_text,
			    (struct template_part){NULL, 0, find_group(pattern, name, n_name)});
			template_text->has_groups = true;
			p += 1 + taken;
			literal = p;
		} else {
			p++;
		}
	}
	add(template_text, (struct template_part){literal, (size_t)(p - literal), 0});
}

void template_text_fini(struct template_text *template_text)
{
	mem_free(template_text->source);
	mem_free(template_text->parts);
	*template_text = (struct template_text){0};
}

bool template_text_may_be_name(const struct template_text *template_text)
{
	if (template_text->n_parts == 0)
		return false;
	for (size_t i = 0; i < template_text->n_parts; i++) {
		const struct template_part *part = &template_text->parts[i];
		if (part->text && name_length(part->text) < part->n)
			return false;
	}
	const struct template_part *first = &template_text->parts[0];
	return !first->text || !isdigit((unsigned char)first->text[0]);
}

struct error *template_text_expand(const struct template_text *template_text, const char *text,
				   const size_t *places, struct buf *out)
{
	buf_clear(out);
	for (size_t i = 0; i < template_text->n_parts; i++) {
		const struct template_part *part = &template_text->parts[i];
		struct error *err = NULL;
		if (part->text)
			err = buf_append(out, part->text, part->n);
		else if (part->group <= GROUP_MAX && places[2 * part->group] != PATTERN_UNSET)
			err = buf_append(out, text + places[2 * part->group],
					 places[2 * part->group + 1] - places[2 * part->group]);
		if (err)
			return err;
	}
	return NULL;
}
