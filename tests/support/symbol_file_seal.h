/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the checksums of a changed symbol file right again, so that a test reaches what stands
 * behind them. Users link symcache.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "symcache/crc32c.h"
#include "symcache/symbol_file_layout.h"

/* Leaves bytes alone where no checksum can be. */
static inline void symbol_file_seal(uint8_t *bytes, size_t size)
{
	uint32_t n, crc = 0;
	if (size < SYMBOL_FILE_HEADER_BYTES)
		return;
	memcpy(&n, bytes + SYMBOL_FILE_AT_N_SECTIONS, sizeof(n));
	n = le32toh(n);
	if (n > (size - SYMBOL_FILE_HEADER_BYTES) / SYMBOL_FILE_ENTRY_BYTES)
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *entry = bytes + SYMBOL_FILE_HEADER_BYTES + i * SYMBOL_FILE_ENTRY_BYTES;
		uint64_t offset, section_size;
		memcpy(&offset, entry + 8, sizeof(offset));
		memcpy(&section_size, entry + 16, sizeof(section_size));
		offset = le64toh(offset);
		section_size = le64toh(section_size);
		if (offset > size || section_size > size - offset)
			continue;
		crc = htole32(crc32c_update(0, bytes + offset, section_size));
		memcpy(entry + 4, &crc, sizeof(crc));
	}
	memset(bytes + SYMBOL_FILE_AT_CRC, 0, sizeof(crc));
	crc = htole32(crc32c_update(
		0, bytes, SYMBOL_FILE_HEADER_BYTES + (size_t)n * SYMBOL_FILE_ENTRY_BYTES));
	memcpy(bytes + SYMBOL_FILE_AT_CRC, &crc, sizeof(crc));
}
