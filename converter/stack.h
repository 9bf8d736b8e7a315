/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's call chain → a stack of the profile. Context markers switch between kernel, user,
 * guest and hypervisor; return addresses become the address of the call (less 1); LBR call stacks
 * take the place of the user part when they reach further; callers outside all mappings become one
 * "[broken stack]" frame each run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "converter/kernel_space.h"
#include "converter/location.h"
#include "converter/process.h"
#include "converter/sample.h"
#include "proto/profile.h"

/* A record is at most 64 KiB, so a chain has fewer entries than this, two chains joined fewer than
 * twice it. */
enum { STACK_MAX_FRAMES = 2 * 8192 };

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
	struct stack_frame *frames; /* of the chain being built, leaf first */
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
/* Stack node index of the profile. */
uint32_t stack_build(struct stack_builder *builder, const struct stack_input *input);
