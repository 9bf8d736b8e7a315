/* SPDX-License-Identifier: Apache-2.0 */
/* What is let in of what servers send. */
#include "symcache/fetched_file.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"

static const uint8_t id_bytes[20] = {1,	 2,  3,	 4,  5,	 6,  7,	 8,  9,	 10,
				     11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

struct fixture {
	struct elf_writer writer;
	struct file_map map;
	struct build_id id;
};

static void begin_of(struct fixture *f, bool is_64, bool is_big, bool has_segment)
{
	elf_writer_init(&f->writer, is_64, is_big, is_64 ? EM_X86_64 : EM_386);
	elf_writer_note(&f->writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_bytes,
			sizeof(id_bytes));
	uint32_t text = elf_writer_section(&f->writer, ".text", SHT_PROGBITS,
					   SHF_ALLOC | SHF_EXECINSTR, 0x1000, "code code code", 14);
	if (has_segment)
		elf_writer_segment(&f->writer, PT_LOAD, PF_R | PF_X, text, 0x1000, 14);
	f->map.data = elf_writer_finish(&f->writer, &f->map.size);
	f->id = build_id_make(id_bytes, sizeof(id_bytes));
}

static void begin(struct fixture *f)
{
	begin_of(f, true, false, true);
}

static void end(struct fixture *f)
{
	elf_writer_fini(&f->writer);
}

static void assert_fault(const struct file_map *map, const struct build_id *id,
			 enum fetcher_kind kind, uint64_t stated, const char *want)
{
	const char *fault = fetched_file_fault(map, id, kind, stated);
	assert_non_null(fault);
	if (!strstr(fault, want))
		fail_msg("\"%s\" instead of \"%s\"", fault, want);
}

static void whole_file_of_that_id_is_let_in(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct fixture f;
		begin_of(&f, i & 1, i & 2, true);
		assert_null(fetched_file_fault(&f.map, &f.id, FETCHER_DEBUGINFO, 0));
		assert_null(fetched_file_fault(&f.map, &f.id, FETCHER_EXECUTABLE, f.map.size));
		end(&f);
	}
}

static void every_cut_is_noticed(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	for (size_t n = 0; n < f.map.size; n++) {
		/* On the heap, so that a read behind the end is one for the sanitizer. */
		uint8_t *copy = malloc(n ? n : 1);
		memcpy(copy, f.map.data, n);
		const struct file_map cut = {.data = n ? copy : NULL, .size = n};
		assert_non_null(fetched_file_fault(&cut, &f.id, FETCHER_DEBUGINFO, 0));
		assert_non_null(fetched_file_fault(&cut, &f.id, FETCHER_EXECUTABLE, 0));
		free(copy);
	}
	end(&f);
}

static void stated_size_has_to_hold(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_fault(&f.map, &f.id, FETCHER_DEBUGINFO, f.map.size + 1, "half a file");
	assert_fault(&f.map, &f.id, FETCHER_DEBUGINFO, f.map.size - 1, "half a file");
	end(&f);
}

static void other_build_id_is_refused(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	f.id.bytes[19] ^= 1;
	assert_fault(&f.map, &f.id, FETCHER_DEBUGINFO, 0, "another build-id");
	end(&f);
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	(void)elf_writer_text(&writer, 0x1000, 16);
	struct file_map map;
	map.data = elf_writer_finish(&writer, &map.size);
	assert_fault(&map, &f.id, FETCHER_DEBUGINFO, 0, "another build-id");
	elf_writer_fini(&writer);
}

static void text_and_markup_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"<!DOCTYPE html><html></html>", "web page"},
		{" \r\n\t<html>", "web page"},
		{"not found", "no ELF file"},
		{"\x7f"
		 "ELF",
		 "damaged ELF file"},
		{" ", "no ELF file"},
	};
	const struct build_id id = build_id_make(id_bytes, sizeof(id_bytes));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct file_map map = {.data = (const uint8_t *)cases[i].text,
					     .size = strlen(cases[i].text)};
		assert_fault(&map, &id, FETCHER_DEBUGINFO, 0, cases[i].want);
	}
	assert_fault(&(struct file_map){0}, &id, FETCHER_DEBUGINFO, 0, "empty");
}

static void program_has_segments(void **state)
{
	(void)state;
	struct fixture f;
	begin_of(&f, true, false, false);
	assert_null(fetched_file_fault(&f.map, &f.id, FETCHER_DEBUGINFO, 0));
	assert_fault(&f.map, &f.id, FETCHER_EXECUTABLE, 0, "no program");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file_of_that_id_is_let_in),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(stated_size_has_to_hold),
		cmocka_unit_test(other_build_id_is_refused),
		cmocka_unit_test(text_and_markup_are_refused),
		cmocka_unit_test(program_has_segments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
