/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/elf_pointers.h"

#include <elf.h>
#include <stdlib.h>

#include "base/mem.h"

static int compare_pointers(const void *left, const void *right)
{
	const struct elf_pointer *a = left;
	const struct elf_pointer *b = right;
	if (a->svma != b->svma)
		return a->svma < b->svma ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

static uint32_t relative_type(const struct elf_image *image)
{
	switch (image->machine) {
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	default:
		return 0;
	}
}

static void read_relocations(struct elf_pointers *pointers, const struct elf_section *section)
{
	struct cursor c = elf_image_section(pointers->image, section);
	size_t n = cursor_left(&c) / sizeof(Elf64_Rela);
	if (n > ELF_POINTERS_MAX - pointers->n)
		n = ELF_POINTERS_MAX - pointers->n;
	if (!n)
		return;
	pointers->items = mem_realloc(pointers->items, pointers->n + n, sizeof(*pointers->items));
	uint32_t wanted = relative_type(pointers->image);
	for (size_t i = 0; i < n; i++) {
		uint64_t svma = cursor_u64(&c);
		uint64_t info = cursor_u64(&c);
		uint64_t addend = cursor_u64(&c);
		if (ELF64_R_TYPE(info) == wanted)
			pointers->items[pointers->n++] = (struct elf_pointer){svma, addend};
	}
}

void elf_pointers_init(struct elf_pointers *pointers, const struct elf_image *image)
{
	*pointers = (struct elf_pointers){.image = image};
	if (!image->is_64 || image->type != ET_DYN || !relative_type(image))
		return;
	for (uint32_t i = 1; i < image->n_sections; i++) {
		const struct elf_section *section = &image->sections[i];
		if (section->type == SHT_RELA && section->flags & SHF_ALLOC)
			read_relocations(pointers, section);
	}
	if (pointers->n)
		qsort(pointers->items, pointers->n, sizeof(*pointers->items), compare_pointers);
}

void elf_pointers_fini(struct elf_pointers *pointers)
{
	mem_free(pointers->items);
	*pointers = (struct elf_pointers){0};
}

bool elf_pointers_read(const struct elf_pointers *pointers, uint64_t svma, uint64_t *out)
{
	size_t low = 0;
	for (size_t high = pointers->n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (pointers->items[middle].svma < svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < pointers->n && pointers->items[low].svma == svma) {
		*out = pointers->items[low].value;
		return true;
	}
	struct cursor c = elf_image_at(pointers->image, svma);
	*out = elf_image_word(pointers->image, &c);
	return cursor_is_ok(&c);
}
