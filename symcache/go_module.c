/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/go_module.h"

#include <elf.h>

/* Words of moduledata: the same in all layouts up to the end of .noptrbss. */
enum {
	WORD_N_FUNCTIONS = 17, /* length of the list of functions, with its end */
	WORD_TEXT = 22,
	WORD_CALL_DATA_1_18 = 38,
	WORD_CALL_DATA_1_20 = 40, /* two words for coverage came before it */
};

static bool read_word(const struct elf_pointers *pointers, uint64_t svma, unsigned index,
		      uint64_t *out)
{
	unsigned word_bytes = pointers->image->is_64 ? 8 : 4;
	return elf_pointers_read(pointers, svma + (uint64_t)index * word_bytes, out);
}

/* Whether the words at svma are those of a module with this table. */
static bool try_place(const struct elf_pointers *pointers, const struct pclntab *table,
		      uint64_t svma, struct go_module *out)
{
	uint64_t n_functions, text, call_data = 0;
	if (!read_word(pointers, svma, WORD_N_FUNCTIONS, &n_functions) ||
	    n_functions != table->n_functions + 1 || !read_word(pointers, svma, WORD_TEXT, &text))
		return false;
	if (table->layout == PCLNTAB_1_18)
		(void)read_word(pointers, svma, WORD_CALL_DATA_1_18, &call_data);
	else if (table->layout == PCLNTAB_1_20)
		(void)read_word(pointers, svma, WORD_CALL_DATA_1_20, &call_data);
	*out = (struct go_module){.text = text, .call_data = call_data};
	return true;
}

static bool scan_segment(const struct elf_pointers *pointers, const struct load_segment *segment,
			 const struct pclntab *table, struct go_module *out)
{
	const struct elf_image *image = pointers->image;
	size_t word_bytes = image->is_64 ? 8 : 4;
	uint64_t skipped = -segment->svma % word_bytes;
	struct cursor c = elf_image_at(image, segment->svma + skipped);
	for (uint64_t i = 0; cursor_left(&c) >= word_bytes; i++) {
		if (elf_image_word(image, &c) == table->svma &&
		    try_place(pointers, table, segment->svma + skipped + i * word_bytes, out))
			return true;
	}
	return false;
}

bool go_module_find(const struct elf_pointers *pointers, const struct pclntab *table,
		    struct go_module *out)
{
	const struct elf_image *image = pointers->image;
	for (size_t i = 0; i < pointers->n; i++) {
		const struct elf_pointer *pointer = &pointers->items[i];
		if (pointer->value == table->svma && try_place(pointers, table, pointer->svma, out))
			return true;
	}
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (!segment->is_executable && scan_segment(pointers, segment, table, out))
			return true;
	}
	return false;
}
