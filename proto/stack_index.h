/* SPDX-License-Identifier: Apache-2.0 */
/*
 * (parent, location) → stack node. The whole key lies in the slot, so that a look-up is one cache
 * miss; the hash is that of the path from the root, so that the slots of a whole chain can be asked
 * for before the first node is known.
 */
#pragma once

#include <stdint.h>

struct stack_slot {
	uint32_t parent;
	uint32_t location;
	uint32_t node; /* 0 = free */
	uint32_t hash;
};

struct stack_index {
	struct stack_slot *slots;
	uint32_t n;
	uint32_t n_max; /* load at which it grows */
	uint32_t mask;
	uint32_t shift; /* a place is the hash's upper bits: growth goes from front to back */
};

void stack_index_init(struct stack_index *index);
void stack_index_fini(struct stack_index *index);
void stack_index_grow(struct stack_index *index, uint32_t extra);

/* Room for extra more nodes. */
static inline void stack_index_reserve(struct stack_index *index, uint32_t extra)
{
	if (index->n_max - index->n < extra)
		stack_index_grow(index, extra);
}

static inline void stack_index_prefetch(const struct stack_index *index, uint32_t hash)
{
	__builtin_prefetch(&index->slots[hash >> index->shift]);
}

/* The slot of this node, or the free one where it belongs; valid until the next reserve. */
static inline struct stack_slot *stack_index_find(const struct stack_index *index, uint32_t hash,
						  uint32_t parent, uint32_t location)
{
	uint32_t i = hash >> index->shift;
	for (;; i = (i + 1) & index->mask) {
		struct stack_slot *slot = &index->slots[i];
		if (!slot->node || (slot->parent == parent && slot->location == location))
			return slot;
	}
}
