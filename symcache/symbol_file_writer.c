/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections are made one after the other, each into a buffer of its own, and put together at the
 * end. Segments are walked twice: once to count symbols, from which the prefix codes are made, and
 * once to code them.
 */
#include "symcache/symbol_file_writer.h"

#include <endian.h>
#include <string.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/mem.h"
#include "symcache/crc32c.h"
#include "symcache/demangle.h"
#include "symcache/display_guess.h"
#include "symcache/string_code.h"
#include "symcache/symbol_file.h"
#include "symcache/symbol_file_layout.h"
#include "symcache/symbol_places.h"

#define SITE_NONE UINT32_MAX

struct group {
	uint64_t address;
	uint32_t offset, root, first_block;
};

struct writer {
	const struct symbol_model *model;
	struct symbol_places places;
	struct buf sections[SYMBOL_SECTION_N];
	struct error *err; /* the first one */

	struct arena arena;
	struct intern components;
	struct tuple_set nodes; /* parent, text */
	uint32_t *file_paths;	/* per file of the model: 0 = unknown, else node + 1 */
	struct string_code pieces;
	struct string_encoder *encoder;
	uint8_t *coded; /* scratch for one text */

	uint8_t address_shift, function_bits, block_segments, flags;
	enum symbol_quality quality;

	uint64_t counts[SYMBOL_CODE_N][PREFIX_CODE_MAX_SYMBOLS];
	struct prefix_code codes[SYMBOL_CODE_N];
	bool is_counting;
	uint64_t bits; /* not yet written, from the least significant */
	unsigned n_bits;
	struct buf *bit_target;

	struct group *groups;
	uint32_t n_groups, groups_capacity, n_blocks;
};

/* ---- bytes and bits ---- */

static void put(struct writer *writer, struct buf *buf, const void *p, size_t n)
{
	if (!writer->err)
		writer->err = buf_append(buf, p, n);
}

static void put_u8(struct writer *writer, struct buf *buf, uint8_t v)
{
	put(writer, buf, &v, sizeof(v));
}

static void put_u16(struct writer *writer, struct buf *buf, uint16_t v)
{
	v = htole16(v);
	put(writer, buf, &v, sizeof(v));
}

static void put_u32(struct writer *writer, struct buf *buf, uint32_t v)
{
	v = htole32(v);
	put(writer, buf, &v, sizeof(v));
}

static void put_u64(struct writer *writer, struct buf *buf, uint64_t v)
{
	v = htole64(v);
	put(writer, buf, &v, sizeof(v));
}

static void put_number(struct writer *writer, struct buf *buf, uint32_t v)
{
	uint8_t bytes[5];
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	put(writer, buf, bytes, n);
}

static void start_bits(struct writer *writer, struct buf *target)
{
	writer->bit_target = target;
	writer->bits = 0;
	writer->n_bits = 0;
}

/* n <= 32 */
static void put_bits(struct writer *writer, uint32_t v, unsigned n)
{
	writer->bits |= (uint64_t)v << writer->n_bits;
	writer->n_bits += n;
	while (writer->n_bits >= 8) {
		put_u8(writer, writer->bit_target, (uint8_t)writer->bits);
		writer->bits >>= 8;
		writer->n_bits -= 8;
	}
}

static void end_bits(struct writer *writer)
{
	if (writer->n_bits)
		put_bits(writer, 0, 8 - writer->n_bits);
}

static void put_tail(struct writer *writer, struct buf *buf)
{
	static const uint8_t zeros[SYMBOL_FILE_TAIL_BYTES];
	put(writer, buf, zeros, sizeof(zeros));
}

/* ---- texts ---- */

static uint32_t add_component(struct writer *writer, uint32_t parent, const char *text, size_t n)
{
	uint32_t component = intern_bytes(&writer->components, text, n);
	return tuple_set_add(&writer->nodes, (struct tuple){{parent, component, 0, 0}}) + 1;
}

/* Every '/' separates, so that the components joined by it are the path again. */
static uint32_t add_components(struct writer *writer, uint32_t node, const char *path)
{
	for (;;) {
		size_t n = strcspn(path, "/");
		node = add_component(writer, node, path, n);
		if (!path[n])
			return node;
		path += n + 1;
	}
}

static size_t count_components(const char *path)
{
	size_t n = 1;
	for (; *path; path++)
		n += *path == '/';
	return n;
}

static uint32_t add_path(struct writer *writer, const struct symbol_file_name *file)
{
	const char *folder = intern_text(&writer->model->strings, file->folder);
	const char *name = intern_text(&writer->model->strings, file->name);
	if (strlen(folder) + strlen(name) + 2 > SYMBOL_FILE_MAX_PATH_BYTES ||
	    count_components(folder) + count_components(name) > SYMBOL_FILE_MAX_COMPONENTS)
		return 0;
	if (!*name)
		return 0;
	if (!*folder || *name == '/')
		return add_components(writer, 0, name);
	size_t n = strlen(folder);
	if (folder[n - 1] == '/' && n > 1)
		folder = arena_copy_string(&writer->arena, folder, n - 1);
	if (strcmp(folder, "/") == 0)
		folder = "";
	return add_components(writer, add_components(writer, 0, folder), name);
}

static void add_paths(struct writer *writer)
{
	size_t n = writer->model->files.n;
	writer->file_paths = mem_zalloc(n, sizeof(*writer->file_paths));
	for (size_t i = 1; i < n; i++)
		writer->file_paths[i] = add_path(writer, &writer->model->files.items[i]);
}

static uint32_t name_of(const struct writer *writer, const struct placed_function *function)
{
	const struct symbol_function *f = &writer->model->functions.items[function->function];
	return f->linkage_name ? f->linkage_name : f->name;
}

/* Names that are too long are cut, as those of symbol tables are. */
static const char *name_text(const struct writer *writer, uint32_t name, size_t *n_out)
{
	const struct intern_entry *entry = &writer->model->strings.entries[name];
	if (!entry->size) {
		static const char unknown[] = "[unknown]";
		*n_out = sizeof(unknown) - 1;
		return unknown;
	}
	*n_out =
		entry->size < SYMBOL_FILE_MAX_NAME_BYTES ? entry->size : SYMBOL_FILE_MAX_NAME_BYTES;
	return entry->text;
}

/* Names from all over the file, as many as the sample takes. */
static void gather_sample(struct writer *writer, struct buf *sample)
{
	const struct intern *strings = &writer->model->strings;
	uint64_t total = 1;
	for (uint32_t i = 0; i < strings->n; i++)
		total += strings->entries[i].size;
	uint32_t stride = (uint32_t)(total / STRING_CODE_SAMPLE_BYTES) + 1;
	for (uint32_t i = 0; i < strings->n; i += stride) {
		size_t n = strings->entries[i].size;
		if (sample->size + n <= STRING_CODE_SAMPLE_BYTES)
			put(writer, sample, strings->entries[i].text, n);
		if (strings->entries[i].text[0] != '_')
			continue;
		struct demangled text;
		if (demangle_name(strings->entries[i].text, SYMCACHE_DEMANGLE_NORMAL, &text) &&
		    sample->size + strlen(text.text) <= STRING_CODE_SAMPLE_BYTES)
			put(writer, sample, text.text, strlen(text.text));
	}
}

static void make_pieces(struct writer *writer)
{
	struct buf sample;
	buf_init(&sample, STRING_CODE_SAMPLE_BYTES);
	gather_sample(writer, &sample);
	string_code_train(&writer->pieces, sample.data, sample.size);
	buf_fini(&sample);
	writer->encoder = string_encoder_new(&writer->pieces);
	writer->coded = mem_alloc(2 * SYMBOL_FILE_MAX_NAME_BYTES);
	if (!writer->err)
		writer->err = string_code_store(&writer->pieces,
						&writer->sections[SYMBOL_SECTION_PIECES]);
}

static size_t code_text(struct writer *writer, const char *text, size_t n)
{
	return string_encoder_run(writer->encoder, (const uint8_t *)text, n, writer->coded);
}

static void put_text(struct writer *writer, struct buf *out, const char *text, size_t n)
{
	size_t n_coded = code_text(writer, text, n);
	put_number(writer, out, (uint32_t)n_coded);
	put(writer, out, writer->coded, n_coded);
}

static void put_record(struct writer *writer, enum symbol_section records,
		       enum symbol_section directory, uint32_t number, const struct buf *record)
{
	struct buf *out = &writer->sections[records];
	if (number % SYMBOL_FILE_STRIDE == 0)
		put_u32(writer, &writer->sections[directory], (uint32_t)out->size);
	put_number(writer, out, (uint32_t)record->size);
	put(writer, out, record->data, record->size);
}

static void put_paths(struct writer *writer)
{
	struct buf record;
	buf_init(&record, SYMBOL_FILE_MAX_BYTES);
	for (uint32_t i = 0; i < writer->nodes.n; i++) {
		const struct tuple *node = &writer->nodes.items[i];
		const struct intern_entry *text = &writer->components.entries[node->v[1]];
		buf_clear(&record);
		put_number(writer, &record, node->v[0] ? i + 1 - node->v[0] : 0);
		size_t n = code_text(writer, text->text, text->size);
		put(writer, &record, writer->coded, n);
		put_record(writer, SYMBOL_SECTION_PATHS, SYMBOL_SECTION_PATH_INDEX, i, &record);
	}
	buf_fini(&record);
}

/* ---- functions ---- */

static unsigned bits_for(uint32_t n)
{
	return n > 1 ? 32 - (unsigned)__builtin_clz(n - 1) : 0;
}

/* Widths of the fields of a function's sites, and what its lines count from. */
struct site_widths {
	uint32_t line_base;
	unsigned line, column, file, site;
};

static const struct tuple *site_at(const struct writer *writer,
				   const struct placed_function *function, uint32_t number)
{
	const struct symbol_places *places = &writer->places;
	return &places->sites.items[places->site_order[function->first_site + number]];
}

static struct site_widths measure_sites(const struct writer *writer,
					const struct placed_function *function)
{
	uint32_t least = UINT32_MAX, most = 0, column = 0;
	for (uint32_t i = 0; i < function->n_sites; i++) {
		const struct tuple *site = site_at(writer, function, i);
		if (!site->v[2])
			continue;
		least = site->v[2] < least ? site->v[2] : least;
		most = site->v[2] > most ? site->v[2] : most;
		column = site->v[3] > column ? site->v[3] : column;
	}
	struct site_widths widths = {
		.site = bits_for(function->n_sites),
		.column = bits_for(column + 1),
		.file = function->n_files ? 32 - (unsigned)__builtin_clz(function->n_files) : 0,
	};
	if (widths.file > SYMBOL_FILE_MAX_FILE_BITS)
		widths.file = SYMBOL_FILE_MAX_FILE_BITS;
	if (least <= most) {
		widths.line_base = least;
		/* 0 is a line that is not known. */
		widths.line = bits_for(most - least + 2);
	}
	return widths;
}

static uint32_t n_other_files(const struct placed_function *function)
{
	const uint32_t most = (1 << SYMBOL_FILE_MAX_FILE_BITS) - 1;
	return function->n_files < most ? function->n_files : most;
}

static void put_site(struct writer *writer, const struct placed_function *function,
		     const struct tuple *site, const struct site_widths *widths)
{
	uint32_t line = site->v[2] ? site->v[2] - widths->line_base + 1 : 0, file = 0;
	if (line && site->v[1] && site->v[1] != function->file) {
		const uint32_t *files = writer->places.other_files + function->first_file;
		uint32_t n = n_other_files(function);
		/* They are in ascending order. */
		for (uint32_t i = 0; i < n && !file; i++)
			if (files[i] == site->v[1])
				file = i + 1;
		if (!file)
			line = 0;
	}
	put_bits(writer, line, widths->line);
	put_bits(writer, line ? site->v[3] : 0, widths->column);
	put_bits(writer, file, widths->file);
	if (line)
		writer->flags |= SYMBOL_FILE_HAS_LINES | (site->v[3] ? SYMBOL_FILE_HAS_COLUMNS : 0);
}

static void put_places(struct writer *writer, struct buf *record,
		       const struct placed_function *function, uint32_t start_line)
{
	const struct symbol_places *places = &writer->places;
	struct site_widths widths = measure_sites(writer, function);
	uint32_t n_files = widths.file ? n_other_files(function) : 0;
	put_number(writer, record, function->n_sites);
	put_number(writer, record, function->n_edges << 1 | !!n_files);
	put_number(writer, record, prefix_number_zigzag((int32_t)(widths.line_base - start_line)));
	bool is_far = widths.line >= SYMBOL_WIDTH_FAR;
	put_u8(writer, record,
	       (uint8_t)((is_far ? SYMBOL_WIDTH_FAR : widths.line) | widths.column << 4));
	if (is_far)
		put_u8(writer, record, (uint8_t)widths.line);
	if (n_files) {
		put_number(writer, record, n_files);
		for (uint32_t i = 0; i < n_files; i++)
			put_number(
				writer, record,
				writer->file_paths[places->other_files[function->first_file + i]]);
	}
	start_bits(writer, record);
	for (uint32_t i = 0; i < function->n_edges; i++) {
		const struct tuple *edge =
			&places->edges.items[places->edge_order[function->first_edge + i]];
		put_bits(writer, places->site_numbers[edge->v[1]], widths.site);
		put_bits(writer, edge->v[2], writer->function_bits);
	}
	for (uint32_t i = 0; i < function->n_sites; i++)
		put_site(writer, function, site_at(writer, function, i), &widths);
	end_bits(writer);
}

/* How the name is shown; the text only when it has to be stored. */
static enum symbol_display choose_display(const char *name, struct demangled *out)
{
	struct demangled guess;
	if (!demangle_name(name, SYMCACHE_DEMANGLE_NORMAL, out) || strcmp(out->text, name) == 0)
		return SYMBOL_DISPLAY_SAME;
	if (display_guess(name, guess.text, sizeof(guess.text)) &&
	    strcmp(guess.text, out->text) == 0)
		return SYMBOL_DISPLAY_GUESS;
	return SYMBOL_DISPLAY_STORED;
}

/* As the file has it: Go's table names functions as symbol tables do. */
static uint8_t file_rank(uint8_t rank)
{
	static const uint8_t ranks[] = {[SYMBOL_RANK_DWARF] = 0,
					[SYMBOL_RANK_PCLNTAB] = 1,
					[SYMBOL_RANK_SYMTAB] = 1,
					[SYMBOL_RANK_DYNSYM] = 2,
					[SYMBOL_RANK_PLT] = 3};
	return ranks[rank];
}

/* first_with_name: the number + 1 of an earlier function of the same name, 0 = none. */
static void put_function(struct writer *writer, struct buf *record, uint32_t number,
			 uint32_t first_with_name)
{
	const struct placed_function *function = &writer->places.functions[number];
	const struct symbol_function *source = &writer->model->functions.items[function->function];
	struct demangled display;
	enum symbol_display kind = SYMBOL_DISPLAY_SAME;
	size_t n_name;
	const char *name = name_text(writer, name_of(writer, function), &n_name);
	if (!first_with_name && source->linkage_name)
		kind = choose_display(name, &display);
	uint32_t declared = writer->file_paths[source->file];
	uint32_t file = writer->file_paths[function->file];
	if (!file)
		file = declared;
	bool has_declaration = declared && declared != file;
	bool has_places = function->n_edges || function->n_sites > 1 ||
			  (function->n_sites == 1 && site_at(writer, function, 0)->v[2]);
	put_u8(writer, record,
	       (uint8_t)((first_with_name ? SYMBOL_FUNCTION_NAME_SHARED : 0) |
			 kind << SYMBOL_FUNCTION_DISPLAY_SHIFT |
			 (function->is_folded ? SYMBOL_FUNCTION_FOLDED : 0) |
			 file_rank(function->rank) << SYMBOL_FUNCTION_RANK_SHIFT |
			 (has_declaration ? SYMBOL_FUNCTION_HAS_DECLARATION : 0) |
			 (has_places ? SYMBOL_FUNCTION_HAS_PLACES : 0)));
	if (first_with_name)
		put_number(writer, record, first_with_name - 1);
	else
		put_text(writer, record, name, n_name);
	if (kind == SYMBOL_DISPLAY_STORED)
		put_text(writer, record, display.text, strlen(display.text));
	put_number(writer, record, file);
	if (has_declaration)
		put_number(writer, record, declared);
	put_number(writer, record, source->start_line);
	if (has_places)
		put_places(writer, record, function, source->start_line);
}

static void put_functions(struct writer *writer)
{
	struct symbol_places *places = &writer->places;
	uint32_t *by_name = mem_zalloc(writer->model->strings.n, sizeof(*by_name));
	struct buf record;
	buf_init(&record, SYMBOL_FILE_MAX_BYTES);
	for (uint32_t i = 0; i < places->n_functions; i++) {
		uint32_t *first = &by_name[name_of(writer, &places->functions[i])];
		buf_clear(&record);
		put_function(writer, &record, i, *first);
		put_record(writer, SYMBOL_SECTION_FUNCTIONS, SYMBOL_SECTION_DIRECTORY, i, &record);
		if (!*first)
			*first = i + 1;
	}
	buf_fini(&record);
	mem_free(by_name);
}

/* ---- segments ---- */

static void put_symbol(struct writer *writer, enum symbol_code code, unsigned symbol)
{
	if (writer->is_counting)
		writer->counts[code][symbol]++;
	else
		put_bits(writer, writer->codes[code].codes[symbol],
			 prefix_code_bits(&writer->codes[code], symbol));
}

static void put_extra(struct writer *writer, uint32_t v, unsigned n)
{
	if (!writer->is_counting)
		put_bits(writer, v & (uint32_t)((UINT64_C(1) << n) - 1), n);
}

static void put_coded_number(struct writer *writer, enum symbol_code code, uint32_t v)
{
	unsigned symbol = prefix_number_symbol(v);
	put_symbol(writer, code, symbol);
	put_extra(writer, v, prefix_number_extra_bits(symbol));
}

static void put_difference(struct writer *writer, enum symbol_code code, uint32_t to, uint32_t from)
{
	put_coded_number(writer, code, prefix_number_zigzag((int32_t)(to - from)));
}

/* What the reader knows of the chain after each segment. */
struct chain_state {
	uint32_t root, depth;
	struct {
		uint32_t edge, site;
	} levels[SYMBOL_FILE_MAX_DEPTH + 1];
};

static void reset_chain(struct chain_state *state, uint32_t root)
{
	state->root = root;
	state->depth = 0;
	state->levels[0].edge = 0;
	state->levels[0].site = SITE_NONE;
}

/* Edges from the real function inwards. */
static uint32_t list_edges(const struct symbol_places *places, uint32_t chain, uint32_t *edges)
{
	uint32_t depth = places->chains[chain].depth;
	for (uint32_t level = depth; level > 0; level--) {
		edges[level - 1] = places->chains[chain].edge;
		chain = places->chains[chain].parent;
	}
	return chain;
}

static void put_count(struct writer *writer, uint32_t n)
{
	if (n >= SYMBOL_STEP_COUNTS - 1)
		put_extra(writer, n, SYMBOL_STEP_COUNT_BITS);
}

static unsigned count_symbol(uint32_t n)
{
	return n < SYMBOL_STEP_COUNTS - 1 ? n : SYMBOL_STEP_COUNTS - 1;
}

static void put_function_step(struct writer *writer, struct chain_state *state,
			      const struct segment *segment, bool is_first)
{
	uint32_t edges[SYMBOL_FILE_MAX_DEPTH + 1], common = 0;
	uint32_t depth = writer->places.chains[segment->chain].depth;
	uint32_t root = list_edges(&writer->places, segment->chain, edges);
	root = writer->places.chains[root].function;
	if (is_first || root != state->root) {
		put_symbol(writer, SYMBOL_CODE_STEP, SYMBOL_STEP_ROOT + count_symbol(depth));
		put_count(writer, depth);
		put_difference(writer, SYMBOL_CODE_ROOT, root, state->root);
		reset_chain(state, root);
	} else {
		while (common < depth && common < state->depth &&
		       edges[common] == state->levels[common].edge)
			common++;
		uint32_t pops = state->depth - common, pushes = depth - common;
		if (!pops && !pushes) {
			uint32_t *site = &state->levels[depth].site;
			put_difference(writer, SYMBOL_CODE_STEP, segment->site, *site);
			*site = segment->site;
			return;
		}
		put_symbol(writer, SYMBOL_CODE_STEP,
			   SYMBOL_STEP_MOVE + count_symbol(pops) * SYMBOL_STEP_COUNTS +
				   count_symbol(pushes));
		put_count(writer, pops);
		put_count(writer, pushes);
		state->depth = common;
	}
	while (state->depth < depth) {
		uint32_t *edge = &state->levels[state->depth].edge;
		put_difference(writer, SYMBOL_CODE_EDGE, edges[state->depth], *edge);
		*edge = edges[state->depth++];
		state->levels[state->depth].edge = 0;
		state->levels[state->depth].site = SITE_NONE;
	}
	uint32_t *site = &state->levels[depth].site;
	if (*site == SITE_NONE)
		put_coded_number(writer, SYMBOL_CODE_SITE, segment->site);
	else
		put_difference(writer, SYMBOL_CODE_SITE_STEP, segment->site, *site);
	*site = segment->site;
}

/* In units of the address shift; 0 when it is too long for a block. */
static uint32_t segment_length(const struct writer *writer, const struct segment *segment)
{
	uint64_t length = (segment[1].start - segment->start) >> writer->address_shift;
	return length <= SYMBOL_PLACES_MAX_SEGMENT_BYTES ? (uint32_t)length : 0;
}

static bool is_gap(const struct segment *segment)
{
	return segment->chain == SYMBOL_CHAIN_NONE;
}

/* How many of the segments from first on make the next block; a gap at the end is left out. */
static size_t block_segments(const struct writer *writer, size_t first)
{
	const struct segment *segments = writer->places.segments;
	size_t n = 1, last = writer->places.n_segments - 1;
	while (n < writer->block_segments && first + n < last &&
	       segment_length(writer, &segments[first + n]))
		n++;
	while (n > 1 && is_gap(&segments[first + n - 1]))
		n--;
	return n;
}

static void put_block(struct writer *writer, size_t first, size_t n, uint32_t group_root)
{
	struct chain_state state;
	reset_chain(&state, group_root);
	for (size_t i = 0; i < n; i++) {
		const struct segment *segment = &writer->places.segments[first + i];
		if (is_gap(segment))
			put_symbol(writer, SYMBOL_CODE_STEP, SYMBOL_STEP_GAP);
		else
			put_function_step(writer, &state, segment, i == 0);
		put_coded_number(writer, SYMBOL_CODE_LENGTH, segment_length(writer, segment) - 1);
	}
	if (n < writer->block_segments)
		put_symbol(writer, SYMBOL_CODE_STEP, SYMBOL_STEP_END);
}

/* The most bytes that a block of n segments can take. */
static size_t max_block_bytes(const struct writer *writer, size_t first, size_t n)
{
	const size_t max_number_bits = PREFIX_CODE_MAX_BITS + PREFIX_NUMBER_MAX_BITS;
	size_t numbers = 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t chain = writer->places.segments[first + i].chain;
		numbers +=
			4 + (chain == SYMBOL_CHAIN_NONE ? 0 : writer->places.chains[chain].depth);
	}
	return numbers * max_number_bits / 8 + 1;
}

static uint32_t root_of(const struct writer *writer, size_t segment)
{
	uint32_t edges[SYMBOL_FILE_MAX_DEPTH + 1];
	uint32_t chain = list_edges(&writer->places, writer->places.segments[segment].chain, edges);
	return writer->places.chains[chain].function;
}

static void add_group(struct writer *writer, uint64_t address, uint32_t root)
{
	if (writer->n_groups == writer->groups_capacity) {
		writer->groups_capacity = writer->n_groups ? 2 * writer->n_groups : 64;
		writer->groups = mem_realloc(writer->groups, writer->groups_capacity,
					     sizeof(*writer->groups));
	}
	writer->groups[writer->n_groups++] = (struct group){
		.address = address,
		.offset = (uint32_t)writer->sections[SYMBOL_SECTION_SEGMENTS].size,
		.root = root,
		.first_block = writer->n_blocks,
	};
}

/* Both walks cut groups alike: what they look at does not depend on the codes. */
static void walk_segments(struct writer *writer)
{
	const struct segment *segments = writer->places.segments;
	struct buf *coded = &writer->sections[SYMBOL_SECTION_SEGMENTS];
	struct buf *blocks = &writer->sections[SYMBOL_SECTION_BLOCKS];
	size_t max_bytes = 0; /* of the group so far */
	writer->n_groups = writer->n_blocks = 0;
	start_bits(writer, coded);
	for (size_t i = 0, n; i + 1 < writer->places.n_segments && !writer->err; i += n) {
		n = 1;
		if (is_gap(&segments[i]))
			continue;
		n = block_segments(writer, i);
		const struct group *group =
			writer->n_groups ? &writer->groups[writer->n_groups - 1] : NULL;
		uint64_t delta =
			group ? (segments[i].start - group->address) >> writer->address_shift : 0;
		if (!group || delta > UINT16_MAX || max_bytes > UINT16_MAX ||
		    writer->n_blocks - group->first_block == SYMBOL_FILE_GROUP_BLOCKS) {
			add_group(writer, segments[i].start, root_of(writer, i));
			group = &writer->groups[writer->n_groups - 1];
			max_bytes = 0;
			delta = 0;
		}
		if (!writer->is_counting) {
			put_u16(writer, blocks, (uint16_t)delta);
			put_u16(writer, blocks, (uint16_t)(coded->size - group->offset));
		}
		max_bytes += max_block_bytes(writer, i, n);
		put_block(writer, i, n, group->root);
		writer->n_blocks++;
		if (!writer->is_counting)
			end_bits(writer);
	}
}

static void put_codes(struct writer *writer)
{
	struct buf *out = &writer->sections[SYMBOL_SECTION_CODES];
	start_bits(writer, out);
	for (unsigned code = 0; code < SYMBOL_CODE_N; code++) {
		unsigned n = symbol_code_symbols(code);
		prefix_code_init(&writer->codes[code], writer->counts[code], n);
		for (unsigned i = 0; i < n; i++)
			put_bits(writer, writer->codes[code].lengths[i], 4);
	}
	end_bits(writer);
}

static void put_segments(struct writer *writer)
{
	writer->is_counting = true;
	walk_segments(writer);
	writer->is_counting = false;
	put_codes(writer);
	walk_segments(writer);
	put_tail(writer, &writer->sections[SYMBOL_SECTION_SEGMENTS]);
	struct buf *groups = &writer->sections[SYMBOL_SECTION_GROUPS];
	for (uint32_t i = 0; i < writer->n_groups; i++)
		put_u64(writer, groups, writer->groups[i].address);
	for (uint32_t i = 0; i < writer->n_groups; i++) {
		put_u32(writer, groups, writer->groups[i].offset);
		put_u32(writer, groups, writer->groups[i].root);
		put_u32(writer, groups, writer->groups[i].first_block);
	}
}

/* ---- the whole ---- */

/* The largest power of two that all addresses are multiples of, within what the header can say. */
static uint8_t find_address_shift(const struct symbol_places *places)
{
	uint64_t all = UINT64_C(1) << 4;
	for (size_t i = 0; i < places->n_segments; i++)
		all |= places->segments[i].start;
	return (uint8_t)__builtin_ctzll(all);
}

/*
 * A look-up decodes half a block on average. Where chains are deep, it has more to do behind that
 * and files have room to spare, so blocks are shorter.
 */
static uint8_t choose_block_segments(const struct symbol_places *places)
{
	enum { SHORT_BLOCK = 6, LONG_BLOCK = 10 };
	uint64_t depth = 0;
	for (size_t i = 0; i < places->n_segments; i++)
		if (places->segments[i].chain != SYMBOL_CHAIN_NONE)
			depth += places->chains[places->segments[i].chain].depth;
	return 2 * depth > places->n_segments ? SHORT_BLOCK : LONG_BLOCK;
}

static enum symbol_quality find_quality(const struct symbol_model *model)
{
	enum symbol_quality best = SYMBOL_QUALITY_NONE;
	for (size_t i = 0; i < model->ranges.n; i++) {
		enum symbol_quality quality = SYMBOL_QUALITY_DYNSYM;
		if (model->ranges.items[i].rank == SYMBOL_RANK_DWARF)
			quality = SYMBOL_QUALITY_DWARF;
		else if (model->ranges.items[i].rank == SYMBOL_RANK_SYMTAB ||
			 model->ranges.items[i].rank == SYMBOL_RANK_PCLNTAB)
			quality = SYMBOL_QUALITY_SYMTAB;
		best = quality > best ? quality : best;
	}
	return best;
}

static void put_parameters(struct writer *writer)
{
	struct buf *out = &writer->sections[SYMBOL_SECTION_PARAMETERS];
	uint64_t n_segments = 0;
	for (size_t i = 0; i < writer->places.n_segments; i++)
		n_segments += !is_gap(&writer->places.segments[i]);
	put_u64(writer, out, n_segments);
	put_u32(writer, out, writer->n_groups);
	put_u32(writer, out, writer->n_blocks);
	put_u32(writer, out, writer->places.n_functions);
	put_u32(writer, out, writer->nodes.n);
	put_u32(writer, out, writer->places.sites.n);
	put_u32(writer, out, writer->places.edges.n);
	put_u8(writer, out, writer->address_shift);
	put_u8(writer, out, writer->function_bits);
	put_u8(writer, out, writer->block_segments);
	put_u8(writer, out, writer->flags | (writer->places.edges.n ? SYMBOL_FILE_HAS_INLINES : 0));
	while (out->size < SYMBOL_FILE_PARAMETERS_BYTES && !writer->err)
		put_u8(writer, out, 0);
}

static size_t align(size_t n)
{
	return (n + SYMBOL_FILE_ALIGNMENT - 1) & ~(size_t)(SYMBOL_FILE_ALIGNMENT - 1);
}

static bool has_section(const struct writer *writer, unsigned kind)
{
	return kind != SYMBOL_SECTION_UNWIND || writer->sections[kind].size;
}

static void put_header(struct writer *writer, const struct symbol_file_options *options,
		       struct buf *out)
{
	uint8_t header[SYMBOL_FILE_HEADER_BYTES] = {0};
	uint32_t version = htole32(SYMBOL_FILE_VERSION), n_sections = 0;
	for (unsigned kind = 1; kind < SYMBOL_SECTION_N; kind++)
		n_sections += has_section(writer, kind);
	memcpy(header, symbol_file_magic, sizeof(symbol_file_magic));
	memcpy(header + SYMBOL_FILE_AT_VERSION, &version, sizeof(version));
	uint32_t stored_sections = htole32(n_sections);
	memcpy(header + SYMBOL_FILE_AT_N_SECTIONS, &stored_sections, sizeof(stored_sections));
	header[SYMBOL_FILE_AT_QUALITY] = (uint8_t)writer->quality;
	header[SYMBOL_FILE_AT_ID_SIZE] = options->build_id.size;
	header[SYMBOL_FILE_AT_ID_KIND] = options->build_id.kind;
	memcpy(header + SYMBOL_FILE_AT_ID, options->build_id.bytes, options->build_id.size);
	put(writer, out, header, sizeof(header));
	size_t at = SYMBOL_FILE_HEADER_BYTES + (size_t)n_sections * SYMBOL_FILE_ENTRY_BYTES;
	for (unsigned kind = 1; kind < SYMBOL_SECTION_N; kind++) {
		const struct buf *section = &writer->sections[kind];
		if (!has_section(writer, kind))
			continue;
		at = align(at);
		put_u32(writer, out, kind);
		put_u32(writer, out, crc32c_update(0, section->data, section->size));
		put_u64(writer, out, at);
		put_u64(writer, out, section->size);
		at += section->size;
	}
}

static void put_file(struct writer *writer, const struct symbol_file_options *options,
		     struct buf *out)
{
	static const uint8_t zeros[SYMBOL_FILE_ALIGNMENT];
	size_t start = out->size;
	put_header(writer, options, out);
	size_t header_bytes = out->size - start;
	for (unsigned kind = 1; kind < SYMBOL_SECTION_N; kind++) {
		const struct buf *section = &writer->sections[kind];
		if (!has_section(writer, kind))
			continue;
		size_t at = out->size - start;
		put(writer, out, zeros, align(at) - at);
		put(writer, out, section->data, section->size);
	}
	if (writer->err)
		return;
	uint8_t *header = out->data + start;
	uint64_t size = htole64(out->size - start);
	memcpy(header + SYMBOL_FILE_AT_BYTES, &size, sizeof(size));
	uint32_t crc = htole32(crc32c_update(0, header, header_bytes));
	memcpy(header + SYMBOL_FILE_AT_CRC, &crc, sizeof(crc));
}

static void init(struct writer *writer, const struct symbol_model *model)
{
	*writer = (struct writer){.model = model};
	for (unsigned i = 0; i < SYMBOL_SECTION_N; i++)
		buf_init(&writer->sections[i], SYMBOL_FILE_MAX_BYTES);
	arena_init(&writer->arena, 0);
	intern_init(&writer->components, &writer->arena);
	tuple_set_init(&writer->nodes);
	symbol_places_init(&writer->places, model);
}

static void fini(struct writer *writer)
{
	for (unsigned i = 0; i < SYMBOL_SECTION_N; i++)
		buf_fini(&writer->sections[i]);
	intern_fini(&writer->components);
	arena_fini(&writer->arena);
	tuple_set_fini(&writer->nodes);
	mem_free(writer->file_paths);
	string_encoder_free(writer->encoder);
	mem_free(writer->coded);
	mem_free(writer->groups);
	symbol_places_fini(&writer->places);
}

struct error *symbol_file_write(const struct symbol_model *model,
				const struct symbol_file_options *options, struct buf *out)
{
	struct writer *writer = mem_alloc(sizeof(*writer));
	init(writer, model);
	writer->address_shift = find_address_shift(&writer->places);
	writer->function_bits = (uint8_t)bits_for(writer->places.n_functions);
	writer->block_segments = choose_block_segments(&writer->places);
	writer->quality = find_quality(model);
	add_paths(writer);
	make_pieces(writer);
	put_paths(writer);
	put_functions(writer);
	put_segments(writer);
	put_parameters(writer);
	if (options->unwind_bytes)
		put(writer, &writer->sections[SYMBOL_SECTION_UNWIND], options->unwind,
		    options->unwind_bytes);
	size_t start = out->size;
	put_file(writer, options, out);
	struct error *err = writer->err;
	if (err)
		out->size = start;
	fini(writer);
	mem_free(writer);
	return err;
}
