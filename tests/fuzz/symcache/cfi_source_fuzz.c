/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information from elsewhere: a whole ELF file, or the bytes of a section behind a byte
 * of flags. What comes of it has to be a table that answers as its model.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "symcache/cfi_program.h"
#include "symcache/cfi_source.h"
#include "symcache/elf_image.h"
#include "symcache/unwind_table.h"
#include "symcache/unwind_table_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TABLE_BYTES = 1 << 24, IS_ARM64 = 1, IS_DEBUG_FRAME = 2 };

static bool is_same(const struct unwind_value *a, const struct unwind_value *b)
{
	return a->kind == b->kind && a->register_number == b->register_number &&
	       a->offset == b->offset;
}

static void check_rule(const struct unwind_table *table, const struct unwind_model *model,
		       uint64_t svma, uint32_t number)
{
	const struct unwind_rule *got = unwind_table_find(table, svma);
	assert((got == NULL) == (number == UNWIND_RULE_NONE));
	if (!got)
		return;
	struct unwind_model_rule want = model->rules[number];
	if (want.plt_bound && svma % 16 >= want.plt_bound)
		want.rule.cfa.offset += 8;
	assert(is_same(&got->cfa, &want.rule.cfa));
	assert(is_same(&got->return_address, &want.rule.return_address));
	assert(is_same(&got->frame_pointer, &want.rule.frame_pointer));
	assert(is_same(&got->extra, &want.rule.extra));
	assert(got->flags == want.rule.flags);
}

static void check_model(const struct unwind_model *model)
{
	struct buf out;
	buf_init(&out, MAX_TABLE_BYTES);
	struct error *err = unwind_table_write(model, &out);
	if (!err) {
		struct unwind_table table;
		err = unwind_table_open(out.data, out.size, &table);
		assert(!err);
		for (size_t i = 0; i + 1 < model->n_rows; i++) {
			check_rule(&table, model, model->rows[i].svma, model->rows[i].rule);
			check_rule(&table, model, model->rows[i + 1].svma - 1, model->rows[i].rule);
		}
		unwind_table_close(&table);
	}
	error_free(err);
	buf_fini(&out);
}

static void read_file(const struct elf_image *image)
{
	struct unwind_model model;
	struct error *err = cfi_source_read(image, image, &model);
	if (!err) {
		assert(!model.n_rows || model.rows[model.n_rows - 1].rule == UNWIND_RULE_NONE);
		check_model(&model);
		unwind_model_fini(&model);
	}
	error_free(err);
}

static void read_section(uint8_t flags, const uint8_t *data, size_t size)
{
	struct cfi_section section = {.data = data,
				      .size = size,
				      .svma = 0x8000,
				      .text_svma = 0x1000,
				      .data_svma = 0xc000,
				      .is_eh_frame = !(flags & IS_DEBUG_FRAME)};
	struct unwind_model model;
	struct cfi_usage usage = {{0}};
	struct cfi_rows rows = {0};
	struct cfi_entry entry;
	size_t offset = 0;
	hash_map_init(&section.cies_by_offset);
	unwind_model_init(&model, flags & IS_ARM64 ? UNWIND_ARM64 : UNWIND_X86_64);
	while (cfi_section_next(&section, &offset, &entry)) {
		struct error *err = cfi_section_run(&section, &entry, &model, &usage, &rows);
		error_free(err);
		if (err)
			break;
		assert(rows.n && rows.rows[0].svma == entry.start);
		for (size_t i = 1; i < rows.n; i++)
			assert(rows.rows[i - 1].svma < rows.rows[i].svma &&
			       rows.rows[i].svma < entry.end);
	}
	mem_free(rows.rows);
	unwind_model_fini(&model);
	cfi_section_fini(&section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	struct error *err = elf_image_init(&image, data, size);
	if (!err) {
		read_file(&image);
		elf_image_fini(&image);
	} else if (size) {
		/* Of just its size, so that a sanitizer sees reads behind it. */
		uint8_t *copy = malloc(size);
		memcpy(copy, data + 1, size - 1);
		read_section(data[0], copy, size - 1);
		free(copy);
	}
	error_free(err);
	return 0;
}
