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

/* Remembers where addresses led; direct-mapped. */
enum { STACK_FRAME_CACHE_SLOTS = 1 << 15 };
struct stack_frame_slot {
	uint64_t vaddr;
	uint64_t generation; /* of the space; 0 = free */
	uint32_t location;
	uint32_t is_return;
};

struct stack_builder {
	struct image_table *images;
	struct location_table *locations;
	struct profile *profile;
	const struct kernel_space *kernel;
	struct stack_frame_slot *cache;
	uint32_t *frames; /* leaf first while a chain is read */
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
