/* SPDX-License-Identifier: Apache-2.0 */
/* A Go program from elsewhere: functions, lines and inlined calls out of its run time's tables. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/pclntab_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	struct error *err = elf_image_init(&image, data, size);
	if (err) {
		error_free(err);
		return 0;
	}
	struct symbol_model model;
	symbol_model_init(&model);
	pclntab_source_read(&image, &model);
	symbol_model_finish(&model);
	for (size_t i = 0; i < model.ranges.n; i++) {
		const struct symbol_range *range = &model.ranges.items[i];
		assert(range->start < range->end && range->chain < model.chains.n);
		assert(i == 0 || range[-1].end <= range->start);
	}
	for (size_t i = 0; i < model.chains.n; i++) {
		const struct symbol_chain *chain = &model.chains.items[i];
		assert(chain->parent == SYMBOL_CHAIN_NONE || chain->parent < i);
		assert(chain->function < model.functions.n);
	}
	for (size_t i = 1; i < model.lines.n; i++)
		assert(model.lines.items[i - 1].address < model.lines.items[i].address);
	symbol_model_fini(&model);
	elf_image_fini(&image);
	return 0;
}
