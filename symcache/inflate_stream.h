/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DEFLATE (RFC 1951) into one flat piece of memory, a part at a time. zlib's inflate is half of
 * what reading compressed debug information costs; with the whole output in place there is no
 * window to keep and a match is a copy, which takes half of that.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	INFLATE_STREAM_WINDOW_BYTES = 32 << 10, /* behind next_out, that are read again */
	INFLATE_STREAM_SLACK_BYTES = 512,	/* behind the output, that may be overwritten */
	INFLATE_LITERAL_BITS = 11,
	INFLATE_DISTANCE_BITS = 8,
	/* The main table, and for each of its slots that long codes share, a table of the rest. */
	INFLATE_LITERAL_ENTRIES = (1 << INFLATE_LITERAL_BITS) + 288 * 16,
	INFLATE_DISTANCE_ENTRIES = (1 << INFLATE_DISTANCE_BITS) + 32 * 128,
};

struct inflate_stream {
	const uint8_t *next, *end; /* input */
	uint8_t *out_begin, *out, *out_end;
	uint64_t bits;
	unsigned n_bits;
	bool is_in_block, is_stored, is_last;
	bool is_ended; /* whole, or damaged: there will be no more */
	size_t stored_left;
	uint32_t literals[INFLATE_LITERAL_ENTRIES];
	uint32_t distances[INFLATE_DISTANCE_ENTRIES];
};

/* out has INFLATE_STREAM_SLACK_BYTES more than out_bytes. */
void inflate_stream_init(struct inflate_stream *stream, const void *in, size_t in_bytes, void *out,
			 size_t out_bytes);
/* Goes on until out reached target, or a little more, or the end. */
void inflate_stream_run(struct inflate_stream *stream, uint8_t *target);
