/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/perf_ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/stats.h"

struct error *perf_ring_open(int fd, uint64_t data_bytes, struct perf_ring *out)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t map_bytes = page_bytes + data_bytes;
	void *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return error_errno(errno, "map a ring of %llu KiB",
				   (unsigned long long)data_bytes >> 10);
	*out = (struct perf_ring){
		.page = map,
		.data = (const uint8_t *)map + page_bytes,
		.data_bytes = data_bytes,
		.map_bytes = map_bytes,
	};
	return NULL;
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->map_bytes);
	*ring = (struct perf_ring){0};
}

uint64_t perf_ring_ready(struct perf_ring *ring)
{
	/* Pairs with the kernel's barrier before it stores data_head (perf_output_put_handle). */
	uint64_t head = atomic_load_explicit((_Atomic uint64_t *)&ring->page->data_head,
					     memory_order_acquire);
	uint64_t n = head - ring->page->data_tail;

	if (n <= ring->data_bytes)
		return n;
	stats_add(STAT_RECORDS_MALFORMED, 1);
	perf_ring_release(ring, n);
	return 0;
}

void perf_ring_copy(const struct perf_ring *ring, uint8_t *out, uint64_t n)
{
	uint64_t at = ring->page->data_tail & (ring->data_bytes - 1);
	uint64_t until_end = ring->data_bytes - at;
	uint64_t first = n < until_end ? n : until_end;

	memcpy(out, ring->data + at, first);
	memcpy(out + first, ring->data, n - first);
}

void perf_ring_release(struct perf_ring *ring, uint64_t n)
{
	/* Pairs with the kernel's control dependency on data_tail: our reads are done first. */
	atomic_store_explicit((_Atomic uint64_t *)&ring->page->data_tail, ring->page->data_tail + n,
			      memory_order_release);
}

const uint8_t *perf_ring_next(const uint8_t *bytes, size_t size, size_t *offset,
			      struct perf_event_header *out)
{
	size_t left = size - *offset;

	if (left == 0)
		return NULL;
	const uint8_t *record = bytes + *offset;
	*out = (struct perf_event_header){0};
	if (left >= sizeof(*out))
		memcpy(out, record, sizeof(*out));
	if (out->size < sizeof(*out) || out->size % 8 != 0 || out->size > left) {
		stats_add(STAT_RECORDS_MALFORMED, 1);
		*offset = size;
		return NULL;
	}
	*offset += out->size;
	return record;
}
