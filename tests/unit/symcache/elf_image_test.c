/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/elf_image.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"

static const uint8_t id_bytes[BUILD_ID_MAX_BYTES] = {0xde, 0xad, 0xbe, 0xef, 5, 6, 7, 8};

static struct elf_image parse(struct elf_writer *writer)
{
	size_t n;
	const uint8_t *bytes = elf_writer_finish(writer, &n);
	struct elf_image image;
	assert_null(elf_image_init(&image, bytes, n));
	return image;
}

static void check_form(bool is_64, bool is_big)
{
	struct elf_writer writer;
	elf_writer_init(&writer, is_64, is_big, EM_PPC);
	uint32_t note = elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID,
					id_bytes, 20);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0x400000, 0x8000);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_W, note, 0x500010, 0);
	elf_writer_segment(&writer, PT_NOTE, PF_R, note, 0, 0);
	struct elf_image image = parse(&writer);
	assert_int_equal(image.is_64, is_64);
	assert_int_equal(image.machine, EM_PPC);
	assert_int_equal(image.n_segments, 2);
	assert_true(image.segments[0].is_executable);
	assert_int_equal(image.segments[0].svma, 0x400000);
	assert_int_equal(image.segments[0].memory_bytes, 0x8000);
	assert_false(image.segments[1].is_executable);
	assert_int_equal(image.segments[1].svma, 0x500010);
	assert_int_equal(image.segments[1].file_bytes, 36);
	assert_int_equal(image.build_id.size, 20);
	assert_memory_equal(image.build_id.bytes, id_bytes, 20);
	assert_ptr_equal(elf_image_find(&image, ".note.gnu.build-id"), &image.sections[note]);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static void elf_image_reads_both_classes_in_both_byte_orders(void **state)
{
	(void)state;
	check_form(true, false);
	check_form(true, true);
	check_form(false, false);
	check_form(false, true);
}

/* FR-15 */
static void elf_image_keeps_build_ids_of_1_to_64_bytes_whole(void **state)
{
	(void)state;
	static const size_t sizes[] = {1, 4, 8, 16, 20, 32, 64};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct elf_writer writer;
		elf_writer_init(&writer, true, false, EM_X86_64);
		elf_writer_segment(&writer, PT_NOTE, PF_R,
				   elf_writer_note(&writer, ".note.gnu.build-id", "GNU",
						   NT_GNU_BUILD_ID, id_bytes, sizes[i]),
				   0, 0);
		struct elf_image image = parse(&writer);
		assert_int_equal(image.build_id.kind, BUILD_ID_GNU);
		assert_int_equal(image.build_id.size, sizes[i]);
		assert_memory_equal(image.build_id.bytes, id_bytes, sizes[i]);
		elf_image_fini(&image);
		elf_writer_fini(&writer);
	}
}

static void elf_image_takes_no_build_id_over_64_bytes(void **state)
{
	(void)state;
	uint8_t long_id[65];
	memset(long_id, 7, sizeof(long_id));
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, long_id,
			sizeof(long_id));
	struct elf_image image = parse(&writer);
	assert_false(build_id_is_set(&image.build_id));
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

/* FR-18 */
static void elf_image_finds_build_id_in_section_that_no_segment_covers(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0, 0);
	uint32_t note = elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID,
					id_bytes, 20);
	elf_writer_segment(&writer, PT_NULL, PF_R, note, 0, 0);
	struct elf_image image = parse(&writer);
	assert_int_equal(image.build_id.size, 20);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static void elf_image_finds_build_id_in_segment_without_section_headers(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint32_t note = elf_writer_note(&writer, ".note", "GNU", NT_GNU_BUILD_ID, id_bytes, 20);
	elf_writer_segment(&writer, PT_NOTE, PF_R, note, 0, 0);
	writer.has_no_sections = true;
	struct elf_image image = parse(&writer);
	assert_int_equal(image.n_sections, 0);
	assert_int_equal(image.build_id.size, 20);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

/* FR-16 */
static void elf_image_falls_back_to_note_of_go_and_marks_it(void **state)
{
	(void)state;
	static const char go_id[] = "abcDEF/ghi/jkl/mno";
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint32_t note =
		elf_writer_note(&writer, ".note.go.buildid", "Go", 4, go_id, sizeof(go_id) - 1);
	elf_writer_segment(&writer, PT_NOTE, PF_R, note, 0, 0);
	struct elf_image image = parse(&writer);
	assert_int_equal(image.build_id.kind, BUILD_ID_GO);
	assert_int_equal(image.build_id.size, 20);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static void elf_image_prefers_gnu_build_id_to_note_of_go(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint32_t go = elf_writer_note(&writer, ".note.go.buildid", "Go", 4, "x", 1);
	elf_writer_segment(&writer, PT_NOTE, PF_R, go, 0, 0);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_bytes, 8);
	struct elf_image image = parse(&writer);
	assert_int_equal(image.build_id.kind, BUILD_ID_GNU);
	assert_int_equal(image.build_id.size, 8);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static void elf_image_reads_counts_from_section_0(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0x1000, 0);
	elf_writer_text(&writer, 0x1000, 0x100);
	writer.has_extended_counts = true;
	struct elf_image image = parse(&writer);
	assert_int_equal(image.n_segments, 1);
	assert_int_equal(image.n_sections, 3);
	assert_non_null(elf_image_find(&image, ".text"));
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

static void elf_image_survives_being_cut_anywhere(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0x1000, 0);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_bytes, 20);
	elf_writer_symbol(&writer, false, "f", 0x1000, 4, STB_GLOBAL, STT_FUNC, 1);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	for (size_t cut = 0; cut < n; cut++) {
		struct elf_image image;
		struct error *err = elf_image_init(&image, bytes, cut);
		if (!err) {
			/* Section headers stand last: without them segments are still there. */
			assert_int_equal(image.n_segments, 1);
			assert_int_equal(image.n_sections, 0);
			elf_image_fini(&image);
		} else {
			assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
			assert_true(cut < 64 + 56);
		}
		error_free(err);
	}
	elf_writer_fini(&writer);
}

static void begin_named(struct elf_writer *writer)
{
	elf_writer_init(writer, true, false, EM_X86_64);
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0, 0x1000, 0);
	elf_writer_note(writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_bytes, 20);
	elf_writer_symbol(writer, false, "f", 0x1000, 4, STB_GLOBAL, STT_FUNC, 1);
}

static int save(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

/* Read through a descriptor, a file says what it says in memory, wherever it is cut. */
static void elf_image_of_a_descriptor_is_that_of_its_bytes(void **state)
{
	(void)state;
	struct elf_writer writer;
	begin_named(&writer);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	for (size_t cut = 0; cut <= n; cut++) {
		struct elf_image in_memory, image;
		int fd = save(bytes, cut);
		struct error *wanted = elf_image_init(&in_memory, bytes, cut);
		struct error *err = elf_image_open(&image, fd);
		assert_int_equal(!wanted, !err);
		if (err) {
			assert_string_equal(error_text(err), error_text(wanted));
		} else {
			assert_int_equal(image.n_segments, in_memory.n_segments);
			assert_int_equal(image.n_sections, in_memory.n_sections);
			assert_memory_equal(&image.build_id, &in_memory.build_id,
					    sizeof(image.build_id));
			assert_int_equal(!elf_image_find(&image, ".symtab"),
					 !elf_image_find(&in_memory, ".symtab"));
			elf_image_fini(&image);
			elf_image_fini(&in_memory);
		}
		error_free(err);
		error_free(wanted);
		close(fd);
	}
	elf_writer_fini(&writer);
}

/* As its owner may do at any time: what is behind the cut is not there any more. */
static void elf_image_of_a_descriptor_may_be_cut_while_it_is_read(void **state)
{
	(void)state;
	struct elf_writer writer;
	struct elf_image image;
	begin_named(&writer);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	int fd = save(bytes, n);
	assert_null(elf_image_open(&image, fd));
	const struct elf_section *table = elf_image_find_type(&image, SHT_SYMTAB);
	assert_non_null(table);
	struct cursor c = elf_image_section(&image, table);
	assert_int_equal(cursor_left(&c), table->size);
	assert_memory_equal(c.next, bytes + table->file_offset, table->size);
	elf_image_trim(&image);
	assert_int_equal(ftruncate(fd, (off_t)table->file_offset + 5), 0);
	c = elf_image_section(&image, table);
	assert_int_equal(cursor_left(&c), 5);
	elf_image_trim(&image);
	assert_int_equal(ftruncate(fd, 0), 0);
	c = elf_image_section(&image, table);
	assert_int_equal(cursor_left(&c), 0);
	assert_null(elf_image_find(&image, ".symtab"));
	elf_image_fini(&image);
	close(fd);
	elf_writer_fini(&writer);
}

/* Headers that claim more than may be held. */
static void elf_image_of_a_descriptor_reads_within_its_cap(void **state)
{
	(void)state;
	struct elf_writer writer;
	struct elf_image image;
	begin_named(&writer);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	int fd = save(bytes, n);
	assert_int_equal(ftruncate(fd, (off_t)1 << 32), 0);
	assert_null(elf_image_open(&image, fd));
	struct elf_section section = {.file_offset = 0, .size = UINT64_C(1) << 32};
	struct cursor c = elf_image_section(&image, &section);
	assert_int_equal(cursor_left(&c), 0);
	section.size = 64;
	c = elf_image_section(&image, &section);
	assert_int_equal(cursor_left(&c), 64);
	elf_image_fini(&image);
	close(fd);
	elf_writer_fini(&writer);
}

static void elf_image_refuses_what_is_not_elf(void **state)
{
	(void)state;
	struct elf_image image;
	struct error *err = elf_image_init(&image, "#!/bin/sh\nexit 0\n", 17);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	err = elf_image_init(&image, NULL, 0);
	assert_non_null(err);
	error_free(err);
}

static void elf_image_gives_no_bytes_for_section_past_the_end(void **state)
{
	(void)state;
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint32_t index = elf_writer_section(&writer, ".data", SHT_PROGBITS, 0, 0, "abcd", 4);
	struct elf_image image = parse(&writer);
	struct elf_section section = image.sections[index];
	section.file_offset = UINT64_MAX - 1;
	section.size = UINT64_MAX;
	struct cursor c = elf_image_section(&image, &section);
	assert_int_equal(cursor_left(&c), 0);
	section.file_offset = image.size - 2;
	c = elf_image_section(&image, &section);
	assert_int_equal(cursor_left(&c), 2);
	elf_image_fini(&image);
	elf_writer_fini(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_image_reads_both_classes_in_both_byte_orders),
		cmocka_unit_test(elf_image_keeps_build_ids_of_1_to_64_bytes_whole),
		cmocka_unit_test(elf_image_takes_no_build_id_over_64_bytes),
		cmocka_unit_test(elf_image_finds_build_id_in_section_that_no_segment_covers),
		cmocka_unit_test(elf_image_finds_build_id_in_segment_without_section_headers),
		cmocka_unit_test(elf_image_falls_back_to_note_of_go_and_marks_it),
		cmocka_unit_test(elf_image_prefers_gnu_build_id_to_note_of_go),
		cmocka_unit_test(elf_image_reads_counts_from_section_0),
		cmocka_unit_test(elf_image_survives_being_cut_anywhere),
		cmocka_unit_test(elf_image_of_a_descriptor_is_that_of_its_bytes),
		cmocka_unit_test(elf_image_of_a_descriptor_may_be_cut_while_it_is_read),
		cmocka_unit_test(elf_image_of_a_descriptor_reads_within_its_cap),
		cmocka_unit_test(elf_image_refuses_what_is_not_elf),
		cmocka_unit_test(elf_image_gives_no_bytes_for_section_past_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
