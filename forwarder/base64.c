/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 of header values. */
#include "forwarder/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t n, char *out)
{
	const uint8_t *in = bytes;
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t three = (uint32_t)in[i] << 16;
		if (left > 1)
			three |= (uint32_t)in[i + 1] << 8;
		if (left > 2)
			three |= in[i + 2];
		*out++ = alphabet[three >> 18];
		*out++ = alphabet[three >> 12 & 63];
		*out++ = left > 1 ? alphabet[three >> 6 & 63] : '=';
		*out++ = left > 2 ? alphabet[three & 63] : '=';
	}
}

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *n_out)
{
	size_t padding = 0;
	if (n % 4 == 0)
		while (padding < 2 && padding < n && text[n - 1 - padding] == '=')
			padding++;
	n -= padding;
	if (n % 4 == 1)
		return false;
	uint32_t bits = 0;
	size_t n_bits = 0;
	size_t written = 0;
	for (size_t i = 0; i < n; i++) {
		int value = digit(text[i]);
		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			out[written++] = (uint8_t)(bits >> n_bits);
		}
	}
	*n_out = written;
	return true;
}
