/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/jit_dump_maker.h"

#include <string.h>

#include "base/mem.h"

void jit_dump_maker_init(struct jit_dump_maker *maker, bool is_swapped)
{
	*maker = (struct jit_dump_maker){.is_swapped = is_swapped};
}

void jit_dump_maker_fini(struct jit_dump_maker *maker)
{
	mem_free(maker->data);
	*maker = (struct jit_dump_maker){0};
}

static void put(struct jit_dump_maker *maker, const void *bytes, size_t n)
{
	if (maker->capacity - maker->size < n) {
		maker->capacity = 2 * maker->capacity + n;
		maker->data = mem_realloc(maker->data, maker->capacity, 1);
	}
	memcpy(maker->data + maker->size, bytes, n);
	maker->size += n;
}

static void put_u32(struct jit_dump_maker *maker, uint32_t v)
{
	v = maker->is_swapped ? __builtin_bswap32(v) : v;
	put(maker, &v, sizeof(v));
}

static void put_u64(struct jit_dump_maker *maker, uint64_t v)
{
	v = maker->is_swapped ? __builtin_bswap64(v) : v;
	put(maker, &v, sizeof(v));
}

static void fill(struct jit_dump_maker *maker, uint8_t byte, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(maker, &byte, 1);
}

void jit_dump_maker_header(struct jit_dump_maker *maker, uint32_t version, uint32_t pid,
			   uint64_t flags)
{
	put_u32(maker, 0x4a695444);
	put_u32(maker, version);
	put_u32(maker, 40);
	put_u32(maker, 62); /* EM_X86_64 */
	put_u32(maker, 0);
	put_u32(maker, pid);
	put_u64(maker, 1);
	put_u64(maker, flags);
}

static void begin(struct jit_dump_maker *maker, uint32_t id, uint64_t time_ns)
{
	maker->open = maker->size;
	put_u32(maker, id);
	put_u32(maker, 0);
	put_u64(maker, time_ns);
}

static void end(struct jit_dump_maker *maker)
{
	size_t whole = maker->size;
	maker->size = maker->open + sizeof(uint32_t);
	put_u32(maker, (uint32_t)(whole - maker->open));
	maker->size = whole;
}

void jit_dump_maker_load(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t address,
			 uint64_t size, uint64_t index, const char *name)
{
	begin(maker, 0, time_ns);
	put_u32(maker, 1);
	put_u32(maker, 1);
	put_u64(maker, address);
	put_u64(maker, address);
	put_u64(maker, size);
	put_u64(maker, index);
	put(maker, name, strlen(name) + 1);
	fill(maker, 0x90, size);
	end(maker);
}

void jit_dump_maker_move(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t from, uint64_t to,
			 uint64_t size, uint64_t index)
{
	begin(maker, 1, time_ns);
	put_u32(maker, 1);
	put_u32(maker, 1);
	put_u64(maker, to);
	put_u64(maker, from);
	put_u64(maker, to);
	put_u64(maker, size);
	put_u64(maker, index);
	end(maker);
}

void jit_dump_maker_lines(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t address,
			  const struct jit_dump_maker_line *lines, size_t n)
{
	begin(maker, 2, time_ns);
	put_u64(maker, address);
	put_u64(maker, n);
	for (size_t i = 0; i < n; i++) {
		put_u64(maker, lines[i].address);
		put_u32(maker, lines[i].line);
		put_u32(maker, 0);
		put(maker, lines[i].file, strlen(lines[i].file) + 1);
	}
	end(maker);
}

void jit_dump_maker_other(struct jit_dump_maker *maker, uint32_t id, uint64_t time_ns, size_t n)
{
	begin(maker, id, time_ns);
	fill(maker, 0, n);
	end(maker);
}
