/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "forwarder/debuginfo_extract.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

static const uint8_t id_bytes[20] = {0xab, 0xcd, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const struct build_id no_id;

/* 200 KiB of code, names, notes, and a debug section. */
static void make_elf(struct elf_writer *writer, bool is_64, bool is_big)
{
	static uint8_t code[200 << 10], debug[5000];
	memset(code, 0x90, sizeof(code));
	for (size_t i = 0; i < sizeof(debug); i++)
		debug[i] = (uint8_t)i;
	elf_writer_init(writer, is_64, is_big, is_64 ? EM_X86_64 : EM_386);
	elf_writer_segment(writer, PT_LOAD, PF_R | PF_X, 0, 0, 1 << 20);
	uint32_t note = elf_writer_note(writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID,
					id_bytes, sizeof(id_bytes));
	elf_writer_segment(writer, PT_NOTE, PF_R, note, 0, 36);
	uint32_t text = elf_writer_section(writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					   0x1000, code, sizeof(code));
	elf_writer_section(writer, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x40000, "unwind", 6);
	elf_writer_section(writer, ".rodata", SHT_PROGBITS, SHF_ALLOC, 0x41000, "secret text", 11);
	elf_writer_section(writer, ".debug_info", SHT_PROGBITS, 0, 0, debug, sizeof(debug));
	elf_writer_symbol(writer, false, "work", 0x1000, 64, STB_GLOBAL, STT_FUNC, (uint16_t)text);
}

static int open_bytes(const uint8_t *bytes, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_null(file_write(fd, bytes, n));
	return fd;
}

/* The whole result, read in odd portions. */
static void read_image(const struct debuginfo_image *image, struct buf *out)
{
	buf_init(out, (size_t)1 << 30);
	assert_null(buf_reserve(out, (size_t)image->n_bytes));
	for (uint64_t at = 0; at < image->n_bytes;) {
		size_t n = 4097;
		if (n > image->n_bytes - at)
			n = (size_t)(image->n_bytes - at);
		assert_null(debuginfo_image_read(image, at, out->data + at, n));
		at += n;
	}
	out->size = (size_t)image->n_bytes;
}

static void debuginfo_extract_keeps_what_names_addresses(void **state)
{
	(void)state;
	struct elf_writer writer;
	make_elf(&writer, true, false);
	size_t n;
	const uint8_t *file = elf_writer_finish(&writer, &n);
	int fd = open_bytes(file, n);
	struct build_id id = build_id_make(id_bytes, sizeof(id_bytes));
	struct debuginfo_image image;
	assert_null(debuginfo_extract(fd, &id, 1 << 30, &image));
	struct buf out;
	read_image(&image, &out);
	assert_true(out.size < 10000);
	const Elf64_Ehdr *old = (const Elf64_Ehdr *)file, *header = (const Elf64_Ehdr *)out.data;
	assert_int_equal(header->e_shnum, old->e_shnum);
	assert_int_equal(header->e_phnum, 2);
	Elf64_Shdr old_sections[16], sections[16]; /* copies: they need not be aligned */
	assert_true(header->e_shnum <= 16);
	memcpy(old_sections, file + old->e_shoff, old->e_shnum * sizeof(Elf64_Shdr));
	memcpy(sections, out.data + header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
	const char *names = (const char *)out.data + sections[header->e_shstrndx].sh_offset;
	unsigned n_kept = 0, n_emptied = 0;
	for (int i = 1; i < header->e_shnum; i++) {
		const char *name = names + sections[i].sh_name;
		assert_int_equal(sections[i].sh_addr, old_sections[i].sh_addr);
		assert_int_equal(sections[i].sh_size, old_sections[i].sh_size);
		if (!strcmp(name, ".text") || !strcmp(name, ".rodata")) {
			assert_int_equal(sections[i].sh_type, SHT_NOBITS);
			n_emptied++;
			continue;
		}
		n_kept++;
		assert_int_equal(sections[i].sh_type, old_sections[i].sh_type);
		assert_true(sections[i].sh_offset + sections[i].sh_size <= header->e_shoff);
		assert_memory_equal(out.data + sections[i].sh_offset,
				    file + old_sections[i].sh_offset, sections[i].sh_size);
	}
	assert_int_equal(n_emptied, 2);
	assert_int_equal(n_kept, 6); /* note, .eh_frame, .debug_info, .symtab, 2 × strings */
	/* The program is gone, its place in memory is not. */
	assert_null(memmem(out.data, out.size, "secret text", 11));
	const Elf64_Phdr *old_segments = (const Elf64_Phdr *)(file + old->e_phoff);
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(out.data + header->e_phoff);
	assert_memory_equal(&segments[0], &old_segments[0], sizeof(segments[0]));
	assert_int_equal(segments[1].p_type, PT_NOTE);
	assert_memory_equal(out.data + segments[1].p_offset + 16, id_bytes, sizeof(id_bytes));
	assert_int_equal(strlen(image.hash), 32);
	buf_fini(&out);
	debuginfo_image_fini(&image);
	close(fd);
	elf_writer_fini(&writer);
}

static void debuginfo_extract_reads_all_classes_and_orders(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct elf_writer writer;
		make_elf(&writer, kind & 1, kind & 2);
		size_t n;
		const uint8_t *file = elf_writer_finish(&writer, &n);
		int fd = open_bytes(file, n);
		struct build_id id = build_id_make(id_bytes, sizeof(id_bytes));
		struct debuginfo_image image, again;
		assert_null(debuginfo_extract(fd, &id, 1 << 30, &image));
		struct buf out;
		read_image(&image, &out);
		assert_true(out.size < 10000);
		/* What was extracted is small, and taken whole. */
		int second = open_bytes(out.data, out.size);
		assert_null(debuginfo_extract(second, &id, 1 << 30, &again));
		assert_int_equal(again.n_bytes, out.size);
		struct buf twice;
		read_image(&again, &twice);
		assert_memory_equal(twice.data, out.data, out.size);
		buf_fini(&twice);
		buf_fini(&out);
		debuginfo_image_fini(&again);
		debuginfo_image_fini(&image);
		close(second);
		close(fd);
		elf_writer_fini(&writer);
	}
}

static void assert_refused(int fd, const struct build_id *id, uint64_t max_bytes,
			   enum error_code code)
{
	struct debuginfo_image image;
	struct error *err = debuginfo_extract(fd, id, max_bytes, &image);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), code);
	error_free(err);
}

static void debuginfo_extract_refuses_what_would_be_useless(void **state)
{
	(void)state;
	struct elf_writer writer;
	make_elf(&writer, true, false);
	size_t n;
	const uint8_t *file = elf_writer_finish(&writer, &n);
	int fd = open_bytes(file, n);
	struct build_id other = build_id_make("another build id", 16);
	assert_refused(fd, &other, 1 << 30, ERROR_BAD_DATA);
	assert_refused(fd, &no_id, 4000, ERROR_LIMIT);
	/* It gets shorter while it is read. */
	struct debuginfo_image image;
	assert_null(debuginfo_extract(fd, &no_id, 1 << 30, &image));
	assert_int_equal(ftruncate(fd, 1000), 0);
	uint8_t bytes[8192];
	struct error *err = debuginfo_image_read(&image, 0, bytes, (size_t)image.n_bytes);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	err = debuginfo_image_read(&image, image.n_bytes, bytes, 1);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	debuginfo_image_fini(&image);
	assert_refused(fd, &no_id, 1 << 30, ERROR_BAD_DATA);
	close(fd);
	elf_writer_fini(&writer);
	/* Nothing but code; no section headers; no ELF at all. */
	for (int headless = 0; headless < 2; headless++) {
		elf_writer_init(&writer, true, false, EM_X86_64);
		(void)elf_writer_text(&writer, 0x1000, 64);
		writer.has_no_sections = headless;
		file = elf_writer_finish(&writer, &n);
		fd = open_bytes(file, n);
		assert_refused(fd, &no_id, 1 << 30, ERROR_NO_ENTRY);
		close(fd);
		elf_writer_fini(&writer);
	}
	fd = open_bytes((const uint8_t *)"#!/bin/sh\n", 10);
	assert_refused(fd, &no_id, 1 << 30, ERROR_BAD_DATA);
	close(fd);
}

static void debuginfo_extract_survives_every_changed_byte(void **state)
{
	(void)state;
	struct elf_writer writer;
	make_elf(&writer, true, false);
	size_t n;
	uint8_t *file = (uint8_t *)elf_writer_finish(&writer, &n);
	Elf64_Ehdr *header = (Elf64_Ehdr *)file;
	int fd = open_bytes(file, n);
	size_t headers_end = header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr);
	unsigned n_good = 0;
	for (size_t at = 0; at < headers_end; at++) {
		if (at == sizeof(*header) + 2 * sizeof(Elf64_Phdr))
			at = header->e_shoff;
		uint8_t byte = file[at] ^ 0xff;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
		struct debuginfo_image image;
		struct error *err = debuginfo_extract(fd, &no_id, 1 << 20, &image);
		if (!err) {
			struct buf out;
			read_image(&image, &out);
			buf_fini(&out);
			debuginfo_image_fini(&image);
			n_good++;
		}
		error_free(err);
		assert_int_equal(pwrite(fd, &file[at], 1, (off_t)at), 1);
	}
	assert_true(n_good > 0);
	close(fd);
	elf_writer_fini(&writer);
}

/* Output of a command; empty when it failed. */
static void run(char *out, size_t n, const char *command)
{
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	size_t got = fread(out, 1, n - 1, pipe);
	out[got] = 0;
	if (pclose(pipe) != 0)
		out[0] = 0;
}

/* Readers of others resolve the same from what was extracted as from the program itself. */
static void debuginfo_extract_serves_other_symbolizers(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	char command[3 * PATH_MAX], want[4096], got[4096], addresses[256];
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(length > 0);
	self[length] = 0;
	int fd = open(self, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	struct debuginfo_image image;
	assert_null(debuginfo_extract(fd, &no_id, 1 << 30, &image));
	struct buf out;
	read_image(&image, &out);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/extracted", dir.path);
	struct file_writer writer;
	assert_null(file_writer_open(path, &writer));
	assert_null(file_write(writer.fd, out.data, out.size));
	assert_null(file_writer_commit(&writer));
	file_writer_close(&writer);
	snprintf(command, sizeof(command),
		 "nm %s 2>/dev/null | sed -nE 's/^(.*) . "
		 "(buf_init|main|debuginfo_extract)$/0x\\1/p' | "
		 "tr '\\n' ' '",
		 self);
	run(addresses, sizeof(addresses), command);
	if (!addresses[0]) {
		temp_dir_fini(&dir);
		skip();
	}
	static const char *const tools[] = {"addr2line -f -i -e", "eu-addr2line -f -i -e",
					    "llvm-symbolizer-14 --obj"};
	unsigned n_compared = 0;
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		const char *joint = i == 2 ? "=" : " ";
		snprintf(command, sizeof(command), "%s%s%s %s 2>/dev/null", tools[i], joint, self,
			 addresses);
		run(want, sizeof(want), command);
		snprintf(command, sizeof(command), "%s%s%s %s 2>/dev/null", tools[i], joint, path,
			 addresses);
		run(got, sizeof(got), command);
		if (!want[0])
			continue;
		assert_non_null(strstr(want, "buf_init"));
		assert_string_equal(got, want);
		n_compared++;
	}
	/* Two readers at least, or the machine lacks what install_packages.sh names. */
	assert_true(n_compared >= 2);
	buf_fini(&out);
	debuginfo_image_fini(&image);
	close(fd);
	temp_dir_fini(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debuginfo_extract_keeps_what_names_addresses),
		cmocka_unit_test(debuginfo_extract_reads_all_classes_and_orders),
		cmocka_unit_test(debuginfo_extract_refuses_what_would_be_useless),
		cmocka_unit_test(debuginfo_extract_survives_every_changed_byte),
		cmocka_unit_test(debuginfo_extract_serves_other_symbolizers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
