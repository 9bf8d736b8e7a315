/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 validation, eight bytes at a time while they are ASCII. */
#include "proto/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the well-formed sequence at p, 0 if there is none. */
static size_t sequence_bytes(const uint8_t *p, size_t left)
{
	uint8_t lead = p[0];
	if (lead < 0x80)
		return 1;
	size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	if (lead < 0xc2 || lead > 0xf4 || left < n)
		return 0;
	uint8_t low = 0x80;
	uint8_t high = 0xbf;
	if (lead == 0xe0)
		low = 0xa0; /* overlong below */
	else if (lead == 0xed)
		high = 0x9f; /* surrogates above */
	else if (lead == 0xf0)
		low = 0x90; /* overlong below */
	else if (lead == 0xf4)
		high = 0x8f; /* past U+10FFFF */
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

static size_t ascii_bytes(const uint8_t *p, size_t left)
{
	size_t n = 0;
	for (; left - n >= sizeof(uint64_t); n += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, p + n, sizeof(word));
		if (word & 0x8080808080808080u)
			break;
	}
	while (n < left && p[n] < 0x80)
		n++;
	return n;
}

bool utf8_is_valid(const char *text, size_t size)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t i = ascii_bytes(p, size);
	while (i < size) {
		size_t n = sequence_bytes(p + i, size - i);
		if (!n)
			return false;
		i += n;
		i += ascii_bytes(p + i, size - i);
	}
	return true;
}

size_t utf8_repair(const char *text, size_t size, char *out)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t written = 0;
	for (size_t i = 0; i < size;) {
		size_t n = sequence_bytes(p + i, size - i);
		if (n) {
			memcpy(out + written, text + i, n);
			written += n;
			i += n;
		} else {
			memcpy(out + written, "\xef\xbf\xbd", 3);
			written += 3;
			i++;
		}
	}
	return written;
}
