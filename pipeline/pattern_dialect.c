/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pattern_dialect.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REPEAT = 1000 }; /* of RE2 */

struct scan {
	const char *text;
	const char *at;
};

static struct error *refuse(const struct scan *scan, const char *place, const char *what)
{
	return error_new(ERROR_USAGE, "regular expression '%s': %s at character %zu", scan->text,
			 what, (size_t)(place - scan->text) + 1);
}

/* --- escapes --- */

static struct error *check_hexadecimal(struct scan *scan, const char *start)
{
	if (*scan->at == '{') {
		const char *close = strchr(scan->at, '}');
		scan->at = close ? close + 1 : scan->at + 1;
		return NULL;
	}
	if (!isxdigit((unsigned char)scan->at[0]) || !isxdigit((unsigned char)scan->at[1]))
		return refuse(scan, start, "\\x takes two hexadecimal digits or {…}");
	scan->at += 2;
	return NULL;
}

static struct error *check_property(struct scan *scan, const char *start)
{
	if (*scan->at != '{') {
		scan->at += *scan->at != '\0';
		return NULL;
	}
	const char *close = strchr(scan->at, '}');
	if (!close)
		return NULL;
	const char *name = scan->at + 1 + (scan->at[1] == '^');
	for (const char *p = name; p < close; p++) {
		if (!isalpha((unsigned char)*p) && *p != '_')
			return refuse(scan, start, "a property that RE2 does not know");
	}
	if (*name == 'X' && close - name == 3)
		return refuse(scan, start, "a property that RE2 does not know");
	scan->at = close + 1;
	return NULL;
}

/* scan->at is behind the backslash. */
static struct error *check_escape(struct scan *scan, bool is_in_class)
{
	const char *start = scan->at - 1;
	char c = *scan->at;
	if (c == '\0')
		return NULL;
	scan->at++;
	if (c == 'x')
		return check_hexadecimal(scan, start);
	if (c == 'p' || c == 'P')
		return check_property(scan, start);
	if (c == '0') {
		for (int i = 0; i < 2 && *scan->at >= '0' && *scan->at <= '7'; i++)
			scan->at++;
		return NULL;
	}
	if (strchr("aftnrdDsSwW", c))
		return NULL;
	if (!is_in_class && c == 'Q') {
		const char *end = strstr(scan->at, "\\E");
		scan->at = end ? end + 2 : scan->at + strlen(scan->at);
		return NULL;
	}
	if (!is_in_class && strchr("AbBz", c))
		return NULL;
	if (isdigit((unsigned char)c) || c == 'k' || c == 'g')
		return refuse(scan, start, "back-references are not supported");
	if (isalnum((unsigned char)c) || (unsigned char)c >= 0x80)
		return refuse(scan, start, "an escape that RE2 does not know");
	return NULL;
}

/* --- [classes] --- */

/* "[:alpha:]" at scan->at; false when it is none. */
static bool skip_posix_class(struct scan *scan, bool *is_known_out)
{
	static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
					    "digit", "graph", "lower", "print", "punct",
					    "space", "upper", "word",  "xdigit"};
	if (scan->at[0] != '[' || scan->at[1] != ':')
		return false;
	const char *name = scan->at + 2 + (scan->at[2] == '^');
	const char *end = strstr(name, ":]");
	if (!end)
		return false;
	*is_known_out = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == (size_t)(end - name) &&
		    memcmp(names[i], name, (size_t)(end - name)) == 0)
			*is_known_out = true;
	}
	scan->at = end + 2;
	return true;
}

/* scan->at is behind '['. */
static struct error *check_class(struct scan *scan)
{
	if (*scan->at == '^')
		scan->at++;
	if (*scan->at == ']')
		scan->at++;
	while (*scan->at && *scan->at != ']') {
		const char *start = scan->at;
		bool is_known;
		if (skip_posix_class(scan, &is_known)) {
			if (!is_known)
				return refuse(scan, start, "a class that RE2 does not know");
			continue;
		}
		if (*scan->at++ != '\\')
			continue;
		struct error *err = check_escape(scan, true);
		if (err)
			return err;
	}
	scan->at += *scan->at == ']';
	return NULL;
}

/* --- (groups) --- */

static const struct construct {
	const char *text, *what;
} constructs[] = {
	{"(*", "verbs are not supported"},
	{"(?=", "look-ahead is not supported"},
	{"(?!", "look-ahead is not supported"},
	{"(?<=", "look-behind is not supported"},
	{"(?<!", "look-behind is not supported"},
	{"(?>", "atomic groups are not supported"},
	{"(?(", "conditions are not supported"},
	{"(?|", "groups that share numbers are not supported"},
	{"(?#", "comments are not supported"},
	{"(?P=", "back-references are not supported"},
	{"(?P>", "recursion is not supported"},
	{"(?&", "recursion is not supported"},
	{"(?R", "recursion is not supported"},
	{"(?C", "callouts are not supported"},
};

/* scan->at is behind '('. */
static struct error *check_group(struct scan *scan)
{
	const char *start = scan->at - 1;
	for (size_t i = 0; i < sizeof(constructs) / sizeof(constructs[0]); i++) {
		if (strncmp(start, constructs[i].text, strlen(constructs[i].text)) == 0)
			return refuse(scan, start, constructs[i].what);
	}
	if (*scan->at != '?')
		return NULL;
	scan->at++;
	if (isdigit((unsigned char)*scan->at) ||
	    ((*scan->at == '+' || *scan->at == '-') && isdigit((unsigned char)scan->at[1])))
		return refuse(scan, start, "recursion is not supported");
	if (strncmp(scan->at, "P<", 2) == 0 || *scan->at == '<') {
		const char *close = strchr(scan->at, '>');
		scan->at = close ? close + 1 : scan->at + strlen(scan->at);
		return NULL;
	}
	const char *flags = scan->at;
	while (*scan->at && strchr("imsU-", *scan->at))
		scan->at++;
	if (*scan->at != ':' && (*scan->at != ')' || scan->at == flags))
		return refuse(scan, start, "a kind of group that RE2 does not know");
	scan->at++;
	return NULL;
}

/* --- repetition --- */

/* Length of a repetition operator at p, 0 if there is none; *counts_out is its largest number. */
static size_t repetition_length(const char *p, unsigned long *count_out)
{
	*count_out = 0;
	if (*p == '*' || *p == '+' || *p == '?')
		return 1;
	if (*p != '{' || !isdigit((unsigned char)p[1]))
		return 0;
	char *end;
	*count_out = strtoul(p + 1, &end, 10);
	if (*end == ',' && isdigit((unsigned char)end[1])) {
		unsigned long most = strtoul(end + 1, &end, 10);
		*count_out = most > *count_out ? most : *count_out;
	} else if (*end == ',') {
		end++;
	}
	return *end == '}' ? (size_t)(end + 1 - p) : 0;
}

/* What stands behind an item; moves over it. */
static struct error *check_repetition(struct scan *scan)
{
	unsigned long count;
	const char *start = scan->at;
	size_t length = repetition_length(scan->at, &count);
	if (!length)
		return NULL;
	if (count > MAX_REPEAT)
		return refuse(scan, start, "more than 1000 repetitions");
	scan->at += length;
	if (*scan->at == '?')
		scan->at++;
	if (*scan->at == '+')
		return refuse(scan, start, "possessive repetition is not supported");
	if (repetition_length(scan->at, &count))
		return refuse(scan, start, "repetition of a repetition");
	return NULL;
}

struct error *pattern_dialect_check(const char *text)
{
	struct scan scan = {.text = text, .at = text};
	while (*scan.at) {
		struct error *err = NULL;
		switch (*scan.at++) {
		case '\\':
			err = check_escape(&scan, false);
			break;
		case '[':
			err = check_class(&scan);
			break;
		case '(':
			err = check_group(&scan);
			break;
		default:
			break;
		}
		if (!err)
			err = check_repetition(&scan);
		if (err)
			return err;
	}
	return NULL;
}
