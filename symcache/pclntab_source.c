/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/pclntab_source.h"

#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "symcache/go_module.h"
#include "symcache/pclntab.h"

/* Functions may share tables and texts; input could make that multiply work and memory. */
enum { STEP_BUDGET_FACTOR = 16, TEXT_BUDGET_FACTOR = 4, BUDGET_MORE = 16 << 20 };

static const uint32_t not_made = SYMBOL_CHAIN_NONE - 1;

/* One pc table of a function, decoded. */
struct runs {
	struct pclntab_run *items;
	size_t n, capacity;
};

/* One entry of a tree of inlined calls. */
struct call {
	uint64_t name;
	uint64_t parent; /* svma of an instruction that has the call's place */
	uint32_t start_line;
};

struct source {
	const struct elf_image *image;
	struct symbol_model *model;
	struct elf_pointers pointers;
	struct pclntab table;
	uint64_t call_data;
	uint64_t step_budget, text_budget;
	struct hash_map names; /* offset in the table → string of the model */
	struct hash_map files; /* address of the path's text → file of the model */
	/* The function that is being read. */
	struct pclntab_function function;
	struct runs file_runs, line_runs, call_runs;
	uint32_t root;	  /* chain */
	uint32_t *chains; /* per inlined call, not_made until needed */
	size_t n_chains, chains_capacity;
};

static uint32_t add_text(struct source *source, const char *text, size_t n)
{
	if (n > source->text_budget) {
		source->text_budget = 0;
		return 0;
	}
	source->text_budget -= n;
	return symbol_model_add_string(source->model, text, n);
}

static uint32_t find_name(struct source *source, uint64_t name)
{
	bool is_new;
	uint64_t *slot = hash_map_put(&source->names, name, &is_new);
	if (is_new && source->text_budget) {
		const char *text = pclntab_name(&source->table, name);
		*slot = text ? add_text(source, text, strlen(text)) : 0;
	}
	return (uint32_t)*slot;
}

static uint32_t make_file(struct source *source, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	/* "/x.go" lies in "/". */
	size_t folder_bytes = slash ? (size_t)(slash - path) + (slash == path) : 0;
	struct symbol_file_name file = {
		.folder = add_text(source, path, folder_bytes),
		.name = add_text(source, name, strlen(name)),
	};
	return file.name ? symbol_model_add_file(source->model, file) : 0;
}

static uint32_t find_file(struct source *source, int32_t value)
{
	const char *path = pclntab_file(&source->table, &source->function, value);
	if (!path || !*path)
		return 0;
	bool is_new;
	uint64_t *slot = hash_map_put(&source->files, (uintptr_t)path, &is_new);
	if (is_new)
		*slot = make_file(source, path);
	return (uint32_t)*slot;
}

static void decode(struct source *source, struct runs *runs, uint32_t place)
{
	runs->n = 0;
	struct pclntab_walk walk;
	struct pclntab_run run;
	pclntab_walk_start(&walk, &source->table, &source->function, place);
	while (source->step_budget && pclntab_walk_next(&walk, &run)) {
		source->step_budget--;
		if (runs->n == runs->capacity) {
			runs->capacity += runs->capacity / 2 + 64;
			runs->items =
				mem_realloc(runs->items, runs->capacity, sizeof(*runs->items));
		}
		runs->items[runs->n++] = run;
	}
}

/* The value at svma, -1 where there is none. */
static int32_t value_at(const struct runs *runs, uint64_t svma)
{
	size_t low = 0;
	for (size_t high = runs->n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (runs->items[middle].end <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	return low < runs->n && runs->items[low].start <= svma ? runs->items[low].value : -1;
}

static uint32_t line_of(int32_t value)
{
	return value > 0 ? (uint32_t)value : 0;
}

static bool read_call(const struct source *source, uint32_t index, struct call *out)
{
	bool is_1_20 = source->table.layout >= PCLNTAB_1_20;
	struct cursor c = elf_image_at(source->image, source->function.call_tree);
	cursor_skip(&c, (size_t)index * (is_1_20 ? 16 : 20));
	*out = (struct call){0};
	cursor_skip(&c, is_1_20 ? 4 : 12); /* kind; before 1.20 also parent, file, line */
	out->name = cursor_u32(&c);
	out->parent = source->function.entry + cursor_u32(&c);
	if (is_1_20)
		out->start_line = cursor_u32(&c) & INT32_MAX;
	return cursor_is_ok(&c);
}

/* Room for the chain of call number index; false past the cap. */
static bool has_chain_slot(struct source *source, uint32_t index)
{
	if (index >= PCLNTAB_SOURCE_MAX_CALLS)
		return false;
	if (index >= source->chains_capacity) {
		source->chains_capacity = index + index / 2 + 64;
		source->chains = mem_realloc(source->chains, source->chains_capacity,
					     sizeof(*source->chains));
	}
	while (source->n_chains <= index)
		source->chains[source->n_chains++] = not_made;
	return true;
}

static uint32_t add_call(struct source *source, const struct call *call, uint64_t svma,
			 uint32_t parent)
{
	const struct symbol_function function = {
		.linkage_name = find_name(source, call->name),
		.file = find_file(source, value_at(&source->file_runs, svma)),
		.start_line = call->start_line,
	};
	return symbol_model_add_chain(
		source->model,
		(struct symbol_chain){
			.function = symbol_model_add_function(source->model, function),
			.parent = parent,
			.call_file = find_file(source, value_at(&source->file_runs, call->parent)),
			.call_line = line_of(value_at(&source->line_runs, call->parent)),
		});
}

/* The chain at svma, which is in inlined call number value or, with -1, in none. */
static uint32_t find_chain(struct source *source, int32_t value, uint64_t svma)
{
	struct {
		uint32_t index;
		uint64_t svma;
		struct call call;
	} steps[PCLNTAB_SOURCE_MAX_DEPTH];
	unsigned n = 0;
	uint32_t chain = not_made;
	while (chain == not_made) {
		struct call call;
		if (value < 0 || !source->function.call_tree || n == PCLNTAB_SOURCE_MAX_DEPTH ||
		    !has_chain_slot(source, (uint32_t)value) ||
		    !read_call(source, (uint32_t)value, &call)) {
			chain = source->root;
			break;
		}
		chain = source->chains[value];
		if (chain != not_made)
			break;
		steps[n].index = (uint32_t)value;
		steps[n].svma = svma;
		steps[n++].call = call;
		svma = call.parent;
		value = value_at(&source->call_runs, svma);
	}
	while (n-- > 0 && chain != SYMBOL_CHAIN_NONE) {
		chain = add_call(source, &steps[n].call, steps[n].svma, chain);
		source->chains[steps[n].index] = chain;
	}
	return chain;
}

static void add_range(struct source *source, uint64_t start, uint64_t end, uint32_t chain)
{
	symbol_model_add_range(source->model, (struct symbol_range){.start = start,
								    .end = end,
								    .chain = chain,
								    .rank = SYMBOL_RANK_PCLNTAB});
}

static void add_ranges(struct source *source, uint64_t end)
{
	uint64_t done = source->function.entry;
	for (size_t i = 0; i < source->call_runs.n && done < end; i++) {
		const struct pclntab_run *run = &source->call_runs.items[i];
		uint64_t run_end = run->end < end ? run->end : end;
		add_range(source, run->start, run_end, find_chain(source, run->value, run->start));
		done = run_end;
	}
	add_range(source, done, end, source->root);
}

/* Both tables at once: a row begins where either changes. */
static void add_lines(struct source *source, uint64_t end)
{
	const struct runs *files = &source->file_runs, *lines = &source->line_runs;
	size_t file = 0;
	for (size_t i = 0; i < lines->n; i++) {
		const struct pclntab_run *line = &lines->items[i];
		uint64_t at = line->start;
		while (at < line->end) {
			while (file < files->n && files->items[file].end <= at)
				file++;
			bool has_file = file < files->n && files->items[file].start <= at;
			uint64_t next = has_file ? files->items[file].end : line->end;
			next = next < line->end ? next : line->end;
			symbol_model_add_line(
				source->model,
				(struct symbol_line){
					.address = at,
					.file = has_file ? find_file(source,
								     files->items[file].value)
							 : 0,
					.line = line_of(line->value) & INT32_MAX,
				});
			at = next;
		}
	}
	if (lines->n)
		symbol_model_add_line(source->model,
				      (struct symbol_line){.address = end, .is_end = 1});
}

/* Padding behind a function is in no table of it. */
static uint64_t find_end(const struct source *source)
{
	const struct runs *lines = &source->line_runs;
	return lines->n ? lines->items[lines->n - 1].end : source->function.next_entry;
}

static void read_function(struct source *source)
{
	const struct pclntab_function *function = &source->function;
	decode(source, &source->file_runs, function->files);
	decode(source, &source->line_runs, function->lines);
	decode(source, &source->call_runs, function->calls);
	source->n_chains = 0;
	const struct symbol_function described = {
		.linkage_name = find_name(source, function->name),
		.file = find_file(source, value_at(&source->file_runs, function->entry)),
		.start_line = function->start_line,
	};
	if (!described.linkage_name)
		return;
	source->root = symbol_model_add_chain(
		source->model, (struct symbol_chain){.function = symbol_model_add_function(
							     source->model, described),
						     .parent = SYMBOL_CHAIN_NONE});
	uint64_t end = find_end(source);
	add_ranges(source, end);
	add_lines(source, end);
}

/* Where the entries count from, when the table does not tell: before it is loaded, or since 1.26.
 */
static void place_table(struct source *source)
{
	struct go_module module = {0};
	bool has_module = go_module_find(&source->pointers, &source->table, &module);
	source->call_data = module.call_data;
	const struct elf_section *text = elf_image_find(source->image, ".text");
	if (has_module)
		source->table.text = module.text;
	else if (!source->table.text && text)
		source->table.text = text->address;
}

static void source_fini(struct source *source)
{
	elf_pointers_fini(&source->pointers);
	hash_map_fini(&source->names);
	hash_map_fini(&source->files);
	mem_free(source->file_runs.items);
	mem_free(source->line_runs.items);
	mem_free(source->call_runs.items);
	mem_free(source->chains);
}

void pclntab_source_read(const struct elf_image *image, struct symbol_model *model)
{
	struct source source = {.image = image, .model = model};
	if (!pclntab_open(&source.table, image))
		return;
	elf_pointers_init(&source.pointers, image);
	if (source.table.layout >= PCLNTAB_1_18)
		place_table(&source);
	size_t table_bytes = (size_t)(source.table.all.end - source.table.all.begin);
	source.step_budget = (uint64_t)table_bytes * STEP_BUDGET_FACTOR + BUDGET_MORE;
	source.text_budget = (uint64_t)table_bytes * TEXT_BUDGET_FACTOR + BUDGET_MORE;
	hash_map_init(&source.names);
	hash_map_init(&source.files);
	for (uint64_t i = 0; i < source.table.n_functions; i++) {
		if (pclntab_read_function(&source.table, &source.pointers, i, source.call_data,
					  &source.function))
			read_function(&source);
	}
	source_fini(&source);
}
