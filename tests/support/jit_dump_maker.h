/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a jitdump in memory, in either byte order (layout: converter/jit_dump.h).
 *
 * Order of calls: jit_dump_maker_init; jit_dump_maker_header; records; data and size are the file
 * then; jit_dump_maker_fini.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_dump_maker {
	bool is_swapped;
	uint8_t *data;
	size_t size, capacity;
	size_t open; /* where the record being made begins */
};

struct jit_dump_maker_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

void jit_dump_maker_init(struct jit_dump_maker *maker, bool is_swapped);
void jit_dump_maker_fini(struct jit_dump_maker *maker);
void jit_dump_maker_header(struct jit_dump_maker *maker, uint32_t version, uint32_t pid,
			   uint64_t flags);
/* With size bytes of code, all 0x90. */
void jit_dump_maker_load(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t address,
			 uint64_t size, uint64_t index, const char *name);
void jit_dump_maker_move(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t from, uint64_t to,
			 uint64_t size, uint64_t index);
void jit_dump_maker_lines(struct jit_dump_maker *maker, uint64_t time_ns, uint64_t address,
			  const struct jit_dump_maker_line *lines, size_t n);
/* Of any type: n bytes of zeros behind the prefix. */
void jit_dump_maker_other(struct jit_dump_maker *maker, uint32_t id, uint64_t time_ns, size_t n);
