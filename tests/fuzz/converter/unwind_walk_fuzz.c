/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers, a copied stack and the rules of a table, all from elsewhere: the walk ends, stays
 * inside the copy, and a cache changes nothing. Input: flags, u16 size of the table, the table, the
 * registers, the stack.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "converter/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small numbers, so that chance makes addresses of code: the table's, then code without any. */
enum {
	CODE = 0x10000,
	CODE_END = 0x20000,
	JIT = 0x30000,
	JIT_END = 0x40000,
	STACK = 0x1000,
};

static bool locate(void *context, uint64_t vaddr, struct unwind_place *out)
{
	const struct unwind_table *table = context;
	bool is_jit = vaddr >= JIT && vaddr < JIT_END;
	if (!is_jit && (vaddr < CODE || vaddr >= CODE_END))
		return false;
	*out = (struct unwind_place){
		.start = is_jit ? JIT : CODE,
		.end = is_jit ? JIT_END : CODE_END,
		.bias = CODE - table->start,
		.table = is_jit ? NULL : table,
		.without = UNWIND_STOP_NO_TABLE,
	};
	return true;
}

static void check(const struct unwind_walk *walk, uint64_t first_pc)
{
	struct unwind_place place;
	assert(walk->stop < UNWIND_STOP_N && unwind_stop_text(walk->stop));
	assert(walk->n <= UNWIND_MAX_FRAMES && (walk->n || !first_pc));
	assert(walk->n_by_frame_pointer <= walk->n);
	for (uint32_t i = 0; i < walk->n; i++) {
		const struct unwind_frame *frame = &walk->frames[i];
		assert(frame->pc);
		assert(!i || locate(walk->context, frame->pc - !frame->is_exact, &place));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct unwind_walk walk, cached;
	struct cursor c = cursor_make(data, size, false);
	uint8_t flags = cursor_u8(&c);
	size_t table_bytes = cursor_u16(&c);
	const uint8_t *bytes = cursor_bytes(&c, table_bytes);
	struct unwind_registers registers = {.known = cursor_u64(&c)};
	for (unsigned i = 0; i < UNWIND_N_REGISTERS; i++)
		registers.values[i] = cursor_u64(&c);
	if (!cursor_is_ok(&c))
		return 0;
	struct unwind_table table;
	struct error *err = unwind_table_open(bytes, table_bytes, &table);
	if (err) {
		error_free(err);
		return 0;
	}
	/* Its own heap block, so that a read beyond it is seen. */
	size_t stack_bytes = cursor_left(&c);
	uint8_t *stack = malloc(stack_bytes + !stack_bytes);
	if (!stack)
		abort();
	memcpy(stack, data + size - stack_bytes, stack_bytes);
	bool is_x86 = table.machine == UNWIND_X86_64;
	unsigned sp = is_x86 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP;
	unsigned pc = is_x86 ? UNWIND_X86_64_PC : UNWIND_ARM64_PC;
	registers.known |= (uint64_t)1 << sp | (uint64_t)1 << pc;
	if (flags & 1) {
		registers.values[sp] = STACK;
		registers.values[pc] = CODE + (registers.values[pc] & 0xffff);
	}
	walk = (struct unwind_walk){
		.machine = table.machine,
		.registers = registers,
		.stack = {.bytes = stack, .vaddr = registers.values[sp], .size = stack_bytes},
		.locate = locate,
		.context = &table,
	};
	cached = walk;
	unwind_walk(&walk);
	check(&walk, registers.values[pc]);

	struct unwind_cache cache;
	unwind_cache_init(&cache);
	for (int round = 0; round < 2; round++) {
		cached.registers = registers;
		cached.cache = &cache;
		cached.generation = 1;
		unwind_walk(&cached);
		assert(cached.n == walk.n && cached.stop == walk.stop);
		for (uint32_t i = 0; i < walk.n; i++)
			assert(cached.frames[i].pc == walk.frames[i].pc &&
			       cached.frames[i].is_exact == walk.frames[i].is_exact);
	}
	unwind_cache_fini(&cache);
	unwind_table_close(&table);
	free(stack);
	return 0;
}
