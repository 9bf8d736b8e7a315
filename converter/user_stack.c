/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/user_stack.h"

#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

void user_stack_init(struct user_stack *stacks, const struct perf_source_info *source,
		     struct image_table *images, struct symcache *cache, bool may_wait)
{
	*stacks = (struct user_stack){
		.source = source, .images = images, .cache = cache, .may_wait = may_wait};
}

void user_stack_fini(struct user_stack *stacks)
{
	unwind_cache_fini(&stacks->rules);
	mem_free(stacks->chains);
	*stacks = (struct user_stack){0};
}

/* --- registers --- */

enum { ABI_64 = 2 }; /* PERF_SAMPLE_REGS_ABI_64 */

enum { NOT_USED = 0xff };

static uint8_t number_of(enum unwind_machine machine, unsigned bit)
{
	/* PERF_REG_X86_*: ax, bx, cx, dx, si, di, bp, sp, ip; flags and segments up to 15; r8 on.
	 */
	static const uint8_t x86_64_low[] = {0, 3, 2, 1, 4, 5, 6, 7, UNWIND_X86_64_PC};
	if (machine == UNWIND_X86_64) {
		if (bit < ARRAY_LEN(x86_64_low))
			return x86_64_low[bit];
		return bit >= 16 && bit < 24 ? (uint8_t)(bit - 8) : NOT_USED;
	}
	/* PERF_REG_ARM64_*: x0 to x30, sp, pc, as DWARF counts them but for the pc, where ours is.
	 */
	return bit <= UNWIND_ARM64_PC ? (uint8_t)bit : NOT_USED;
}

bool user_stack_read_registers(const struct sample *sample, uint64_t mask,
			       enum unwind_machine machine, bool is_swapped,
			       struct unwind_registers *out)
{
	if (!sample->user_regs || sample->user_regs_abi != ABI_64)
		return false;
	out->known = 0;
	for (size_t i = 0; mask; i++, mask &= mask - 1) {
		uint8_t number = number_of(machine, (unsigned)__builtin_ctzll(mask));
		if (number == NOT_USED)
			continue;
		out->values[number] = sample_u64(sample->user_regs, i, is_swapped);
		out->known |= (uint64_t)1 << number;
	}
	uint64_t needed = machine == UNWIND_X86_64
				  ? (uint64_t)1 << UNWIND_X86_64_PC | 1 << UNWIND_X86_64_SP
				  : (uint64_t)1 << UNWIND_ARM64_PC | (uint64_t)1 << UNWIND_ARM64_SP;
	return (out->known & needed) == needed;
}

/*
 * A pipe may not name it, but its registers do: arm64's pc is the 32nd, and of those with r8 to r15
 * from 16 on and no more x86-64 alone is left.
 */
static bool guess_machine(uint64_t mask, enum unwind_machine *out)
{
	bool is_arm64 = mask >> UNWIND_ARM64_PC & 1;
	*out = is_arm64 ? UNWIND_ARM64 : UNWIND_X86_64;
	return is_arm64 || (mask & 0xff0000 && !(mask >> 24));
}

static bool find_machine(const struct perf_source_info *source, uint64_t mask,
			 enum unwind_machine *out)
{
	if (!source->arch)
		return guess_machine(mask, out);
	bool is_arm64 = strcmp(source->arch, "aarch64") == 0 || strcmp(source->arch, "arm64") == 0;
	*out = is_arm64 ? UNWIND_ARM64 : UNWIND_X86_64;
	return is_arm64 || strcmp(source->arch, "x86_64") == 0;
}

/* --- where code lies --- */

/*
 * Opens and prepares all that a process has mapped, so that the tables are made side by side; the
 * symbols come with them. Meanwhile a file's records wait in it, and live ones in the mailbox
 * between the threads, which is bounded and counts what finds no room (pipeline.h).
 */
static void ask_for_tables(struct user_stack *stacks, const struct address_space *space)
{
	if (stacks->asked_generation == space->generation)
		return;
	stacks->asked_generation = space->generation;
	struct module **modules = mem_zalloc(space->n + 1, sizeof(struct module *));
	size_t n = 0;
	bool has_adopted = false;
	for (uint32_t i = 0; i < space->n; i++) {
		struct image *image = image_table_get(stacks->images, space->maps[i].image);
		if (!image->module && !has_adopted) {
			image_table_adopt_build_ids(stacks->images, stacks->source);
			has_adopted = true;
		}
		image_open(image, stacks->source, stacks->cache);
		enum unwind_state state;
		if (image->module && !module_unwind(image->module, &state) &&
		    state == UNWIND_NOT_ASKED)
			modules[n++] = image->module;
	}
	if (n)
		symcache_prepare(stacks->cache, modules, n, NULL, NULL);
	mem_free(modules);
}

static const struct unwind_table *find_table(struct user_stack *stacks, struct image *image)
{
	enum unwind_state state = UNWIND_NOT_ASKED;
	const struct unwind_table *table =
		image->module ? module_unwind(image->module, &state) : NULL;
	bool is_file = image->kind == IMAGE_FILE || image->kind == IMAGE_VDSO;
	if (table || !is_file || state != UNWIND_NOT_ASKED || !stacks->may_wait)
		return table;
	ask_for_tables(stacks, stacks->space);
	return image->module ? module_unwind(image->module, NULL) : NULL;
}

/* An unwind_locate_fn. */
static bool locate(void *context, uint64_t vaddr, struct unwind_place *out)
{
	struct user_stack *stacks = context;
	const struct space_map *map = address_space_find(stacks->space, vaddr);
	if (!map)
		return false;
	struct image *image = image_table_get(stacks->images, map->image);
	*out = (struct unwind_place){
		.start = map->start, .end = map->end, .without = UNWIND_STOP_NO_TABLE};
	const struct unwind_table *table = find_table(stacks, image);
	if (!table || table->machine != stacks->walk.machine)
		return true;
	uint64_t offset = vaddr - map->start + map->page_offset;
	const struct load_segment *segment = image_find_segment(image, offset);
	if (!segment)
		return true;
	/* A mapping may reach over more than one segment, each with a bias of its own. */
	uint64_t first = segment->file_offset, last = first + segment->file_bytes;
	if (offset >= first && offset < last) {
		if (first > map->page_offset)
			out->start = map->start + (first - map->page_offset);
		if (last - map->page_offset < map->end - map->start)
			out->end = map->start + (last - map->page_offset);
	}
	out->bias = vaddr - (offset - first + segment->svma);
	out->table = table;
	return true;
}

/* --- chains --- */

static bool begins_user_part(uint64_t entry)
{
	return entry == PERF_CONTEXT_USER || entry == PERF_CONTEXT_USER_DEFERRED;
}

/* How many entries come before the chain's user part. */
static uint64_t count_kernel_part(const struct sample *sample, uint16_t misc, bool is_swapped)
{
	bool is_user = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	for (uint64_t i = 0; i < sample->n_chain; i++) {
		uint64_t entry = sample_u64(sample->chain, (size_t)i, is_swapped);
		if (begins_user_part(entry))
			return i;
		if (entry >= PERF_CONTEXT_MAX)
			is_user = false;
		else if (is_user)
			return i;
	}
	return sample->n_chain;
}

/* Frames of the chain's user part as far as they can be believed: within mappings. */
static uint32_t count_believable(const struct user_stack *stacks, const struct sample *sample,
				 uint64_t first)
{
	uint32_t n = 0;
	for (uint64_t i = first; i < sample->n_chain; i++) {
		uint64_t entry = sample_u64(sample->chain, (size_t)i, stacks->source->is_swapped);
		if (entry == PERF_CONTEXT_USER_DEFERRED)
			break;
		if (entry >= PERF_CONTEXT_MAX)
			continue;
		if (n && !address_space_find(stacks->space, entry - 1))
			break;
		n++;
	}
	return n;
}

bool user_stack_has_room(const struct user_stack *stacks, const struct sample *sample)
{
	uint64_t n = sample->n_chain + 2 * UNWIND_MAX_FRAMES + 1;
	return n * sizeof(uint64_t) <= USER_STACK_CHAINS_BYTES - stacks->used_bytes;
}

static void put(uint8_t **at, uint64_t value, bool is_swapped)
{
	if (is_swapped)
		value = __builtin_bswap64(value);
	memcpy(*at, &value, sizeof(value));
	*at += sizeof(value);
}

static void write_chain(struct user_stack *stacks, uint64_t n_kernel, struct sample *sample)
{
	bool is_swapped = stacks->source->is_swapped;
	const struct unwind_walk *walk = &stacks->walk;
	uint8_t *begin = stacks->chains + stacks->used_bytes, *at = begin;
	if (n_kernel) {
		memcpy(at, sample->chain, (size_t)n_kernel * sizeof(uint64_t));
		at += n_kernel * sizeof(uint64_t);
	}
	put(&at, PERF_CONTEXT_USER, is_swapped);
	for (uint32_t i = 0; i < walk->n; i++) {
		if (i && walk->frames[i].is_exact)
			put(&at, PERF_CONTEXT_USER, is_swapped);
		put(&at, walk->frames[i].pc, is_swapped);
	}
	sample->chain = begin;
	sample->n_chain = (size_t)(at - begin) / sizeof(uint64_t);
	sample->cut = walk->stop == UNWIND_STOP_END ? 0 : (uint8_t)walk->stop;
	stacks->used_bytes += (size_t)(at - begin);
}

static void run_walk(struct user_stack *stacks, const struct address_space *space,
		     const struct sample *sample)
{
	struct unwind_walk *walk = &stacks->walk;
	if (!stacks->chains) {
		stacks->chains = mem_alloc(USER_STACK_CHAINS_BYTES);
		unwind_cache_init(&stacks->rules);
		walk->cache = &stacks->rules;
		walk->locate = locate;
		walk->context = stacks;
	}
	stacks->space = space;
	walk->generation = space->generation;
	walk->stack = (struct unwind_memory){
		.bytes = sample->stack,
		.vaddr = walk->registers.values[walk->machine == UNWIND_X86_64 ? UNWIND_X86_64_SP
									       : UNWIND_ARM64_SP],
		.size = (size_t)sample->stack_bytes,
	};
	unwind_walk(walk);
}

void user_stack_unwind(struct user_stack *stacks, const struct perf_event_attr *attr,
		       const struct address_space *space, uint16_t misc, struct sample *sample)
{
	struct user_stack_totals *totals = &stacks->totals;
	struct unwind_walk *walk = &stacks->walk;
	if (!find_machine(stacks->source, attr->sample_regs_user, &walk->machine) ||
	    !user_stack_read_registers(sample, attr->sample_regs_user, walk->machine,
				       stacks->source->is_swapped, &walk->registers)) {
		totals->skipped++;
		return;
	}
	run_walk(stacks, space, sample);
	uint64_t n_kernel = count_kernel_part(sample, misc, stacks->source->is_swapped);
	uint32_t n_believable = count_believable(stacks, sample, n_kernel);
	totals->contested += n_believable != 0;
	if (walk->stop != UNWIND_STOP_END && n_believable > walk->n) {
		totals->outdone++;
		return;
	}
	totals->unwound++;
	totals->frames += walk->n;
	totals->by_frame_pointer += walk->n_by_frame_pointer;
	totals->stops[walk->stop]++;
	write_chain(stacks, n_kernel, sample);
}
