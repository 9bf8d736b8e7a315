/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF from elsewhere, which is its own .dwo, package and alternate too. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/dwarf_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct elf_image *find_alternate(void *context, const char *path,
					      const struct build_id *id)
{
	(void)path;
	(void)id;
	return context;
}

static const struct elf_image *find_dwo(void *context, const char *folder, const char *name,
					uint64_t id)
{
	(void)folder;
	(void)name;
	(void)id;
	return context;
}

static const struct elf_image *find_package(void *context)
{
	return context;
}

static void check(const struct symbol_model *model)
{
	for (size_t i = 0; i < model->ranges.n; i++) {
		const struct symbol_range *range = &model->ranges.items[i];
		assert(range->start < range->end);
		assert(i == 0 || range[-1].end <= range->start);
		assert(range->chain < model->chains.n);
	}
	for (size_t i = 0; i < model->chains.n; i++) {
		const struct symbol_chain *chain = &model->chains.items[i];
		assert(chain->parent == SYMBOL_CHAIN_NONE || chain->parent < i);
		assert(chain->function < model->functions.n);
		assert(chain->call_file < model->files.n);
	}
	for (size_t i = 0; i < model->functions.n; i++)
		assert(model->functions.items[i].file < model->files.n);
	for (size_t i = 0; i < model->lines.n; i++) {
		const struct symbol_line *row = &model->lines.items[i];
		assert(i == 0 || row[-1].address < row->address);
		assert(row->file < model->files.n);
	}
	assert(model->lines.n == 0 || model->lines.items[model->lines.n - 1].is_end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	struct error *err = elf_image_init(&image, data, size);
	if (err) {
		error_free(err);
		return 0;
	}
	struct symbol_model model;
	struct dwarf_source_stats stats;
	symbol_model_init(&model);
	const struct dwarf_source_files files = {.context = &image,
						 .find_alternate = find_alternate,
						 .find_dwo = find_dwo,
						 .find_package = find_package};
	error_free(dwarf_source_read(&image, &files, &model, &stats));
	symbol_model_finish(&model);
	check(&model);
	symbol_model_fini(&model);
	elf_image_fini(&image);
	return 0;
}
