/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/json_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at p (RFC 3629), 0 when there is none. */
static size_t sequence_length(const uint8_t *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool is_surrogate = p[0] == 0xed && p[1] > 0x9f;
	bool is_too_high = p[0] == 0xf4 && p[1] > 0x8f;
	return is_overlong || is_surrogate || is_too_high ? 0 : n;
}

void json_text_write_n(FILE *out, const char *text, size_t size)
{
	const uint8_t *p = (const uint8_t *)text;
	const uint8_t *end = p + size;
	fputc('"', out);
	while (p < end) {
		size_t n = sequence_length(p, (size_t)(end - p));
		if (n == 0) {
			fputs("\\ufffd", out);
			p++;
		} else if (*p == '"' || *p == '\\') {
			fprintf(out, "\\%c", *p++);
		} else if (*p < 0x20 || *p == 0x7f) {
			fprintf(out, "\\u%04x", *p++);
		} else {
			fwrite(p, 1, n, out);
			p += n;
		}
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
