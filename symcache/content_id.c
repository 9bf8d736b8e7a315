/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/content_id.h"

#include <stdint.h>
#include <string.h>

#include "base/file.h"
#include "base/hash_map.h"
#include "base/mem.h"

enum {
	N_LANES = 3,
	GO_ID_BYTES = 20,
	FILE_ID_BYTES = 16,
	EXTENSION_BYTES = 8,
	EDGE_BYTES = 64 << 10,
	PAGE_BYTES = 4096,
	N_PAGES = 4096,
	STEP_BYTES = 256 << 10, /* whole words */
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

/* What is hashed: bytes in memory, or of an open file. */
struct content {
	const uint8_t *data; /* NULL = those of fd, from offset on */
	int fd;
	uint64_t offset;
	uint8_t *room; /* STEP_BYTES */
};

static struct error *mix_part(struct content_hash *hash, const struct content *content, uint64_t at,
			      uint64_t n)
{
	if (content->data) {
		mix_bytes(hash, content->data + at, (size_t)n);
		return NULL;
	}
	while (n) {
		size_t step = n < STEP_BYTES ? (size_t)n : STEP_BYTES, got;
		struct error *err =
			file_read_at(content->fd, content->offset + at, content->room, step, &got);
		if (!err && got < step)
			err = error_new(ERROR_BAD_DATA, "the file was cut while it was read");
		if (err)
			return err;
		mix_bytes(hash, content->room, step);
		at += step;
		n -= step;
	}
	return NULL;
}

static struct error *mix_file(struct content_hash *hash, const struct content *content,
			      uint64_t size)
{
	if (size <= CONTENT_ID_WHOLE_BYTES)
		return mix_part(hash, content, 0, size);
	uint64_t stride = (size - (uint64_t)2 * EDGE_BYTES - PAGE_BYTES) / N_PAGES;
	struct error *err = mix_part(hash, content, 0, EDGE_BYTES);
	for (unsigned i = 0; i < N_PAGES && !err; i++)
		err = mix_part(hash, content, EDGE_BYTES + stride * i, PAGE_BYTES);
	return err ? err : mix_part(hash, content, size - EDGE_BYTES, EDGE_BYTES);
}

struct build_id content_id_of_file(const void *data, size_t size)
{
	const struct content content = {.data = size ? data : ""};
	struct content_hash hash = start_hash();
	error_free(mix_file(&hash, &content, size)); /* memory does not fail */
	return close_hash(&hash, size, FILE_ID_BYTES, BUILD_ID_HASH);
}

struct error *content_id_of_fd(int fd, uint64_t offset, uint64_t size, struct build_id *out)
{
	const struct content content = {.fd = fd, .offset = offset, .room = mem_alloc(STEP_BYTES)};
	struct content_hash hash = start_hash();
	struct error *err = mix_file(&hash, &content, size);
	if (!err)
		*out = close_hash(&hash, size, FILE_ID_BYTES, BUILD_ID_HASH);
	mem_free(content.room);
	return err;
}

void content_id_extend(struct build_id *id, const struct build_id *hash)
{
	if (id->size > BUILD_ID_MAX_BYTES - EXTENSION_BYTES) {
		/* No room: a hash of both, which no file has for an id of its own. */
		uint8_t both[2 * BUILD_ID_MAX_BYTES];
		memcpy(both, id->bytes, id->size);
		memcpy(both + id->size, hash->bytes, hash->size);
		*id = content_id_of_file(both, (size_t)id->size + hash->size);
		return;
	}
	memcpy(id->bytes + id->size, hash->bytes, EXTENSION_BYTES);
	id->size += EXTENSION_BYTES;
}

struct build_id content_id_of_go_note(const void *note, size_t size)
{
	struct content_hash hash = start_hash();
	mix_bytes(&hash, note, size);
	return close_hash(&hash, size, GO_ID_BYTES, BUILD_ID_GO);
}
