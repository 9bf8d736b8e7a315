/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zstd stream inside COMPRESSED records. One stream runs through all records of a file (a new
 * frame may begin at any of them); what comes out is cut into records by perf_stream.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

enum {
	PERF_DECOMPRESS_RATIO_MAX = 2048,      /* of all output to all input, beyond … */
	PERF_DECOMPRESS_FREE_BYTES = 64 << 20, /* … this much output */
};

struct ZSTD_DCtx_s;

struct perf_decompress {
	struct ZSTD_DCtx_s *zstd; /* made when the first record comes */
	const uint8_t *next;	  /* of the record at work; borrowed */
	size_t n_left;
	uint64_t n_in;
	uint64_t n_out;
};

/* Zeroed is ready. */
void perf_decompress_fini(struct perf_decompress *decompress);
/* The payload of the next record; read until perf_decompress_read says that it is used up. */
void perf_decompress_feed(struct perf_decompress *decompress, const uint8_t *payload, size_t n);
/*
 * Writes at most size > 0 bytes to out. Fewer than size means that the payload is used up.
 * Errors carry E605: damaged data, or more output than the ratio allows.
 */
struct error *perf_decompress_read(struct perf_decompress *decompress, uint8_t *out, size_t size,
				   size_t *n_out) MUST_USE;
