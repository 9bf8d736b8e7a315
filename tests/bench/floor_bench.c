/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor for converting a perf.data file: read it, walk its records, hash the raw chain of every
 * sample with its pid and keep the distinct ones. Nothing is ordered, located, named or written.
 *
 * usage: floor_bench perf.data (file mode, this machine's byte order, one sample_type)
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/perf_abi.h"
#include "base/sample_layout.h"

enum { BLOCK_BYTES = 1 << 20, FIRST_SLOTS = 1 << 12 };

struct set {
	uint64_t *slots;
	uint64_t mask, n;
};

static void put(struct set *set, uint64_t hash);

static void grow(struct set *set)
{
	struct set bigger = {.mask = set->mask * 2 + 1};
	bigger.slots = calloc(bigger.mask + 1, sizeof(uint64_t));
	for (uint64_t i = 0; i <= set->mask; i++) {
		if (set->slots[i])
			put(&bigger, set->slots[i]);
	}
	free(set->slots);
	*set = bigger;
}

static void put(struct set *set, uint64_t hash)
{
	hash |= 1;
	uint64_t at = (hash >> 8) & set->mask;
	while (set->slots[at] && set->slots[at] != hash)
		at = (at + 1) & set->mask;
	if (set->slots[at])
		return;
	set->slots[at] = hash;
	if (++set->n * 2 > set->mask)
		grow(set);
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	uint64_t header[13]; /* magic, size, attr size, attrs, data, event types, features */
	struct perf_event_attr attr = {0};
	if (fd < 0 || read(fd, header, sizeof(header)) != sizeof(header) ||
	    memcmp(header, "PERFILE2", 8) != 0 ||
	    pread(fd, &attr, sizeof(attr) < header[2] ? sizeof(attr) : header[2],
		  (off_t)header[3]) < 64) {
		fprintf(stderr, "usage: floor_bench perf.data\n");
		return 1;
	}
	struct sample_layout layout = sample_layout_of(&attr);
	/* With the sample types of `perf record -g`, the chain is the last field. */
	uint64_t before_chain =
		attr.sample_type & (PERF_SAMPLE_CALLCHAIN - 1) & ~(uint64_t)PERF_SAMPLE_READ;
	size_t chain_at = 8 + 8 * (size_t)__builtin_popcountll(
					  before_chain |
					  (attr.sample_type &
					   (PERF_SAMPLE_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
					    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_IDENTIFIER)));
	struct set set = {.mask = FIRST_SLOTS - 1, .slots = calloc(FIRST_SLOTS, sizeof(uint64_t))};
	uint8_t *block = malloc(BLOCK_BYTES);
	uint64_t n_samples = 0, left = header[6];
	size_t have = 0;
	lseek(fd, (off_t)header[5], SEEK_SET);
	while (left || have) {
		size_t want = BLOCK_BYTES - have < left ? BLOCK_BYTES - have : left;
		ssize_t got = want ? read(fd, block + have, want) : 0;
		if (got < 0)
			return 1;
		left -= (uint64_t)got;
		have += (size_t)got;
		size_t at = 0;
		while (have - at >= 8) {
			struct perf_event_header *record = (struct perf_event_header *)(block + at);
			if (record->size < 8)
				return 1;
			if (record->size > have - at)
				break;
			if (record->type == PERF_RECORD_SAMPLE) {
				uint32_t pid;
				uint64_t n;
				memcpy(&pid, block + at + layout.tid_from_start, sizeof(pid));
				memcpy(&n, block + at + chain_at, sizeof(n));
				put(&set,
				    XXH3_64bits_withSeed(block + at + chain_at + 8, n * 8, pid));
				n_samples++;
			}
			at += record->size;
		}
		memmove(block, block + at, have - at);
		have -= at;
		if (!got && at == 0)
			break;
	}
	printf("%" PRIu64 " samples, %" PRIu64 " distinct (pid, chain)\n", n_samples, set.n);
	return 0;
}
