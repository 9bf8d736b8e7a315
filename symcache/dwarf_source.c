/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_source.h"

#include <elf.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "symcache/dwarf_constants.h"
#include "symcache/dwarf_info.h"
#include "symcache/dwarf_leb.h"
#include "symcache/dwarf_line.h"
#include "symcache/dwarf_package.h"
#include "symcache/dwarf_paint.h"
#include "symcache/dwarf_ranges.h"

/* Work and memory that input could multiply by pointing many times at one thing. */
enum { STRING_BUDGET_FACTOR = 4, LINE_BUDGET_FACTOR = 8, BUDGET_MORE = 16 << 20 };

/* One file of DWARF, and what was made of its parts. */
struct reader {
	struct dwarf_info info;
	struct hash_map strings;     /* key of a text → string of the model */
	struct hash_map functions;   /* offset of a DIE → function of the model */
	struct hash_map line_tables; /* stmt_list → struct dwarf_line_table */
	struct hash_map run_lines;   /* stmt_lists whose rows were read */
	uint64_t string_budget, line_budget;
};

/* What a DIE at some depth is inside of. */
struct scope {
	uint32_t chain;	       /* innermost function with code; SYMBOL_CHAIN_NONE outside */
	uint32_t inline_depth; /* steps from the chain's root */
};

struct source {
	const struct elf_image *image;
	const struct dwarf_source_files *files;
	struct symbol_model *model;
	struct dwarf_source_stats *stats;
	struct reader main, alternate, package;
	bool has_alternate, is_alternate_tried;
	bool has_package, is_package_tried;
	uint32_t n_dwo_asked;
	struct address_claims function_claims, line_claims;
	struct dwarf_ranges ranges;
	struct dwarf_paint paint;
	struct scope *scopes; /* by depth */
	size_t scopes_capacity;
};

/* A unit while it is walked. files: whose numbers its DIEs use; NULL = none. */
struct walk {
	struct source *source;
	struct reader *reader;
	const struct dwarf_unit *unit;
	struct dwarf_line_table *lines;
	struct cursor c;
	size_t depth;
};

static void reader_init(struct source *source, struct reader *reader, const struct elf_image *image)
{
	*reader = (struct reader){0};
	bool is_main = reader == &source->main;
	bool is_dwo = !is_main && reader != &source->alternate;
	dwarf_info_init(&reader->info, image, is_dwo, is_main && source->files->is_file_mapping);
	if (is_dwo)
		reader->info.skeleton = &source->main.info;
	const struct debug_section *sections = reader->info.sections.items;
	reader->string_budget =
		(sections[DEBUG_SECTION_STR].size + sections[DEBUG_SECTION_INFO].size) *
			(uint64_t)STRING_BUDGET_FACTOR +
		BUDGET_MORE;
	reader->line_budget =
		sections[DEBUG_SECTION_LINE].size * (uint64_t)LINE_BUDGET_FACTOR + BUDGET_MORE;
	dwarf_ranges_allow(&source->ranges, &reader->info);
}

static void drop_line_tables(struct reader *reader)
{
	size_t i = 0;
	uint64_t key, *value;
	while (hash_map_next(&reader->line_tables, &i, &key, &value)) {
		struct dwarf_line_table *table = (struct dwarf_line_table *)(uintptr_t)*value;
		dwarf_line_close(table);
		mem_free(table);
	}
	hash_map_clear(&reader->line_tables);
}

static void reader_fini(struct reader *reader)
{
	drop_line_tables(reader);
	hash_map_fini(&reader->line_tables);
	hash_map_fini(&reader->run_lines);
	hash_map_fini(&reader->strings);
	hash_map_fini(&reader->functions);
	dwarf_info_fini(&reader->info);
}

/* The line table of a unit; its files may be unknown all the same. */
static struct dwarf_line_table *find_lines(struct source *source, struct reader *reader,
					   const struct dwarf_unit *unit)
{
	if (!unit->has_stmt_list)
		return NULL;
	bool is_new;
	uint64_t *slot = hash_map_put(&reader->line_tables, unit->stmt_list, &is_new);
	if (!is_new)
		return (struct dwarf_line_table *)(uintptr_t)*slot;
	struct dwarf_line_table *table = mem_zalloc(1, sizeof(*table));
	*slot = (uintptr_t)table;
	if (!reader->line_budget)
		return table;
	if (!dwarf_line_open(table, &reader->info, unit, unit->comp_dir))
		source->stats->n_damaged_line_tables++;
	uint64_t n = table->program - table->offset;
	reader->line_budget -= n < reader->line_budget ? n : reader->line_budget;
	return table;
}

static uint32_t add_text(struct source *source, struct reader *reader,
			 const struct dwarf_text *text)
{
	bool is_new = true;
	uint64_t *slot = NULL;
	if (text->key)
		slot = hash_map_put(&reader->strings, text->key, &is_new);
	if (!is_new)
		return (uint32_t)*slot;
	uint32_t string = 0;
	if (text->n <= reader->string_budget) {
		reader->string_budget -= text->n;
		string = symbol_model_add_string(source->model, text->bytes, text->n);
	}
	if (slot)
		*slot = string;
	return string;
}

/* A place that a reference leads to. */
struct place {
	struct reader *reader;
	const struct dwarf_unit *unit;
	uint64_t offset;
};

static bool is_within(const struct dwarf_unit *unit, uint64_t offset)
{
	return offset >= unit->first_die && offset < unit->end;
}

static struct reader *find_alternate(struct source *source);

/* Follows an origin or specification from a DIE at place; false when it leads nowhere. */
static bool follow(struct source *source, struct place *place, uint64_t form, uint64_t value)
{
	switch (form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		break;
	case DW_FORM_ref_addr:
		/* It counts from what the unit's own .dwo file had, which is its part of a package;
		 * where units of one file were told apart, the others cannot be found any more. */
		if (place->reader == &source->package)
			value += place->reader->info.parts.info;
		else if (!is_within(place->unit, value))
			place->unit = dwarf_info_find_unit(&place->reader->info, value);
		break;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		place->reader = find_alternate(source);
		if (!place->reader)
			return false;
		place->unit = dwarf_info_find_unit(&place->reader->info, value);
		break;
	default:
		return false;
	}
	place->offset = value;
	return place->unit && place->unit->abbrevs && is_within(place->unit, value);
}

/* What is known of a function so far; the DIE that is nearest to the code is asked first. */
struct description {
	struct symbol_function function;
	struct dwarf_text name;
	struct reader *name_reader;
	bool has_line, has_file;
};

static void describe(struct source *source, const struct place *place,
		     struct dwarf_line_table *lines, const struct dwarf_values *values,
		     struct description *out)
{
	struct dwarf_info *info = &place->reader->info;
	struct dwarf_text text;
	if (!out->function.linkage_name && dwarf_values_have(values, DWARF_SLOT_LINKAGE_NAME) &&
	    dwarf_info_string(info, place->unit, values->forms[DWARF_SLOT_LINKAGE_NAME],
			      values->items[DWARF_SLOT_LINKAGE_NAME], &text))
		out->function.linkage_name = add_text(source, place->reader, &text);
	if (!out->name_reader && dwarf_values_have(values, DWARF_SLOT_NAME) &&
	    dwarf_info_string(info, place->unit, values->forms[DWARF_SLOT_NAME],
			      values->items[DWARF_SLOT_NAME], &out->name))
		out->name_reader = place->reader;
	if (!out->has_line && dwarf_values_have(values, DWARF_SLOT_DECL_LINE)) {
		uint64_t line = values->items[DWARF_SLOT_DECL_LINE];
		out->function.start_line = line <= INT32_MAX ? (uint32_t)line : 0;
		out->has_line = true;
	}
	if (!out->has_file && dwarf_values_have(values, DWARF_SLOT_DECL_FILE)) {
		if (!lines)
			lines = find_lines(source, place->reader, place->unit);
		if (lines)
			out->function.file = dwarf_line_file(lines, source->model,
							     values->items[DWARF_SLOT_DECL_FILE]);
		out->has_file = true;
	}
}

/* The reference to the DIE that says more; false when there is none. */
static bool next_origin(struct source *source, struct place *place,
			const struct dwarf_values *values)
{
	enum dwarf_slot slot = dwarf_values_have(values, DWARF_SLOT_ORIGIN)
				       ? DWARF_SLOT_ORIGIN
				       : DWARF_SLOT_SPECIFICATION;
	return dwarf_values_have(values, slot) &&
	       follow(source, place, values->forms[slot], values->items[slot]);
}

/*
 * The function of a DIE at place with these values. A linkage name is looked for to the end, a line
 * until one is found. lines, when not NULL, is the table for the files of place->unit.
 */
static uint32_t make_function(struct source *source, struct place place,
			      struct dwarf_line_table *lines, const struct dwarf_values *values)
{
	struct description description = {0};
	describe(source, &place, lines, values, &description);
	struct dwarf_values more = *values;
	const struct dwarf_unit *home = place.unit;
	for (int i = 0; i < DWARF_SOURCE_MAX_ORIGINS; i++) {
		bool is_whole = description.function.linkage_name && description.has_line &&
				description.has_file;
		if (is_whole || !next_origin(source, &place, &more))
			break;
		struct cursor c =
			dwarf_info_unit_cursor(&place.reader->info, place.unit, place.offset);
		const struct dwarf_abbrev *abbrev = dwarf_info_read_code(place.unit, &c);
		if (!abbrev)
			break;
		dwarf_unit_read_values(place.unit, abbrev, &c, &more);
		if (!cursor_is_ok(&c))
			break;
		describe(source, &place, place.unit == home ? lines : NULL, &more, &description);
	}
	if (!description.function.linkage_name && description.name_reader)
		description.function.name =
			add_text(source, description.name_reader, &description.name);
	return symbol_model_add_function(source->model, description.function);
}

/* The function that an inlined DIE stands for; many stand for one. */
static uint32_t find_inlined(struct walk *walk, const struct dwarf_values *values)
{
	struct place place = {.reader = walk->reader, .unit = walk->unit};
	if (!next_origin(walk->source, &place, values))
		return 0;
	bool is_new;
	uint64_t *slot = hash_map_put(&place.reader->functions, place.offset, &is_new);
	if (!is_new)
		return (uint32_t)*slot;
	struct cursor c = dwarf_info_unit_cursor(&place.reader->info, place.unit, place.offset);
	const struct dwarf_abbrev *abbrev = dwarf_info_read_code(place.unit, &c);
	struct dwarf_values target;
	uint32_t function = 0;
	if (abbrev) {
		dwarf_unit_read_values(place.unit, abbrev, &c, &target);
		bool is_own = place.unit == walk->unit;
		if (cursor_is_ok(&c))
			function = make_function(walk->source, place, is_own ? walk->lines : NULL,
						 &target);
	}
	/* Following further origins may have moved the map. */
	*hash_map_put(&place.reader->functions, place.offset, NULL) = function;
	return function;
}

static void claim_run(void *context, uint64_t start, uint64_t end, uint32_t chain)
{
	struct source *source = context;
	uint64_t run_start, run_end;
	while (address_claims_take(&source->function_claims, &start, end, &run_start, &run_end))
		symbol_model_add_range(source->model,
				       (struct symbol_range){.start = run_start,
							     .end = run_end,
							     .chain = chain,
							     .rank = SYMBOL_RANK_DWARF});
}

/* Whether any of the DIE's ranges is code that no unit before described. */
static bool is_alive(struct walk *walk, const struct dwarf_values *values)
{
	struct source *source = walk->source;
	dwarf_ranges_read(&source->ranges, &walk->reader->info, walk->unit, values);
	bool is_free = false;
	for (size_t i = 0; i < source->ranges.n && !is_free; i++) {
		const struct dwarf_range *range = &source->ranges.items[i];
		is_free =
			address_claims_covers(&source->function_claims, range->start) &&
			address_claims_is_free(&source->function_claims, range->start, range->end);
	}
	return is_free;
}

static void paint_ranges(struct source *source, uint32_t chain)
{
	for (size_t i = 0; i < source->ranges.n; i++) {
		const struct dwarf_range *range = &source->ranges.items[i];
		if (address_claims_covers(&source->function_claims, range->start))
			dwarf_paint_add(&source->paint, range->start, range->end, chain);
	}
}

/* A place for the children of a DIE at the current depth; false when they lie too deep. */
static bool push_scope(struct walk *walk, struct scope scope)
{
	struct source *source = walk->source;
	if (walk->depth + 1 >= source->scopes_capacity) {
		if (walk->depth + 1 >= DWARF_SOURCE_MAX_DEPTH)
			return false;
		source->scopes_capacity = source->scopes_capacity * 2 + 64;
		source->scopes = mem_realloc(source->scopes, source->scopes_capacity,
					     sizeof(*source->scopes));
	}
	source->scopes[++walk->depth] = scope;
	return true;
}

/* Jumps behind the children when the DIE says where that is and it lies ahead. */
static bool jump(struct walk *walk, uint64_t sibling)
{
	if (sibling <= cursor_position(&walk->c) || sibling > walk->unit->end)
		return false;
	cursor_seek(&walk->c, sibling);
	return true;
}

static uint64_t sibling_of(const struct dwarf_values *values)
{
	return dwarf_values_have(values, DWARF_SLOT_SIBLING) ? values->items[DWARF_SLOT_SIBLING]
							     : 0;
}

/* Without what compilers put behind the name of a part or a copy of a function. */
static size_t cut_suffix(const char *symbol, size_t n)
{
	static const char *const suffixes[] = {".cold", ".part.", ".constprop.", ".isra.",
					       ".lto_priv."};
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *found = memmem(symbol, n, suffixes[i], strlen(suffixes[i]));
		if (found)
			n = (size_t)(found - symbol);
	}
	return n;
}

/* Whether symbol is mangled from name; operators are spelled otherwise. */
static bool is_mangled_from(const char *symbol, size_t n, const char *name)
{
	if (n < 3 || symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
		return false;
	return strncmp(name, "operator", 8) == 0 ||
	       memmem(symbol, n, name, strcspn(name, "<")) != NULL;
}

/* A function with code at svma that DWARF knows by its plain name only. */
static uint32_t name_by_symbol(struct source *source, uint32_t function, uint64_t svma)
{
	struct symbol_model *model = source->model;
	struct symbol_function described = model->functions.items[function];
	size_t n = 0;
	if (described.linkage_name || !described.name || !source->files->find_symbol)
		return function;
	const char *symbol = source->files->find_symbol(source->files->context, svma, &n);
	if (!symbol || n > DWARF_INFO_MAX_STRING_BYTES)
		return function;
	n = cut_suffix(symbol, n);
	if (!is_mangled_from(symbol, n, intern_text(&model->strings, described.name)))
		return function;
	described.linkage_name = symbol_model_add_string(model, symbol, n);
	described.name = 0;
	return symbol_model_add_function(model, described);
}

/* A function without is left to the symbol table. */
static bool has_name(const struct symbol_model *model, uint32_t function)
{
	return model->functions.items[function].linkage_name ||
	       model->functions.items[function].name;
}

static bool walk_function(struct walk *walk, const struct dwarf_abbrev *abbrev, uint64_t offset)
{
	struct source *source = walk->source;
	struct dwarf_values values;
	dwarf_unit_read_values(walk->unit, abbrev, &walk->c, &values);
	if (!cursor_is_ok(&walk->c))
		return false;
	struct scope scope = {.chain = SYMBOL_CHAIN_NONE};
	if (is_alive(walk, &values)) {
		struct place place = {walk->reader, walk->unit, offset};
		uint32_t function = make_function(source, place, walk->lines, &values);
		/* Any range will do: parts have the name with a suffix. */
		function = name_by_symbol(source, function, source->ranges.items[0].start);
		if (has_name(source->model, function))
			scope.chain = symbol_model_add_chain(
				source->model, (struct symbol_chain){.function = function,
								     .parent = SYMBOL_CHAIN_NONE});
		if (scope.chain != SYMBOL_CHAIN_NONE)
			paint_ranges(source, scope.chain);
		source->stats->n_functions++;
	} else if (abbrev->has_children && source->ranges.n && jump(walk, sibling_of(&values))) {
		return true;
	}
	return !abbrev->has_children || push_scope(walk, scope);
}

static uint32_t small(uint64_t value, uint32_t max)
{
	return value <= max ? (uint32_t)value : 0;
}

static uint32_t add_inlined(struct walk *walk, const struct dwarf_values *values, uint32_t parent)
{
	struct symbol_chain chain = {.function = find_inlined(walk, values), .parent = parent};
	if (dwarf_values_have(values, DWARF_SLOT_CALL_FILE) && walk->lines)
		chain.call_file = dwarf_line_file(walk->lines, walk->source->model,
						  values->items[DWARF_SLOT_CALL_FILE]);
	if (dwarf_values_have(values, DWARF_SLOT_CALL_LINE))
		chain.call_line = small(values->items[DWARF_SLOT_CALL_LINE], INT32_MAX);
	if (dwarf_values_have(values, DWARF_SLOT_CALL_COLUMN))
		chain.call_column = small(values->items[DWARF_SLOT_CALL_COLUMN], UINT32_MAX);
	return symbol_model_add_chain(walk->source->model, chain);
}

static bool walk_inlined(struct walk *walk, const struct dwarf_abbrev *abbrev)
{
	struct source *source = walk->source;
	struct dwarf_values values;
	dwarf_unit_read_values(walk->unit, abbrev, &walk->c, &values);
	if (!cursor_is_ok(&walk->c))
		return false;
	struct scope scope = source->scopes[walk->depth];
	dwarf_ranges_read(&source->ranges, &walk->reader->info, walk->unit, &values);
	if ((source->ranges.n || abbrev->has_children) &&
	    scope.inline_depth < DWARF_SOURCE_MAX_INLINE_DEPTH) {
		uint32_t chain = add_inlined(walk, &values, scope.chain);
		if (chain != SYMBOL_CHAIN_NONE) {
			paint_ranges(source, chain);
			scope.chain = chain;
			scope.inline_depth++;
			source->stats->n_inlined += source->ranges.n != 0;
		}
	}
	return !abbrev->has_children || push_scope(walk, scope);
}

/* A DIE that is only passed by. */
static bool walk_other(struct walk *walk, const struct dwarf_abbrev *abbrev)
{
	uint64_t sibling = dwarf_unit_skip_die(walk->unit, abbrev, &walk->c);
	if (!abbrev->has_children)
		return true;
	if (abbrev->kind == DWARF_ABBREV_DATA && jump(walk, sibling))
		return true;
	struct scope scope = walk->source->scopes[walk->depth];
	/* A type or a function without code is no part of the function around it. */
	if (abbrev->kind != DWARF_ABBREV_OTHER && abbrev->kind != DWARF_ABBREV_INLINED)
		scope.chain = SYMBOL_CHAIN_NONE;
	return push_scope(walk, scope);
}

static bool walk_die(struct walk *walk)
{
	uint64_t offset = cursor_position(&walk->c);
	const struct dwarf_abbrev *abbrev = dwarf_info_read_code(walk->unit, &walk->c);
	if (!abbrev) {
		walk->depth--;
		return cursor_is_ok(&walk->c);
	}
	if (abbrev->has_code && abbrev->kind == DWARF_ABBREV_FUNCTION)
		return walk_function(walk, abbrev, offset);
	if (abbrev->has_code && abbrev->kind == DWARF_ABBREV_INLINED &&
	    walk->source->scopes[walk->depth].chain != SYMBOL_CHAIN_NONE)
		return walk_inlined(walk, abbrev);
	return walk_other(walk, abbrev);
}

/* False: damaged; what was whole before the damage stays. */
static bool walk_unit(struct source *source, struct reader *reader, const struct dwarf_unit *unit,
		      struct dwarf_line_table *lines)
{
	struct walk walk = {
		.source = source,
		.reader = reader,
		.unit = unit,
		.lines = lines,
		.c = dwarf_info_unit_cursor(&reader->info, unit, unit->first_die),
	};
	const struct dwarf_abbrev *root = dwarf_info_read_code(unit, &walk.c);
	(void)dwarf_unit_skip_die(unit, root, &walk.c);
	if (!root->has_children)
		return true;
	bool is_ok = push_scope(&walk, (struct scope){.chain = SYMBOL_CHAIN_NONE});
	while (is_ok && walk.depth && cursor_left(&walk.c))
		is_ok = walk_die(&walk) && cursor_is_ok(&walk.c);
	/*
	 * Within a unit the later function wins (GNU as describes aliases one after the other), so
	 * claims wait for its end. A function that damage cut off is right as far as it was read.
	 */
	dwarf_paint_flush(&source->paint, claim_run, source);
	return is_ok;
}

static void read_lines(struct source *source, struct reader *reader, const struct dwarf_unit *unit,
		       struct dwarf_line_table *lines)
{
	bool is_new;
	hash_map_put(&reader->run_lines, unit->stmt_list, &is_new);
	uint64_t n = lines->end - lines->program;
	if (!is_new || !lines->end || n > reader->line_budget)
		return;
	reader->line_budget -= n;
	if (!dwarf_line_run(lines, &reader->info, &source->line_claims, source->model))
		source->stats->n_damaged_line_tables++;
}

/* Lets go what belongs to units that were read, unless later ones may refer to it. */
static void forget(struct reader *reader, const struct dwarf_unit *unit,
		   const struct dwarf_line_table *lines)
{
	if (reader->info.is_pinned)
		return;
	dwarf_info_forget(&reader->info, unit);
	if (lines && lines->end)
		debug_sections_forget(&reader->info.sections, DEBUG_SECTION_LINE, lines->end);
	hash_map_clear(&reader->functions);
	drop_line_tables(reader);
}

/* What a file says of the file that it shares with others. */
struct alternate_link {
	const char *path;
	struct build_id id;
};

/* .gnu_debugaltlink: path and build-id. */
static bool read_gnu_link(const struct elf_image *image, struct alternate_link *out)
{
	const struct elf_section *section = elf_image_find(image, ".gnu_debugaltlink");
	if (!section)
		return false;
	struct cursor c = elf_image_section(image, section);
	out->path = cursor_string(&c, DWARF_LINE_MAX_PATH_BYTES);
	out->id = build_id_make(c.next, cursor_left(&c));
	return out->path && build_id_is_set(&out->id);
}

/* .debug_sup of DWARF 5: in both files, with one check sum. */
static bool read_supplement(const struct elf_image *image, bool is_shared,
			    struct alternate_link *out)
{
	const struct elf_section *section = elf_image_find(image, ".debug_sup");
	if (!section)
		return false;
	struct cursor c = elf_image_section(image, section);
	c.is_swapped = image->is_swapped;
	bool is_right = cursor_u16(&c) == 5;
	is_right = (cursor_u8(&c) != 0) == is_shared && is_right;
	out->path = cursor_string(&c, DWARF_LINE_MAX_PATH_BYTES);
	size_t n = dwarf_leb_unsigned(&c);
	const uint8_t *sum = cursor_bytes(&c, n);
	out->id = build_id_make(sum, sum ? n : 0);
	return is_right && out->path && build_id_is_set(&out->id);
}

static bool is_alternate(const struct elf_image *image, const struct build_id *id)
{
	struct alternate_link own;
	return build_id_equal(&image->build_id, id) ||
	       (read_supplement(image, true, &own) && build_id_equal(&own.id, id));
}

static struct reader *find_alternate(struct source *source)
{
	const struct dwarf_source_files *files = source->files;
	struct alternate_link link;
	if (source->is_alternate_tried)
		return source->has_alternate ? &source->alternate : NULL;
	source->is_alternate_tried = true;
	source->stats->is_alternate_missing = true;
	if (!files->find_alternate ||
	    (!read_gnu_link(source->image, &link) && !read_supplement(source->image, false, &link)))
		return NULL;
	const struct elf_image *image = files->find_alternate(files->context, link.path, &link.id);
	if (!image || !is_alternate(image, &link.id))
		return NULL;
	reader_init(source, &source->alternate, image);
	source->has_alternate = true;
	source->main.info.alternate = &source->alternate.info;
	source->stats->is_alternate_missing = false;
	return &source->alternate;
}

/* The package, open; NULL when there is none. */
static struct reader *find_package(struct source *source)
{
	if (!source->is_package_tried && source->files->find_package) {
		const struct elf_image *image = source->files->find_package(source->files->context);
		if (image) {
			reader_init(source, &source->package, image);
			source->has_package = true;
		}
	}
	source->is_package_tried = true;
	return source->has_package ? &source->package : NULL;
}

/* Functions of a split unit, with what only its skeleton says. */
static void read_split_unit(struct source *source, struct reader *reader,
			    const struct dwarf_unit *skeleton, struct dwarf_line_table *lines,
			    struct dwarf_unit *unit)
{
	unit->addr_base = skeleton->addr_base;
	unit->low_pc = skeleton->low_pc;
	unit->ranges_base = skeleton->gnu_ranges_base;
	if (!unit->comp_dir)
		unit->comp_dir = skeleton->comp_dir;
	/* Its own table of files counts, without rows; some compilers use the skeleton's. */
	struct dwarf_line_table *own = find_lines(source, reader, unit);
	if (!walk_unit(source, reader, unit, own && own->end ? own : lines))
		source->stats->n_damaged_units++;
	source->stats->n_dwo++;
}

static bool read_packed(struct source *source, const struct dwarf_unit *skeleton,
			struct dwarf_line_table *lines)
{
	struct reader *package = find_package(source);
	struct dwarf_unit unit;
	if (!package || !dwarf_package_find(&package->info, skeleton->dwo_id, &package->info.parts))
		return false;
	uint64_t position = package->info.parts.info;
	if (dwarf_info_next(&package->info, &position, &unit) != DWARF_INFO_UNIT || !unit.abbrevs)
		return false;
	read_split_unit(source, package, skeleton, lines, &unit);
	return true;
}

/* Looks for the unit of that id in a .dwo file; other units there are of types. */
static bool read_dwo(struct source *source, const struct dwarf_unit *skeleton,
		     struct dwarf_line_table *lines)
{
	const struct dwarf_source_files *files = source->files;
	bool can_ask = files->find_dwo && source->n_dwo_asked++ < DWARF_SOURCE_MAX_DWO_FILES;
	const struct elf_image *image =
		can_ask ? files->find_dwo(files->context, skeleton->comp_dir, skeleton->dwo_name,
					  skeleton->dwo_id)
			: NULL;
	if (!image)
		return false;
	struct reader reader;
	reader_init(source, &reader, image);
	uint64_t position = 0;
	struct dwarf_unit unit;
	enum dwarf_info_step step;
	bool is_found = false;
	while (!is_found &&
	       (step = dwarf_info_next(&reader.info, &position, &unit)) != DWARF_INFO_END)
		is_found =
			step == DWARF_INFO_UNIT && unit.abbrevs && unit.dwo_id == skeleton->dwo_id;
	if (is_found)
		read_split_unit(source, &reader, skeleton, lines, &unit);
	reader_fini(&reader);
	return is_found;
}

static void read_unit(struct source *source, const struct dwarf_unit *unit)
{
	struct reader *reader = &source->main;
	struct dwarf_line_table *lines = find_lines(source, reader, unit);
	if (lines)
		read_lines(source, reader, unit, lines);
	/* Before the skeleton, which may hold the same functions with less. */
	if (unit->dwo_name && !read_packed(source, unit, lines) && !read_dwo(source, unit, lines))
		source->stats->n_dwo_missing++;
	if (!walk_unit(source, reader, unit, lines))
		source->stats->n_damaged_units++;
	forget(reader, unit, lines);
}

static void source_fini(struct source *source)
{
	reader_fini(&source->main);
	reader_fini(&source->alternate);
	reader_fini(&source->package);
	address_claims_fini(&source->function_claims);
	address_claims_fini(&source->line_claims);
	dwarf_ranges_fini(&source->ranges);
	dwarf_paint_fini(&source->paint);
	mem_free(source->scopes);
}

struct error *dwarf_source_read(const struct elf_image *image,
				const struct dwarf_source_files *files, struct symbol_model *model,
				struct dwarf_source_stats *stats)
{
	static const struct dwarf_source_files no_files;
	*stats = (struct dwarf_source_stats){0};
	if (image->type == ET_REL)
		return error_new(ERROR_UNSUPPORTED, "a relocatable file has no addresses yet");
	struct source source = {
		.image = image,
		.files = files ? files : &no_files,
		.model = model,
		.stats = stats,
	};
	reader_init(&source, &source.main, image);
	address_claims_init(&source.function_claims, image);
	address_claims_init(&source.line_claims, image);
	/* Texts may lie there without any DIE being followed there. */
	if (elf_image_find(image, ".gnu_debugaltlink") || elf_image_find(image, ".debug_sup"))
		(void)find_alternate(&source);
	uint64_t position = 0;
	struct dwarf_unit unit;
	enum dwarf_info_step step;
	while ((step = dwarf_info_next(&source.main.info, &position, &unit)) != DWARF_INFO_END) {
		stats->n_units++;
		/* Units of types hold no code. */
		if (step == DWARF_INFO_UNIT && unit.abbrevs)
			read_unit(&source, &unit);
	}
	stats->n_damaged_units += source.main.info.n_damaged_units;
	stats->n_damaged_sections = source.main.info.sections.n_damaged;
	source_fini(&source);
	return NULL;
}
