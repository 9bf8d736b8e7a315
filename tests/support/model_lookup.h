/* SPDX-License-Identifier: Apache-2.0 */
/* What a finished symbol model says about one address, as the text that llvm-symbolizer prints. */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "symcache/symbol_model.h"

static inline const struct symbol_range *model_lookup_range(const struct symbol_model *model,
							    uint64_t svma)
{
	size_t low = 0;
	for (size_t high = model->ranges.n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (model->ranges.items[middle].end <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == model->ranges.n || model->ranges.items[low].start > svma)
		return NULL;
	return &model->ranges.items[low];
}

static inline const struct symbol_line *model_lookup_line(const struct symbol_model *model,
							  uint64_t svma)
{
	size_t low = 0;
	for (size_t high = model->lines.n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (model->lines.items[middle].address <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || model->lines.items[low - 1].is_end)
		return NULL;
	return &model->lines.items[low - 1];
}

static inline size_t model_lookup_place(const struct symbol_model *model, uint32_t file,
					uint32_t line, uint32_t column, char *out, size_t n)
{
	const struct symbol_file_name *name = &model->files.items[file];
	const char *folder = intern_text(&model->strings, name->folder);
	if (!file)
		return (size_t)snprintf(out, n, "??:%u:%u\n", line, column);
	return (size_t)snprintf(out, n, "%s%s%s:%u:%u\n", folder,
				*folder && strcmp(folder, "/") != 0 ? "/" : "",
				intern_text(&model->strings, name->name), line, column);
}

/* FUNCTION, newline, FILE:LINE:COLUMN, newline, for each frame, the innermost first. */
static inline void model_lookup_text(const struct symbol_model *model, uint64_t svma, char *out,
				     size_t n)
{
	const struct symbol_line *row = model_lookup_line(model, svma);
	const struct symbol_range *range = model_lookup_range(model, svma);
	uint32_t file = row ? row->file : 0, line = row ? row->line : 0;
	uint32_t column = row ? row->column : 0;
	uint32_t chain = range ? range->chain : SYMBOL_CHAIN_NONE;
	size_t used = 0;
	do {
		const char *name = "??";
		const struct symbol_chain *link = NULL;
		if (chain != SYMBOL_CHAIN_NONE) {
			link = &model->chains.items[chain];
			const struct symbol_function *function =
				&model->functions.items[link->function];
			name = intern_text(&model->strings, function->linkage_name
								    ? function->linkage_name
								    : function->name);
		}
		if (used < n)
			used += (size_t)snprintf(out + used, n - used, "%s\n", name);
		if (used < n)
			used += model_lookup_place(model, file, line, column, out + used, n - used);
		if (!link)
			break;
		chain = link->parent;
		file = link->call_file;
		line = link->call_line;
		column = link->call_column;
	} while (chain != SYMBOL_CHAIN_NONE);
}
