/* SPDX-License-Identifier: Apache-2.0 */
/* Peers write what they like; terminals and logs get one printable line. */
#include "forwarder/text_escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/utf8.h"

/* Bytes of the character at p: 1 to 4, 0 when it is not valid or is a C1 control. */
static size_t character(const char *p, size_t n)
{
	uint8_t first = (uint8_t)*p;
	size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (size > n || !utf8_is_valid(p, size))
		return 0;
	bool is_c1 = first == 0xc2 && (uint8_t)p[1] < 0xa0;
	return is_c1 ? 0 : size;
}

void text_escape(const void *text, size_t n, char *out, size_t size)
{
	static const char ellipsis[] = "…";
	const char *p = text;
	size_t room = size - sizeof(ellipsis);
	size_t written = 0;
	for (size_t i = 0; i < n;) {
		uint8_t c = (uint8_t)p[i];
		bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
		size_t step = is_space ? 1 : character(p + i, n - i);
		if (written + (step ? step : 1) > room) {
			memcpy(out + written, ellipsis, sizeof(ellipsis) - 1);
			written += sizeof(ellipsis) - 1;
			break;
		}
		if (is_space) {
			if (written > 0 && out[written - 1] != ' ')
				out[written++] = ' ';
		} else if (step == 0 || c < 0x20 || c == 0x7f) {
			out[written++] = '?';
		} else {
			memcpy(out + written, p + i, step);
			written += step;
		}
		i += step ? step : 1;
	}
	while (written > 0 && out[written - 1] == ' ')
		written--;
	out[written] = 0;
}
