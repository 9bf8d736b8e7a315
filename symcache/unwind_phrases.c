/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/unwind_phrases.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"

enum {
	MAX_ROUNDS = 16,
	ROUND_FACTOR = 3,      /* how much rarer the pairs of the next round may be */
	ROW_BITS = 24,	       /* what a row costs */
	MIN_USES = 3,	       /* below, a phrase costs more than it saves */
	MAX_SYMBOLS = 1 << 20, /* rules and phrases tried; fits the key of a pair */
	SYMBOL_BITS = 20,
	DISTANCE_BITS = 8,
};

/* A rule, or two symbols in sequence. */
struct symbol {
	uint32_t left, right;
	uint32_t n_uses;
	uint32_t code;	  /* in the end */
	uint8_t distance; /* of right's first row from left's */
	uint8_t extent;	  /* of the last row from the first */
	uint8_t n_rows;
	bool is_kept;
};

struct pair {
	uint64_t key;
	uint64_t count;
};

struct maker {
	struct unwind_item *items;
	size_t n;
	struct symbol *symbols;
	uint32_t n_symbols, symbols_capacity, n_rules;
	unsigned page_bits, rule_bits, row_bits;
	struct hash_map counts; /* key of a pair → how often, then → its symbol */
	struct pair *pairs;
	size_t n_pairs, pairs_capacity;
};

/* Bits of its record in the dictionary. */
static uint32_t cost_of(const struct maker *maker, unsigned n_rows)
{
	return n_rows * maker->rule_bits + (n_rows - 1) * 8;
}

/* 0: the two cannot be one phrase. */
static uint64_t key_of(const struct maker *maker, const struct unwind_item *left,
		       const struct unwind_item *right)
{
	const struct symbol *a = &maker->symbols[left->code], *b = &maker->symbols[right->code];
	uint64_t distance = right->unit - left->unit;
	uint64_t last = (uint64_t)right->unit + b->extent;
	if (a->n_rows + b->n_rows > UNWIND_MAX_PHRASE ||
	    distance + b->extent > UNWIND_MAX_DISTANCE ||
	    left->unit >> maker->page_bits != last >> maker->page_bits)
		return 0;
	return (uint64_t)left->code << (SYMBOL_BITS + DISTANCE_BITS) |
	       (uint64_t)right->code << DISTANCE_BITS | distance;
}

static void count_pairs(struct maker *maker)
{
	hash_map_clear(&maker->counts);
	for (size_t i = 0; i + 1 < maker->n; i++) {
		uint64_t key = key_of(maker, &maker->items[i], &maker->items[i + 1]);
		if (key)
			++*hash_map_put(&maker->counts, key, NULL);
	}
}

static int compare_pairs(const void *left, const void *right)
{
	const struct pair *a = left, *b = right;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

/* The pairs that come at least so often, most frequent first; returns the count of the first. */
static void select_pairs(struct maker *maker, uint64_t min_count)
{
	size_t iterator = 0;
	uint64_t key, *count;
	maker->n_pairs = 0;
	while (hash_map_next(&maker->counts, &iterator, &key, &count)) {
		if (*count < min_count)
			continue;
		if (maker->n_pairs == maker->pairs_capacity) {
			maker->pairs_capacity =
				maker->pairs_capacity ? 2 * maker->pairs_capacity : 1024;
			maker->pairs = mem_realloc(maker->pairs, maker->pairs_capacity,
						   sizeof(*maker->pairs));
		}
		maker->pairs[maker->n_pairs++] = (struct pair){.key = key, .count = *count};
	}
	if (maker->n_pairs)
		qsort(maker->pairs, maker->n_pairs, sizeof(*maker->pairs), compare_pairs);
}

static uint64_t top_count(const struct maker *maker)
{
	size_t iterator = 0;
	uint64_t key, *count, top = 0;
	while (hash_map_next(&maker->counts, &iterator, &key, &count))
		top = *count > top ? *count : top;
	return top;
}

/* Makes symbols of the selected pairs; counts then leads to them. */
static void add_symbols(struct maker *maker)
{
	hash_map_clear(&maker->counts);
	for (size_t i = 0; i < maker->n_pairs && maker->n_symbols < MAX_SYMBOLS; i++) {
		uint64_t key = maker->pairs[i].key;
		uint32_t left = (uint32_t)(key >> (SYMBOL_BITS + DISTANCE_BITS));
		uint32_t right = (uint32_t)(key >> DISTANCE_BITS) & ((1u << SYMBOL_BITS) - 1);
		uint8_t distance = (uint8_t)key;
		if (maker->n_symbols == maker->symbols_capacity) {
			maker->symbols_capacity *= 2;
			maker->symbols = mem_realloc(maker->symbols, maker->symbols_capacity,
						     sizeof(*maker->symbols));
		}
		const struct symbol *a = &maker->symbols[left], *b = &maker->symbols[right];
		maker->symbols[maker->n_symbols] = (struct symbol){
			.left = left,
			.right = right,
			.distance = distance,
			.extent = (uint8_t)(distance + b->extent),
			.n_rows = (uint8_t)(a->n_rows + b->n_rows),
		};
		*hash_map_put(&maker->counts, key, NULL) = maker->n_symbols++;
	}
}

/* 0 = none. */
static uint32_t symbol_at(const struct maker *maker, size_t i)
{
	if (i + 1 >= maker->n)
		return 0;
	uint64_t key = key_of(maker, &maker->items[i], &maker->items[i + 1]);
	const uint64_t *symbol = key ? hash_map_get(&maker->counts, key) : NULL;
	return symbol ? (uint32_t)*symbol : 0;
}

/* From the left; of two that share an item the more frequent, which has the lower number. */
static void replace_pairs(struct maker *maker)
{
	size_t n = 0;
	uint32_t symbol = symbol_at(maker, 0);
	for (size_t i = 0; i < maker->n;) {
		uint32_t next = symbol_at(maker, i + 1);
		struct unwind_item item = maker->items[i];
		if (symbol && (!next || symbol <= next)) {
			item.code = symbol;
			i += 2;
			symbol = symbol_at(maker, i);
		} else {
			i++;
			symbol = next;
		}
		maker->items[n++] = item;
	}
	maker->n = n;
}

static void count_uses(struct maker *maker)
{
	for (uint32_t i = 0; i < maker->n_symbols; i++)
		maker->symbols[i].n_uses = 0;
	for (size_t i = 0; i < maker->n; i++)
		maker->symbols[maker->items[i].code].n_uses++;
}

/* Those that pay; the others are taken apart again, from the last made to the first. */
static uint32_t keep_symbols(struct maker *maker, uint32_t min_uses)
{
	uint32_t n = 0;
	count_uses(maker);
	for (uint32_t i = maker->n_symbols; i-- > maker->n_rules;) {
		struct symbol *symbol = &maker->symbols[i];
		uint64_t saved = (uint64_t)symbol->n_uses * maker->row_bits;
		symbol->is_kept =
			symbol->n_uses >= min_uses && saved > cost_of(maker, symbol->n_rows);
		n += symbol->is_kept;
		if (!symbol->is_kept) {
			maker->symbols[symbol->left].n_uses += symbol->n_uses;
			maker->symbols[symbol->right].n_uses += symbol->n_uses;
		}
	}
	return n;
}

/* Writes what a symbol stands for, in symbols that are kept. */
static size_t expand(const struct maker *maker, struct unwind_item item, bool to_rules,
		     struct unwind_item out[UNWIND_MAX_PHRASE])
{
	struct unwind_item stack[UNWIND_MAX_PHRASE + 1];
	size_t n = 0, depth = 0;
	stack[depth++] = item;
	while (depth) {
		struct unwind_item top = stack[--depth];
		const struct symbol *symbol = &maker->symbols[top.code];
		if (top.code < maker->n_rules || (symbol->is_kept && !to_rules)) {
			out[n++] = top;
			continue;
		}
		stack[depth++] = (struct unwind_item){top.unit + symbol->distance, symbol->right};
		stack[depth++] = (struct unwind_item){top.unit, symbol->left};
	}
	return n;
}

/* Numbers the kept symbols by their rows and writes them down. */
static void write_phrases(struct maker *maker, struct unwind_phrases *out, uint32_t n)
{
	*out = (struct unwind_phrases){.phrases = mem_zalloc(n, sizeof(*out->phrases)), .n = n};
	uint32_t next[UNWIND_MAX_PHRASE + 2] = {0};
	for (uint32_t i = maker->n_rules; i < maker->n_symbols; i++)
		out->n_of_rows[maker->symbols[i].n_rows] =
			(uint16_t)(out->n_of_rows[maker->symbols[i].n_rows] +
				   maker->symbols[i].is_kept);
	for (unsigned rows = 0; rows <= UNWIND_MAX_PHRASE; rows++)
		next[rows + 1] = next[rows] + out->n_of_rows[rows];
	for (uint32_t i = maker->n_rules; i < maker->n_symbols; i++) {
		struct symbol *symbol = &maker->symbols[i];
		struct unwind_item rows[UNWIND_MAX_PHRASE];
		if (!symbol->is_kept)
			continue;
		uint32_t number = next[symbol->n_rows]++;
		struct unwind_phrase *phrase = &out->phrases[number];
		symbol->code = maker->n_rules + number;
		phrase->n_rows = (uint8_t)expand(maker, (struct unwind_item){0, i}, true, rows);
		for (unsigned k = 0; k < phrase->n_rows; k++) {
			phrase->distances[k] = (uint8_t)rows[k].unit;
			phrase->rules[k] = (uint16_t)rows[k].code;
		}
	}
}

/* Items become codes; those taken apart need more room, so the result is a new array. */
static void write_items(struct maker *maker)
{
	size_t n = 0, capacity = maker->n + maker->n / 8 + UNWIND_MAX_PHRASE;
	struct unwind_item *out = mem_alloc(capacity * sizeof(*out));
	for (size_t i = 0; i < maker->n; i++) {
		if (capacity - n < UNWIND_MAX_PHRASE) {
			capacity += capacity / 2 + UNWIND_MAX_PHRASE;
			out = mem_realloc(out, capacity, sizeof(*out));
		}
		size_t end = n + expand(maker, maker->items[i], false, out + n);
		for (; n < end; n++) {
			uint32_t code = out[n].code;
			out[n].code = code < maker->n_rules ? code : maker->symbols[code].code;
		}
	}
	/* There were at least as many to begin with. */
	memcpy(maker->items, out, n * sizeof(*out));
	maker->n = n;
	mem_free(out);
}

void unwind_phrases_make(struct unwind_phrases *phrases, struct unwind_item *items, size_t n,
			 uint32_t n_rules, uint32_t max_phrases, unsigned page_bits, size_t *n_out)
{
	struct maker maker = {
		.items = items,
		.n = n,
		.n_symbols = n_rules,
		.symbols_capacity = n_rules + 1024,
		.n_rules = n_rules,
		.page_bits = page_bits,
		.rule_bits = n_rules <= 256 ? 8 : 16,
		.row_bits = ROW_BITS,
	};
	maker.symbols = mem_zalloc(maker.symbols_capacity, sizeof(*maker.symbols));
	for (uint32_t i = 0; i < n_rules; i++)
		maker.symbols[i].n_rows = 1;
	hash_map_init(&maker.counts);
	count_pairs(&maker);
	uint64_t min_count = top_count(&maker) / 2 + 1;
	for (unsigned round = 0; round < MAX_ROUNDS; round++) {
		min_count = min_count > MIN_USES ? min_count : MIN_USES;
		select_pairs(&maker, min_count);
		if (!maker.n_pairs && min_count == MIN_USES)
			break;
		if (maker.n_pairs) {
			add_symbols(&maker);
			replace_pairs(&maker);
			count_pairs(&maker);
		}
		min_count /= ROUND_FACTOR;
	}
	uint32_t n_kept, min_uses = 1;
	while ((n_kept = keep_symbols(&maker, min_uses)) > max_phrases)
		min_uses += 1 + min_uses / 4;
	write_phrases(&maker, phrases, n_kept);
	write_items(&maker);
	*n_out = maker.n;
	hash_map_fini(&maker.counts);
	mem_free(maker.symbols);
	mem_free(maker.pairs);
}

void unwind_phrases_fini(struct unwind_phrases *phrases)
{
	mem_free(phrases->phrases);
	*phrases = (struct unwind_phrases){0};
}
