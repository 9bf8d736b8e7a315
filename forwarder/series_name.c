/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/series_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "proto/utf8.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

void series_name_make(const char *name, char *out, size_t n)
{
	size_t used = 0;
	if (!*name || is_digit(*name))
		out[used++] = '_';
	for (; *name && used + 1 < n; name++)
		out[used++] = is_word(*name) ? *name : '_';
	out[used] = 0;
}

void series_name_make_type(const char *type, char *out, size_t n)
{
	size_t used = 0;
	for (; *type && used + 1 < n; type++) {
		bool is_upper = *type >= 'A' && *type <= 'Z';
		out[used++] = (char)(is_upper ? *type - 'A' + 'a' : is_word(*type) ? *type : '_');
	}
	out[used] = 0;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The longest part of valid text that has at most n bytes and ends with a character. */
static size_t cut_length(const char *text, size_t n)
{
	while (n && is_continuation(text[n]))
		n--;
	return n;
}

void series_name_make_value(const char *value, char *out, size_t n)
{
	static const char mark[] = "...";
	size_t size = strlen(value);
	/* Only so much of it can count. */
	bool is_cut = size >= n;
	if (is_cut)
		size = n - 1;
	char *repaired = mem_alloc(size * UTF8_REPAIR_GROWTH + 1);
	size_t length = utf8_repair(value, size, repaired);
	repaired[length] = 0;
	is_cut |= length >= n;
	if (is_cut) {
		size_t room = n > sizeof(mark) ? n - sizeof(mark) : 0;
		length = cut_length(repaired, length < room ? length : room);
	}
	memcpy(out, repaired, length);
	out[length] = 0;
	if (is_cut && n > sizeof(mark))
		memcpy(out + length, mark, sizeof(mark));
	mem_free(repaired);
}
