/* SPDX-License-Identifier: Apache-2.0 */
/* Any stack: a byte for the word size, 8 bytes for SP, then the copy. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "collector/exec_stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_make(data, size, false);
	struct buf words CLEANUP(buf_fini);
	struct exec_stack stack = {.is_32_bit = cursor_u8(&c) & 1, .sp = cursor_u64(&c)};

	stack.size = cursor_left(&c);
	/* Of exact size, so that a read past its end is seen. */
	uint8_t *copy CLEANUP(cleanup_mem) = mem_copy(c.next, stack.size);
	stack.bytes = copy;
	buf_init(&words, 16 << 10);
	bool is_whole = exec_stack_read_argv(&stack, &words);
	if (words.size && words.data[words.size - 1])
		abort();
	if (is_whole && words.size == 0)
		abort();
	return 0;
}
