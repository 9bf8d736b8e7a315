/* SPDX-License-Identifier: Apache-2.0 */
/* Build-ids as text and as bytes. */
#include "base/build_id.h"

#include <string.h>

struct build_id build_id_make(const void *bytes, size_t size)
{
	struct build_id id = {0};
	if (size == 0 || size > BUILD_ID_MAX_BYTES)
		return id;
	memcpy(id.bytes, bytes, size);
	id.size = (uint8_t)size;
	id.kind = BUILD_ID_GNU;
	return id;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool build_id_parse(const char *hex, struct build_id *out)
{
	size_t n = strnlen(hex, BUILD_ID_HEX_BYTES);
	if (n == 0 || n % 2 || n > 2 * BUILD_ID_MAX_BYTES)
		return false;
	struct build_id id = {.size = (uint8_t)(n / 2), .kind = BUILD_ID_GNU};
	for (size_t i = 0; i < n; i += 2) {
		int high = hex_value(hex[i]);
		int low = hex_value(hex[i + 1]);
		if (high < 0 || low < 0)
			return false;
		id.bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	*out = id;
	return true;
}

void build_id_format(const struct build_id *id, char out[BUILD_ID_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char *p = out;
	for (size_t i = 0; i < id->size && i < BUILD_ID_MAX_BYTES; i++) {
		*p++ = digits[id->bytes[i] >> 4];
		*p++ = digits[id->bytes[i] & 15];
	}
	*p = 0;
}

/* Size without the zeros at the end. */
static size_t bare_size(const struct build_id *id)
{
	size_t n = id->size < BUILD_ID_MAX_BYTES ? id->size : BUILD_ID_MAX_BYTES;
	while (n && id->bytes[n - 1] == 0)
		n--;
	return n;
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	size_t n = bare_size(a);
	return n && n == bare_size(b) && memcmp(a->bytes, b->bytes, n) == 0;
}
