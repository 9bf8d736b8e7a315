/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/exec_stack.h"

#include <string.h>

#include "base/cursor.h"

static uint64_t read_word(struct cursor *c, bool is_32_bit)
{
	return is_32_bit ? cursor_u32(c) : cursor_u64(c);
}

bool exec_stack_read_argv(const struct exec_stack *stack, struct buf *words)
{
	struct cursor pointers = cursor_make(stack->bytes, stack->size, false);
	uint64_t argc = read_word(&pointers, stack->is_32_bit);

	if (!cursor_is_ok(&pointers) || argc > stack->size)
		return false;
	for (uint64_t i = 0; i < argc; i++) {
		uint64_t vaddr = read_word(&pointers, stack->is_32_bit);
		uint64_t offset = vaddr - stack->sp;
		if (!cursor_is_ok(&pointers) || offset >= stack->size)
			return false;
		struct cursor text = cursor_make(stack->bytes, stack->size, false);
		cursor_seek(&text, (size_t)offset);
		const char *word = cursor_string(&text, stack->size);
		if (!word)
			return false;
		struct error *err = buf_append(words, word, strlen(word) + 1);
		if (err) {
			error_free(err);
			return false;
		}
	}
	return argc > 0;
}
