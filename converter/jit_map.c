/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/jit_map.h"

#include <string.h>

/* What is left of a line. */
struct line {
	const char *next, *end;
};

static void skip_blanks(struct line *line)
{
	while (line->next < line->end && (*line->next == ' ' || *line->next == '\t'))
		line->next++;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* With or without 0x. Behind it stands a blank or the end. */
static bool take_hex(struct line *line, uint64_t *out)
{
	skip_blanks(line);
	if (line->end - line->next > 2 && line->next[0] == '0' && (line->next[1] | 0x20) == 'x')
		line->next += 2;
	uint64_t value = 0;
	const char *begin = line->next;
	for (int digit; line->next < line->end && (digit = digit_of(*line->next)) >= 0;
	     line->next++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*out = value;
	return line->next > begin &&
	       (line->next == line->end || *line->next == ' ' || *line->next == '\t');
}

static void take_line(struct jit_map *map, const char *text, size_t n, uint64_t seen_ns,
		      struct jit_code_list *list)
{
	struct line line = {.next = text, .end = text + n};
	if (n && line.end[-1] == '\r')
		line.end--;
	if (line.next == line.end)
		return;
	map->n_lines++;
	struct jit_code code = {.from_ns = seen_ns};
	bool is_sound = take_hex(&line, &code.start) && take_hex(&line, &code.size);
	skip_blanks(&line);
	if (!is_sound || line.next == line.end || code.start == UINT64_MAX) {
		map->n_malformed++;
		return;
	}
	if (list->n >= JIT_CODE_MAX) {
		list->n_left_out++;
		return;
	}
	code.name = jit_code_add_text(list, line.next, (size_t)(line.end - line.next));
	if (code.name == JIT_CODE_NONE)
		list->n_left_out++;
	else
		(void)jit_code_add(list, &code);
}

size_t jit_map_parse(struct jit_map *map, const char *bytes, size_t n, bool is_last,
		     uint64_t seen_ns, struct jit_code_list *list)
{
	size_t at = 0;
	while (at < n) {
		const char *end = memchr(bytes + at, '\n', n - at);
		size_t length = end ? (size_t)(end - bytes) - at : n - at;
		bool is_long = !end && length > JIT_MAP_MAX_LINE_BYTES;
		if (!end && !is_last && !is_long && !map->is_in_long_line)
			break;
		if (!map->is_in_long_line)
			take_line(map, bytes + at, length, seen_ns, list);
		map->is_in_long_line = !end && !is_last;
		at += length + (end != NULL);
	}
	return at;
}
