/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of one function and of all that was inlined into it, as DIEs give them, to runs
 * that do not overlap: what is painted later lies on top.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct dwarf_stroke {
	uint64_t start, end;
	uint32_t chain;
	uint32_t order;
};

struct dwarf_paint {
	struct dwarf_stroke *strokes;
	size_t n, capacity;
	uint32_t *heap; /* strokes, the latest on top */
	size_t n_heap, heap_capacity;
};

void dwarf_paint_fini(struct dwarf_paint *paint);
void dwarf_paint_add(struct dwarf_paint *paint, uint64_t start, uint64_t end, uint32_t chain);
typedef void dwarf_paint_run_fn(void *context, uint64_t start, uint64_t end, uint32_t chain);
/* Gives the runs by address and forgets the strokes. */
void dwarf_paint_flush(struct dwarf_paint *paint, dwarf_paint_run_fn *fn, void *context);
