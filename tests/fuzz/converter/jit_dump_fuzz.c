/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump, of which as much is at hand at a time as the first byte says; then every piece of code
 * is asked for, with its lines.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "converter/jit_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t feed(struct jit_dump *dump, const uint8_t *bytes, size_t n_file, size_t step)
{
	uint64_t offset = 0;
	for (size_t at_hand = step; offset < n_file;) {
		size_t left = n_file - (size_t)offset;
		size_t n = at_hand < left ? at_hand : left;
		uint64_t taken = jit_dump_read(dump, bytes + offset, n, left);
		if (!taken && n == left)
			break;
		offset += taken;
		at_hand = taken ? step : at_hand * 2;
	}
	return offset;
}

static void check(struct jit_code_list *list)
{
	struct jit_query *queries = mem_alloc(list->n * sizeof(*queries));
	for (uint32_t i = 0; i < list->n; i++) {
		const struct jit_code *code = &list->codes[i];
		assert(code->size > 0 && code->size <= UINT64_MAX - code->start);
		assert(code->first_line + code->n_lines <= list->n_lines);
		queries[i] = (struct jit_query){.vaddr = code->start + code->size - 1,
						.moment_ns = code->from_ns};
	}
	jit_code_find(list, queries, list->n, 0);
	for (uint32_t i = 0; i < list->n; i++) {
		assert(queries[i].code < list->n);
		const struct jit_code *code = &list->codes[queries[i].code];
		const struct jit_line *line = jit_code_line(list, code, queries[i].vaddr);
		assert(!line || strlen(jit_code_text(list, line->file)) < JIT_CODE_NAME_MAX_BYTES);
		assert(code->name == JIT_CODE_NONE ||
		       strlen(jit_code_text(list, code->name)) < JIT_CODE_NAME_MAX_BYTES);
	}
	mem_free(queries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct jit_code_list list;
	struct jit_dump dump;
	jit_code_list_init(&list, NULL);
	jit_dump_init(&dump, &list);
	(void)feed(&dump, data + 1, size - 1, 1u + data[0] * 64u);
	check(&list);
	jit_dump_fini(&dump);
	jit_code_list_fini(&list);
	return 0;
}
