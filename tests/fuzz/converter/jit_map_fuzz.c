/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a perf-PID.map: read at once and in pieces of the length that the first byte gives,
 * which must come to the same; then every piece of code is asked for.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "converter/jit_map.h"
#include "converter/jit_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const struct jit_code_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct jit_code *code = &list->codes[i];
		const char *raw = jit_code_text(list, code->name);
		const struct jit_name name = jit_name_split(raw);
		assert(strlen(raw) < JIT_CODE_NAME_MAX_BYTES);
		assert(code->size > 0 && code->size <= UINT64_MAX - code->start);
		assert(name.name_bytes <= strlen(raw));
		assert(!name.file || (name.file >= raw && name.file_bytes > 0 &&
				      name.file + name.file_bytes <= raw + strlen(raw)));
	}
}

static void check_answers(struct jit_code_list *list)
{
	struct jit_query *queries = mem_alloc(list->n * sizeof(*queries));
	for (uint32_t i = 0; i < list->n; i++)
		queries[i] = (struct jit_query){.vaddr = list->codes[i].start};
	jit_code_find(list, queries, list->n, 0);
	for (uint32_t i = 0; i < list->n; i++) {
		assert(queries[i].code < list->n);
		const struct jit_code *code = &list->codes[queries[i].code];
		assert(queries[i].vaddr - code->start < code->size);
	}
	mem_free(queries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	size_t step = data[0] + 1u, at = 0, n = 0;
	const char *text = (const char *)data + 1;
	size--;
	struct jit_map whole = {0}, pieces = {0};
	struct jit_code_list list, other;
	jit_code_list_init(&list, NULL);
	jit_code_list_init(&other, NULL);
	(void)jit_map_parse(&whole, text, size, true, 0, &list);
	while (at + n < size) {
		n = step < size - at - n ? n + step : size - at;
		size_t taken = jit_map_parse(&pieces, text + at, n, at + n == size, 0, &other);
		assert(taken <= n && (taken > 0 || n <= JIT_MAP_MAX_LINE_BYTES));
		at += taken;
		n -= taken;
	}
	assert(whole.n_lines == pieces.n_lines && whole.n_malformed == pieces.n_malformed);
	assert(list.n == other.n);
	check_names(&list);
	check_names(&other);
	check_answers(&list);
	jit_code_list_fini(&list);
	jit_code_list_fini(&other);
	return 0;
}
