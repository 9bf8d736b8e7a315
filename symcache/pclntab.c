/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/pclntab.h"

#include <elf.h>

#include "symcache/dwarf_leb.h"

/* runtime/symtab.go and internal/abi: numbers of the tables that belong to a function. */
enum { PCDATA_CALLS = 2, FUNCDATA_CALL_TREE = 3 };

static const uint32_t no_place = UINT32_MAX;

const struct elf_section *pclntab_find(const struct elf_image *image)
{
	const struct elf_section *section = elf_image_find(image, ".gopclntab");
	if (!section)
		section = elf_image_find(image, ".data.rel.ro.gopclntab");
	/* Debug files have its header alone. */
	return section && section->type != SHT_NOBITS ? section : NULL;
}

static uint64_t read_pointer(const struct pclntab *table, struct cursor *c)
{
	return table->pointer_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
}

/* What lies at an offset, to the end of the table. */
static struct cursor part(const struct pclntab *table, uint64_t offset)
{
	struct cursor c = table->all;
	cursor_seek(&c, offset);
	struct cursor out = cursor_make(c.next, cursor_left(&c), c.is_swapped);
	out.is_bad = c.is_bad;
	return out;
}

static bool read_magic(struct pclntab *table, uint32_t magic)
{
	switch (magic) {
	case 0xfffffffb:
		table->layout = PCLNTAB_1_2;
		return true;
	case 0xfffffffa:
		table->layout = PCLNTAB_1_16;
		return true;
	case 0xfffffff0:
		table->layout = PCLNTAB_1_18;
		return true;
	case 0xfffffff1:
		table->layout = PCLNTAB_1_20;
		return true;
	default:
		return false;
	}
}

/* The first layout has one space for all offsets, and the list of files behind the functions. */
static bool open_parts_1_2(struct pclntab *table, struct cursor c)
{
	table->n_functions = read_pointer(table, &c);
	table->functions = cursor_make(c.next, cursor_left(&c), c.is_swapped);
	table->names = table->pc_tables = table->all;
	if (table->n_functions > PCLNTAB_MAX_FUNCTIONS)
		return false;
	cursor_skip(&c, (size_t)(table->n_functions * 2 + 1) * table->pointer_bytes);
	table->files = part(table, cursor_u32(&c));
	return cursor_is_ok(&c);
}

static bool open_parts_1_16(struct pclntab *table, struct cursor c)
{
	table->n_functions = read_pointer(table, &c);
	(void)read_pointer(table, &c); /* number of files */
	if (table->layout >= PCLNTAB_1_18)
		table->text = read_pointer(table, &c);
	table->names = part(table, read_pointer(table, &c));
	table->unit_files = part(table, read_pointer(table, &c));
	table->files = part(table, read_pointer(table, &c));
	table->pc_tables = part(table, read_pointer(table, &c));
	table->functions = part(table, read_pointer(table, &c));
	return cursor_is_ok(&c) && cursor_is_ok(&table->functions);
}

/* Bytes of an entry of the list of functions, which is one number of a pair. */
static uint64_t entry_bytes(const struct pclntab *table)
{
	return table->layout >= PCLNTAB_1_18 ? 4 : table->pointer_bytes;
}

bool pclntab_open(struct pclntab *table, const struct elf_image *image)
{
	const struct elf_section *section = pclntab_find(image);
	if (!section)
		return false;
	struct cursor c = elf_image_section(image, section);
	*table = (struct pclntab){.svma = section->address,
				  .all = cursor_make(c.next, cursor_left(&c), c.is_swapped)};
	bool is_known = read_magic(table, cursor_u32(&c));
	bool is_padded = cursor_u16(&c) == 0;
	table->pc_quantum = cursor_u8(&c);
	table->pointer_bytes = cursor_u8(&c);
	if (!is_known || !is_padded || !table->pc_quantum ||
	    (table->pointer_bytes != 4 && table->pointer_bytes != 8))
		return false;
	bool is_ok =
		table->layout == PCLNTAB_1_2 ? open_parts_1_2(table, c) : open_parts_1_16(table, c);
	return is_ok && table->n_functions && table->n_functions <= PCLNTAB_MAX_FUNCTIONS &&
	       (table->n_functions * 2 + 1) * entry_bytes(table) <= cursor_left(&table->functions);
}

/* Number index of the list of functions: entries and places take turns. */
static uint64_t read_listed(const struct pclntab *table, uint64_t index)
{
	struct cursor c = table->functions;
	cursor_seek(&c, index * entry_bytes(table));
	if (table->layout < PCLNTAB_1_18)
		return read_pointer(table, &c);
	uint64_t value = cursor_u32(&c);
	return index % 2 ? value : value + table->text;
}

/* The reference to a tree of inlined calls; at is where the references begin. */
static uint64_t read_call_tree(const struct pclntab *table, const struct elf_pointers *pointers,
			       uint64_t at, uint8_t n_references, uint64_t call_data)
{
	if (n_references <= FUNCDATA_CALL_TREE)
		return 0;
	struct cursor c = table->all;
	if (table->layout >= PCLNTAB_1_18) {
		cursor_seek(&c, at + FUNCDATA_CALL_TREE * 4);
		uint32_t offset = cursor_u32(&c);
		bool is_there = cursor_is_ok(&c) && offset != no_place && call_data;
		return is_there ? call_data + offset : 0;
	}
	/* Aligned pointers, which a dynamic loader may have to fill in. */
	uint64_t mask = table->pointer_bytes - 1u;
	at = ((table->svma + at + mask) & ~mask) - table->svma;
	uint64_t svma = table->svma + at + (uint64_t)FUNCDATA_CALL_TREE * table->pointer_bytes;
	uint64_t tree;
	return elf_pointers_read(pointers, svma, &tree) ? tree : 0;
}

bool pclntab_read_function(const struct pclntab *table, const struct elf_pointers *pointers,
			   uint64_t index, uint64_t call_data, struct pclntab_function *out)
{
	*out = (struct pclntab_function){
		.entry = read_listed(table, index * 2),
		.next_entry = read_listed(table, index * 2 + 2),
	};
	struct cursor base = table->layout == PCLNTAB_1_2 ? table->all : table->functions;
	struct cursor c = base;
	cursor_seek(&c, read_listed(table, index * 2 + 1));
	cursor_skip(&c, entry_bytes(table)); /* the entry once more */
	out->name = cursor_u32(&c);
	cursor_skip(&c, 4 + 4 + 4); /* arguments, deferred return, stack pointer */
	out->files = cursor_u32(&c);
	out->lines = cursor_u32(&c);
	uint32_t n_tables = cursor_u32(&c);
	uint8_t n_references = 0;
	/* Inlined calls of the first layout are told in ways that its header does not tell apart.
	 */
	if (table->layout >= PCLNTAB_1_16) {
		out->unit = cursor_u32(&c);
		if (table->layout >= PCLNTAB_1_20)
			out->start_line = cursor_u32(&c) & INT32_MAX;
		cursor_skip(&c, 3); /* kind, flags */
		n_references = cursor_u8(&c);
		if (n_tables > PCDATA_CALLS) {
			struct cursor tables = c;
			cursor_skip(&tables, PCDATA_CALLS * 4);
			out->calls = cursor_u32(&tables);
		}
		uint64_t at = (uint64_t)(c.next - table->all.begin) + (uint64_t)n_tables * 4;
		if (out->calls != PCLNTAB_NO_TABLE)
			out->call_tree =
				read_call_tree(table, pointers, at, n_references, call_data);
	}
	return cursor_is_ok(&c) && out->entry < out->next_entry;
}

const char *pclntab_name(const struct pclntab *table, uint64_t name)
{
	struct cursor c = table->names;
	cursor_seek(&c, name);
	return cursor_string(&c, PCLNTAB_MAX_TEXT_BYTES);
}

const char *pclntab_file(const struct pclntab *table, const struct pclntab_function *function,
			 int32_t value)
{
	if (value < 0)
		return NULL;
	bool is_by_unit = table->layout >= PCLNTAB_1_16;
	if (is_by_unit && function->unit == no_place)
		return NULL;
	struct cursor numbers = is_by_unit ? table->unit_files : table->files;
	uint64_t index = (uint64_t)value + (is_by_unit ? function->unit : 0);
	cursor_seek(&numbers, index * 4);
	uint32_t offset = cursor_u32(&numbers);
	if (!cursor_is_ok(&numbers) || (is_by_unit && offset == no_place) ||
	    (!is_by_unit && !value))
		return NULL;
	struct cursor c = is_by_unit ? table->files : table->all;
	cursor_seek(&c, offset);
	return cursor_string(&c, PCLNTAB_MAX_TEXT_BYTES);
}

void pclntab_walk_start(struct pclntab_walk *walk, const struct pclntab *table,
			const struct pclntab_function *function, uint32_t place)
{
	*walk = (struct pclntab_walk){.c = table->pc_tables,
				      .pc = function->entry,
				      .limit = function->next_entry,
				      .quantum = table->pc_quantum,
				      .value = -1};
	if (place == PCLNTAB_NO_TABLE)
		walk->c.is_bad = true;
	else
		cursor_seek(&walk->c, place);
}

bool pclntab_walk_next(struct pclntab_walk *walk, struct pclntab_run *out)
{
	uint32_t delta = (uint32_t)dwarf_leb_unsigned(&walk->c);
	if (!delta && walk->is_started)
		return false;
	walk->is_started = true;
	/* The sign is the lowest bit. */
	delta = delta & 1 ? ~(delta >> 1) : delta >> 1;
	walk->value = (int32_t)((uint32_t)walk->value + delta);
	uint64_t n = (uint64_t)(uint32_t)dwarf_leb_unsigned(&walk->c) * walk->quantum;
	if (!cursor_is_ok(&walk->c) || walk->pc >= walk->limit || !n)
		return false;
	out->start = walk->pc;
	out->value = walk->value;
	walk->pc = n < walk->limit - walk->pc ? walk->pc + n : walk->limit;
	out->end = walk->pc;
	return true;
}
