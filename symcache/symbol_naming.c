/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_naming.h"

#include <string.h>

#include "base/mem.h"

/* No string has this number: strings are fewer (SYMBOL_MODEL_MAX_STRINGS). */
static const uint32_t name_differs = UINT32_MAX;

struct naming {
	struct symbol_model *model;
	size_t n_dwarf;
	size_t n_chains;     /* before any was changed */
	uint32_t *of_root;   /* per chain: the name of a real function's copy, 0 = none */
	uint32_t *of_source; /* per function: one name of all copies, or name_differs */
};

static const char *text_of(const struct naming *naming, uint32_t string)
{
	return intern_text(&naming->model->strings, string);
}

/* The symbol that covers svma, NULL = none. */
static const struct symbol_range *find_symbol_range(const struct naming *naming, uint64_t svma)
{
	const struct symbol_model *model = naming->model;
	size_t low = naming->n_dwarf;
	for (size_t high = model->ranges.n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (model->ranges.items[middle].end <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	const struct symbol_range *range = &model->ranges.items[low];
	if (low == model->ranges.n || range->start > svma || range->rank == SYMBOL_RANK_PLT)
		return NULL;
	return range;
}

static uint32_t name_of(const struct naming *naming, const struct symbol_range *range)
{
	const struct symbol_model *model = naming->model;
	return model->functions.items[model->chains.items[range->chain].function].linkage_name;
}

static uint32_t find_symbol(const struct naming *naming, uint64_t svma)
{
	const struct symbol_range *range = find_symbol_range(naming, svma);
	return range ? name_of(naming, range) : 0;
}

/* The part of a function that is seldom run lies elsewhere under a name of its own. */
static bool is_cold(const struct naming *naming, uint32_t string)
{
	return strstr(text_of(naming, string), ".cold");
}

/* Names of clones, "foo.isra.0", are of no use to other copies; ".text" alone would be a name. */
static bool is_clone(const char *name)
{
	return *name && strchr(name + 1, '.');
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

/*
 * A label that a C function was given, as __GI_abort, is one of several symbols of its code: the
 * symbol table's order chooses between them, and puts those that others can see first. 0 = none
 * that begins there.
 */
static uint32_t find_better(const struct naming *naming, uint64_t start, uint32_t label)
{
	const struct symbol_range *range =
		is_mangled(text_of(naming, label)) ? NULL : find_symbol_range(naming, start);
	uint32_t symbol = range && range->start == start ? name_of(naming, range) : 0;
	return symbol != label && !is_clone(text_of(naming, symbol)) ? symbol : 0;
}

static uint32_t root_of(const struct symbol_model *model, uint32_t chain)
{
	while (model->chains.items[chain].parent != SYMBOL_CHAIN_NONE)
		chain = model->chains.items[chain].parent;
	return chain;
}

static void find_names(struct naming *naming)
{
	const struct symbol_model *model = naming->model;
	for (size_t i = 0; i < naming->n_dwarf; i++) {
		const struct symbol_range *range = &model->ranges.items[i];
		uint32_t root = root_of(model, range->chain);
		const struct symbol_function *function =
			&model->functions.items[model->chains.items[root].function];
		uint32_t *name = &naming->of_root[root];
		if (function->linkage_name) {
			if (!*name)
				*name = find_better(naming, range->start, function->linkage_name);
			continue;
		}
		if (*name && !is_cold(naming, *name))
			continue;
		uint32_t symbol = find_symbol(naming, range->start);
		/* The plain name itself is an answer too: it stands above that of a cold part. */
		if (symbol && (!*name || !is_cold(naming, symbol)))
			*name = symbol;
	}
}

/*
 * Whether symbol is the linker's form of a source name. Otherwise it is an alias, or, where a
 * compiler folded equal functions, another function's name: right for the code that stands there,
 * not for what the source calls.
 */
static bool is_form_of(const char *symbol, const char *name)
{
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return strcmp(symbol, name) == 0;
	if (strncmp(name, "operator", strlen("operator")) == 0)
		return true;
	name += *name == '~';
	size_t n = strcspn(name, "<");
	return n && memmem(symbol, strlen(symbol), name, n);
}

static void join_names(struct naming *naming)
{
	const struct symbol_model *model = naming->model;
	for (size_t i = 0; i < naming->n_chains; i++) {
		uint32_t name = naming->of_root[i];
		if (!name)
			continue;
		uint32_t source = model->chains.items[i].function;
		uint32_t *joint = &naming->of_source[source];
		const char *symbol = text_of(naming, name);
		bool is_joint =
			(!*joint || *joint == name) && !is_clone(symbol) &&
			is_form_of(symbol, text_of(naming, model->functions.items[source].name));
		*joint = is_joint ? name : name_differs;
	}
}

static void set_names(struct naming *naming)
{
	struct symbol_model *model = naming->model;
	size_t n_functions = model->functions.n;
	for (size_t i = 0; i < naming->n_chains; i++) {
		uint32_t source = model->chains.items[i].function;
		if (!naming->of_root[i] || naming->of_source[source] != name_differs)
			continue;
		struct symbol_function function = model->functions.items[source];
		function.linkage_name = naming->of_root[i];
		uint32_t named = symbol_model_add_function(model, function);
		if (named)
			model->chains.items[i].function = named;
	}
	for (size_t i = 1; i < n_functions; i++) {
		uint32_t name = naming->of_source[i];
		if (name && name != name_differs)
			model->functions.items[i].linkage_name = name;
	}
}

void symbol_naming_apply(struct symbol_model *model, size_t n_dwarf)
{
	if (!n_dwarf || n_dwarf == model->ranges.n)
		return;
	struct naming naming = {
		.model = model,
		.n_dwarf = n_dwarf,
		.n_chains = model->chains.n,
		.of_root = mem_zalloc(model->chains.n, sizeof(*naming.of_root)),
		.of_source = mem_zalloc(model->functions.n, sizeof(*naming.of_source)),
	};
	find_names(&naming);
	join_names(&naming);
	set_names(&naming);
	mem_free(naming.of_root);
	mem_free(naming.of_source);
}
