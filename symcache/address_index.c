/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/address_index.h"

#include "base/mem.h"

void address_index_init(struct address_index *index, const uint64_t *starts, uint32_t n)
{
	*index = (struct address_index){.n = n, .base = n ? starts[0] : 0};
	if (!n)
		return;
	if (starts[n - 1] - index->base > UINT32_MAX) {
		index->wide = mem_copy(starts, n * sizeof(*starts));
		return;
	}
	index->narrow = mem_alloc(n * sizeof(*index->narrow));
	for (uint32_t i = 0; i < n; i++)
		index->narrow[i] = (uint32_t)(starts[i] - index->base);
}

void address_index_fini(struct address_index *index)
{
	mem_free(index->narrow);
	mem_free(index->wide);
	*index = (struct address_index){0};
}

/* The loops have no branch on data, so that the compiler can use conditional moves. */
static uint32_t find_narrow(const uint32_t *starts, uint32_t n, uint32_t offset)
{
	const uint32_t *p = starts;
	while (n > 1) {
		uint32_t half = n / 2;
		p = p[half] <= offset ? p + half : p;
		n -= half;
	}
	return (uint32_t)(p - starts);
}

static uint32_t find_wide(const uint64_t *starts, uint32_t n, uint64_t address)
{
	const uint64_t *p = starts;
	while (n > 1) {
		uint32_t half = n / 2;
		p = p[half] <= address ? p + half : p;
		n -= half;
	}
	return (uint32_t)(p - starts);
}

uint32_t address_index_find(const struct address_index *index, uint64_t address)
{
	if (!index->n || address < index->base)
		return ADDRESS_INDEX_NONE;
	if (index->wide)
		return find_wide(index->wide, index->n, address);
	uint64_t offset = address - index->base;
	return find_narrow(index->narrow, index->n,
			   offset > UINT32_MAX ? UINT32_MAX : (uint32_t)offset);
}
