/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of copied records: what crosses from the thread that reads rings to the one that
 * converts. Fixed in size, so that a bounded number of blocks is a bounded number of bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/perf_record.h"

enum { RECORD_BLOCK_BYTES = 128 << 10, RECORD_BLOCK_RECORDS = 1024 };

struct record_block {
	size_t n;
	size_t used_bytes;
	struct perf_record records[RECORD_BLOCK_RECORDS]; /* bytes point into bytes below */
	uint8_t bytes[RECORD_BLOCK_BYTES];
};

struct record_block *record_block_new(void);
void record_block_free(void *block);
/* Copies the record with its bytes; false when there is no room left for it. */
bool record_block_add(struct record_block *block, const struct perf_record *record);
/* Takes the samples out, keeps the rest in order, and returns how many went. */
size_t record_block_drop_samples(struct record_block *block);
