/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the texts and details with which a server says why a call failed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "forwarder/base64.h"
#include "forwarder/grpc_status.h"
#include "forwarder/text_escape.h"
#include "proto/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	uint64_t delay = 0;
	const uint64_t most = 366 * 86400 * (uint64_t)1000000000 + 999999999;
	if (grpc_status_retry_info(data, size, &delay) && delay > most)
		abort();
	if (grpc_status_retry_after(text, size, 1700000000000000000, &delay) && delay > most)
		abort();
	enum grpc_code code;
	grpc_status_parse(text, size, &code);
	if (code < 0 || code >= GRPC_CODE_N)
		abort();

	char *decoded = malloc(size + 1);
	size_t n = grpc_status_percent_decode(text, size, decoded);
	if (n > size)
		abort();
	char shown[64];
	text_escape(decoded, n, shown, sizeof(shown));
	if (strlen(shown) >= sizeof(shown) || !utf8_is_valid(shown, strlen(shown)))
		abort();
	for (const char *c = shown; *c; c++)
		if ((uint8_t)*c < 0x20 || *c == 0x7f)
			abort();
	free(decoded);

	/* What is decoded encodes to the same, but for padding and bits that say nothing. */
	uint8_t *bytes = malloc(size / 4 * 3 + 3);
	if (base64_decode(text, size, bytes, &n)) {
		char *again = malloc(base64_encoded_size(n) + 1);
		uint8_t *twice = malloc(n + 6);
		size_t n_twice;
		base64_encode(bytes, n, again);
		if (!base64_decode(again, base64_encoded_size(n), twice, &n_twice) ||
		    n_twice != n || memcmp(bytes, twice, n) != 0)
			abort();
		free(again);
		free(twice);
	}
	free(bytes);
	return 0;
}
