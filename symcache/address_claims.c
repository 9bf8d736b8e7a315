/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/address_claims.h"

#include <elf.h>
#include <stdlib.h>

#include "base/mem.h"

/* A legitimate file claims each byte as often as units describe it. */
#define BUDGET_FACTOR 64
#define BUDGET_MORE   ((uint64_t)1 << 32)

static int compare_spans(const void *left, const void *right)
{
	const struct address_span *a = left;
	const struct address_span *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static void add_span(struct address_claims *claims, size_t *capacity, uint64_t start, uint64_t size)
{
	if (!size || size > UINT64_MAX - start || claims->n_spans == ADDRESS_CLAIMS_MAX_SPANS)
		return;
	if (claims->n_spans == *capacity) {
		*capacity += *capacity / 2 + 16;
		claims->spans = mem_realloc(claims->spans, *capacity, sizeof(*claims->spans));
	}
	claims->spans[claims->n_spans++] =
		(struct address_span){.start = start, .end = start + size};
}

/* Sorted, and free of overlaps. */
static void merge_spans(struct address_claims *claims)
{
	if (claims->n_spans)
		qsort(claims->spans, claims->n_spans, sizeof(*claims->spans), compare_spans);
	size_t n = 0;
	uint64_t left = ADDRESS_CLAIMS_MAX_BYTES;
	for (size_t i = 0; i < claims->n_spans; i++) {
		struct address_span span = claims->spans[i];
		if (n && span.start < claims->spans[n - 1].end)
			span.start = claims->spans[n - 1].end;
		if (span.start >= span.end)
			continue;
		if (span.end - span.start > left)
			span.end = span.start + left;
		left -= span.end - span.start;
		if (span.start < span.end)
			claims->spans[n++] = span;
	}
	claims->n_spans = n;
	claims->budget = (ADDRESS_CLAIMS_MAX_BYTES - left) * BUDGET_FACTOR + BUDGET_MORE;
}

void address_claims_init(struct address_claims *claims, const struct elf_image *image)
{
	*claims = (struct address_claims){0};
	size_t capacity = 0;
	const uint64_t text_flags = SHF_ALLOC | SHF_EXECINSTR;
	for (uint32_t i = 1; i < image->n_sections; i++) {
		const struct elf_section *section = &image->sections[i];
		if ((section->flags & text_flags) == text_flags)
			add_span(claims, &capacity, section->address, section->size);
	}
	for (uint32_t i = 0; i < image->n_segments && !image->n_sections; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (segment->is_executable)
			add_span(claims, &capacity, segment->svma, segment->memory_bytes);
	}
	merge_spans(claims);
}

void address_claims_fini(struct address_claims *claims)
{
	for (size_t i = 0; i < claims->n_spans; i++)
		mem_free(claims->spans[i].bits);
	mem_free(claims->spans);
	*claims = (struct address_claims){0};
}

/* The first span that ends behind address; NULL when none does. */
static struct address_span *find_span(struct address_claims *claims, uint64_t address)
{
	if (claims->last < claims->n_spans && address >= claims->spans[claims->last].start &&
	    address < claims->spans[claims->last].end)
		return &claims->spans[claims->last];
	size_t low = 0;
	for (size_t high = claims->n_spans; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (claims->spans[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	claims->last = low;
	return low < claims->n_spans ? &claims->spans[low] : NULL;
}

bool address_claims_covers(struct address_claims *claims, uint64_t address)
{
	const struct address_span *span = find_span(claims, address);
	return span && address >= span->start;
}

/* The first bit of value is_set in [from, to), else to. Words are taken whole. */
static uint64_t find_bit(const uint64_t *bits, uint64_t from, uint64_t to, bool is_set)
{
	while (from < to) {
		uint64_t word = is_set ? bits[from / 64] : ~bits[from / 64];
		word >>= from % 64;
		if (word) {
			from += (unsigned)__builtin_ctzll(word);
			return from < to ? from : to;
		}
		from = (from | 63) + 1;
	}
	return to;
}

static void set_bits(uint64_t *bits, uint64_t from, uint64_t to)
{
	while (from < to) {
		uint64_t n = 64 - from % 64;
		if (n > to - from)
			n = to - from;
		uint64_t mask = n == 64 ? UINT64_MAX : (((uint64_t)1 << n) - 1) << from % 64;
		bits[from / 64] |= mask;
		from += n;
	}
}

/* The free run that begins in [*position, end), as bits of its span; NULL when there is none. */
static struct address_span *find_free(struct address_claims *claims, uint64_t position,
				      uint64_t end, uint64_t *from_out, uint64_t *to_out)
{
	struct address_span *span;
	while (position < end && (span = find_span(claims, position)) && span->start < end) {
		if (position < span->start)
			position = span->start;
		uint64_t limit = end < span->end ? end : span->end;
		if (limit - position > claims->budget)
			return NULL;
		claims->budget -= limit - position;
		if (!span->bits)
			span->bits =
				mem_zalloc((span->end - span->start) / 64 + 1, sizeof(*span->bits));
		uint64_t last = limit - span->start;
		uint64_t from = find_bit(span->bits, position - span->start, last, false);
		if (from < last) {
			*from_out = from;
			*to_out = find_bit(span->bits, from, last, true);
			return span;
		}
		position = limit;
	}
	return NULL;
}

bool address_claims_take(struct address_claims *claims, uint64_t *position, uint64_t end,
			 uint64_t *start_out, uint64_t *end_out)
{
	uint64_t from, to;
	struct address_span *span = find_free(claims, *position, end, &from, &to);
	if (!span)
		return false;
	set_bits(span->bits, from, to);
	*start_out = span->start + from;
	*end_out = span->start + to;
	*position = *end_out;
	return true;
}

bool address_claims_is_free(struct address_claims *claims, uint64_t start, uint64_t end)
{
	uint64_t from, to;
	return find_free(claims, start, end, &from, &to) != NULL;
}
