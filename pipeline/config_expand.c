/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "proto/utf8.h"

enum {
	MAX_VALUE_BYTES = 64 << 10,
	MAX_TOTAL_BYTES = 4 << 20, /* of all values that hold references */
	MAX_NAME_BYTES = 4096,
};

struct expander {
	const struct config_options *options;
	struct arena *arena;
	struct config_problems *problems;
	size_t total_bytes;
};

static const char *get_environment(const struct expander *expander, const char *name)
{
	const struct config_options *options = expander->options;
	return options->get_environment ? options->get_environment(options->context, name)
					: getenv(name);
}

static void fail(struct expander *expander, const struct config_node *node, const char *what,
		 const char *why)
{
	config_error_numbered(expander->problems, 205, node->place, "${%s} %s", what, why);
}

/* What would change the meaning of the text that it is put into. */
static bool is_text(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)bytes[i] < 0x20 && bytes[i] != '\t')
			return false;
	}
	return utf8_is_valid(bytes, n);
}

static bool append(struct expander *expander, struct config_node *node, const char *what,
		   const char *bytes, size_t n, struct buf *out)
{
	if (!is_text(bytes, n)) {
		fail(expander, node, what, "holds control characters or is no UTF-8");
		return false;
	}
	struct error *err = n ? buf_append(out, bytes, n) : NULL;
	if (!err)
		return true;
	error_free(err);
	fail(expander, node, what, "makes the value longer than 64 KiB");
	return false;
}

static bool is_variable_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return *name == '\0';
}

static bool expand_env(struct expander *expander, struct config_node *node, const char *what,
		       char *name, struct buf *out)
{
	char *fallback = strstr(name, ":-");
	if (fallback) {
		*fallback = '\0';
		fallback += 2;
	}
	if (!is_variable_name(name)) {
		fail(expander, node, what, "does not name a variable");
		return false;
	}
	const char *value = get_environment(expander, name);
	/* As in a shell, :- also stands in for a variable that is empty. */
	bool uses_fallback = fallback && (!value || !*value);
	if (!value && !fallback) {
		config_error_numbered(expander->problems, 205, node->place,
				      "environment variable %s is not set; set it, or give a "
				      "default: ${env:%s:-default}",
				      name, name);
		return false;
	}
	if (!uses_fallback)
		node->environment = arena_copy_string(expander->arena, name, strlen(name));
	const char *text = uses_fallback ? fallback : value;
	return append(expander, node, what, text, strlen(text), out);
}

static bool expand_file(struct expander *expander, struct config_node *node, const char *what,
			const char *path, struct buf *out)
{
	node->is_secret = true;
	if (path[0] != '/') {
		fail(expander, node, what, "needs a whole path: ${file:/PATH}");
		return false;
	}
	struct buf content;
	buf_init(&content, MAX_VALUE_BYTES);
	struct error *err = file_read_all(path, &content);
	bool is_done = !err;
	if (err)
		fail(expander, node, what, error_text(err));
	error_free(err);
	size_t n = content.size;
	if (n && content.data[n - 1] == '\n')
		n--;
	if (n && content.data[n - 1] == '\r')
		n--;
	is_done = is_done && append(expander, node, what, (const char *)content.data, n, out);
	buf_fini(&content);
	return is_done;
}

static bool expand_credential(struct expander *expander, struct config_node *node, const char *what,
			      const char *name, struct buf *out)
{
	if (!*name || strchr(name, '/') || name[0] == '.') {
		fail(expander, node, what, "does not name a credential");
		return false;
	}
	const char *folder = get_environment(expander, "CREDENTIALS_DIRECTORY");
	if (!folder && expander->options->may_lack_credentials) {
		config_warn(expander->problems, 221, node->place,
			    "${%s} cannot be checked: CREDENTIALS_DIRECTORY is not set", what);
		folder = "/run/credentials/perfpipe.service";
	}
	if (!folder) {
		fail(expander, node, what,
		     "needs CREDENTIALS_DIRECTORY, which systemd sets for LoadCredential=");
		return false;
	}
	return append(expander, node, what, folder, strlen(folder), out) &&
	       append(expander, node, what, "/", 1, out) &&
	       append(expander, node, what, name, strlen(name), out);
}

static const char *const schemes[] = {"env:", "file:", "credential:"};

/* Index of the scheme of a reference at p ("${env:…"), -1 for all else. */
static int find_scheme(const char *p)
{
	if (p[0] != '$' || p[1] != '{')
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		if (strncmp(p + 2, schemes[i], strlen(schemes[i])) == 0)
			return (int)i;
	}
	return -1;
}

/* The reference at *p; moves behind it. */
static bool expand_reference(struct expander *expander, struct config_node *node, int scheme,
			     const char **p, struct buf *out)
{
	const char *inside = *p + 2;
	size_t n = strcspn(inside, "}");
	if (inside[n] == '\0') {
		config_error_numbered(expander->problems, 205, node->place,
				      "reference ${%s… has no closing }", schemes[scheme]);
		return false;
	}
	*p = inside + n + 1;
	char what[MAX_NAME_BYTES];
	char name[MAX_NAME_BYTES];
	if (n >= sizeof(what)) {
		config_error_numbered(expander->problems, 205, node->place,
				      "reference ${%s… is longer than %d bytes", schemes[scheme],
				      MAX_NAME_BYTES);
		return false;
	}
	memcpy(what, inside, n);
	what[n] = '\0';
	if (strstr(what, "${")) {
		config_error_numbered(expander->problems, 205, node->place,
				      "reference ${%s… holds another one, which is not supported",
				      schemes[scheme]);
		return false;
	}
	snprintf(name, sizeof(name), "%s", what + strlen(schemes[scheme]));
	if (scheme == 0)
		return expand_env(expander, node, what, name, out);
	if (scheme == 1)
		return expand_file(expander, node, what, name, out);
	return expand_credential(expander, node, what, name, out);
}

static void expand_scalar(struct expander *expander, struct config_node *node)
{
	if (!strstr(node->text, "${"))
		return;
	struct buf out;
	buf_init(&out, MAX_VALUE_BYTES);
	struct error *err = NULL;
	bool is_good = true;
	bool is_changed = false;
	for (const char *p = node->source; *p && is_good && !err;) {
		int scheme = find_scheme(p);
		if (scheme >= 0) {
			is_good = expand_reference(expander, node, scheme, &p, &out);
			is_changed = true;
			continue;
		}
		node->has_other_reference |= p[0] == '$' && p[1] == '{';
		err = buf_append(&out, p++, 1);
	}
	expander->total_bytes += out.size;
	bool is_too_much = is_changed && expander->total_bytes > MAX_TOTAL_BYTES;
	if (err || is_too_much)
		config_error_numbered(expander->problems, 205, node->place,
				      err ? "the value is longer than 64 KiB"
					  : "values with references take more than 4 MiB");
	node->is_unknown = !is_good || err || is_too_much;
	error_free(err);
	if (is_changed && !node->is_unknown)
		node->text = arena_copy_string(expander->arena, buf_string(&out), out.size);
	buf_fini(&out);
}

static void expand(struct expander *expander, struct config_node *node)
{
	if (node->kind == CONFIG_SCALAR) {
		expand_scalar(expander, node);
		return;
	}
	for (struct config_node *child = node->first; child; child = child->next)
		expand(expander, child);
}

void config_expand(struct config_node *root, const struct config_options *options,
		   struct arena *arena, struct config_problems *problems)
{
	struct expander expander = {options, arena, problems, 0};
	expand(&expander, root);
}
