/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/stack_index.h"

#include "base/mem.h"

enum { FIRST_BITS = 6, LAST_BITS = 31 };

/* Three quarters: 21 to 43 bytes of slots a node. */
static uint32_t load_limit(unsigned bits)
{
	return (uint32_t)(((uint64_t)3 << bits) / 4);
}

static void allocate(struct stack_index *index, unsigned bits)
{
	index->slots = mem_zalloc((size_t)1 << bits, sizeof(*index->slots));
	index->n_max = load_limit(bits);
	index->mask = (uint32_t)(((uint64_t)1 << bits) - 1);
	index->shift = 32 - bits;
}

void stack_index_init(struct stack_index *index)
{
	index->n = 0;
	allocate(index, FIRST_BITS);
}

void stack_index_fini(struct stack_index *index)
{
	mem_free(index->slots);
	*index = (struct stack_index){0};
}

void stack_index_grow(struct stack_index *index, uint32_t extra)
{
	uint64_t want = (uint64_t)index->n + extra;
	unsigned bits = 32 - index->shift;
	while (load_limit(bits) < want && bits < LAST_BITS)
		bits++;
	/* Past the last size there is no memory for it either: this aborts. */
	if (load_limit(bits) < want)
		(void)mem_zalloc(SIZE_MAX, sizeof(*index->slots));
	struct stack_slot *old = index->slots;
	uint64_t n_old = (uint64_t)index->mask + 1;
	allocate(index, bits);
	for (uint64_t i = 0; i < n_old; i++) {
		if (old[i].node)
			*stack_index_find(index, old[i].hash, old[i].parent, old[i].location) =
				old[i];
	}
	mem_free(old);
}
