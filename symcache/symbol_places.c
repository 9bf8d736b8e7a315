/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_places.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symcache/symbol_file_layout.h"

enum { RANK_BITS = 3, NO_VARIANT = UINT8_MAX };

/* Chains that are too deep end at the call that would be one too many. */
struct cut {
	uint32_t chain;	  /* what is left of it */
	uint32_t dropped; /* the first chain that is left out, SYMBOL_CHAIN_NONE = none */
};

struct making {
	struct symbol_places *places;
	const struct symbol_model *model;
	struct tuple_set variants; /* model's function, variant → number */
	struct cut *cuts;	   /* per chain */
	uint32_t *roots;	   /* per chain: its outermost chain */
};

static bool is_root(const struct symbol_chain *chain)
{
	return chain->parent == SYMBOL_CHAIN_NONE;
}

static uint32_t add_variant(struct making *making, uint32_t function, uint8_t variant)
{
	return tuple_set_add(&making->variants, (struct tuple){{function, variant, 0, 0}});
}

/* A real function has the best rank of its ranges, and is folded if any of them is. */
static uint8_t join_variants(uint8_t a, const struct symbol_range *range)
{
	uint8_t rank = range->rank, folded = range->is_folded;
	if (a != NO_VARIANT) {
		uint8_t other = a & ((1 << RANK_BITS) - 1);
		rank = other < rank ? other : rank;
		folded |= a >> RANK_BITS;
	}
	return (uint8_t)(rank | folded << RANK_BITS);
}

static void cut_chains(struct making *making)
{
	const struct symbol_model *model = making->model;
	struct placed_chain *chains = making->places->chains;
	for (size_t i = 0; i < model->chains.n; i++) {
		uint32_t parent = model->chains.items[i].parent;
		making->cuts[i] = (struct cut){(uint32_t)i, SYMBOL_CHAIN_NONE};
		making->roots[i] = (uint32_t)i;
		chains[i].parent = parent;
		chains[i].depth = 0;
		if (parent == SYMBOL_CHAIN_NONE)
			continue;
		assert(parent < i);
		making->roots[i] = making->roots[parent];
		chains[i].depth = chains[parent].depth + 1;
		if (making->cuts[parent].dropped != SYMBOL_CHAIN_NONE)
			making->cuts[i] = making->cuts[parent];
		else if (chains[i].depth > SYMBOL_FILE_MAX_DEPTH)
			making->cuts[i] = (struct cut){parent, (uint32_t)i};
	}
}

/* Numbers real functions by address and inlined ones by first use; the model's chains are in that
 * order. */
static void number_functions(struct making *making)
{
	const struct symbol_model *model = making->model;
	struct placed_chain *chains = making->places->chains;
	uint8_t *variants = mem_alloc(model->chains.n + 1);
	memset(variants, NO_VARIANT, model->chains.n);
	for (size_t i = 0; i < model->ranges.n; i++) {
		const struct symbol_range *range = &model->ranges.items[i];
		uint8_t *variant = &variants[making->roots[range->chain]];
		*variant = join_variants(*variant, range);
	}
	for (size_t i = 0; i < model->ranges.n; i++) {
		uint32_t root = making->roots[model->ranges.items[i].chain];
		chains[root].function =
			add_variant(making, model->chains.items[root].function, variants[root]);
	}
	for (size_t i = 0; i < model->chains.n; i++) {
		uint8_t variant = is_root(&model->chains.items[i]) && variants[i] != NO_VARIANT
					  ? variants[i]
					  : SYMBOL_RANK_DWARF;
		chains[i].function = add_variant(making, model->chains.items[i].function, variant);
	}
	mem_free(variants);
	struct symbol_places *places = making->places;
	places->n_functions = making->variants.n;
	places->functions = mem_zalloc(places->n_functions, sizeof(*places->functions));
	for (uint32_t i = 0; i < places->n_functions; i++) {
		const struct tuple *variant = &making->variants.items[i];
		places->functions[i] = (struct placed_function){
			.function = variant->v[0],
			.rank = variant->v[1] & ((1 << RANK_BITS) - 1),
			.is_folded = variant->v[1] >> RANK_BITS,
		};
	}
}

static uint32_t add_site(struct symbol_places *places, uint32_t function, uint32_t file,
			 uint32_t line, uint32_t column)
{
	if (line >= UINT32_C(1) << 30)
		line = 0;
	if (!line)
		file = column = 0;
	if (column >> SYMBOL_FILE_MAX_COLUMN_BITS)
		column = 0;
	return tuple_set_add(&places->sites, (struct tuple){{function, file, line, column}});
}

/* The site in the parent's function where the chain's function is called. */
static uint32_t add_call_site(struct making *making, uint32_t chain)
{
	const struct symbol_chain *call = &making->model->chains.items[chain];
	return add_site(making->places, making->places->chains[call->parent].function,
			call->call_file, call->call_line, call->call_column);
}

static void add_edges(struct making *making)
{
	struct symbol_places *places = making->places;
	for (uint32_t i = 0; i < making->model->chains.n; i++) {
		struct placed_chain *chain = &places->chains[i];
		if (chain->parent == SYMBOL_CHAIN_NONE || chain->depth > SYMBOL_FILE_MAX_DEPTH)
			continue;
		chain->edge = tuple_set_add(
			&places->edges,
			(struct tuple){{places->chains[chain->parent].function,
					add_call_site(making, i), chain->function, 0}});
	}
}

static void put_segment(struct symbol_places *places, uint64_t start, uint32_t chain, uint32_t site)
{
	struct segment *last =
		places->n_segments ? &places->segments[places->n_segments - 1] : NULL;
	if (last && last->chain == chain && last->site == site)
		return;
	if (last && last->chain != SYMBOL_CHAIN_NONE &&
	    start - last->start > SYMBOL_PLACES_MAX_SEGMENT_BYTES) {
		uint64_t end = last->start + SYMBOL_PLACES_MAX_SEGMENT_BYTES;
		put_segment(places, end, SYMBOL_CHAIN_NONE, 0);
		put_segment(places, start, chain, site);
		return;
	}
	if (places->n_segments == places->segments_capacity) {
		places->segments_capacity =
			places->n_segments ? places->n_segments + places->n_segments / 2 : 1024;
		places->segments = mem_realloc(places->segments, places->segments_capacity,
					       sizeof(*places->segments));
	}
	places->segments[places->n_segments++] = (struct segment){start, chain, site};
}

/* row: what is said of the addresses from start on, NULL = nothing. */
static void put_stretch(struct making *making, uint64_t start, uint32_t chain,
			const struct symbol_line *row)
{
	struct symbol_places *places = making->places;
	const struct cut *cut = &making->cuts[chain];
	uint32_t function = places->chains[cut->chain].function, site;
	if (cut->dropped != SYMBOL_CHAIN_NONE)
		site = add_call_site(making, cut->dropped);
	else if (row && !row->is_end)
		site = add_site(places, function, row->file, row->line, row->column);
	else
		site = add_site(places, function, 0, 0, 0);
	put_segment(places, start, cut->chain, site);
}

static void join_ranges_and_lines(struct making *making)
{
	const struct symbol_model *model = making->model;
	const struct symbol_line *rows = model->lines.items;
	size_t next = 0; /* row that starts behind the current address */
	uint64_t end = 0;
	for (size_t i = 0; i < model->ranges.n; i++) {
		const struct symbol_range *range = &model->ranges.items[i];
		if (i && range->start > end)
			put_segment(making->places, end, SYMBOL_CHAIN_NONE, 0);
		while (next < model->lines.n && rows[next].address <= range->start)
			next++;
		put_stretch(making, range->start, range->chain, next ? &rows[next - 1] : NULL);
		for (; next < model->lines.n && rows[next].address < range->end; next++)
			put_stretch(making, rows[next].address, range->chain, &rows[next]);
		end = range->end;
	}
	if (model->ranges.n)
		put_segment(making->places, end, SYMBOL_CHAIN_NONE, 0);
}

/* Items of a set by their first number, a function; the rest in the order of the set. */
static uint32_t *group_by_function(const struct tuple_set *set, uint32_t n_functions,
				   uint32_t **firsts_out)
{
	uint32_t *firsts = mem_zalloc((size_t)n_functions + 2, sizeof(*firsts));
	for (uint32_t i = 0; i < set->n; i++)
		firsts[set->items[i].v[0] + 2]++;
	for (uint32_t i = 2; i <= n_functions; i++)
		firsts[i] += firsts[i - 1];
	uint32_t *order = mem_alloc((size_t)set->n * sizeof(*order));
	for (uint32_t i = 0; i < set->n; i++)
		order[firsts[set->items[i].v[0] + 1]++] = i;
	*firsts_out = firsts;
	return order;
}

/* What sorting compares; file 0 is the function's own. */
struct site_key {
	uint32_t file, line, column, site;
};

static int compare_numbers(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int compare_sites(const void *a, const void *b)
{
	const struct site_key *x = a, *y = b;
	int order = compare_numbers(x->file, y->file);
	if (!order)
		order = compare_numbers(x->line, y->line);
	return order ? order : compare_numbers(x->column, y->column);
}

/* The file of most sites, the lowest number of those; keys are sorted by file. */
static uint32_t find_main_file(const struct site_key *keys, uint32_t n)
{
	uint32_t best = 0, n_best = 0;
	for (uint32_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && keys[i + run].file == keys[i].file; run++)
			;
		if (keys[i].file && run > n_best) {
			best = keys[i].file;
			n_best = run;
		}
	}
	return best;
}

static void list_other_files(struct symbol_places *places, struct placed_function *function,
			     const struct site_key *keys, uint32_t n)
{
	function->first_file = places->n_other_files;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t file = keys[i].file;
		if (!file || file == function->file || (i && keys[i - 1].file == file))
			continue;
		if ((places->n_other_files & (places->n_other_files - 1)) == 0) {
			size_t capacity = places->n_other_files ? 2 * places->n_other_files : 1;
			places->other_files = mem_realloc(places->other_files, capacity,
							  sizeof(*places->other_files));
		}
		places->other_files[places->n_other_files++] = file;
		function->n_files++;
	}
}

static void sort_sites_of(struct symbol_places *places, struct placed_function *function,
			  struct site_key *keys)
{
	uint32_t *order = places->site_order + function->first_site, n = function->n_sites;
	for (uint32_t i = 0; i < n; i++) {
		const struct tuple *site = &places->sites.items[order[i]];
		keys[i] = (struct site_key){site->v[1], site->v[2], site->v[3], order[i]};
	}
	qsort(keys, n, sizeof(*keys), compare_sites);
	function->file = find_main_file(keys, n);
	list_other_files(places, function, keys, n);
	if (function->n_files) {
		for (uint32_t i = 0; i < n; i++)
			if (keys[i].file == function->file)
				keys[i].file = 0;
		qsort(keys, n, sizeof(*keys), compare_sites);
	}
	for (uint32_t i = 0; i < n; i++) {
		order[i] = keys[i].site;
		places->site_numbers[keys[i].site] = i;
	}
}

static void sort_sites(struct making *making)
{
	struct symbol_places *places = making->places;
	uint32_t *firsts, most = 0;
	places->site_order = group_by_function(&places->sites, places->n_functions, &firsts);
	places->site_numbers = mem_alloc((size_t)places->sites.n * sizeof(*places->site_numbers));
	for (uint32_t i = 0; i < places->n_functions; i++) {
		places->functions[i].first_site = firsts[i];
		places->functions[i].n_sites = firsts[i + 1] - firsts[i];
		if (places->functions[i].n_sites > most)
			most = places->functions[i].n_sites;
	}
	struct site_key *keys = mem_alloc((size_t)most * sizeof(*keys));
	for (uint32_t i = 0; i < places->n_functions; i++)
		sort_sites_of(places, &places->functions[i], keys);
	mem_free(keys);
	mem_free(firsts);
}

struct edge_key {
	uint32_t site, callee, edge;
};

static int compare_edges(const void *a, const void *b)
{
	const struct edge_key *x = a, *y = b;
	int order = compare_numbers(x->site, y->site);
	return order ? order : compare_numbers(x->callee, y->callee);
}

static void sort_edges(struct making *making)
{
	struct symbol_places *places = making->places;
	uint32_t *firsts, n_edges = places->edges.n;
	places->edge_order = group_by_function(&places->edges, places->n_functions, &firsts);
	uint32_t *numbers = mem_alloc((size_t)n_edges * sizeof(*numbers));
	struct edge_key *keys = mem_alloc((size_t)n_edges * sizeof(*keys));
	for (uint32_t i = 0; i < n_edges; i++) {
		const struct tuple *edge = &places->edges.items[places->edge_order[i]];
		keys[i] = (struct edge_key){places->site_numbers[edge->v[1]], edge->v[2],
					    places->edge_order[i]};
	}
	for (uint32_t i = 0; i < places->n_functions; i++) {
		struct placed_function *function = &places->functions[i];
		function->first_edge = firsts[i];
		function->n_edges = firsts[i + 1] - firsts[i];
		if (function->n_edges)
			qsort(keys + firsts[i], function->n_edges, sizeof(*keys), compare_edges);
		for (uint32_t k = firsts[i]; k < firsts[i + 1]; k++) {
			places->edge_order[k] = keys[k].edge;
			numbers[keys[k].edge] = k - firsts[i];
		}
	}
	for (size_t i = 0; i < making->model->chains.n; i++) {
		struct placed_chain *chain = &places->chains[i];
		if (chain->parent != SYMBOL_CHAIN_NONE && chain->depth <= SYMBOL_FILE_MAX_DEPTH)
			chain->edge = numbers[chain->edge];
	}
	mem_free(numbers);
	mem_free(keys);
	mem_free(firsts);
}

void symbol_places_init(struct symbol_places *places, const struct symbol_model *model)
{
	*places = (struct symbol_places){0};
	tuple_set_init(&places->sites);
	tuple_set_init(&places->edges);
	places->chains = mem_zalloc(model->chains.n, sizeof(*places->chains));
	struct making making = {
		.places = places,
		.model = model,
		.cuts = mem_alloc(model->chains.n * sizeof(*making.cuts)),
		.roots = mem_alloc(model->chains.n * sizeof(*making.roots)),
	};
	tuple_set_init(&making.variants);
	cut_chains(&making);
	number_functions(&making);
	add_edges(&making);
	join_ranges_and_lines(&making);
	sort_sites(&making);
	sort_edges(&making);
	for (size_t i = 0; i < places->n_segments; i++)
		if (places->segments[i].chain != SYMBOL_CHAIN_NONE)
			places->segments[i].site = places->site_numbers[places->segments[i].site];
	tuple_set_fini(&making.variants);
	mem_free(making.cuts);
	mem_free(making.roots);
}

void symbol_places_fini(struct symbol_places *places)
{
	mem_free(places->functions);
	mem_free(places->chains);
	tuple_set_fini(&places->sites);
	tuple_set_fini(&places->edges);
	mem_free(places->site_order);
	mem_free(places->edge_order);
	mem_free(places->site_numbers);
	mem_free(places->other_files);
	mem_free(places->segments);
	*places = (struct symbol_places){0};
}
