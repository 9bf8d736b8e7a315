/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file from elsewhere: headers, notes, symbol tables, PLT, and names out of them. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/content_id.h"
#include "symcache/elf_image.h"
#include "symcache/symtab_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	(void)content_id_of_file(data, size);
	struct error *err = elf_image_init(&image, data, size);
	if (err) {
		error_free(err);
		return 0;
	}
	struct symbol_model model;
	symbol_model_init(&model);
	symtab_source_read(&image, &image, &model);
	uint64_t covered = 0;
	symbol_model_finish(&model);
	for (size_t i = 0; i < model.ranges.n; i++) {
		const struct symbol_range *range = &model.ranges.items[i];
		assert(range->start >= covered && range->start < range->end);
		covered = range->end;
		const struct symbol_chain *chain = &model.chains.items[range->chain];
		uint32_t name = model.functions.items[chain->function].linkage_name;
		assert(*intern_text(&model.strings, name));
	}
	uint64_t value;
	(void)symtab_source_value(&image, "_text", &value);
	symbol_model_fini(&model);
	elf_image_fini(&image);
	return 0;
}
