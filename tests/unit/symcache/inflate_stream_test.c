/* SPDX-License-Identifier: Apache-2.0 */
/* Against zlib: what it packs in all its ways, and what it thinks of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "symcache/inflate_stream.h"

enum { MAX_BYTES = 300000, PACKED_BYTES = 400000 };

static uint8_t plain[MAX_BYTES], packed[PACKED_BYTES];
static uint8_t out[MAX_BYTES + INFLATE_STREAM_SLACK_BYTES];
static struct inflate_stream stream;

/* Noise, text-like data and runs in turn. */
static size_t make_plain(unsigned seed)
{
	srandom(seed);
	size_t n = (size_t)random() % MAX_BYTES;
	for (size_t i = 0; i < n;) {
		size_t part = 1 + (size_t)random() % 3000;
		unsigned kind = (unsigned)random() % 4;
		for (size_t k = 0; k < part && i < n; k++, i++) {
			if (kind == 0)
				plain[i] = (uint8_t)random();
			else if (kind == 1)
				plain[i] = (uint8_t)('a' + random() % 8);
			else if (kind == 2 && i > 40000)
				plain[i] = plain[i - 31000];
			else
				plain[i] = (uint8_t)(part & 0xff);
		}
	}
	return n;
}

static size_t pack(size_t n, int level, int strategy)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 9, strategy), Z_OK);
	z.next_in = plain;
	z.avail_in = (uInt)n;
	z.next_out = packed;
	z.avail_out = PACKED_BYTES;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t n_packed = PACKED_BYTES - z.avail_out;
	deflateEnd(&z);
	return n_packed;
}

static void inflate_stream_gives_what_zlib_packed(void **state)
{
	(void)state;
	static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE};
	for (unsigned seed = 0; seed < 60; seed++) {
		size_t n = make_plain(seed);
		size_t n_packed = pack(n, (int)(seed % 10), strategies[seed / 10 % 4]);
		/* From a piece of memory of its own, so that a byte too far is seen. */
		uint8_t *input = malloc(n_packed);
		memcpy(input, packed, n_packed);
		memset(out, 0xee, sizeof(out));
		inflate_stream_init(&stream, input, n_packed, out, n);
		size_t step = seed % 3 ? 1 + seed * 997 : n;
		for (uint8_t *to = out; stream.out < out + n && !stream.is_ended;) {
			to = (size_t)(out + n - to) > step ? to + step : out + n;
			inflate_stream_run(&stream, to);
		}
		assert_int_equal(stream.out - out, n);
		assert_memory_equal(out, plain, n);
		free(input);
	}
}

/* Bytes that zlib gets out of damaged input before it gives up. */
static size_t zlib_bytes(const uint8_t *input, size_t n_packed, size_t n, uint8_t *to)
{
	z_stream z = {.next_in = (Bytef *)input, .avail_in = (uInt)n_packed};
	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_out = to;
	z.avail_out = (uInt)n;
	(void)inflate(&z, Z_SYNC_FLUSH);
	size_t n_out = n - z.avail_out;
	inflateEnd(&z);
	return n_out;
}

static void inflate_stream_survives_damage_like_zlib(void **state)
{
	(void)state;
	static uint8_t expected[MAX_BYTES];
	for (unsigned seed = 0; seed < 300; seed++) {
		size_t n = make_plain(seed) % 20000;
		size_t n_packed =
			pack(n, (int)(1 + seed % 9), seed % 3 ? Z_DEFAULT_STRATEGY : Z_FIXED);
		uint8_t *input = malloc(n_packed);
		memcpy(input, packed, n_packed);
		if (seed % 2)
			input[(size_t)random() % n_packed] ^= (uint8_t)(1u << random() % 8);
		else
			n_packed = (size_t)random() % n_packed;
		size_t n_expected = zlib_bytes(input, n_packed, n, expected);
		inflate_stream_init(&stream, input, n_packed, out, n);
		inflate_stream_run(&stream, out + n);
		size_t n_got = (size_t)(stream.out - out);
		size_t n_both = n_got < n_expected ? n_got : n_expected;
		assert_true(n_got <= n);
		assert_memory_equal(out, expected, n_both);
		free(input);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inflate_stream_gives_what_zlib_packed),
		cmocka_unit_test(inflate_stream_survives_damage_like_zlib),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
