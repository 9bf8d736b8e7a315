/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes to records: reads one file (or pipe) of a recording in blocks, cuts it into records, makes
 * records that straddle two blocks whole, unpacks compressed ones, takes in what describes the
 * recording, and gives the rest to reorder with event and time. Memory is a few blocks and what
 * reorder holds.
 *
 *   read ─► raw block ──► records ─────────────────────┬─► event, time ─► reorder
 *                            └ COMPRESSED ─► zstd ─► inflated block ─► records ┘
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/perf_decompress.h"
#include "collector/perf_file.h"
#include "collector/reorder.h"

enum {
	PERF_STREAM_BLOCK_BYTES = 256 << 10, /* room for records */
	PERF_STREAM_TAIL_BYTES = 64 << 10,   /* a record is at most one byte shorter */
};

struct perf_stream_block;

/* Blocks that are not in use; all streams of a source share them. */
struct perf_stream_pool {
	struct perf_stream_block *free;
	size_t n_free;
	bool is_over;
};

/* From here on blocks are freed as they come back. */
void perf_stream_pool_fini(struct perf_stream_pool *pool);

/* Bytes of one kind: those of the file, or those that come out of zstd. */
struct perf_stream_layer {
	struct perf_stream_block *block;
	size_t begin; /* of what is not cut yet, in block */
	size_t end;
	uint64_t position;  /* of begin, for messages */
	uint64_t n_to_skip; /* payload behind a record, not looked at */
};

struct perf_stream {
	struct perf_file *file;
	struct reorder *reorder;
	struct perf_stream_pool *pool;
	const char *name;   /* put in front of messages when there are several; may be NULL */
	int fd;		    /* borrowed */
	bool is_positional; /* read with pread from next_offset */
	bool is_file_order; /* nothing is reordered */
	bool has_rounds;    /* FINISHED_ROUND counts */
	bool is_at_end;
	uint64_t next_offset;
	uint64_t end_offset; /* UINT64_MAX: until the end of the file */
	uint64_t last_time_ns;
	uint64_t n_records;
	uint64_t n_samples;
	struct perf_stream_layer raw;
	struct perf_stream_layer inflated;
	struct perf_decompress decompress;
};

/* What differs from reading fd as it comes, until its end, is set in the fields afterwards. */
void perf_stream_init(struct perf_stream *stream, struct perf_file *file, struct reorder *reorder,
		      struct perf_stream_pool *pool, int fd);
void perf_stream_fini(struct perf_stream *stream);
/*
 * Reads once and hands on the records that are whole; at the end sets is_at_end. Damage that ends
 * the reading early becomes a warning and file->stopped; errors are the sink's, the system's, or
 * E601, E605 and E608 for damage that must not pass.
 */
struct error *perf_stream_step(struct perf_stream *stream) MUST_USE;
