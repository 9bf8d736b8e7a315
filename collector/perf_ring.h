/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mapped ring of the kernel, the consumer's side. The kernel moves the head, we move the tail:
 *
 *	perf_ring_ready    how many bytes lie there (head is read with acquire)
 *	perf_ring_copy     copies them out in one piece, so that a wrapped record is whole
 *	perf_ring_release  gives the room back (tail is written with release)
 *	perf_ring_next     walks the copy; both ends of each record's size are checked
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_abi.h"

struct perf_ring {
	struct perf_event_mmap_page *page; /* NULL when closed */
	const uint8_t *data;
	uint64_t data_bytes; /* a power of two */
	size_t map_bytes;
};

/* data_bytes: a power of two of whole pages. DENIED or LIMIT: ask for less. */
struct error *perf_ring_open(int fd, uint64_t data_bytes, struct perf_ring *out) MUST_USE;
void perf_ring_close(struct perf_ring *ring);

/* A head that cannot be (more than the ring holds) empties the ring and is counted. */
uint64_t perf_ring_ready(struct perf_ring *ring);
/* The oldest n bytes; n <= what perf_ring_ready said. */
void perf_ring_copy(const struct perf_ring *ring, uint8_t *out, uint64_t n);
void perf_ring_release(struct perf_ring *ring, uint64_t n);

/*
 * The record at *offset, which moves behind it. NULL at the end; also when the size is below 8, no
 * multiple of 8, or more than what is left: then the rest is given up and counted.
 */
const uint8_t *perf_ring_next(const uint8_t *bytes, size_t size, size_t *offset,
			      struct perf_event_header *out);
