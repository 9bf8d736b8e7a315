/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/mem.h"
#include "symcache/symbol_overlap.h"

enum { FIRST_ITEMS = 64, FIRST_SLOTS = 128 };

/* Sets compare items word by word. */
static_assert(sizeof(struct symbol_file_name) == 8, "no padding");
static_assert(sizeof(struct symbol_function) == 16, "no padding");
static_assert(sizeof(struct symbol_chain) == 20, "no padding");

/* Makes room for one more; false at the cap. Grows by half: the arrays are most of the memory. */
#define HAS_ROOM(model, array, max)                                                                \
	((array).n < (array).capacity ||                                                           \
	 grow((model), (void **)&(array).items, sizeof(*(array).items), (array).n,                 \
	      &(array).capacity, (max)))

static bool grow(struct symbol_model *model, void **items, size_t item_bytes, size_t n,
		 size_t *capacity, size_t max)
{
	if (n >= max) {
		model->n_dropped++;
		return false;
	}
	size_t wanted = *capacity ? *capacity + *capacity / 2 : FIRST_ITEMS;
	*capacity = wanted < max ? wanted : max;
	*items = mem_realloc(*items, *capacity, item_bytes);
	return true;
}

static uint64_t hash_words(uint64_t seed, const uint32_t *words, size_t n)
{
	uint64_t hash = seed;
	for (size_t i = 0; i < n; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

static void set_grow(struct symbol_set *set, uint64_t seed, const void *items, size_t n,
		     size_t n_words)
{
	size_t n_slots = set->slots ? (set->mask + 1) * 2 : FIRST_SLOTS;
	mem_free(set->slots);
	set->slots = mem_zalloc(n_slots, sizeof(*set->slots));
	set->mask = n_slots - 1;
	const uint32_t *words = items;
	for (size_t i = 0; i < n; i++) {
		size_t slot = (size_t)hash_words(seed, words + i * n_words, n_words) & set->mask;
		while (set->slots[slot])
			slot = (slot + 1) & set->mask;
		set->slots[slot] = (uint32_t)i + 1;
	}
}

/* The slot of an item equal to the one given, or the free slot where it belongs. */
static uint32_t *set_find(struct symbol_set *set, uint64_t seed, const void *items, size_t n,
			  const void *item, size_t n_words)
{
	if (!set->slots || n >= set->mask / 2)
		set_grow(set, seed, items, n, n_words);
	const uint32_t *words = items;
	size_t slot = (size_t)hash_words(seed, item, n_words) & set->mask;
	while (set->slots[slot] && memcmp(words + (set->slots[slot] - 1) * n_words, item,
					  n_words * sizeof(*words)) != 0)
		slot = (slot + 1) & set->mask;
	return &set->slots[slot];
}

void symbol_model_init(struct symbol_model *model)
{
	*model = (struct symbol_model){.seed = hash_seed_make()};
	arena_init(&model->arena, 0);
	intern_init(&model->strings, &model->arena);
	symbol_model_add_file(model, (struct symbol_file_name){0});
	symbol_model_add_function(model, (struct symbol_function){0});
}

void symbol_model_fini(struct symbol_model *model)
{
	intern_fini(&model->strings);
	arena_fini(&model->arena);
	mem_free(model->files.items);
	mem_free(model->functions.items);
	mem_free(model->chains.items);
	mem_free(model->ranges.items);
	mem_free(model->lines.items);
	mem_free(model->file_set.slots);
	mem_free(model->function_set.slots);
	*model = (struct symbol_model){0};
}

uint32_t symbol_model_add_string(struct symbol_model *model, const char *text, size_t n)
{
	if (model->strings.n >= SYMBOL_MODEL_MAX_STRINGS) {
		model->n_dropped++;
		return 0;
	}
	return intern_bytes(&model->strings, text, n);
}

uint32_t symbol_model_add_file(struct symbol_model *model, struct symbol_file_name file)
{
	uint32_t *slot = set_find(&model->file_set, model->seed, model->files.items, model->files.n,
				  &file, sizeof(file) / sizeof(uint32_t));
	if (*slot)
		return *slot - 1;
	if (!HAS_ROOM(model, model->files, SYMBOL_MODEL_MAX_FILES))
		return 0;
	model->files.items[model->files.n++] = file;
	*slot = (uint32_t)model->files.n;
	return *slot - 1;
}

uint32_t symbol_model_add_function(struct symbol_model *model, struct symbol_function function)
{
	uint32_t *slot =
		set_find(&model->function_set, model->seed, model->functions.items,
			 model->functions.n, &function, sizeof(function) / sizeof(uint32_t));
	if (*slot)
		return *slot - 1;
	if (!HAS_ROOM(model, model->functions, SYMBOL_MODEL_MAX_FUNCTIONS))
		return 0;
	model->functions.items[model->functions.n++] = function;
	*slot = (uint32_t)model->functions.n;
	return *slot - 1;
}

uint32_t symbol_model_add_chain(struct symbol_model *model, struct symbol_chain chain)
{
	assert(chain.parent == SYMBOL_CHAIN_NONE || chain.parent < model->chains.n);
	if (!HAS_ROOM(model, model->chains, SYMBOL_MODEL_MAX_CHAINS))
		return SYMBOL_CHAIN_NONE;
	model->chains.items[model->chains.n++] = chain;
	return (uint32_t)model->chains.n - 1;
}

void symbol_model_add_range(struct symbol_model *model, struct symbol_range range)
{
	if (range.start >= range.end || range.chain == SYMBOL_CHAIN_NONE ||
	    !HAS_ROOM(model, model->ranges, SYMBOL_MODEL_MAX_RANGES))
		return;
	model->ranges.items[model->ranges.n++] = range;
}

static bool says_same(const struct symbol_line *a, const struct symbol_line *b)
{
	return a->is_end == b->is_end &&
	       (a->is_end || (a->file == b->file && a->line == b->line && a->column == b->column));
}

/* Appends to a run of rows whose addresses ascend; first is where the run begins. */
static void put_row(struct symbol_model *model, size_t first, struct symbol_line row)
{
	struct symbol_line *rows = model->lines.items;
	size_t n = model->lines.n;
	if (n > first && rows[n - 1].address == row.address)
		n--;
	if (n > first && says_same(&rows[n - 1], &row)) {
		model->lines.n = n;
		return;
	}
	model->lines.n = n;
	if (HAS_ROOM(model, model->lines, SYMBOL_MODEL_MAX_LINES))
		model->lines.items[model->lines.n++] = row;
}

/* Where the sequence that is being filled begins. */
static size_t open_sequence(const struct symbol_model *model, uint64_t address)
{
	size_t n = model->lines.n;
	const struct symbol_line *last = n ? &model->lines.items[n - 1] : NULL;
	if (!last || last->is_end || last->address > address)
		return n;
	/* At most two rows back are looked at. */
	size_t first = n - 1;
	if (first && !last[-1].is_end && last[-1].address < last->address)
		first--;
	return first;
}

void symbol_model_add_line(struct symbol_model *model, struct symbol_line row)
{
	size_t first = open_sequence(model, row.address);
	if (row.is_end)
		row = (struct symbol_line){.address = row.address, .is_end = 1};
	if (row.is_end && first == model->lines.n)
		return;
	put_row(model, first, row);
}

/* New indices of everything, given at first use; UINT32_MAX = not used yet. */
struct renumber {
	struct symbol_model *model;
	struct intern strings;
	struct arena arena;
	uint32_t *string_map, *file_map, *function_map, *chain_map;
	struct symbol_file_name *files;
	struct symbol_function *functions;
	struct symbol_chain *chains;
	size_t n_files, n_functions, n_chains;
	struct symbol_set chain_set;
	uint32_t *stack; /* links of a chain, the innermost first */
	size_t stack_capacity;
};

static uint32_t *make_map(size_t n)
{
	uint32_t *map = mem_realloc(NULL, n ? n : 1, sizeof(*map));
	memset(map, 0xff, n * sizeof(*map));
	return map;
}

static uint32_t renumber_string(struct renumber *new, uint32_t old)
{
	if (new->string_map[old] == UINT32_MAX) {
		const struct intern_entry *entry = &new->model->strings.entries[old];
		new->string_map[old] = intern_bytes(&new->strings, entry->text, entry->size);
	}
	return new->string_map[old];
}

static uint32_t renumber_file(struct renumber *new, uint32_t old)
{
	if (new->file_map[old] == UINT32_MAX) {
		const struct symbol_file_name *file = &new->model->files.items[old];
		new->files[new->n_files] = (struct symbol_file_name){
			.folder = renumber_string(new, file->folder),
			.name = renumber_string(new, file->name),
		};
		new->file_map[old] = (uint32_t) new->n_files++;
	}
	return new->file_map[old];
}

static uint32_t renumber_function(struct renumber *new, uint32_t old)
{
	if (new->function_map[old] == UINT32_MAX) {
		struct symbol_function function = new->model->functions.items[old];
		function.linkage_name = renumber_string(new, function.linkage_name);
		function.name = renumber_string(new, function.name);
		function.file = renumber_file(new, function.file);
		new->functions[new->n_functions] = function;
		new->function_map[old] = (uint32_t) new->n_functions++;
	}
	return new->function_map[old];
}

/* One chain whose parent has its new number. */
static uint32_t renumber_link(struct renumber *new, uint32_t old)
{
	struct symbol_chain chain = new->model->chains.items[old];
	chain.function = renumber_function(new, chain.function);
	chain.call_file = renumber_file(new, chain.call_file);
	if (chain.parent != SYMBOL_CHAIN_NONE)
		chain.parent = new->chain_map[chain.parent];
	uint32_t *slot = set_find(&new->chain_set, new->model->seed, new->chains, new->n_chains,
				  &chain, sizeof(chain) / sizeof(uint32_t));
	if (!*slot) {
		new->chains[new->n_chains++] = chain;
		*slot = (uint32_t) new->n_chains;
	}
	return *slot - 1;
}

static uint32_t renumber_chain(struct renumber *new, uint32_t old)
{
	size_t n = 0;
	for (uint32_t link = old; link != SYMBOL_CHAIN_NONE && new->chain_map[link] == UINT32_MAX;
	     link = new->model->chains.items[link].parent) {
		if (n == new->stack_capacity) {
			new->stack_capacity += new->stack_capacity + 64;
			new->stack =
				mem_realloc(new->stack, new->stack_capacity, sizeof(*new->stack));
		}
		new->stack[n++] = link;
	}
	while (n--)
		new->chain_map[new->stack[n]] = renumber_link(new, new->stack[n]);
	return new->chain_map[old];
}

static void renumber_ranges(struct renumber *new)
{
	struct symbol_model *model = new->model;
	size_t n = 0;
	for (size_t i = 0; i < model->ranges.n; i++) {
		struct symbol_range range = model->ranges.items[i];
		range.chain = renumber_chain(new, range.chain);
		struct symbol_range *last = n ? &model->ranges.items[n - 1] : NULL;
		if (last && last->end == range.start && last->chain == range.chain &&
		    last->rank == range.rank && last->is_folded == range.is_folded)
			last->end = range.end;
		else
			model->ranges.items[n++] = range;
	}
	model->ranges.n = n;
}

static void renumber_lines(struct renumber *new)
{
	struct symbol_model *model = new->model;
	size_t n_rows = model->lines.n;
	model->lines.n = 0;
	for (size_t i = 0; i < n_rows; i++) {
		struct symbol_line row = model->lines.items[i];
		if (!row.is_end)
			row.file = renumber_file(new, row.file);
		/* Sequences that touch become one. */
		put_row(model, 0, row);
	}
}

static void renumber_all(struct symbol_model *model)
{
	struct renumber new = {
		.model = model,
		.string_map = make_map(model->strings.n),
		.file_map = make_map(model->files.n),
		.function_map = make_map(model->functions.n),
		.chain_map = make_map(model->chains.n),
		.files = mem_realloc(NULL, model->files.n, sizeof(*new.files)),
		.functions = mem_realloc(NULL, model->functions.n, sizeof(*new.functions)),
		.chains = mem_realloc(NULL, model->chains.n ? model->chains.n : 1,
				      sizeof(*new.chains)),
	};
	arena_init(&new.arena, 0);
	intern_init(&new.strings, &new.arena);
	renumber_string(&new, 0);
	renumber_file(&new, 0);
	renumber_function(&new, 0);
	renumber_ranges(&new);
	renumber_lines(&new);
	mem_free(new.string_map);
	mem_free(new.file_map);
	mem_free(new.function_map);
	mem_free(new.chain_map);
	mem_free(new.chain_set.slots);
	mem_free(new.stack);
	mem_free(model->files.items);
	mem_free(model->functions.items);
	mem_free(model->chains.items);
	intern_fini(&model->strings);
	arena_fini(&model->arena);
	model->arena = new.arena;
	model->strings = new.strings;
	model->strings.arena = &model->arena;
	model->files.items = new.files;
	model->files.n = model->files.capacity = new.n_files;
	model->functions.items = new.functions;
	model->functions.n = model->functions.capacity = new.n_functions;
	model->chains.items = new.chains;
	model->chains.n = model->chains.capacity = new.n_chains;
}

void symbol_model_finish(struct symbol_model *model)
{
	/* Their numbers are about to change. */
	mem_free(model->file_set.slots);
	mem_free(model->function_set.slots);
	model->file_set = model->function_set = (struct symbol_set){0};
	symbol_overlap_cut_ranges(model);
	symbol_overlap_cut_lines(model);
	renumber_all(model);
}
