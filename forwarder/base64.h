/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648 §4) for binary metadata and basic authentication. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With the '=' of padding. */
static inline size_t base64_encoded_size(size_t n)
{
	return (n + 2) / 3 * 4;
}
/* Writes base64_encoded_size(n) characters without a 0 at the end. */
void base64_encode(const void *bytes, size_t n, char *out);
/*
 * Padded or not. out has room for n / 4 * 3 + 3 bytes; false for a character outside the alphabet,
 * misplaced padding, or a length that no encoding has.
 */
bool base64_decode(const char *text, size_t n, uint8_t *out, size_t *n_out);
