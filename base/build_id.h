/* SPDX-License-Identifier: Apache-2.0 */
/* A build-id with its length and its origin. Zero padding counts only when two are compared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUILD_ID_MAX_BYTES = 64, BUILD_ID_HEX_BYTES = 2 * BUILD_ID_MAX_BYTES + 1 };

enum build_id_kind {
	BUILD_ID_NONE,
	BUILD_ID_GNU,  /* NT_GNU_BUILD_ID; the only kind that may be asked for on other machines */
	BUILD_ID_GO,   /* Go's own note, hashed to 20 bytes */
	BUILD_ID_HASH, /* documented hash of the file's content */
};

struct build_id {
	uint8_t bytes[BUILD_ID_MAX_BYTES];
	uint8_t size;
	uint8_t kind; /* enum build_id_kind */
};

/* GNU kind; size over the maximum gives an empty id. */
struct build_id build_id_make(const void *bytes, size_t size);
/* Even number of hex digits, 1 to 64 bytes; false otherwise. */
bool build_id_parse(const char *hex, struct build_id *out);
/* Lower-case hex into out, "" for none. */
void build_id_format(const struct build_id *id, char out[BUILD_ID_HEX_BYTES]);
/* Equal up to zero padding; an empty id (or one of zeros only) equals nothing. */
bool build_id_equal(const struct build_id *a, const struct build_id *b);
static inline bool build_id_is_set(const struct build_id *id)
{
	return id->size != 0;
}
