/* SPDX-License-Identifier: Apache-2.0 */
/* The only user of PCRE2. */
#include "pipeline/pattern.h"

#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"

enum {
	MAX_PATTERN_BYTES = 64 << 10,
	MATCH_LIMIT = 1000000, /* steps; a name of 1 KB takes a few thousand at most */
	HEAP_LIMIT_KIB = 16 << 10,
	ERROR_TEXT_BYTES = 256,
};

struct pattern {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	char *text;
};

struct error *pattern_compile(const char *text, struct pattern **out)
{
	size_t size = strlen(text);
	if (size > MAX_PATTERN_BYTES)
		return error_new(ERROR_USAGE, "regular expression longer than %d bytes",
				 MAX_PATTERN_BYTES);
	int code = 0;
	PCRE2_SIZE offset = 0;
	pcre2_code *compiled = pcre2_compile(
		(PCRE2_SPTR)text, size, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
	if (!compiled) {
		PCRE2_UCHAR why[ERROR_TEXT_BYTES] = {0};
		pcre2_get_error_message(code, why, sizeof(why));
		return error_new(ERROR_USAGE, "regular expression '%s': %s at character %zu", text,
				 (const char *)why, offset + 1);
	}
	struct pattern *pattern = mem_zalloc(1, sizeof(*pattern));
	pattern->code = compiled;
	pattern->match = pcre2_match_data_create(1, NULL);
	pattern->context = pcre2_match_context_create(NULL);
	pattern->text = mem_copy_string(text);
	pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
	pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
	*out = pattern;
	return NULL;
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
