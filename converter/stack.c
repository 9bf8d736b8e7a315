/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/stack.h"

#include "base/hash_map.h"
#include "base/mem.h"

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
	builder->frames = mem_alloc(STACK_MAX_FRAMES * sizeof(*builder->frames));
	builder->cache = mem_zalloc(STACK_FRAME_CACHE_SLOTS, sizeof(*builder->cache));
}

void stack_builder_fini(struct stack_builder *builder)
{
	mem_free(builder->frames);
	mem_free(builder->cache);
	*builder = (struct stack_builder){0};
}

void stack_builder_begin(struct stack_builder *builder, struct profile *profile)
{
	builder->profile = profile;
	for (uint32_t i = 0; i < STACK_FRAME_CACHE_SLOTS; i++)
		builder->cache[i].generation = 0;
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
				   const struct address_space *space, uint64_t vaddr,
				   bool is_return)
{
	const struct space_map *map = address_space_find(space, vaddr);
	if (!map) {
		if (is_return)
			return (struct location){.image = IMAGE_INDEX_BROKEN};
		return (struct location){.image = IMAGE_INDEX_UNMAPPED, .address = vaddr};
	}
	const struct image *image = image_table_get(builder->images, map->image);
	struct location location = {
		.image = image->canonical, .address = vaddr, .is_return = is_return};
	if (image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO)
		location.address = vaddr - map->start + map->page_offset;
	return location;
}

static struct location locate(const struct stack_builder *builder,
			      const struct address_space *space, enum mode mode, uint64_t vaddr,
			      bool is_return)
{
	switch (mode) {
	case MODE_KERNEL:
		return (struct location){.image = kernel_space_find(builder->kernel, vaddr),
					 .address = vaddr,
					 .is_return = is_return};
	case MODE_GUEST_KERNEL:
		return (struct location){.image = IMAGE_INDEX_GUEST_KERNEL, .address = vaddr};
	case MODE_GUEST_USER:
		return (struct location){.image = IMAGE_INDEX_GUEST_USER, .address = vaddr};
	case MODE_HYPERVISOR:
		return (struct location){.image = IMAGE_INDEX_HYPERVISOR, .address = vaddr};
	case MODE_UNKNOWN:
	case MODE_USER:
		break;
	}
	return locate_user(builder, space, vaddr, is_return);
}

static uint64_t generation_of(const struct stack_builder *builder,
			      const struct address_space *space, enum mode mode)
{
	if (mode == MODE_USER)
		return space->generation;
	/* Spaces and the kernel draw from one number series, so none is mistaken for another. */
	return mode == MODE_KERNEL ? kernel_space_generation(builder->kernel) : 0;
}

static void push(struct stack_builder *builder, const struct address_space *space, enum mode mode,
		 uint64_t vaddr, bool is_return)
{
	if (builder->n_frames == STACK_MAX_FRAMES)
		return;
	uint64_t generation = generation_of(builder, space, mode);
	struct stack_frame_slot *slot =
		&builder->cache[hash_mix(vaddr ^ generation << 32) % STACK_FRAME_CACHE_SLOTS];
	if (!generation || slot->vaddr != vaddr || slot->generation != generation ||
	    slot->is_return != is_return) {
		struct location location = locate(
			builder, space, mode, is_return && vaddr ? vaddr - 1 : vaddr, is_return);
		slot->location =
			location_table_intern(builder->locations, builder->profile, &location);
		slot->vaddr = vaddr;
		slot->generation = generation;
		slot->is_return = is_return;
	}
	/* A run of callers in no mapping is one mark. */
	uint32_t n = builder->n_frames;
	if (n && builder->frames[n - 1] == slot->location &&
	    builder->locations->items[slot->location].image == IMAGE_INDEX_BROKEN)
		return;
	builder->frames[builder->n_frames++] = slot->location;
}

struct walk {
	struct stack_builder *builder;
	const struct stack_input *input;
	enum mode mode;
	bool is_exact; /* the next address is where the CPU was, not where a call returns to */
};

static void walk_entries(struct walk *walk, const uint8_t *entries, uint64_t n)
{
	bool is_swapped = walk->input->is_swapped;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t entry = sample_u64(entries, (size_t)i, is_swapped);
		if (entry >= PERF_CONTEXT_MAX) {
			/* The first address behind a marker is the interrupted one, or just behind
			 * a syscall. */
			walk->mode = mode_of_marker(entry, walk->mode);
			walk->is_exact = true;
			if (entry == PERF_CONTEXT_USER_DEFERRED)
				i++; /* its cookie */
			continue;
		}
		push(walk->builder, walk->input->space, walk->mode, entry, !walk->is_exact);
		walk->is_exact = false;
	}
}

/* Index of the user part's first address in the chain, n_chain when there is none. */
static uint64_t find_user_part(const struct stack_input *input)
{
	const struct sample *sample = input->sample;
	enum mode mode = mode_of_misc(input->misc);
	for (uint64_t i = 0; i < sample->n_chain; i++) {
		uint64_t entry = sample_u64(sample->chain, (size_t)i, input->is_swapped);
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
			push(walk->builder, input->space, MODE_USER, from, false);
	}
	return true;
}

uint32_t stack_build(struct stack_builder *builder, const struct stack_input *input)
{
	const struct sample *sample = input->sample;
	struct walk walk = {
		.builder = builder,
		.input = input,
		.mode = mode_of_misc(input->misc),
		.is_exact = true,
	};
	builder->n_frames = 0;
	if (!input->has_lbr_stack || !walk_lbr(&walk))
		walk_entries(&walk, sample->chain, sample->n_chain);
	if (input->deferred) {
		walk.mode = MODE_USER;
		walk.is_exact = true;
		walk_entries(&walk, input->deferred, input->n_deferred);
	}
	if (!builder->n_frames)
		push(builder, input->space, mode_of_misc(input->misc), sample->ip, false);
	return profile_stack(builder->profile, builder->frames, builder->n_frames);
}
