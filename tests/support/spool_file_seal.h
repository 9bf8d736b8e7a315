/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the checksums of a changed spool file right again, so that a test reaches what stands
 * behind them; forwarder/spool_file.h has the layout. Users link forwarder.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include <xxhash.h>

enum {
	SPOOL_SEAL_HEADER = 64,
	SPOOL_SEAL_ENTRY = 72,
	SPOOL_SEAL_TRAILER = 40,
	SPOOL_SEAL_SALT_AT = 16, /* in the header */
	SPOOL_SEAL_PAYLOAD_SUM_AT = 56,
};

static inline void spool_seal_block(uint8_t *block, size_t n, uint64_t salt)
{
	uint64_t sum = XXH3_64bits_withSeed(block, n - sizeof(sum), salt);
	memcpy(block + n - sizeof(sum), &sum, sizeof(sum));
}

/* A request header or its copy in the index, with the sum of what it points to. */
static inline void spool_seal_entry(uint8_t *bytes, size_t size, uint8_t *entry, uint64_t salt)
{
	uint64_t offset, n_message, sum = salt;
	uint32_t n_note;
	memcpy(&offset, entry + 8, sizeof(offset));
	memcpy(&n_message, entry + 16, sizeof(n_message));
	memcpy(&n_note, entry + 24, sizeof(n_note));
	if (offset <= size && size - offset >= SPOOL_SEAL_ENTRY) {
		const uint8_t *payload = bytes + offset + SPOOL_SEAL_ENTRY;
		size_t left = size - (size_t)offset - SPOOL_SEAL_ENTRY;
		if (n_note <= left && n_message <= left - n_note) {
			if (n_note)
				sum = XXH3_64bits_withSeed(payload, n_note, salt);
			sum = XXH3_64bits_withSeed(payload + n_note, (size_t)n_message, sum);
			memcpy(entry + SPOOL_SEAL_PAYLOAD_SUM_AT, &sum, sizeof(sum));
		}
	}
	spool_seal_block(entry, SPOOL_SEAL_ENTRY, salt);
}

/* Leaves bytes alone where no checksum can be. */
static inline void spool_file_seal(uint8_t *bytes, size_t size)
{
	uint64_t salt;
	if (size < SPOOL_SEAL_HEADER)
		return;
	memcpy(&salt, bytes + SPOOL_SEAL_SALT_AT, sizeof(salt));
	spool_seal_block(bytes, SPOOL_SEAL_HEADER, 0);
	if (size >= SPOOL_SEAL_HEADER + SPOOL_SEAL_TRAILER)
		spool_seal_block(bytes + size - SPOOL_SEAL_TRAILER, SPOOL_SEAL_TRAILER, 0);
	for (size_t at = SPOOL_SEAL_HEADER; at + SPOOL_SEAL_ENTRY <= size; at += 8) {
		if (memcmp(bytes + at, "PPRQ", 4) == 0)
			spool_seal_entry(bytes, size, bytes + at, salt);
	}
}
