/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/json_text.h"

#include <string.h>

#include "base/mem.h"
#include "proto/utf8.h"

static void write_escaped(FILE *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
}

void json_text_write_n(FILE *out, const char *text, size_t size)
{
	fputc('"', out);
	if (utf8_is_valid(text, size)) {
		write_escaped(out, text, size);
	} else {
		char *repaired = mem_alloc(size * UTF8_REPAIR_GROWTH);
		write_escaped(out, repaired, utf8_repair(text, size, repaired));
		mem_free(repaired);
	}
	fputc('"', out);
}

void json_text_write(FILE *out, const char *text)
{
	if (text)
		json_text_write_n(out, text, strlen(text));
	else
		fputs("null", out);
}
