/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All orders here end in content (names, lines), never in indices: these depend on the order of
 * appends, which must not show.
 */
#include "symcache/symbol_overlap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_strings(const struct symbol_model *model, uint32_t a, uint32_t b)
{
	return a == b ? 0
		      : strcmp(intern_text(&model->strings, a), intern_text(&model->strings, b));
}

static int compare_files(const struct symbol_model *model, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	const struct symbol_file_name *left = &model->files.items[a];
	const struct symbol_file_name *right = &model->files.items[b];
	int order = compare_strings(model, left->name, right->name);
	return order ? order : compare_strings(model, left->folder, right->folder);
}

static int compare_functions(const struct symbol_model *model, uint32_t a, uint32_t b)
{
	if (a == b)
		return 0;
	const struct symbol_function *left = &model->functions.items[a];
	const struct symbol_function *right = &model->functions.items[b];
	int order = compare_strings(model, left->linkage_name, right->linkage_name);
	if (!order)
		order = compare_strings(model, left->name, right->name);
	if (!order)
		order = compare_u64(left->start_line, right->start_line);
	return order ? order : compare_files(model, left->file, right->file);
}

static int compare_chains(const struct symbol_model *model, uint32_t a, uint32_t b)
{
	while (a != b && a != SYMBOL_CHAIN_NONE && b != SYMBOL_CHAIN_NONE) {
		const struct symbol_chain *left = &model->chains.items[a];
		const struct symbol_chain *right = &model->chains.items[b];
		int order = compare_functions(model, left->function, right->function);
		if (!order)
			order = compare_u64(left->call_line, right->call_line);
		if (!order)
			order = compare_u64(left->call_column, right->call_column);
		if (!order)
			order = compare_files(model, left->call_file, right->call_file);
		if (order)
			return order;
		a = left->parent;
		b = right->parent;
	}
	/* Of two chains that agree so far, the longer one says more. */
	return a == b ? 0 : a == SYMBOL_CHAIN_NONE ? 1 : -1;
}

static int compare_ranges(const void *left, const void *right, void *context)
{
	const struct symbol_range *a = left;
	const struct symbol_range *b = right;
	int order = compare_u64(a->start, b->start);
	if (!order)
		order = compare_u64(a->rank, b->rank);
	if (!order)
		order = compare_u64(a->end, b->end);
	if (!order)
		order = compare_chains(context, a->chain, b->chain);
	return order ? order : (int)b->is_folded - (int)a->is_folded;
}

/* Which range has an address that several cover. Both cover it; x sorts before y. */
static bool is_stronger(const struct symbol_range *ranges, size_t x, size_t y)
{
	const struct symbol_range *a = &ranges[x], *b = &ranges[y];
	if (a->rank != b->rank)
		return a->rank < b->rank;
	if (a->start != b->start)
		return a->start > b->start;
	return x < y; /* earlier end, then content, as they were sorted */
}

/*
 * A sweep over sorted ranges. The heap holds those that began, the strongest on top; what ended is
 * taken out when it comes up.
 */
struct sweep {
	const struct symbol_range *ranges;
	uint32_t *heap;
	size_t n_heap, heap_capacity;
	struct symbol_range *out;
	size_t n_out, out_capacity;
};

static void heap_push(struct sweep *sweep, uint32_t range)
{
	if (sweep->n_heap == sweep->heap_capacity) {
		sweep->heap_capacity = sweep->heap_capacity ? 2 * sweep->heap_capacity : 64;
		sweep->heap = mem_realloc(sweep->heap, sweep->heap_capacity, sizeof(*sweep->heap));
	}
	size_t i = sweep->n_heap++;
	while (i && is_stronger(sweep->ranges, range, sweep->heap[(i - 1) / 2])) {
		sweep->heap[i] = sweep->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sweep->heap[i] = range;
}

static void heap_pop(struct sweep *sweep)
{
	uint32_t last = sweep->heap[--sweep->n_heap];
	size_t i = 0;
	for (size_t child = 1; child < sweep->n_heap; child = 2 * i + 1) {
		if (child + 1 < sweep->n_heap &&
		    is_stronger(sweep->ranges, sweep->heap[child + 1], sweep->heap[child]))
			child++;
		if (!is_stronger(sweep->ranges, sweep->heap[child], last))
			break;
		sweep->heap[i] = sweep->heap[child];
		i = child;
	}
	if (sweep->n_heap)
		sweep->heap[i] = last;
}

static void emit(struct sweep *sweep, const struct symbol_range *range, uint64_t start,
		 uint64_t end)
{
	struct symbol_range *last = sweep->n_out ? &sweep->out[sweep->n_out - 1] : NULL;
	if (last && last->end == start && last->chain == range->chain &&
	    last->rank == range->rank && last->is_folded == range->is_folded) {
		last->end = end;
		return;
	}
	if (sweep->n_out == sweep->out_capacity) {
		sweep->out_capacity += sweep->out_capacity / 2 + 64;
		sweep->out = mem_realloc(sweep->out, sweep->out_capacity, sizeof(*sweep->out));
	}
	sweep->out[sweep->n_out] = *range;
	sweep->out[sweep->n_out].start = start;
	sweep->out[sweep->n_out++].end = end;
}

/* What covers [position, limit) by the ranges that began before. */
static void flush(struct sweep *sweep, uint64_t position, uint64_t limit)
{
	while (sweep->n_heap && position < limit) {
		const struct symbol_range *top = &sweep->ranges[sweep->heap[0]];
		if (top->end <= position) {
			heap_pop(sweep);
			continue;
		}
		uint64_t end = top->end < limit ? top->end : limit;
		emit(sweep, top, position, end);
		position = end;
	}
}

static bool are_sorted(const struct symbol_model *model)
{
	for (size_t i = 1; i < model->ranges.n; i++) {
		if (model->ranges.items[i - 1].start >= model->ranges.items[i].start)
			return false;
	}
	return true;
}

static bool have_overlap(const struct symbol_model *model)
{
	for (size_t i = 1; i < model->ranges.n; i++) {
		if (model->ranges.items[i - 1].end > model->ranges.items[i].start)
			return true;
	}
	return false;
}

void symbol_overlap_cut_ranges(struct symbol_model *model)
{
	if (!model->ranges.n)
		return;
	if (!are_sorted(model))
		qsort_r(model->ranges.items, model->ranges.n, sizeof(*model->ranges.items),
			compare_ranges, model);
	if (!have_overlap(model))
		return;
	struct sweep sweep = {.ranges = model->ranges.items};
	uint64_t position = 0;
	for (size_t i = 0; i < model->ranges.n; i++) {
		flush(&sweep, position, sweep.ranges[i].start);
		position = sweep.ranges[i].start;
		heap_push(&sweep, (uint32_t)i);
	}
	flush(&sweep, position, UINT64_MAX);
	mem_free(sweep.heap);
	mem_free(model->ranges.items);
	model->ranges.items = sweep.out;
	model->ranges.n = sweep.n_out;
	model->ranges.capacity = sweep.out_capacity;
}

/* Rows [first, first + n), the last of which says where they end. */
struct sequence {
	uint64_t start;
	uint32_t first, n;
};

struct sequences {
	struct sequence *items;
	size_t n, capacity;
	const struct symbol_model *model;
};

static int compare_rows(const struct symbol_model *model, const struct symbol_line *a,
			const struct symbol_line *b)
{
	int order = compare_u64(a->address, b->address);
	if (!order)
		order = (int)b->is_end - (int)a->is_end;
	if (!order)
		order = compare_u64(a->line, b->line);
	if (!order)
		order = compare_u64(a->column, b->column);
	return order ? order : compare_files(model, a->file, b->file);
}

static int compare_sequences(const void *left, const void *right, void *context)
{
	const struct symbol_model *model = context;
	const struct sequence *a = left;
	const struct sequence *b = right;
	int order = compare_u64(a->start, b->start);
	for (uint32_t i = 0; !order && i < a->n && i < b->n; i++)
		order = compare_rows(model, &model->lines.items[a->first + i],
				     &model->lines.items[b->first + i]);
	return order ? order : compare_u64(b->n, a->n);
}

static void add_sequence(struct sequences *all, size_t first, size_t n)
{
	if (n < 2)
		return;
	if (all->n == all->capacity) {
		all->capacity += all->capacity / 2 + 64;
		all->items = mem_realloc(all->items, all->capacity, sizeof(*all->items));
	}
	all->items[all->n++] = (struct sequence){
		.start = all->model->lines.items[first].address,
		.first = (uint32_t)first,
		.n = (uint32_t)n,
	};
}

/* A sequence that nothing closed ends where its last row begins. */
static struct sequences split_lines(struct symbol_model *model)
{
	struct sequences all = {.model = model};
	struct symbol_line *rows = model->lines.items;
	size_t first = 0;
	for (size_t i = 0; i < model->lines.n; i++) {
		bool is_last = i + 1 == model->lines.n || rows[i + 1].address < rows[i].address;
		if (!rows[i].is_end && !is_last)
			continue;
		rows[i] = (struct symbol_line){.address = rows[i].address, .is_end = 1};
		add_sequence(&all, first, i + 1 - first);
		first = i + 1;
	}
	return all;
}

/* Appends a sequence from address begin on, after what is there. */
static void copy_sequence(struct symbol_line *out, size_t *n_out, const struct symbol_line *rows,
			  uint32_t n, uint64_t begin)
{
	uint32_t i = 0;
	while (i + 1 < n && rows[i + 1].address <= begin)
		i++;
	if (i + 1 >= n)
		return;
	if (*n_out && out[*n_out - 1].is_end && out[*n_out - 1].address >= rows[i].address)
		--*n_out;
	memcpy(&out[*n_out], &rows[i], (n - i) * sizeof(*rows));
	if (out[*n_out].address < begin)
		out[*n_out].address = begin;
	*n_out += n - i;
}

void symbol_overlap_cut_lines(struct symbol_model *model)
{
	if (!model->lines.n)
		return;
	struct sequences all = split_lines(model);
	bool is_sorted = true;
	for (size_t i = 1; i < all.n; i++)
		is_sorted = is_sorted && all.items[i - 1].start < all.items[i].start;
	if (!is_sorted)
		qsort_r(all.items, all.n, sizeof(*all.items), compare_sequences, model);
	struct symbol_line *out = mem_realloc(NULL, model->lines.n, sizeof(*out));
	size_t n_out = 0;
	uint64_t covered = 0;
	for (size_t i = 0; i < all.n; i++) {
		const struct sequence *s = &all.items[i];
		const struct symbol_line *rows = &model->lines.items[s->first];
		copy_sequence(out, &n_out, rows, s->n, covered);
		if (rows[s->n - 1].address > covered)
			covered = rows[s->n - 1].address;
	}
	mem_free(all.items);
	mem_free(model->lines.items);
	model->lines.items = out;
	model->lines.capacity = model->lines.n;
	model->lines.n = n_out;
}
