/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/record_block.h"

#include <string.h>

#include "base/mem.h"

struct record_block *record_block_new(void)
{
	struct record_block *block = mem_alloc(sizeof(*block));
	block->n = 0;
	block->used_bytes = 0;
	return block;
}

void record_block_free(void *block)
{
	mem_free(block);
}

static size_t align_8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

bool record_block_add(struct record_block *block, const struct perf_record *record)
{
	size_t size = align_8(record->size);
	if (block->n == RECORD_BLOCK_RECORDS || size > RECORD_BLOCK_BYTES - block->used_bytes)
		return false;
	uint8_t *bytes = block->bytes + block->used_bytes;
	memcpy(bytes, record->bytes, record->size);
	struct perf_record *copy = &block->records[block->n++];
	*copy = *record;
	copy->bytes = bytes;
	block->used_bytes += size;
	return true;
}

size_t record_block_drop_samples(struct record_block *block)
{
	size_t n_kept = 0;
	size_t used_bytes = 0;
	for (size_t i = 0; i < block->n; i++) {
		struct perf_record record = block->records[i];
		if (record.type == PERF_RECORD_SAMPLE)
			continue;
		uint8_t *bytes = block->bytes + used_bytes;
		memmove(bytes, record.bytes, record.size);
		record.bytes = bytes;
		block->records[n_kept++] = record;
		used_bytes += align_8(record.size);
	}
	size_t n_dropped = block->n - n_kept;
	block->n = n_kept;
	block->used_bytes = used_bytes;
	return n_dropped;
}
