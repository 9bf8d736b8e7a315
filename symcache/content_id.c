/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/content_id.h"

#include <stdint.h>
#include <string.h>

#include "base/hash_map.h"

enum {
	N_LANES = 3,
	GO_ID_BYTES = 20,
	FILE_ID_BYTES = 16,
	WHOLE_MAX_BYTES = 1 << 20,
	EDGE_BYTES = 64 << 10,
	PAGE_BYTES = 4096,
	N_PAGES = 128,
};

struct content_hash {
	uint64_t lanes[N_LANES];
};

static const uint64_t multipliers[N_LANES] = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu,
					      0x165667b19e3779f9u};

static void mix_word(struct content_hash *hash, uint64_t word)
{
	for (unsigned i = 0; i < N_LANES; i++) {
		uint64_t x = (hash->lanes[i] ^ word) * multipliers[i];
		hash->lanes[i] = (x << 29 | x >> 35) + multipliers[N_LANES - 1 - i];
	}
}

static uint64_t little_word(const uint8_t *p, size_t n)
{
	uint64_t word = 0;
	memcpy(&word, p, n);
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
}

static void mix_bytes(struct content_hash *hash, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8)
		mix_word(hash, little_word(p, 8));
	if (n)
		mix_word(hash, little_word(p, n));
}

static struct build_id close_hash(struct content_hash *hash, uint64_t length, uint8_t n,
				  enum build_id_kind kind)
{
	mix_word(hash, length);
	uint8_t bytes[N_LANES * 8];
	for (unsigned i = 0; i < N_LANES; i++) {
		uint64_t x = hash_mix(hash->lanes[i]);
		for (unsigned k = 0; k < 8; k++)
			bytes[i * 8 + k] = (uint8_t)(x >> (8 * k));
	}
	struct build_id id = build_id_make(bytes, n);
	id.kind = (uint8_t)kind;
	return id;
}

static struct content_hash start_hash(void)
{
	return (struct content_hash){{1, 2, 3}};
}

struct build_id content_id_of_file(const void *data, size_t size)
{
	const uint8_t *p = data;
	struct content_hash hash = start_hash();
	if (size <= WHOLE_MAX_BYTES) {
		mix_bytes(&hash, p, size);
		return close_hash(&hash, size, FILE_ID_BYTES, BUILD_ID_HASH);
	}
	mix_bytes(&hash, p, EDGE_BYTES);
	size_t between = size - (size_t)2 * EDGE_BYTES - PAGE_BYTES;
	for (size_t i = 0; i < N_PAGES; i++)
		mix_bytes(&hash, p + EDGE_BYTES + between / N_PAGES * i, PAGE_BYTES);
	mix_bytes(&hash, p + size - EDGE_BYTES, EDGE_BYTES);
	return close_hash(&hash, size, FILE_ID_BYTES, BUILD_ID_HASH);
}

struct build_id content_id_of_go_note(const void *note, size_t size)
{
	struct content_hash hash = start_hash();
	mix_bytes(&hash, note, size);
	return close_hash(&hash, size, GO_ID_BYTES, BUILD_ID_GO);
}
