/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symtab_source.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "symcache/plt_source.h"

#define PLT_SUFFIX "@plt"

/* Where names are from. */
enum string_table {
	STRINGS_STATIC,	 /* .strtab */
	STRINGS_DYNAMIC, /* .dynstr */
	STRINGS_PLT,	 /* .dynstr, shown with "@plt" behind */
	STRINGS_N,
};

/* A name: place in its string table, which table, and whether functions were folded onto it. */
enum {
	NAME_OFFSET_BITS = 29,
	NAME_OFFSET_MASK = (1 << NAME_OFFSET_BITS) - 1,
	NAME_FOLDED = 1 << NAME_OFFSET_BITS,
	NAME_STRINGS_SHIFT = NAME_OFFSET_BITS + 1,
	NAME_COMPARE_BYTES = 4096, /* aliases that agree so far keep the order of the table */
};
static const uint32_t name_gap = UINT32_MAX;

/* Lower is better. */
enum candidate_rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_PLT, RANK_UNSIZED = 4 };

struct candidate {
	uint64_t start, end;
	uint32_t name;
	uint16_t name_bytes; /* up to NAME_COMPARE_BYTES */
	uint8_t rank;
	bool is_function; /* FUNC or GNU_IFUNC */
};

struct strings {
	const char *bytes;
	size_t size; /* up to and with its last 0 */
};

struct gather {
	struct strings strings[STRINGS_N];
	struct candidate *candidates;
	uint32_t n, capacity;
};

static uint32_t make_name(enum string_table strings, uint32_t offset)
{
	return (uint32_t)strings << NAME_STRINGS_SHIFT | offset;
}

static const char *name_text(const struct gather *gather, uint32_t name)
{
	return gather->strings[name >> NAME_STRINGS_SHIFT].bytes + (name & NAME_OFFSET_MASK);
}

/* Without the version. */
static uint32_t name_length(const char *text, uint32_t max)
{
	uint32_t n = 0;
	while (n < max && text[n] && (text[n] != '@' || n == 0))
		n++;
	return n;
}

static void add(struct gather *gather, struct candidate candidate)
{
	if (gather->n == SYMTAB_SOURCE_MAX_SYMBOLS)
		return;
	if (gather->n == gather->capacity) {
		gather->capacity = gather->capacity ? 2 * gather->capacity : 1024;
		gather->candidates = mem_realloc(gather->candidates, gather->capacity,
						 sizeof(*gather->candidates));
	}
	const char *text = name_text(gather, candidate.name);
	candidate.name_bytes = (uint16_t)name_length(text, NAME_COMPARE_BYTES);
	gather->candidates[gather->n++] = candidate;
}

static void set_strings(struct strings *strings, struct cursor bytes)
{
	size_t n = cursor_left(&bytes);
	if (n > SYMTAB_SOURCE_MAX_STRING_BYTES)
		n = SYMTAB_SOURCE_MAX_STRING_BYTES;
	const uint8_t *last = n ? memrchr(bytes.next, 0, n) : NULL;
	strings->bytes = (const char *)bytes.next;
	strings->size = last ? (size_t)(last - bytes.next) + 1 : 0;
}

/* Where executable code that holds svma ends; 0 when none does. */
static uint64_t find_text_end(const struct elf_image *image, uint32_t section_index, uint64_t svma)
{
	const uint64_t text_flags = SHF_ALLOC | SHF_EXECINSTR;
	if (section_index && section_index < image->n_sections) {
		const struct elf_section *section = &image->sections[section_index];
		if ((section->flags & text_flags) != text_flags)
			return 0;
		if (svma >= section->address && svma - section->address < section->size &&
		    section->size <= UINT64_MAX - section->address)
			return section->address + section->size;
	}
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (segment->is_executable && svma >= segment->svma &&
		    svma - segment->svma < segment->memory_bytes &&
		    segment->memory_bytes <= UINT64_MAX - segment->svma)
			return segment->svma + segment->memory_bytes;
	}
	return 0;
}

/* $x, $d.12 and so on mark code and data of arm and RISC-V (psABI, "mapping symbols"). */
static bool is_mapping_symbol(const struct elf_image *image, const char *name)
{
	if (name[0] != '$')
		return false;
	switch (image->machine) {
	case EM_ARM:
	case EM_AARCH64:
		return strchr("adtx", name[1]) && name[1] && (!name[2] || name[2] == '.');
	case EM_RISCV:
		return name[1] == 'x' || name[1] == 'd';
	default:
		return false;
	}
}

struct symbol_entry {
	uint64_t value, size;
	uint32_t name, section;
	uint8_t type, bind;
};

/* Reads a symbol table entry by entry; open at an image's section of type SHT_SYMTAB or SHT_DYNSYM.
 */
struct symbol_walk {
	const struct elf_image *image;
	struct cursor entries, extended; /* extended: SHT_SYMTAB_SHNDX */
};

static bool walk_start(struct symbol_walk *walk, const struct elf_image *image, uint32_t type)
{
	const struct elf_section *section = elf_image_find_type(image, type);
	if (!section)
		return false;
	*walk = (struct symbol_walk){.image = image, .entries = elf_image_section(image, section)};
	uint32_t index = (uint32_t)(section - image->sections);
	for (uint32_t i = 1; i < image->n_sections; i++) {
		const struct elf_section *extended = &image->sections[i];
		if (extended->type == SHT_SYMTAB_SHNDX && extended->link == index)
			walk->extended = elf_image_section(image, extended);
	}
	return true;
}

static bool walk_next(struct symbol_walk *walk, struct symbol_entry *out)
{
	struct cursor *c = &walk->entries;
	bool is_64 = walk->image->is_64;
	if (cursor_left(c) < (is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)))
		return false;
	out->name = cursor_u32(c);
	if (!is_64) {
		out->value = cursor_u32(c);
		out->size = cursor_u32(c);
	}
	uint8_t info = cursor_u8(c);
	cursor_skip(c, 1);
	out->section = cursor_u16(c);
	if (is_64) {
		out->value = cursor_u64(c);
		out->size = cursor_u64(c);
	}
	out->type = ELF64_ST_TYPE(info);
	out->bind = ELF64_ST_BIND(info);
	uint32_t extended = cursor_u32(&walk->extended);
	if (out->section == SHN_XINDEX)
		out->section = extended;
	else if (out->section >= SHN_LORESERVE)
		out->section = SHN_UNDEF;
	return true;
}

static enum candidate_rank rank_of(uint8_t bind)
{
	switch (bind) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return RANK_GLOBAL;
	case STB_WEAK:
		return RANK_WEAK;
	default:
		return RANK_LOCAL;
	}
}

static void gather_symbol(struct gather *gather, const struct elf_image *image,
			  enum string_table strings, const struct symbol_entry *symbol)
{
	bool is_function = symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC;
	if (!is_function && symbol->type != STT_NOTYPE)
		return;
	if (symbol->section == SHN_UNDEF || symbol->name >= gather->strings[strings].size)
		return;
	uint64_t start = symbol->value;
	if (image->machine == EM_ARM && is_function)
		start &= ~(uint64_t)1;
	uint64_t text_end = find_text_end(image, symbol->section, start);
	const char *name = gather->strings[strings].bytes + symbol->name;
	if (!text_end || !*name || is_mapping_symbol(image, name))
		return;
	struct candidate candidate = {
		.start = start,
		.end = text_end,
		.name = make_name(strings, symbol->name),
		.rank = (uint8_t)rank_of(symbol->bind),
		.is_function = is_function,
	};
	if (symbol->size && symbol->size < text_end - start)
		candidate.end = start + symbol->size;
	else if (!symbol->size)
		candidate.rank += RANK_UNSIZED;
	if (!symbol->size && strings == STRINGS_DYNAMIC)
		candidate.end = start + 1;
	add(gather, candidate);
}

static void gather_table(struct gather *gather, const struct elf_image *image, uint32_t type,
			 enum string_table strings)
{
	const struct elf_section *section = elf_image_find_type(image, type);
	struct symbol_walk walk;
	if (!section || section->link >= image->n_sections || !walk_start(&walk, image, type))
		return;
	set_strings(&gather->strings[strings],
		    elf_image_section(image, &image->sections[section->link]));
	struct symbol_entry symbol;
	while (walk_next(&walk, &symbol))
		gather_symbol(gather, image, strings, &symbol);
}

static void add_plt_entry(void *context, uint64_t start, uint64_t end, uint32_t symbol_name)
{
	struct gather *gather = context;
	if (symbol_name >= gather->strings[STRINGS_PLT].size ||
	    !gather->strings[STRINGS_PLT].bytes[symbol_name])
		return;
	add(gather, (struct candidate){.start = start,
				       .end = end,
				       .name = make_name(STRINGS_PLT, symbol_name),
				       .rank = RANK_PLT});
}

static int compare_names(const struct gather *gather, const struct candidate *a,
			 const struct candidate *b)
{
	if (a->name_bytes != b->name_bytes)
		return a->name_bytes < b->name_bytes ? -1 : 1;
	return memcmp(name_text(gather, a->name), name_text(gather, b->name), a->name_bytes);
}

static int compare_candidates(const void *left, const void *right, void *context)
{
	const struct candidate *a = left;
	const struct candidate *b = right;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	int order = compare_names(context, a, b);
	if (order)
		return order;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* C1 and C2 are the complete and the base constructor of one class: mostly the same code. */
static bool is_same_constructor(const char *a, const char *b, uint32_t n)
{
	uint32_t i = 0;
	while (i < n && a[i] == b[i])
		i++;
	return i > 0 && i < n && (a[i - 1] == 'C' || a[i - 1] == 'D') && a[i] >= '0' &&
	       a[i] <= '5' && b[i] >= '0' && b[i] <= '5' &&
	       memcmp(a + i + 1, b + i + 1, n - i - 1) == 0;
}

/* Whether other functions than the first stand in a group of one start address. */
static bool is_group_folded(const struct gather *gather, const struct candidate *group, uint32_t n)
{
	if (!group[0].is_function)
		return false;
	const char *first = name_text(gather, group[0].name);
	for (uint32_t i = 1; i < n; i++) {
		const struct candidate *other = &group[i];
		if (!other->is_function || compare_names(gather, &group[0], other) == 0)
			continue;
		if (other->name_bytes != group[0].name_bytes ||
		    !is_same_constructor(first, name_text(gather, other->name), other->name_bytes))
			return true;
	}
	return false;
}

/*
 * Ranges under construction. open holds the symbols that cover the current address, the innermost
 * on top:
 *
 *   outer   |------------------------|
 *   inner        |------|
 *   ranges  outer| inner|  outer     |gap
 */
struct sweep {
	uint64_t *starts;
	uint32_t *names;
	uint32_t n;
	const struct candidate **open;
	uint32_t n_open;
};

static void begin_range(struct sweep *sweep, uint64_t start, uint32_t name)
{
	if (sweep->n && sweep->starts[sweep->n - 1] == start)
		sweep->n--;
	if (sweep->n && sweep->names[sweep->n - 1] == name)
		return;
	sweep->starts[sweep->n] = start;
	sweep->names[sweep->n++] = name;
}

/* Ends what ends at or before limit. */
static void close_ended(struct sweep *sweep, uint64_t limit)
{
	while (sweep->n_open && sweep->open[sweep->n_open - 1]->end <= limit) {
		uint64_t end = sweep->open[sweep->n_open - 1]->end;
		while (sweep->n_open && sweep->open[sweep->n_open - 1]->end <= end)
			sweep->n_open--;
		begin_range(sweep, end,
			    sweep->n_open ? sweep->open[sweep->n_open - 1]->name : name_gap);
	}
}

static void sweep_group(struct sweep *sweep, struct candidate *group, uint32_t n, uint64_t next)
{
	close_ended(sweep, group[0].start);
	bool is_sized = group[0].rank < RANK_UNSIZED;
	if (!is_sized && sweep->n_open)
		return;
	while (n > 1 && is_sized && group[n - 1].rank >= RANK_UNSIZED)
		n--;
	for (uint32_t i = n; i-- > 0;) {
		if (!is_sized && group[i].end > next)
			group[i].end = next;
		sweep->open[sweep->n_open++] = &group[i];
	}
	begin_range(sweep, group[0].start, group[0].name);
}

/* The model's function of a name, made once. */
static uint32_t add_function(struct symbol_model *model, const struct gather *gather, uint32_t name,
			     struct buf *scratch)
{
	const char *text = name_text(gather, name);
	size_t n = name_length(text, SYMTAB_SOURCE_MAX_NAME_BYTES);
	if (name >> NAME_STRINGS_SHIFT == STRINGS_PLT) {
		buf_clear(scratch);
		struct error *err = buf_append(scratch, text, n);
		if (!err)
			err = buf_append(scratch, PLT_SUFFIX, sizeof(PLT_SUFFIX) - 1);
		error_free(err); /* room for the longest name was asked for */
		text = (const char *)scratch->data;
		n = scratch->size;
	}
	uint32_t string = symbol_model_add_string(model, text, n);
	return symbol_model_add_function(model, (struct symbol_function){.linkage_name = string});
}

static void add_ranges(struct symbol_model *model, const struct gather *gather,
		       const struct sweep *sweep)
{
	static const uint8_t ranks[] = {[STRINGS_STATIC] = SYMBOL_RANK_SYMTAB,
					[STRINGS_DYNAMIC] = SYMBOL_RANK_DYNSYM,
					[STRINGS_PLT] = SYMBOL_RANK_PLT};
	struct buf scratch;
	buf_init(&scratch, SYMTAB_SOURCE_MAX_NAME_BYTES + sizeof(PLT_SUFFIX));
	/* The last range is a gap: everything that was opened was closed. */
	for (uint32_t i = 0; i + 1 < sweep->n; i++) {
		if (sweep->names[i] == name_gap)
			continue;
		uint32_t name = sweep->names[i] & ~(uint32_t)NAME_FOLDED;
		uint32_t chain = symbol_model_add_chain(
			model, (struct symbol_chain){
				       .function = add_function(model, gather, name, &scratch),
				       .parent = SYMBOL_CHAIN_NONE});
		symbol_model_add_range(
			model, (struct symbol_range){.start = sweep->starts[i],
						     .end = sweep->starts[i + 1],
						     .chain = chain,
						     .rank = ranks[name >> NAME_STRINGS_SHIFT],
						     .is_folded = sweep->names[i] & NAME_FOLDED});
	}
	buf_fini(&scratch);
}

static void make_ranges(struct gather *gather, struct symbol_model *model)
{
	struct candidate *all = gather->candidates;
	struct sweep sweep = {
		.starts = mem_alloc((2 * (size_t)gather->n + 1) * sizeof(*sweep.starts)),
		.names = mem_alloc((2 * (size_t)gather->n + 1) * sizeof(*sweep.names)),
		.open = mem_alloc(((size_t)gather->n + 1) * sizeof(struct candidate *)),
	};
	for (uint32_t i = 0, n = 0; i < gather->n; i += n) {
		for (n = 1; i + n < gather->n && all[i + n].start == all[i].start;)
			n++;
		if (is_group_folded(gather, &all[i], n))
			all[i].name |= NAME_FOLDED;
		sweep_group(&sweep, &all[i], n, i + n < gather->n ? all[i + n].start : UINT64_MAX);
	}
	close_ended(&sweep, UINT64_MAX);
	add_ranges(model, gather, &sweep);
	mem_free(sweep.starts);
	mem_free(sweep.names);
	mem_free(sweep.open);
}

void symtab_source_read(const struct elf_image *binary, const struct elf_image *debug,
			struct symbol_model *model)
{
	struct gather gather = {0};
	if (elf_image_find_type(binary, SHT_SYMTAB))
		gather_table(&gather, binary, SHT_SYMTAB, STRINGS_STATIC);
	else if (debug)
		gather_table(&gather, debug, SHT_SYMTAB, STRINGS_STATIC);
	gather_table(&gather, binary, SHT_DYNSYM, STRINGS_DYNAMIC);
	gather.strings[STRINGS_PLT] = gather.strings[STRINGS_DYNAMIC];
	plt_source_read(binary, add_plt_entry, &gather);
	if (gather.n)
		qsort_r(gather.candidates, gather.n, sizeof(*gather.candidates), compare_candidates,
			&gather);
	make_ranges(&gather, model);
	mem_free(gather.candidates);
}

bool symtab_source_value(const struct elf_image *image, const char *name, uint64_t *out)
{
	const struct elf_section *section = elf_image_find_type(image, SHT_SYMTAB);
	struct symbol_walk walk;
	if (!section || section->link >= image->n_sections || !walk_start(&walk, image, SHT_SYMTAB))
		return false;
	struct cursor strings = elf_image_section(image, &image->sections[section->link]);
	size_t n = strlen(name) + 1;
	struct symbol_entry symbol;
	while (walk_next(&walk, &symbol)) {
		struct cursor c = strings;
		cursor_seek(&c, symbol.name);
		const uint8_t *text = cursor_bytes(&c, n);
		if (text && memcmp(text, name, n) == 0) {
			*out = symbol.value;
			return true;
		}
	}
	return false;
}
