/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's call chain → a stack of the profile. Context markers switch between kernel, user,
 * guest and hypervisor; return addresses become the address of the call (less 1); LBR call stacks
 * take the place of the user part when they reach further; callers outside all mappings become one
 * "[broken stack]" frame each run. A copied stack that could not be unwound to its end gets a last
 * frame that says why.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "converter/kernel_space.h"
#include "converter/location.h"
#include "converter/process.h"
#include "converter/sample.h"
#include "proto/profile.h"

/*
 * A record is at most 64 KiB, so a chain has fewer entries than this half, two chains joined fewer
 * than the whole.
 */
enum { STACK_MAX_FRAMES = 2 * 8192 };
/* With this many frames read a group is large enough. */
enum { STACK_GROUP_FRAMES = 1024 };

/*
 * Remembers where addresses led; direct-mapped. The key is a hash of address, space and kind with a
 * random seed, 64 bits: no input can be built to collide.
 */
enum { STACK_FRAME_CACHE_SLOTS = 1 << 15 };
struct stack_frame_slot {
	uint64_t key; /* 0 = free */
	uint32_t location;
};

/* A frame on its way to a location. */
struct stack_frame {
	uint64_t vaddr; /* already less 1 for return addresses */
	uint64_t key;
	struct location location;
	const struct address_space *space;
	uint8_t mode;
	bool is_return;
	bool is_known; /* its location was in the cache */
};

struct stack_builder {
	struct image_table *images;
	struct location_table *locations;
	struct profile *profile;
	const struct kernel_space *kernel;
	struct stack_frame_slot *cache;
	uint64_t seed;
	struct stack_frame *frames; /* of the chains being built, each leaf first */
	uint32_t *locations_of_frames;
	uint32_t n_frames;
};

void stack_builder_init(struct stack_builder *builder, struct image_table *images,
			struct location_table *locations, const struct kernel_space *kernel);
void stack_builder_fini(struct stack_builder *builder);
/* A new window: forgets what belongs to the old profile. */
void stack_builder_begin(struct stack_builder *builder, struct profile *profile);

/* What to build a stack from. */
struct stack_input {
	const struct sample *sample;
	const struct address_space *space;
	uint16_t misc; /* of the SAMPLE record: CPU mode of ip */
	bool is_swapped;
	bool has_lbr_stack;	 /* branches are an LBR call stack */
	const uint8_t *deferred; /* user part that came later, n_deferred u64; NULL = none */
	uint64_t n_deferred;
};

/* One chain of a group: a run of frames, then of their locations. */
struct stack_chain {
	uint32_t first, n;
};

/*
 * Chains are built in groups, so that the cache misses of all their frames are in flight together:
 * stack_begin; stack_read for each until stack_is_full; stack_locate; stack_join for each;
 * stack_finish for each → stack node index of the profile.
 */
void stack_begin(struct stack_builder *builder);
struct stack_chain stack_read(struct stack_builder *builder, const struct stack_input *input);
static inline bool stack_is_full(const struct stack_builder *builder)
{
	return builder->n_frames >= STACK_GROUP_FRAMES;
}
void stack_locate(struct stack_builder *builder);
void stack_join(const struct stack_builder *builder, struct stack_chain *chain);
uint32_t stack_finish(const struct stack_builder *builder, const struct stack_chain *chain);
/* A group of one. */
uint32_t stack_build(struct stack_builder *builder, const struct stack_input *input);
