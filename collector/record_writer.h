/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lays out records of our own making (synthetic ones) as the kernel would: header, body padded to
 * 8, and a sample_id trailer of zeros, so that readers of a perf.data find the shape they expect.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

struct record_writer {
	struct buf *out; /* borrowed; records are appended */
	uint16_t trailer_bytes;
	bool has_data_maps; /* mappings of files without code too (see collector_live_options) */
	size_t start;
	struct error *err; /* the first refusal, until record_writer_end */
};

void record_writer_begin(struct record_writer *writer, uint32_t type, uint16_t misc);
void record_writer_u16(struct record_writer *writer, uint16_t value);
void record_writer_u32(struct record_writer *writer, uint32_t value);
void record_writer_u64(struct record_writer *writer, uint64_t value);
void record_writer_bytes(struct record_writer *writer, const void *p, size_t n);
/* n bytes and a 0. */
void record_writer_string(struct record_writer *writer, const char *s, size_t n);
/* ERROR_LIMIT when the buffer is full or the record over 64 KiB: it is then not there. */
struct error *record_writer_end(struct record_writer *writer) MUST_USE;
