/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/stack.h"

#include "base/compiler.h"
#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/mem.h"

enum { FRAMES_MAX = STACK_GROUP_FRAMES + STACK_MAX_FRAMES };

enum mode {
	MODE_UNKNOWN,
	MODE_KERNEL,
	MODE_USER,
	MODE_GUEST_KERNEL,
	MODE_GUEST_USER,
	MODE_HYPERVISOR
};

void stack_builder_init(struct stack_builder *builder, struct image_table *images,
			struct location_table *locations, const struct kernel_space *kernel)
{
	*builder =
		(struct stack_builder){.images = images, .locations = locations, .kernel = kernel};
	builder->frames = mem_alloc(FRAMES_MAX * sizeof(*builder->frames));
	builder->locations_of_frames = mem_alloc(FRAMES_MAX * sizeof(uint32_t));
	builder->seed = hash_seed_make();
	builder->cache = mem_zalloc(STACK_FRAME_CACHE_SLOTS, sizeof(*builder->cache));
}

void stack_builder_fini(struct stack_builder *builder)
{
	mem_free(builder->frames);
	mem_free(builder->locations_of_frames);
	mem_free(builder->cache);
	*builder = (struct stack_builder){0};
}

void stack_builder_begin(struct stack_builder *builder, struct profile *profile)
{
	builder->profile = profile;
	for (uint32_t i = 0; i < STACK_FRAME_CACHE_SLOTS; i++)
		builder->cache[i].key = 0;
}

static enum mode mode_of_misc(uint16_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return MODE_KERNEL;
	case PERF_RECORD_MISC_USER:
		return MODE_USER;
	case PERF_RECORD_MISC_HYPERVISOR:
		return MODE_HYPERVISOR;
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return MODE_GUEST_KERNEL;
	case PERF_RECORD_MISC_GUEST_USER:
		return MODE_GUEST_USER;
	default:
		return MODE_UNKNOWN;
	}
}

static enum mode mode_of_marker(uint64_t marker, enum mode current)
{
	switch (marker) {
	case PERF_CONTEXT_KERNEL:
		return MODE_KERNEL;
	case PERF_CONTEXT_USER:
	case PERF_CONTEXT_USER_DEFERRED:
		return MODE_USER;
	case PERF_CONTEXT_HV:
		return MODE_HYPERVISOR;
	case PERF_CONTEXT_GUEST:
	case PERF_CONTEXT_GUEST_KERNEL:
		return MODE_GUEST_KERNEL;
	case PERF_CONTEXT_GUEST_USER:
		return MODE_GUEST_USER;
	default:
		return current;
	}
}

static struct location locate_user(const struct stack_builder *builder,
				   const struct address_space *space,
				   const struct stack_frame *frame)
{
	const struct space_map *map = address_space_find(space, frame->vaddr);
	if (!map) {
		if (frame->is_return)
			return (struct location){.image = IMAGE_INDEX_BROKEN};
		return (struct location){.image = IMAGE_INDEX_UNMAPPED, .address = frame->vaddr};
	}
	const struct image *image = image_table_get(builder->images, map->image);
	struct location location = {
		.image = image->canonical, .address = frame->vaddr, .is_return = frame->is_return};
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO)
		location.address = frame->vaddr - map->start + map->page_offset;
	if (UNLIKELY(space->jit) && image_is_jit_memory(image)) {
		uint32_t spot = jit_scope_spot(space->jit, space->jit_moment_ns, frame->vaddr,
					       location.image, location.address);
		if (spot != JIT_SPOT_NONE) {
			location.image = IMAGE_INDEX_JIT;
			location.address = spot;
		}
	}
	return location;
}

static struct location locate(const struct stack_builder *builder,
			      const struct address_space *space, const struct stack_frame *frame)
{
	struct location location = {.address = frame->vaddr};
	switch ((enum mode)frame->mode) {
	case MODE_KERNEL:
		location.image = kernel_space_find(builder->kernel, frame->vaddr);
		location.is_return = frame->is_return;
		return location;
	case MODE_GUEST_KERNEL:
		location.image = IMAGE_INDEX_GUEST_KERNEL;
		return location;
	case MODE_GUEST_USER:
		location.image = IMAGE_INDEX_GUEST_USER;
		return location;
	case MODE_HYPERVISOR:
		location.image = IMAGE_INDEX_HYPERVISOR;
		return location;
	case MODE_UNKNOWN:
	case MODE_USER:
		break;
	}
	return locate_user(builder, space, frame);
}

static struct stack_frame_slot *slot_of(const struct stack_builder *builder, uint64_t key)
{
	return &builder->cache[key % STACK_FRAME_CACHE_SLOTS];
}

static void push(struct stack_builder *builder, const struct stack_input *input, enum mode mode,
		 uint64_t vaddr, bool is_return)
{
	if (builder->n_frames == FRAMES_MAX)
		return;
	/* Spaces and the kernel draw from one number series, so none is mistaken for another. */
	uint64_t generation = mode == MODE_KERNEL ? kernel_space_generation(builder->kernel)
						  : input->space->generation;
	struct stack_frame *frame = &builder->frames[builder->n_frames++];
	frame->vaddr = is_return && vaddr ? vaddr - 1 : vaddr;
	frame->space = input->space;
	frame->mode = (uint8_t)mode;
	frame->is_return = is_return;
	uint64_t kind = generation << 4 | (uint64_t)mode << 1 | is_return;
	frame->key = hash_mix(vaddr ^ kind * (builder->seed | 1));
	frame->key += !frame->key;
	__builtin_prefetch(slot_of(builder, frame->key));
}

void stack_begin(struct stack_builder *builder)
{
	builder->n_frames = 0;
}

/* push asked for the frames' slots; this asks for the slots of locations before it reads them. */
void stack_locate(struct stack_builder *builder)
{
	for (uint32_t i = 0; i < builder->n_frames; i++) {
		struct stack_frame *frame = &builder->frames[i];
		const struct stack_frame_slot *slot = slot_of(builder, frame->key);
		frame->is_known = slot->key == frame->key;
		if (frame->is_known) {
			builder->locations_of_frames[i] = slot->location;
			continue;
		}
		frame->location = locate(builder, frame->space, frame);
		location_table_prefetch(builder->locations, &frame->location);
	}
	for (uint32_t i = 0; i < builder->n_frames; i++) {
		const struct stack_frame *frame = &builder->frames[i];
		if (frame->is_known)
			continue;
		uint32_t location = location_table_intern(builder->locations, &frame->location);
		builder->locations_of_frames[i] = location;
		*slot_of(builder, frame->key) = (struct stack_frame_slot){frame->key, location};
	}
}

/* A run of callers in no mapping becomes one mark. */
void stack_join(const struct stack_builder *builder, struct stack_chain *chain)
{
	uint32_t *locations = builder->locations_of_frames + chain->first;
	uint32_t n = 0;
	for (uint32_t i = 0; i < chain->n; i++) {
		if (n && locations[n - 1] == locations[i] &&
		    location_table_get(builder->locations, locations[i]).image ==
			    IMAGE_INDEX_BROKEN)
			continue;
		locations[n++] = locations[i];
	}
	chain->n = n;
	profile_prefetch_stack(builder->profile, locations, n);
}

uint32_t stack_finish(const struct stack_builder *builder, const struct stack_chain *chain)
{
	return profile_stack(builder->profile, builder->locations_of_frames + chain->first,
			     chain->n);
}

struct walk {
	struct stack_builder *builder;
	const struct stack_input *input;
	enum mode mode;
	bool is_exact; /* the next address is where the CPU was, not where a call returns to */
	bool is_user_part;
};

static void walk_entries(struct walk *walk, const uint8_t *entries, uint64_t n)
{
	bool is_swapped = walk->input->is_swapped;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t entry = sample_u64(entries, (size_t)i, is_swapped);
		if (entry >= PERF_CONTEXT_MAX) {
			enum mode mode = mode_of_marker(entry, walk->mode);
			/* The user part is the last: small negative numbers there lay on a stack
			 * that was walked astray. */
			if (walk->is_user_part && mode != MODE_USER)
				continue;
			/* The first address behind a marker is the interrupted one, or just behind
			 * a syscall. */
			walk->mode = mode;
			walk->is_exact = true;
			walk->is_user_part |= entry == PERF_CONTEXT_USER;
			if (entry == PERF_CONTEXT_USER_DEFERRED)
				i++; /* its cookie */
			continue;
		}
		push(walk->builder, walk->input, walk->mode, entry, !walk->is_exact);
		walk->is_exact = false;
	}
}

/*
 * Index of the user part's first address in the chain, n_chain when there is none, or when it comes
 * later and a cookie stands in its place.
 */
static uint64_t find_user_part(const struct stack_input *input)
{
	const struct sample *sample = input->sample;
	enum mode mode = mode_of_misc(input->misc);
	for (uint64_t i = 0; i < sample->n_chain; i++) {
		uint64_t entry = sample_u64(sample->chain, (size_t)i, input->is_swapped);
		if (entry == PERF_CONTEXT_USER_DEFERRED)
			break;
		if (entry >= PERF_CONTEXT_MAX)
			mode = mode_of_marker(entry, mode);
		else if (mode == MODE_USER)
			return i;
	}
	return sample->n_chain;
}

/*
 * LBR call stack: branch i is the call from frame i + 1 into frame i, newest first. The leaf is the
 * sampled address; callers are the "from" addresses, which are calls, not return addresses.
 */
static bool walk_lbr(struct walk *walk)
{
	const struct stack_input *input = walk->input;
	const struct sample *sample = input->sample;
	uint64_t user = find_user_part(input);
	if (user == sample->n_chain || sample->n_branches + 1 <= sample->n_chain - user)
		return false;
	walk_entries(walk, sample->chain, user + 1);
	for (uint64_t i = 0; i < sample->n_branches; i++) {
		uint64_t from = sample_u64(sample->branches + i * SAMPLE_BRANCH_BYTES, 0,
					   input->is_swapped);
		if (from)
			push(walk->builder, input, MODE_USER, from, false);
	}
	return true;
}

struct stack_chain stack_read(struct stack_builder *builder, const struct stack_input *input)
{
	const struct sample *sample = input->sample;
	struct stack_chain chain = {.first = builder->n_frames};
	struct walk walk = {
		.builder = builder,
		.input = input,
		.mode = mode_of_misc(input->misc),
		.is_exact = true,
	};
	if (!input->has_lbr_stack || !walk_lbr(&walk))
		walk_entries(&walk, sample->chain, sample->n_chain);
	if (input->deferred) {
		walk.mode = MODE_USER;
		walk.is_exact = true;
		walk_entries(&walk, input->deferred, input->n_deferred);
	}
	if (builder->n_frames == chain.first)
		push(builder, input, mode_of_misc(input->misc), sample->ip, false);
	chain.n = builder->n_frames - chain.first;
	return chain;
}

uint32_t stack_build(struct stack_builder *builder, const struct stack_input *input)
{
	stack_begin(builder);
	struct stack_chain chain = stack_read(builder, input);
	stack_locate(builder);
	stack_join(builder, &chain);
	return stack_finish(builder, &chain);
}
