/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF made by hand: what no compiler writes, and what a linker leaves of removed code. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "symcache/dwarf_constants.h"
#include "symcache/dwarf_source.h"
#include "tests/support/elf_writer.h"
#include "tests/support/model_lookup.h"

enum { TEXT = 0x1000, TEXT_BYTES = 0x10000, MAX_BYTES = 64 << 20 };

/* Numbers of the abbreviations below. */
enum {
	UNIT = 1,    /* DW_AT_stmt_list */
	FUNCTION,    /* name, low, size; children */
	ABSTRACT,    /* name, line */
	INLINED,     /* origin, low, size, call line; children */
	BLOCK,	     /* children */
	OUT_OF_LINE, /* origin, low, size */
	VARIABLE,    /* location */
	RANGED,	     /* name, ranges */
	CYCLE,	     /* origin */
};

struct making {
	struct buf info, abbrev, line, ranges;
	size_t unit;
};

static void put(struct buf *buf, uint64_t value, unsigned n)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	assert_null(buf_append(buf, bytes, n));
}

static void put_leb(struct buf *buf, uint64_t value)
{
	do {
		put(buf, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

static void put_text(struct buf *buf, const char *text)
{
	assert_null(buf_append(buf, text, strlen(text) + 1));
}

static void put_abbrev(struct buf *buf, unsigned code, unsigned tag, bool has_children,
		       const unsigned *pairs)
{
	put_leb(buf, code);
	put_leb(buf, tag);
	put(buf, has_children, 1);
	for (; *pairs; pairs += 2) {
		put_leb(buf, pairs[0]);
		put_leb(buf, pairs[1]);
	}
	put(buf, 0, 2);
}

static void put_abbrevs(struct buf *buf)
{
	put_abbrev(buf, UNIT, DW_TAG_compile_unit, true,
		   (unsigned[]){DW_AT_stmt_list, DW_FORM_sec_offset, 0});
	put_abbrev(buf, FUNCTION, DW_TAG_subprogram, true,
		   (unsigned[]){DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
				DW_AT_high_pc, DW_FORM_data8, 0});
	put_abbrev(buf, ABSTRACT, DW_TAG_subprogram, false,
		   (unsigned[]){DW_AT_name, DW_FORM_string, DW_AT_decl_line, DW_FORM_data1, 0});
	put_abbrev(buf, INLINED, DW_TAG_inlined_subroutine, true,
		   (unsigned[]){DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
				DW_AT_high_pc, DW_FORM_data8, DW_AT_call_line, DW_FORM_data1, 0});
	put_abbrev(buf, BLOCK, DW_TAG_lexical_block, true, (unsigned[]){0});
	put_abbrev(buf, OUT_OF_LINE, DW_TAG_subprogram, false,
		   (unsigned[]){DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr,
				DW_AT_high_pc, DW_FORM_data8, 0});
	put_abbrev(buf, VARIABLE, 0x34, false, (unsigned[]){0x02, DW_FORM_exprloc, 0});
	put_abbrev(buf, RANGED, DW_TAG_subprogram, false,
		   (unsigned[]){DW_AT_name, DW_FORM_string, DW_AT_ranges, DW_FORM_sec_offset, 0});
	put_abbrev(buf, CYCLE, DW_TAG_subprogram, false,
		   (unsigned[]){DW_AT_abstract_origin, DW_FORM_ref4, 0});
	put(buf, 0, 1);
}

static void making_init(struct making *making)
{
	*making = (struct making){0};
	buf_init(&making->info, MAX_BYTES);
	buf_init(&making->abbrev, MAX_BYTES);
	buf_init(&making->line, MAX_BYTES);
	buf_init(&making->ranges, MAX_BYTES);
	put_abbrevs(&making->abbrev);
}

static void making_fini(struct making *making)
{
	buf_fini(&making->info);
	buf_fini(&making->abbrev);
	buf_fini(&making->line);
	buf_fini(&making->ranges);
}

static void begin_unit(struct making *making, uint32_t abbrevs)
{
	making->unit = making->info.size;
	put(&making->info, 0, 4);
	put(&making->info, 4, 2);
	put(&making->info, abbrevs, 4);
	put(&making->info, 8, 1);
	put(&making->info, UNIT, 1);
	put(&making->info, 0, 4);
}

static void end_unit(struct making *making)
{
	put(&making->info, 0, 1);
	uint32_t length = (uint32_t)(making->info.size - making->unit - 4);
	memcpy(making->info.data + making->unit, &length, sizeof(length));
}

static void put_function(struct making *making, const char *name, uint64_t low, uint64_t size)
{
	put(&making->info, FUNCTION, 1);
	put_text(&making->info, name);
	put(&making->info, low, 8);
	put(&making->info, size, 8);
}

static void put_inlined(struct making *making, uint32_t origin, uint64_t low, uint64_t size)
{
	put(&making->info, INLINED, 1);
	put(&making->info, origin, 4);
	put(&making->info, low, 8);
	put(&making->info, size, 8);
	put(&making->info, 7, 1);
}

static uint32_t here(const struct making *making)
{
	return (uint32_t)(making->info.size - making->unit);
}

struct outcome {
	struct symbol_model model;
	struct dwarf_source_stats stats;
	double seconds;
};

static const struct dwarf_source_files *files;

static void read_sections(struct elf_writer *writer, struct outcome *out)
{
	size_t n;
	const uint8_t *file = elf_writer_finish(writer, &n);
	struct elf_image image;
	assert_null(elf_image_init(&image, file, n));
	symbol_model_init(&out->model);
	struct timespec before, after;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	assert_null(dwarf_source_read(&image, files, &out->model, &out->stats));
	symbol_model_finish(&out->model);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	out->seconds = (double)(after.tv_sec - before.tv_sec) +
		       (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
	elf_image_fini(&image);
}

static void add_section(struct elf_writer *writer, const char *name, const struct buf *bytes)
{
	if (bytes->size)
		elf_writer_section(writer, name, SHT_PROGBITS, 0, 0, bytes->data, bytes->size);
}

static void read_making(struct making *making, struct outcome *out)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_text(&writer, TEXT, TEXT_BYTES);
	add_section(&writer, ".debug_info", &making->info);
	add_section(&writer, ".debug_abbrev", &making->abbrev);
	add_section(&writer, ".debug_line", &making->line);
	add_section(&writer, ".debug_ranges", &making->ranges);
	read_sections(&writer, out);
	elf_writer_fini(&writer);
	making_fini(making);
}

static const char *name_at(const struct outcome *outcome, uint64_t svma)
{
	static char text[1 << 16];
	model_lookup_text(&outcome->model, svma, text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	return text;
}

static void dwarf_source_leaves_out_a_damaged_unit_and_reads_the_next(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	put_function(&making, "before", TEXT, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	begin_unit(&making, 0);
	put_function(&making, "within", TEXT + 0x10, 0x10);
	put(&making.info, VARIABLE, 1);
	put_leb(&making.info, UINT32_MAX);
	put_function(&making, "lost", TEXT + 0x20, 0x10);
	end_unit(&making);
	begin_unit(&making, 0x7fffffff);
	end_unit(&making);
	begin_unit(&making, 0);
	put_function(&making, "after", TEXT + 0x30, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(outcome.stats.n_units, 4);
	assert_int_equal(outcome.stats.n_damaged_units, 2);
	assert_string_equal(name_at(&outcome, TEXT), "before");
	assert_string_equal(name_at(&outcome, TEXT + 0x10), "within");
	assert_string_equal(name_at(&outcome, TEXT + 0x20), "??");
	assert_string_equal(name_at(&outcome, TEXT + 0x30), "after");
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_ignores_code_that_the_linker_removed(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	static const uint64_t removed[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2};
	for (size_t i = 0; i < sizeof(removed) / sizeof(removed[0]); i++) {
		put_function(&making, "removed", removed[i], TEXT + 0x2000);
		put_inlined(&making, 0, TEXT + 0x40, 0x10);
		put(&making.info, 0, 2);
	}
	put_function(&making, "kept", TEXT + 0x100, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(outcome.model.ranges.n, 1);
	assert_string_equal(name_at(&outcome, TEXT + 0x100), "kept");
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_lets_the_first_of_two_units_count(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	put_function(&making, "first", TEXT, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	begin_unit(&making, 0);
	put_function(&making, "second", TEXT + 8, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_string_equal(name_at(&outcome, TEXT + 8), "first");
	assert_string_equal(name_at(&outcome, TEXT + 0x10), "second");
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_ends_cycles_of_origins(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	uint32_t first = here(&making);
	put(&making.info, CYCLE, 1);
	put(&making.info, first + 5, 4);
	put(&making.info, CYCLE, 1);
	put(&making.info, first, 4);
	put_function(&making, "outer", TEXT, 0x100);
	put_inlined(&making, first, TEXT, 0x10);
	/* Its own origin, and one in the middle of nowhere. */
	put(&making.info, 0, 1);
	put_inlined(&making, here(&making), TEXT + 0x10, 0x10);
	put(&making.info, 0, 1);
	put_inlined(&making, 0x7fffffff, TEXT + 0x20, 0x10);
	put(&making.info, 0, 2);
	put(&making.info, OUT_OF_LINE, 1);
	put(&making.info, first, 4);
	put(&making.info, TEXT + 0x200, 8);
	put(&making.info, 0x10, 8);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(outcome.stats.n_damaged_units, 0);
	assert_string_equal(name_at(&outcome, TEXT + 0x30), "outer");
	assert_string_equal(name_at(&outcome, TEXT), "");
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_bounds_depth(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	uint32_t origin = here(&making);
	put(&making.info, ABSTRACT, 1);
	put_text(&making.info, "inlined");
	put(&making.info, 5, 1);
	put_function(&making, "outer", TEXT, 0x8000);
	for (unsigned i = 0; i < 5000; i++)
		put_inlined(&making, origin, TEXT + i, 0x6000 - 2 * i);
	for (unsigned i = 0; i < 5001; i++)
		put(&making.info, 0, 1);
	end_unit(&making);
	begin_unit(&making, 0);
	for (unsigned i = 0; i < 1000000; i++)
		put(&making.info, BLOCK, 1);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(outcome.stats.n_damaged_units, 1);
	assert_string_equal(name_at(&outcome, TEXT + 0x7000), "outer");
	assert_string_equal(name_at(&outcome, TEXT), "inlined");
	uint32_t depth = 0;
	for (uint32_t chain = model_lookup_range(&outcome.model, TEXT + 0x1600)->chain;
	     chain != SYMBOL_CHAIN_NONE; chain = outcome.model.chains.items[chain].parent)
		depth++;
	assert_int_equal(depth, DWARF_SOURCE_MAX_INLINE_DEPTH + 1);
	assert_true(outcome.seconds < 5);
	symbol_model_fini(&outcome.model);
}

/* 20,000 functions that share a list of 100,000 ranges. */
static void dwarf_source_bounds_shared_range_lists(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	for (unsigned i = 0; i < 100000; i++) {
		put(&making.ranges, TEXT + 2 * i % TEXT_BYTES, 8);
		put(&making.ranges, TEXT + 2 * i % TEXT_BYTES + 1, 8);
	}
	begin_unit(&making, 0);
	for (unsigned i = 0; i < 20000; i++) {
		put(&making.info, RANGED, 1);
		put_text(&making.info, "f");
		put(&making.info, 0, 4);
	}
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_string_equal(name_at(&outcome, TEXT), "f");
	assert_true(outcome.seconds < 30);
	symbol_model_fini(&outcome.model);
}

/* 50,000 units, each with its own place in 8 MB of abbreviations. */
static void dwarf_source_bounds_shared_abbreviations(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	for (unsigned i = 0; i < 400000; i++)
		put_abbrev(&making.abbrev, 1000 + i, DW_TAG_lexical_block, false,
			   (unsigned[]){DW_AT_name, DW_FORM_string, 0});
	put(&making.abbrev, 0, 1);
	for (unsigned i = 0; i < 50000; i++) {
		begin_unit(&making, 100 + i);
		end_unit(&making);
	}
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_true(outcome.stats.n_damaged_units > 0);
	assert_true(outcome.seconds < 30);
	symbol_model_fini(&outcome.model);
}

/* A line program of version 2 with these opcodes and one file. */
static void put_line_program(struct buf *line, const struct buf *opcodes)
{
	struct buf header;
	buf_init(&header, MAX_BYTES);
	put(&header, 1, 1);
	put(&header, 1, 1);
	put(&header, (uint8_t)-5, 1);
	put(&header, 14, 1);
	put(&header, 10, 1);
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1};
	assert_null(buf_append(&header, operands, sizeof(operands)));
	put(&header, 0, 1);
	put_text(&header, "/src/a.c");
	put(&header, 0, 4);
	put(line, 2 + 4 + header.size + opcodes->size, 4);
	put(line, 2, 2);
	put(line, header.size, 4);
	assert_null(buf_append(line, header.data, header.size));
	assert_null(buf_append(line, opcodes->data, opcodes->size));
	buf_fini(&header);
}

static void put_address(struct buf *opcodes, uint64_t address)
{
	put(opcodes, 0, 1);
	put(opcodes, 9, 1);
	put(opcodes, DW_LNE_set_address, 1);
	put(opcodes, address, 8);
}

static void put_end(struct buf *opcodes)
{
	put(opcodes, 0, 1);
	put(opcodes, 1, 1);
	put(opcodes, DW_LNE_end_sequence, 1);
}

static uint32_t line_at(const struct outcome *outcome, uint64_t svma)
{
	const struct symbol_line *row = model_lookup_line(&outcome->model, svma);
	return row ? row->line : 0;
}

static void dwarf_source_reads_odd_line_programs(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	struct buf opcodes;
	buf_init(&opcodes, MAX_BYTES);
	/* A removed sequence; one that goes back; one without end. */
	put_address(&opcodes, 0);
	put(&opcodes, DW_LNS_copy, 1);
	put(&opcodes, DW_LNS_fixed_advance_pc, 1);
	put(&opcodes, 0xffff, 2);
	put(&opcodes, DW_LNS_copy, 1);
	put_end(&opcodes);
	put_address(&opcodes, TEXT + 0x100);
	put(&opcodes, DW_LNS_copy, 1);
	put(&opcodes, DW_LNS_advance_pc, 1);
	put_leb(&opcodes, 0x10);
	put(&opcodes, DW_LNS_advance_line, 1);
	put(&opcodes, 4, 1);
	put(&opcodes, DW_LNS_copy, 1);
	put_address(&opcodes, TEXT + 0x80);
	put(&opcodes, DW_LNS_copy, 1);
	put(&opcodes, DW_LNS_advance_pc, 1);
	put_leb(&opcodes, 0x10);
	put_end(&opcodes);
	put_address(&opcodes, TEXT + 0x200);
	put(&opcodes, DW_LNS_advance_line, 1);
	put(&opcodes, 8, 1);
	put(&opcodes, DW_LNS_copy, 1);
	put(&opcodes, DW_LNS_advance_pc, 1);
	put_leb(&opcodes, 0x10);
	put(&opcodes, DW_LNS_copy, 1);
	put_line_program(&making.line, &opcodes);
	begin_unit(&making, 0);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(line_at(&outcome, TEXT), 0);
	assert_int_equal(line_at(&outcome, TEXT + 0x100), 1);
	assert_int_equal(line_at(&outcome, TEXT + 0x80), 5);
	assert_int_equal(line_at(&outcome, TEXT + 0x90), 0);
	assert_int_equal(line_at(&outcome, TEXT + 0x20f), 9);
	assert_int_equal(line_at(&outcome, TEXT + 0x210), 0);
	buf_fini(&opcodes);
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_bounds_endless_line_programs(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	struct buf opcodes;
	buf_init(&opcodes, MAX_BYTES);
	put_address(&opcodes, TEXT);
	/* Special opcodes that add rows, lines up and down, hardly an address. */
	for (unsigned i = 0; i < 8 << 20; i++)
		put(&opcodes, 10 + i % 14, 1);
	put_line_program(&making.line, &opcodes);
	begin_unit(&making, 0);
	end_unit(&making);
	/* More units that enter the same program at other places. */
	for (unsigned i = 0; i < 1000; i++) {
		begin_unit(&making, 0);
		uint32_t offset = 20 + i;
		memcpy(making.info.data + making.info.size - 4, &offset, sizeof(offset));
		end_unit(&making);
	}
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_true(outcome.model.lines.n <= 3);
	assert_true(outcome.seconds < 30);
	buf_fini(&opcodes);
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_refuses_tables_of_names_without_bytes(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	/* Version 5: no column and 2^32 folders. */
	put(&making.line, 40, 4);
	put(&making.line, 5, 2);
	put(&making.line, 8, 1);
	put(&making.line, 0, 1);
	put(&making.line, 30, 4);
	static const uint8_t fields[] = {1, 1, 1, 0xfb, 14, 1};
	assert_null(buf_append(&making.line, fields, sizeof(fields)));
	put(&making.line, 0, 1);
	put_leb(&making.line, UINT32_MAX);
	while (making.line.size < 44)
		put(&making.line, 0, 1);
	begin_unit(&making, 0);
	end_unit(&making);
	struct outcome outcome;
	read_making(&making, &outcome);
	assert_int_equal(outcome.stats.n_damaged_line_tables, 1);
	assert_true(outcome.seconds < 1);
	symbol_model_fini(&outcome.model);
}

static void read_packed(const char *name, uint64_t flags, const struct buf *bytes,
			struct outcome *out)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_text(&writer, TEXT, TEXT_BYTES);
	elf_writer_section(&writer, name, SHT_PROGBITS, flags, 0, bytes->data, bytes->size);
	read_sections(&writer, out);
	elf_writer_fini(&writer);
}

static void dwarf_source_refuses_bombs(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {UINT64_MAX, (uint64_t)1 << 40, 1 << 20};
	static const uint32_t types[] = {ELFCOMPRESS_ZLIB, 2, 77};
	for (size_t i = 0; i < 9; i++) {
		struct buf bytes;
		buf_init(&bytes, MAX_BYTES);
		put(&bytes, types[i % 3], 8);
		put(&bytes, sizes[i / 3], 8);
		put(&bytes, 1, 8);
		for (unsigned k = 0; k < 64; k++)
			put(&bytes, 0x78, 1);
		struct outcome outcome;
		read_packed(".debug_info", SHF_COMPRESSED, &bytes, &outcome);
		assert_int_equal(outcome.stats.n_damaged_sections, 1);
		assert_int_equal(outcome.model.ranges.n, 0);
		symbol_model_fini(&outcome.model);
		buf_fini(&bytes);
	}
	struct outcome outcome;
	struct buf bytes;
	buf_init(&bytes, MAX_BYTES);
	put_text(&bytes, "ZLIB\377\377\377\377\377\377\377\377");
	read_packed(".zdebug_info", 0, &bytes, &outcome);
	assert_int_equal(outcome.stats.n_damaged_sections, 1);
	symbol_model_fini(&outcome.model);
	buf_fini(&bytes);
}

static const char *find_symbol(void *context, uint64_t svma, size_t *n_out)
{
	(void)context;
	const char *symbol = svma == TEXT	   ? "_ZN12_GLOBAL__N_15speakEi.part.0.cold"
			     : svma == TEXT + 0x10 ? "_Z5otherv"
			     : svma == TEXT + 0x20 ? "speak.cold"
						   : NULL;
	*n_out = symbol ? strlen(symbol) : 0;
	return symbol;
}

static void dwarf_source_takes_mangled_names_from_the_symbol_table(void **state)
{
	(void)state;
	struct making making;
	making_init(&making);
	begin_unit(&making, 0);
	for (unsigned i = 0; i < 4; i++) {
		put_function(&making, "speak", TEXT + 0x10 * i, 0x10);
		put(&making.info, 0, 1);
	}
	put_function(&making, "", TEXT + 0x40, 0x10);
	put(&making.info, 0, 1);
	end_unit(&making);
	struct outcome outcome;
	files = &(struct dwarf_source_files){.find_symbol = find_symbol};
	read_making(&making, &outcome);
	files = NULL;
	assert_string_equal(name_at(&outcome, TEXT), "_ZN12_GLOBAL__N_15speakEi");
	assert_string_equal(name_at(&outcome, TEXT + 0x10), "speak");
	assert_string_equal(name_at(&outcome, TEXT + 0x20), "speak");
	assert_string_equal(name_at(&outcome, TEXT + 0x30), "speak");
	assert_null(model_lookup_range(&outcome.model, TEXT + 0x40));
	symbol_model_fini(&outcome.model);
}

static void dwarf_source_says_that_relocatable_files_are_not_supported(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	writer.type = ET_REL;
	elf_writer_text(&writer, 0, 16);
	size_t n;
	const uint8_t *file = elf_writer_finish(&writer, &n);
	struct elf_image image;
	assert_null(elf_image_init(&image, file, n));
	struct symbol_model model;
	struct dwarf_source_stats stats;
	symbol_model_init(&model);
	struct error *err = dwarf_source_read(&image, NULL, &model, &stats);
	assert_int_equal(error_get_code(err), ERROR_UNSUPPORTED);
	error_free(err);
	symbol_model_fini(&model);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dwarf_source_leaves_out_a_damaged_unit_and_reads_the_next),
		cmocka_unit_test(dwarf_source_ignores_code_that_the_linker_removed),
		cmocka_unit_test(dwarf_source_lets_the_first_of_two_units_count),
		cmocka_unit_test(dwarf_source_ends_cycles_of_origins),
		cmocka_unit_test(dwarf_source_bounds_depth),
		cmocka_unit_test(dwarf_source_bounds_shared_range_lists),
		cmocka_unit_test(dwarf_source_bounds_shared_abbreviations),
		cmocka_unit_test(dwarf_source_reads_odd_line_programs),
		cmocka_unit_test(dwarf_source_bounds_endless_line_programs),
		cmocka_unit_test(dwarf_source_refuses_tables_of_names_without_bytes),
		cmocka_unit_test(dwarf_source_refuses_bombs),
		cmocka_unit_test(dwarf_source_takes_mangled_names_from_the_symbol_table),
		cmocka_unit_test(dwarf_source_says_that_relocatable_files_are_not_supported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
