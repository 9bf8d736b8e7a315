/* SPDX-License-Identifier: Apache-2.0 */
/* The only user of PCRE2. */
#include "pipeline/pattern.h"

#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "pipeline/pattern_dialect.h"

enum {
	MAX_PATTERN_BYTES = 64 << 10,
	MATCH_LIMIT = 1000000,	    /* steps; a name of 1 KB takes a few thousand at most */
	LABEL_MATCH_LIMIT = 100000, /* label values are short, and many */
	HEAP_LIMIT_KIB = 16 << 10,
	ERROR_TEXT_BYTES = 256,
};

struct pattern {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	char *text;
};

static struct error *compile(const char *text, uint32_t options, uint32_t match_limit,
			     struct pattern **out)
{
	size_t size = strlen(text);
	if (size > MAX_PATTERN_BYTES)
		return error_new(ERROR_USAGE, "regular expression longer than %d bytes",
				 MAX_PATTERN_BYTES);
	int code = 0;
	PCRE2_SIZE offset = 0;
	pcre2_code *compiled =
		pcre2_compile((PCRE2_SPTR)text, size, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | options,
			      &code, &offset, NULL);
	if (!compiled) {
		PCRE2_UCHAR why[ERROR_TEXT_BYTES] = {0};
		pcre2_get_error_message(code, why, sizeof(why));
		return error_new(ERROR_USAGE, "regular expression '%s': %s at character %zu", text,
				 (const char *)why, offset + 1);
	}
	struct pattern *pattern = mem_zalloc(1, sizeof(*pattern));
	pattern->code = compiled;
	pattern->match = pcre2_match_data_create_from_pattern(compiled, NULL);
	pattern->context = pcre2_match_context_create(NULL);
	pattern->text = mem_copy_string(text);
	pcre2_set_match_limit(pattern->context, match_limit);
	pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
	*out = pattern;
	return NULL;
}

struct error *pattern_compile(const char *text, struct pattern **out)
{
	return compile(text, 0, MATCH_LIMIT, out);
}

struct error *pattern_compile_whole(const char *text, struct pattern **out)
{
	struct error *err = pattern_dialect_check(text);
	if (err)
		return err;
	return compile(text,
		       PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY |
			       PCRE2_MATCH_INVALID_UTF,
		       LABEL_MATCH_LIMIT, out);
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_match_context_free(pattern->context);
	pcre2_match_data_free(pattern->match);
	pcre2_code_free(pattern->code);
	mem_free(pattern->text);
	mem_free(pattern);
}

struct error *pattern_capture(struct pattern *pattern, const char *text, size_t n,
			      const size_t **places_out)
{
	int status = pcre2_match(pattern->code, (PCRE2_SPTR)text, n, 0, 0, pattern->match,
				 pattern->context);
	if (status < 0 && status != PCRE2_ERROR_NOMATCH)
		return error_new(ERROR_LIMIT,
				 "regular expression '%s' is too costly on a value of %zu bytes",
				 pattern->text, n);
	*places_out = status < 0 ? NULL : pcre2_get_ovector_pointer(pattern->match);
	return NULL;
}

unsigned pattern_n_groups(const struct pattern *pattern)
{
	uint32_t n = 0;
	pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &n);
	return n;
}

unsigned pattern_find_group(const struct pattern *pattern, const char *name, size_t n)
{
	uint32_t n_names = 0;
	uint32_t entry_size = 0;
	PCRE2_SPTR entry = NULL;
	pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMECOUNT, &n_names);
	pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
	pcre2_pattern_info(pattern->code, PCRE2_INFO_NAMETABLE, &entry);
	/* Each entry: the number in two bytes, most significant first, then the name and a 0. */
	for (uint32_t i = 0; i < n_names; i++, entry += entry_size) {
		const char *found = (const char *)entry + 2;
		if (strlen(found) == n && memcmp(found, name, n) == 0)
			return (unsigned)entry[0] << 8 | entry[1];
	}
	return 0;
}

struct error *pattern_matches(const struct pattern *pattern, const char *text, bool *out)
{
	int status = pcre2_match(pattern->code, (PCRE2_SPTR)text, strlen(text), 0,
				 PCRE2_NO_UTF_CHECK, pattern->match, pattern->context);
	if (status >= 0 || status == PCRE2_ERROR_NOMATCH) {
		*out = status >= 0;
		return NULL;
	}
	return error_new(ERROR_LIMIT, "regular expression '%s' is too costly on '%.64s'",
			 pattern->text, text);
}
