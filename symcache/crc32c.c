/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/crc32c.h"

#include <string.h>

/* Four bits through the register (polynomial 0x1edc6f41, bits reversed). */
static const uint32_t nibbles[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_update_portable(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibbles[crc & 15];
		crc = crc >> 4 ^ nibbles[crc & 15];
	}
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t update_by_instruction(uint32_t crc,
									const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t state = ~crc;
	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), p += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, p, sizeof(word));
		state = __builtin_ia32_crc32di(state, word);
	}
	uint32_t last = (uint32_t)state;
	for (; n; n--, p++)
		last = __builtin_ia32_crc32qi(last, *p);
	return ~last;
}

uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n)
{
	return __builtin_cpu_supports("sse4.2") ? update_by_instruction(crc, bytes, n)
						: crc32c_update_portable(crc, bytes, n);
}
#else
uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n)
{
	return crc32c_update_portable(crc, bytes, n);
}
#endif
