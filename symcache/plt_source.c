/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/plt_source.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"

enum { ARM64_WORD_BYTES = 4, PLT_ENTRY_BYTES = 16, PLT_ENTRY_MAX_BYTES = 64 };

struct got_slot {
	uint64_t svma;
	uint32_t symbol; /* index in .dynsym */
};

struct got_slots {
	struct got_slot *slots;
	uint32_t n, capacity;
};

struct plt_walk {
	const struct elf_image *image;
	struct cursor symbols;
	struct got_slots slots;
	plt_source_entry_fn fn;
	void *context;
};

static bool is_function_slot(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
	return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

static void read_slots(struct plt_walk *walk, const struct elf_section *section)
{
	struct cursor c = elf_image_section(walk->image, section);
	struct got_slots *slots = &walk->slots;
	while (cursor_left(&c) >= sizeof(Elf64_Rela) && slots->n < PLT_SOURCE_MAX_SLOTS) {
		uint64_t svma = cursor_u64(&c);
		uint64_t info = cursor_u64(&c);
		cursor_skip(&c, 8);
		if (!is_function_slot(walk->image->machine, (uint32_t)ELF64_R_TYPE(info)))
			continue;
		if (slots->n == slots->capacity) {
			slots->capacity = slots->capacity ? 2 * slots->capacity : 256;
			slots->slots =
				mem_realloc(slots->slots, slots->capacity, sizeof(*slots->slots));
		}
		slots->slots[slots->n++] = (struct got_slot){svma, (uint32_t)ELF64_R_SYM(info)};
	}
}

static int compare_slots(const void *left, const void *right)
{
	const struct got_slot *a = left;
	const struct got_slot *b = right;
	if (a->svma != b->svma)
		return a->svma < b->svma ? -1 : 1;
	return a->symbol < b->symbol ? -1 : a->symbol > b->symbol;
}

static void report_entry(const struct plt_walk *walk, uint64_t start, uint64_t end, uint64_t got)
{
	const struct got_slot key = {.svma = got};
	uint32_t low = 0;
	for (uint32_t high = walk->slots.n; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		if (walk->slots.slots[middle].svma < key.svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == walk->slots.n || walk->slots.slots[low].svma != got)
		return;
	struct cursor symbol = walk->symbols;
	uint64_t offset = (uint64_t)walk->slots.slots[low].symbol * sizeof(Elf64_Sym);
	if (offset >= cursor_left(&symbol))
		return;
	cursor_skip(&symbol, (size_t)offset);
	walk->fn(walk->context, start, end, cursor_u32(&symbol));
}

/* Entries are of one size and hold `jmp *disp32(%rip)`: ff 25 and the displacement. */
static void read_x86_64(const struct plt_walk *walk, const struct elf_section *section)
{
	size_t entry_bytes = PLT_ENTRY_BYTES;
	if (section->entry_bytes >= 8 && section->entry_bytes <= PLT_ENTRY_MAX_BYTES)
		entry_bytes = (size_t)section->entry_bytes;
	struct cursor c = elf_image_section(walk->image, section);
	for (uint64_t start = section->address; cursor_left(&c) >= entry_bytes;
	     start += entry_bytes) {
		struct cursor entry = cursor_sub(&c, entry_bytes);
		while (cursor_left(&entry) >= 6) {
			if (entry.next[0] != 0xff || entry.next[1] != 0x25) {
				cursor_skip(&entry, 1);
				continue;
			}
			cursor_skip(&entry, 2);
			int32_t displacement = (int32_t)cursor_u32(&entry);
			uint64_t next = start + (uint64_t)(entry.next - entry.begin);
			report_entry(walk, start, start + entry_bytes,
				     next + (uint64_t)(int64_t)displacement);
			break;
		}
	}
}

/*
 * adrp x16, page; ldr x17, [x16, #offset]; … br x17. An entry may begin with `bti c` and ends where
 * its br and padding do.
 */
static void read_arm64(const struct plt_walk *walk, const struct elf_section *section)
{
	const uint32_t bti_c = 0xd503245f, nop = 0xd503201f, br_x17 = 0xd61f0220;
	struct cursor c = elf_image_section(walk->image, section);
	uint64_t start = 0, page = 0, got = 0;
	for (uint64_t svma = section->address; cursor_left(&c) >= ARM64_WORD_BYTES;
	     svma += ARM64_WORD_BYTES) {
		uint32_t word = cursor_u32(&c);
		if (word == bti_c) {
			start = svma;
		} else if ((word & 0x9f00001f) == 0x90000010) {
			int64_t pages =
				(int64_t)((uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3));
			pages = pages >= 1 << 20 ? pages - (1 << 21) : pages;
			page = (svma & ~(uint64_t)0xfff) + ((uint64_t)pages << 12);
			start = start ? start : svma;
		} else if ((word & 0xffc003ff) == 0xf9400211 && start) {
			got = page + (word >> 10 & 0xfff) * 8;
		} else if (word == br_x17 && start) {
			uint64_t end = svma + ARM64_WORD_BYTES;
			struct cursor after = c;
			for (unsigned i = 0; i < 2 && cursor_u32(&after) == nop; i++)
				end += ARM64_WORD_BYTES;
			report_entry(walk, start, end, got);
			start = 0;
		}
	}
}

void plt_source_read(const struct elf_image *image, plt_source_entry_fn fn, void *context)
{
	static const char *const relocations[] = {".rela.plt", ".rela.dyn"};
	static const char *const plts[] = {".plt", ".plt.sec", ".plt.got"};
	bool is_x86_64 = image->machine == EM_X86_64;
	const struct elf_section *dynsym = elf_image_find_type(image, SHT_DYNSYM);
	if (!image->is_64 || !dynsym || (!is_x86_64 && image->machine != EM_AARCH64))
		return;
	struct plt_walk walk = {
		.image = image,
		.symbols = elf_image_section(image, dynsym),
		.fn = fn,
		.context = context,
	};
	for (size_t i = 0; i < ARRAY_LEN(relocations); i++) {
		const struct elf_section *section = elf_image_find(image, relocations[i]);
		if (section)
			read_slots(&walk, section);
	}
	if (walk.slots.n)
		qsort(walk.slots.slots, walk.slots.n, sizeof(*walk.slots.slots), compare_slots);
	for (size_t i = 0; i < ARRAY_LEN(plts); i++) {
		const struct elf_section *section = elf_image_find(image, plts[i]);
		if (!section)
			continue;
		if (is_x86_64)
			read_x86_64(&walk, section);
		else
			read_arm64(&walk, section);
	}
	mem_free(walk.slots.slots);
}
