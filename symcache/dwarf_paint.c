/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_paint.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum { INSERTION_MAX = 24 };

void dwarf_paint_fini(struct dwarf_paint *paint)
{
	mem_free(paint->strokes);
	mem_free(paint->heap);
	*paint = (struct dwarf_paint){0};
}

void dwarf_paint_add(struct dwarf_paint *paint, uint64_t start, uint64_t end, uint32_t chain)
{
	if (paint->n == paint->capacity) {
		paint->capacity += paint->capacity / 2 + 64;
		paint->strokes =
			mem_realloc(paint->strokes, paint->capacity, sizeof(*paint->strokes));
	}
	paint->strokes[paint->n] = (struct dwarf_stroke){
		.start = start, .end = end, .chain = chain, .order = (uint32_t)paint->n};
	paint->n++;
}

static bool is_before(const struct dwarf_stroke *a, const struct dwarf_stroke *b)
{
	return a->start != b->start ? a->start < b->start : a->order < b->order;
}

static int compare_strokes(const void *left, const void *right)
{
	return is_before(left, right) ? -1 : 1;
}

static void sort_strokes(struct dwarf_stroke *strokes, size_t n)
{
	if (n > INSERTION_MAX) {
		qsort(strokes, n, sizeof(*strokes), compare_strokes);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct dwarf_stroke stroke = strokes[i];
		size_t k = i;
		for (; k > 0 && is_before(&stroke, &strokes[k - 1]); k--)
			strokes[k] = strokes[k - 1];
		strokes[k] = stroke;
	}
}

static void heap_push(struct dwarf_paint *paint, uint32_t stroke)
{
	if (paint->n_heap == paint->heap_capacity) {
		paint->heap_capacity += paint->heap_capacity + 64;
		paint->heap = mem_realloc(paint->heap, paint->heap_capacity, sizeof(*paint->heap));
	}
	uint32_t order = paint->strokes[stroke].order;
	size_t i = paint->n_heap++;
	for (; i && paint->strokes[paint->heap[(i - 1) / 2]].order < order; i = (i - 1) / 2)
		paint->heap[i] = paint->heap[(i - 1) / 2];
	paint->heap[i] = stroke;
}

static uint32_t order_at(const struct dwarf_paint *paint, size_t i)
{
	return paint->strokes[paint->heap[i]].order;
}

static void heap_pop(struct dwarf_paint *paint)
{
	uint32_t last = paint->heap[--paint->n_heap];
	if (!paint->n_heap)
		return;
	uint32_t order = paint->strokes[last].order;
	size_t i = 0;
	for (size_t child = 1; child < paint->n_heap; child = 2 * i + 1) {
		if (child + 1 < paint->n_heap &&
		    order_at(paint, child + 1) > order_at(paint, child))
			child++;
		if (order_at(paint, child) < order)
			break;
		paint->heap[i] = paint->heap[child];
		i = child;
	}
	paint->heap[i] = last;
}

/* A run that is held back, because the next one may continue it. */
struct pen {
	dwarf_paint_run_fn *fn;
	void *context;
	uint64_t start, end;
	uint32_t chain;
};

static void lift(struct pen *pen)
{
	if (pen->start < pen->end)
		pen->fn(pen->context, pen->start, pen->end, pen->chain);
}

static void draw(struct pen *pen, uint64_t start, uint64_t end, uint32_t chain)
{
	if (pen->end == start && pen->chain == chain) {
		pen->end = end;
		return;
	}
	lift(pen);
	pen->start = start;
	pen->end = end;
	pen->chain = chain;
}

/* What lies on top in [position, limit). */
static void draw_until(struct dwarf_paint *paint, struct pen *pen, uint64_t position,
		       uint64_t limit)
{
	while (paint->n_heap && position < limit) {
		const struct dwarf_stroke *top = &paint->strokes[paint->heap[0]];
		if (top->end <= position) {
			heap_pop(paint);
			continue;
		}
		uint64_t end = top->end < limit ? top->end : limit;
		draw(pen, position, end, top->chain);
		position = end;
	}
}

void dwarf_paint_flush(struct dwarf_paint *paint, dwarf_paint_run_fn *fn, void *context)
{
	struct pen pen = {.fn = fn, .context = context};
	sort_strokes(paint->strokes, paint->n);
	uint64_t position = 0;
	for (size_t i = 0; i < paint->n; i++) {
		draw_until(paint, &pen, position, paint->strokes[i].start);
		position = paint->strokes[i].start;
		heap_push(paint, (uint32_t)i);
	}
	draw_until(paint, &pen, position, UINT64_MAX);
	lift(&pen);
	paint->n = 0;
	paint->n_heap = 0;
}
