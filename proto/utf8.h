/* SPDX-License-Identifier: Apache-2.0 */
/* Valid UTF-8 out of any bytes: what a protobuf string must be. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Well-formed in the sense of Unicode table 3-7: no surrogates, nothing overlong. */
bool utf8_is_valid(const char *text, size_t size);
enum { UTF8_REPAIR_GROWTH = 3 };
/*
 * Copies with U+FFFD for each byte that no well-formed sequence begins or continues. out has room
 * for size * UTF8_REPAIR_GROWTH; returns the bytes written.
 */
size_t utf8_repair(const char *text, size_t size, char *out);
