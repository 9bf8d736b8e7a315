/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symtab_source.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"
#include "tests/support/model_lookup.h"

enum { TEXT_SVMA = 0x1000, TEXT_BYTES = 0x1000 };

struct fixture {
	struct elf_writer writer;
	struct elf_image image;
	struct symbol_model model;
	uint16_t text;
};

static void begin(struct fixture *f, uint16_t machine)
{
	elf_writer_init(&f->writer, machine != EM_ARM, false, machine);
	f->text = (uint16_t)elf_writer_text(&f->writer, TEXT_SVMA, TEXT_BYTES);
}

static void static_symbol(struct fixture *f, const char *name, uint64_t value, uint64_t size,
			  uint8_t bind, uint8_t type)
{
	elf_writer_symbol(&f->writer, false, name, value, size, bind, type, f->text);
}

static void dynamic_symbol(struct fixture *f, const char *name, uint64_t value, uint64_t size)
{
	elf_writer_symbol(&f->writer, true, name, value, size, STB_GLOBAL, STT_FUNC, f->text);
}

static void finish(struct fixture *f)
{
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&f->writer, &n);
	assert_null(elf_image_init(&f->image, bytes, n));
	symbol_model_init(&f->model);
	symtab_source_read(&f->image, NULL, &f->model);
	symbol_model_finish(&f->model);
}

static void end(struct fixture *f)
{
	symbol_model_fini(&f->model);
	elf_image_fini(&f->image);
	elf_writer_fini(&f->writer);
}

/* NULL when nothing covers it. */
static const char *name_at(const struct fixture *f, uint64_t svma)
{
	const struct symbol_range *range = model_lookup_range(&f->model, svma);
	if (!range)
		return NULL;
	uint32_t function = f->model.chains.items[range->chain].function;
	return intern_text(&f->model.strings, f->model.functions.items[function].linkage_name);
}

static bool is_folded_at(const struct fixture *f, uint64_t svma)
{
	const struct symbol_range *range = model_lookup_range(&f->model, svma);
	assert_non_null(range);
	return range->is_folded;
}

static void assert_name(const struct fixture *f, uint64_t svma, const char *wanted)
{
	const char *name = name_at(f, svma);
	if (!wanted) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, wanted);
}

static void symtab_leaves_gap_between_sized_symbols(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "first", 0x1000, 0x10, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "second", 0x1020, 0x10, STB_LOCAL, STT_FUNC);
	finish(&f);
	assert_name(&f, 0xfff, NULL);
	assert_name(&f, 0x1000, "first");
	assert_name(&f, 0x100f, "first");
	assert_name(&f, 0x1010, NULL);
	assert_name(&f, 0x1020, "second");
	assert_name(&f, 0x1030, NULL);
	assert_name(&f, UINT64_MAX, NULL);
	end(&f);
}

/* FR-11 */
static void dynsym_symbol_matches_only_inside_its_size(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	dynamic_symbol(&f, "exported", 0x1000, 0x20);
	dynamic_symbol(&f, "asm_stub", 0x1100, 0);
	finish(&f);
	assert_name(&f, 0x101f, "exported");
	assert_name(&f, 0x1020, NULL);
	assert_name(&f, 0x1100, "asm_stub");
	assert_name(&f, 0x1101, NULL);
	assert_name(&f, 0x1800, NULL);
	end(&f);
}

/* FR-12 */
static void symtab_symbol_of_size_zero_runs_to_next_symbol(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "asm_stub", 0x1100, 0, STB_GLOBAL, STT_NOTYPE);
	static_symbol(&f, "secret", 0x1110, 0x10, STB_LOCAL, STT_FUNC);
	static_symbol(&f, "last", 0x1f00, 0, STB_LOCAL, STT_FUNC);
	finish(&f);
	assert_name(&f, 0x1100, "asm_stub");
	assert_name(&f, 0x110f, "asm_stub");
	assert_name(&f, 0x1110, "secret");
	assert_name(&f, 0x1120, NULL);
	assert_name(&f, 0x1fff, "last");
	assert_name(&f, 0x2000, NULL);
	end(&f);
}

/* FR-12 */
static void sized_symbol_beats_label_inside_and_beside_it(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "outer", 0x1000, 0x100, STB_LOCAL, STT_FUNC);
	static_symbol(&f, "label", 0x1050, 0, STB_GLOBAL, STT_NOTYPE);
	static_symbol(&f, "entry", 0x1000, 0, STB_GLOBAL, STT_NOTYPE);
	finish(&f);
	assert_name(&f, 0x1000, "outer");
	assert_name(&f, 0x1050, "outer");
	assert_name(&f, 0x10ff, "outer");
	assert_name(&f, 0x1100, NULL);
	end(&f);
}

static void nested_symbol_hides_outer_one_only_while_it_lasts(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "outer", 0x1000, 0x100, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "inner", 0x1040, 0x10, STB_LOCAL, STT_FUNC);
	finish(&f);
	assert_name(&f, 0x103f, "outer");
	assert_name(&f, 0x1040, "inner");
	assert_name(&f, 0x1050, "outer");
	end(&f);
}

static void symbol_is_cut_where_its_section_ends(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "huge", 0x1ff0, UINT64_MAX, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "etext", 0x2000, 0, STB_GLOBAL, STT_NOTYPE);
	finish(&f);
	assert_name(&f, 0x1fff, "huge");
	assert_name(&f, 0x2000, NULL);
	end(&f);
}

static void aliases_are_chosen_in_one_fixed_order(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "a_weak", 0x1000, 8, STB_WEAK, STT_FUNC);
	static_symbol(&f, "z_global_long", 0x1000, 8, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "z_global", 0x1000, 8, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "y_global", 0x1000, 8, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "a", 0x1000, 8, STB_LOCAL, STT_FUNC);
	static_symbol(&f, "l", 0x1100, 8, STB_LOCAL, STT_FUNC);
	static_symbol(&f, "unsized", 0x1100, 0, STB_GLOBAL, STT_FUNC);
	finish(&f);
	assert_name(&f, 0x1004, "y_global");
	assert_name(&f, 0x1100, "l");
	assert_true(is_folded_at(&f, 0x1004));
	end(&f);
}

static void versions_and_constructor_twins_are_no_folded_functions(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "memcpy@@GLIBC_2.14", 0x1000, 8, STB_GLOBAL, STT_FUNC);
	dynamic_symbol(&f, "memcpy", 0x1000, 8);
	static_symbol(&f, "_ZN3FooC1Ev", 0x1010, 8, STB_WEAK, STT_FUNC);
	static_symbol(&f, "_ZN3FooC2Ev", 0x1010, 8, STB_WEAK, STT_FUNC);
	finish(&f);
	assert_name(&f, 0x1000, "memcpy");
	assert_false(is_folded_at(&f, 0x1000));
	assert_name(&f, 0x1010, "_ZN3FooC1Ev");
	assert_false(is_folded_at(&f, 0x1010));
	end(&f);
}

static void only_functions_in_text_count(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	uint16_t data = (uint16_t)elf_writer_section(&f.writer, ".data", SHT_NOBITS,
						     SHF_ALLOC | SHF_WRITE, 0x3000, NULL, 0x100);
	elf_writer_symbol(&f.writer, false, "variable", 0x3000, 8, STB_GLOBAL, STT_NOTYPE, data);
	elf_writer_symbol(&f.writer, false, "absolute", 0x1800, 8, STB_GLOBAL, STT_NOTYPE, SHN_ABS);
	elf_writer_symbol(&f.writer, false, "wanted", 0x1900, 8, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	static_symbol(&f, "table", 0x1000, 8, STB_GLOBAL, STT_OBJECT);
	static_symbol(&f, "resolver", 0x1010, 8, STB_GLOBAL, STT_GNU_IFUNC);
	finish(&f);
	assert_name(&f, 0x3000, NULL);
	assert_name(&f, 0x1800, NULL);
	assert_name(&f, 0x1900, NULL);
	assert_name(&f, 0x1000, NULL);
	assert_name(&f, 0x1010, "resolver");
	end(&f);
}

static void thumb_bit_is_cleared_and_mapping_symbols_are_ignored(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_ARM);
	static_symbol(&f, "thumb", 0x1011, 0x10, STB_GLOBAL, STT_FUNC);
	static_symbol(&f, "$t", 0x1010, 0, STB_LOCAL, STT_NOTYPE);
	static_symbol(&f, "$d.5", 0x1040, 0, STB_LOCAL, STT_NOTYPE);
	finish(&f);
	assert_name(&f, 0x1010, "thumb");
	assert_name(&f, 0x101f, "thumb");
	assert_name(&f, 0x1020, NULL);
	assert_name(&f, 0x1040, NULL);
	end(&f);
}

static void symtab_of_debug_file_replaces_dynsym(void **state)
{
	(void)state;
	struct fixture f, debug;
	begin(&f, EM_X86_64);
	dynamic_symbol(&f, "exported", 0x1000, 0x20);
	finish(&f);
	begin(&debug, EM_X86_64);
	static_symbol(&debug, "hidden", 0x1040, 0x10, STB_LOCAL, STT_FUNC);
	finish(&debug);
	symbol_model_fini(&f.model);
	symbol_model_init(&f.model);
	symtab_source_read(&f.image, &debug.image, &f.model);
	symbol_model_finish(&f.model);
	assert_name(&f, 0x1000, "exported");
	assert_name(&f, 0x1040, "hidden");
	end(&f);
	end(&debug);
}

static void put_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void add_relocation(struct elf_writer *writer, uint64_t got, uint32_t type)
{
	/* Symbol 1 of .dynsym. */
	Elf64_Rela rela = {.r_offset = got, .r_info = ELF64_R_INFO(1, type)};
	elf_writer_section(writer, ".rela.plt", SHT_RELA, SHF_ALLOC, 0, &rela, sizeof(rela));
}

static void plt_entries_of_x86_64_are_named_after_their_slot(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	elf_writer_symbol(&f.writer, true, "puts", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	add_relocation(&f.writer, 0x5018, R_X86_64_JUMP_SLOT);
	/* An empty header, then endbr64; bnd jmp *0x5018(%rip). */
	uint8_t plt[32] = {0};
	static const uint8_t entry[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25};
	memcpy(plt + 16, entry, sizeof(entry));
	put_u32(plt + 16 + sizeof(entry), 0x5018 - (0x3010 + 11));
	elf_writer_section(&f.writer, ".plt.sec", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x3000,
			   plt, sizeof(plt));
	finish(&f);
	assert_name(&f, 0x300f, NULL);
	assert_name(&f, 0x3010, "puts@plt");
	assert_name(&f, 0x301f, "puts@plt");
	assert_name(&f, 0x3020, NULL);
	end(&f);
}

static void plt_of_dynsym_without_strings_names_nothing(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	elf_writer_symbol(&f.writer, true, "puts", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	add_relocation(&f.writer, 0x5018, R_X86_64_JUMP_SLOT);
	uint8_t plt[16] = {0xff, 0x25};
	put_u32(plt + 2, 0x5018 - (0x3000 + 6));
	elf_writer_section(&f.writer, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x3000, plt,
			   sizeof(plt));
	for (uint32_t i = 0; i < f.writer.n_sections; i++) {
		if (f.writer.sections[i].type == SHT_DYNSYM)
			f.writer.sections[i].link = ELF_WRITER_MAX_SECTIONS;
	}
	finish(&f);
	assert_name(&f, 0x3000, NULL);
	end(&f);
}

static void plt_entries_of_arm64_are_named_after_their_slot(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_AARCH64);
	elf_writer_symbol(&f.writer, true, "puts", 0, 0, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	add_relocation(&f.writer, 0x15018, R_AARCH64_JUMP_SLOT);
	/* bti c; adrp x16, +0x12 pages; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17; nop */
	uint8_t plt[24];
	put_u32(plt, 0xd503245f);
	put_u32(plt + 4, 0x90000010 | (0x12 & 3) << 29 | (0x12 >> 2) << 5);
	put_u32(plt + 8, 0xf9400211 | (0x18 / 8) << 10);
	put_u32(plt + 12, 0x91006210);
	put_u32(plt + 16, 0xd61f0220);
	put_u32(plt + 20, 0xd503201f);
	elf_writer_section(&f.writer, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x3020, plt,
			   sizeof(plt));
	finish(&f);
	assert_name(&f, 0x301f, NULL);
	assert_name(&f, 0x3020, "puts@plt");
	assert_name(&f, 0x3037, "puts@plt");
	assert_name(&f, 0x3038, NULL);
	end(&f);
}

static void symbols_wider_than_4_gib_apart_are_found(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	uint64_t far = 0xffffffff81000000;
	uint16_t high = (uint16_t)elf_writer_section(&f.writer, ".high", SHT_NOBITS,
						     SHF_ALLOC | SHF_EXECINSTR, far, NULL, 0x1000);
	static_symbol(&f, "low", 0x1000, 0x10, STB_GLOBAL, STT_FUNC);
	elf_writer_symbol(&f.writer, false, "high", far, 0x10, STB_GLOBAL, STT_FUNC, high);
	finish(&f);
	assert_name(&f, 0x1008, "low");
	assert_name(&f, 0x100001008, NULL);
	assert_name(&f, far + 8, "high");
	assert_name(&f, far + 0x10, NULL);
	end(&f);
}

static void value_of_symbol_is_found_by_name(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	static_symbol(&f, "_stext", 0x1010, 0, STB_GLOBAL, STT_NOTYPE);
	finish(&f);
	uint64_t value = 0;
	assert_true(symtab_source_value(&f.image, "_stext", &value));
	assert_int_equal(value, 0x1010);
	assert_false(symtab_source_value(&f.image, "_text", &value));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symtab_leaves_gap_between_sized_symbols),
		cmocka_unit_test(dynsym_symbol_matches_only_inside_its_size),
		cmocka_unit_test(symtab_symbol_of_size_zero_runs_to_next_symbol),
		cmocka_unit_test(sized_symbol_beats_label_inside_and_beside_it),
		cmocka_unit_test(nested_symbol_hides_outer_one_only_while_it_lasts),
		cmocka_unit_test(symbol_is_cut_where_its_section_ends),
		cmocka_unit_test(aliases_are_chosen_in_one_fixed_order),
		cmocka_unit_test(versions_and_constructor_twins_are_no_folded_functions),
		cmocka_unit_test(only_functions_in_text_count),
		cmocka_unit_test(thumb_bit_is_cleared_and_mapping_symbols_are_ignored),
		cmocka_unit_test(symtab_of_debug_file_replaces_dynsym),
		cmocka_unit_test(plt_entries_of_x86_64_are_named_after_their_slot),
		cmocka_unit_test(plt_of_dynsym_without_strings_names_nothing),
		cmocka_unit_test(plt_entries_of_arm64_are_named_after_their_slot),
		cmocka_unit_test(symbols_wider_than_4_gib_apart_are_found),
		cmocka_unit_test(value_of_symbol_is_found_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
