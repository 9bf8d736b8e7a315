/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/jit_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char cut_mark[] = "\xe2\x80\xa6"; /* … */
/* Offsets have 32 bits, one value of them is taken. */
enum { TEXTS_MAX_BYTES = 1 << 30, FIRST_CAPACITY = 64 };

void jit_code_list_init(struct jit_code_list *list, size_t *budget)
{
	*list = (struct jit_code_list){.budget = budget};
}

static size_t bytes_of(const struct jit_code_list *list)
{
	return list->capacity * sizeof(*list->codes) + list->line_capacity * sizeof(*list->lines) +
	       list->text_capacity;
}

void jit_code_list_fini(struct jit_code_list *list)
{
	if (list->budget)
		*list->budget -= bytes_of(list);
	mem_free(list->codes);
	mem_free(list->lines);
	mem_free(list->texts);
	*list = (struct jit_code_list){0};
}

/* Room for n more in an array of that element; false when it would pass a bound. */
static bool reserve(struct jit_code_list *list, void *array, uint32_t *capacity, uint64_t need,
		    uint64_t max, size_t element_bytes)
{
	void **items = array;
	if (need <= *capacity)
		return true;
	uint64_t grown = *capacity ? (uint64_t)*capacity * 2 : FIRST_CAPACITY;
	while (grown < need)
		grown *= 2;
	size_t more = (size_t)(grown - *capacity) * element_bytes;
	if (need > max || (list->budget && *list->budget + more > JIT_CODE_MAX_BYTES))
		return false;
	if (list->budget)
		*list->budget += more;
	*items = mem_realloc(*items, (size_t)grown, element_bytes);
	*capacity = (uint32_t)grown;
	return true;
}

/* How many bytes of a text that is too long are kept: whole characters, where they are. */
static size_t cut_length(const char *text)
{
	size_t n = JIT_CODE_NAME_MAX_BYTES - sizeof(cut_mark);
	for (size_t back = 0; back < 4; back++) {
		if (((uint8_t)text[n - back] & 0xc0) != 0x80)
			return n - back;
	}
	return n;
}

uint32_t jit_code_add_text(struct jit_code_list *list, const char *text, size_t n)
{
	bool is_cut = n >= JIT_CODE_NAME_MAX_BYTES;
	if (is_cut)
		n = cut_length(text);
	size_t mark_bytes = is_cut ? sizeof(cut_mark) - 1 : 0;
	if (!reserve(list, &list->texts, &list->text_capacity,
		     (uint64_t)list->text_bytes + n + mark_bytes + 1, TEXTS_MAX_BYTES, 1))
		return JIT_CODE_NONE;
	uint32_t at = list->text_bytes;
	char *out = list->texts + at;
	memcpy(out, text, n);
	/* What no UTF-8 has, so that it is shown as U+FFFD. */
	for (char *zero = out; (zero = memchr(zero, 0, (size_t)(out + n - zero)));)
		*zero = (char)0xff;
	memcpy(out + n, cut_mark, mark_bytes);
	out[n + mark_bytes] = '\0';
	list->text_bytes += (uint32_t)(n + mark_bytes + 1);
	return at;
}

bool jit_code_add(struct jit_code_list *list, const struct jit_code *code)
{
	if (!reserve(list, &list->codes, &list->capacity, (uint64_t)list->n + 1, JIT_CODE_MAX,
		     sizeof(*list->codes))) {
		list->n_left_out++;
		return false;
	}
	struct jit_code *own = &list->codes[list->n];
	*own = *code;
	own->size += !own->size;
	if (own->size > UINT64_MAX - own->start)
		own->size = UINT64_MAX - own->start;
	if (list->n && own->from_ns < own[-1].from_ns)
		list->is_out_of_order = true;
	list->n++;
	return true;
}

bool jit_code_add_line(struct jit_code_list *list, const struct jit_line *line)
{
	if (!reserve(list, &list->lines, &list->line_capacity, (uint64_t)list->n_lines + 1,
		     JIT_CODE_MAX_LINES, sizeof(*list->lines)))
		return false;
	list->lines[list->n_lines++] = *line;
	return true;
}

struct dated {
	uint64_t from_ns;
	uint32_t index;
};

static int compare_dated(const void *a, const void *b)
{
	const struct dated *x = a, *y = b;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

void jit_code_sort(struct jit_code_list *list)
{
	if (!list->is_out_of_order)
		return;
	struct dated *order = mem_alloc(list->n * sizeof(*order));
	struct jit_code *old = mem_copy(list->codes, list->n * sizeof(*old));
	for (uint32_t i = 0; i < list->n; i++)
		order[i] = (struct dated){list->codes[i].from_ns, i};
	qsort(order, list->n, sizeof(*order), compare_dated);
	for (uint32_t i = 0; i < list->n; i++)
		list->codes[i] = old[order[i].index];
	mem_free(old);
	mem_free(order);
	list->is_out_of_order = false;
}

uint64_t jit_code_moment(const struct jit_code_list *list, uint64_t time_ns)
{
	uint32_t low = 0, n = list->n;
	while (n) {
		uint32_t half = n / 2;
		if (list->codes[low + half].from_ns <= time_ns) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low ? list->codes[low - 1].from_ns : 0;
}

/* --- finding --- */

/*
 * Pieces are painted one over the other on the addresses that are asked for: a tree over the k
 * sorted addresses, whose leaf i is node k + i. To paint a range sets O(log k) nodes; since stamps
 * only grow, the newest paint on an address is the largest stamp between its leaf and the root.
 */
struct canvas {
	uint64_t *vaddrs; /* sorted, distinct */
	uint32_t n;
	uint32_t *stamps; /* 2 * n */
};

static uint32_t rank_of(const struct canvas *canvas, uint64_t vaddr)
{
	uint32_t low = 0, n = canvas->n;
	while (n) {
		uint32_t half = n / 2;
		if (canvas->vaddrs[low + half] < vaddr) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

static void paint(struct canvas *canvas, const struct jit_code *code, uint32_t stamp)
{
	uint32_t left = rank_of(canvas, code->start);
	if (left == canvas->n || canvas->vaddrs[left] - code->start >= code->size)
		return;
	uint32_t right = rank_of(canvas, code->start + code->size);
	for (left += canvas->n, right += canvas->n; left < right; left /= 2, right /= 2) {
		if (left & 1)
			canvas->stamps[left++] = stamp;
		if (right & 1)
			canvas->stamps[--right] = stamp;
	}
}

/* 0 = no paint there. */
static uint32_t newest(const struct canvas *canvas, uint64_t vaddr)
{
	uint32_t stamp = 0;
	for (uint32_t i = rank_of(canvas, vaddr) + canvas->n; i; i /= 2) {
		if (canvas->stamps[i] > stamp)
			stamp = canvas->stamps[i];
	}
	return stamp;
}

static int compare_vaddrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static int compare_moments(const void *a, const void *b)
{
	const struct jit_query *x = a, *y = b;
	if (x->moment_ns != y->moment_ns)
		return x->moment_ns < y->moment_ns ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static struct canvas make_canvas(const struct jit_query *queries, uint32_t n)
{
	struct canvas canvas = {.vaddrs = mem_alloc(n * sizeof(uint64_t))};
	for (uint32_t i = 0; i < n; i++)
		canvas.vaddrs[i] = queries[i].vaddr;
	qsort(canvas.vaddrs, n, sizeof(uint64_t), compare_vaddrs);
	for (uint32_t i = 0; i < n; i++) {
		if (!canvas.n || canvas.vaddrs[canvas.n - 1] != canvas.vaddrs[i])
			canvas.vaddrs[canvas.n++] = canvas.vaddrs[i];
	}
	canvas.stamps = mem_zalloc((size_t)canvas.n * 2, sizeof(uint32_t));
	return canvas;
}

/* Forward in time; how many queries nothing covered. */
static uint32_t find_newest(const struct jit_code_list *list, struct jit_query *queries, uint32_t n,
			    struct canvas *canvas)
{
	uint32_t next = 0, n_open = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (; next < list->n && list->codes[next].from_ns <= queries[i].moment_ns; next++)
			paint(canvas, &list->codes[next], next + 1);
		uint32_t stamp = newest(canvas, queries[i].vaddr);
		queries[i].code = stamp ? stamp - 1 : JIT_CODE_NONE;
		n_open += !stamp;
	}
	return n_open;
}

/* Backward in time, so that the first time an address was covered lies on top. */
static void find_oldest(const struct jit_code_list *list, struct jit_query *queries, uint32_t n,
			struct canvas *canvas, uint64_t late_ns)
{
	uint32_t *painted = mem_alloc(list->n * sizeof(*painted));
	uint32_t stamp = 0;
	memset(canvas->stamps, 0, (size_t)canvas->n * 2 * sizeof(uint32_t));
	for (uint32_t end = list->n, begin; end; end = begin) {
		begin = end - 1;
		while (begin && list->codes[begin - 1].from_ns == list->codes[end - 1].from_ns)
			begin--;
		for (uint32_t i = begin; i < end; i++) {
			painted[stamp++] = i;
			paint(canvas, &list->codes[i], stamp);
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct jit_query *query = &queries[i];
		if (query->code != JIT_CODE_NONE)
			continue;
		uint32_t top = newest(canvas, query->vaddr);
		if (top && list->codes[painted[top - 1]].from_ns - query->moment_ns <= late_ns)
			query->code = painted[top - 1];
	}
	mem_free(painted);
}

void jit_code_find(struct jit_code_list *list, struct jit_query *queries, uint32_t n,
		   uint64_t late_ns)
{
	if (!n)
		return;
	jit_code_sort(list);
	qsort(queries, n, sizeof(*queries), compare_moments);
	struct canvas canvas = make_canvas(queries, n);
	if (find_newest(list, queries, n, &canvas) && late_ns)
		find_oldest(list, queries, n, &canvas, late_ns);
	mem_free(canvas.vaddrs);
	mem_free(canvas.stamps);
}

static int compare_lines(const void *a, const void *b)
{
	const struct jit_line *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->file < y->file ? -1 : x->file > y->file;
}

void jit_code_sort_lines(struct jit_code_list *list, uint32_t first)
{
	for (uint32_t i = first + 1; i < list->n_lines; i++) {
		if (list->lines[i].offset < list->lines[i - 1].offset) {
			qsort(&list->lines[first], list->n_lines - first, sizeof(*list->lines),
			      compare_lines);
			return;
		}
	}
}

const struct jit_line *jit_code_line(const struct jit_code_list *list, const struct jit_code *code,
				     uint64_t vaddr)
{
	if (!code->n_lines)
		return NULL;
	const struct jit_line *lines = list->lines + code->first_line;
	uint32_t low = 0, n = code->n_lines;
	while (n) {
		uint32_t half = n / 2;
		if (lines[low + half].offset <= vaddr - code->start) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low ? &lines[low - 1] : NULL;
}
