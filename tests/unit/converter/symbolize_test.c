/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a made-up process that maps a real ELF file to the named function and the address that
 * readers need, for every shape of executable that the linkers here make.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "converter/converter.h"
#include "tests/support/profile_dump.h"
#include "tests/support/record_maker.h"
#include "tests/support/temp_dir.h"

static const char burn_source[] =
	"__attribute__((noinline)) int hot_a(int n) { return n * 3 + 1; }\n"
	"__attribute__((noinline)) int hot_b(int n) { return n ^ 0x55; }\n"
	"__attribute__((noinline)) int mid(int n) { return hot_a(n) + hot_b(n) + 7; }\n"
	"int main(int argc, char **argv) { (void)argv; return mid(argc) + 1; }\n";
static const char burn2_source[] =
	"__attribute__((noinline)) int other_a(int n) { return n * 5 + 1; }\n"
	"__attribute__((noinline)) int other_b(int n) { return n ^ 0x66; }\n"
	"__attribute__((noinline)) int other(int n) { return other_a(n) + other_b(n) + 9; }\n"
	"int main(int argc, char **argv) { (void)argv; return other(argc) + 2; }\n";

enum { EVENT_HZ = 99, PID = 4242, PAGE = 4096 };
#define BUILD_ID_HEX "00112233445566778899aabbccddeeff00112233"

struct elf_file {
	const char *path;
	uint8_t *bytes;
	size_t size;
};

struct fixture {
	struct temp_dir dir;
	struct perf_event_info event;
	struct perf_source_info source;
	struct record_maker maker;
	struct symcache *cache;
	struct converter *converter;
	struct profile *profile;
	struct buf text;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	f->event.name = (char *)"cpu-clock";
	f->event.attr.type = PERF_TYPE_SOFTWARE;
	f->event.attr.sample_period = EVENT_HZ;
	f->event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN;
	f->source.events = &f->event;
	f->source.n_events = 1;
	record_maker_init(&f->maker, false);
	const struct symcache_config cache_config = {.no_cache = true};
	const struct converter_config config = {.labels = 0};
	f->cache = symcache_new(&cache_config);
	f->converter = converter_new(&config, &f->source, f->cache);
	buf_init(&f->text, 1 << 20);
}

static void fixture_fini(struct fixture *f)
{
	profile_free(f->profile);
	converter_free(f->converter);
	symcache_free(f->cache);
	record_maker_fini(&f->maker);
	buf_fini(&f->text);
	temp_dir_fini(&f->dir);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* False when the compiler or linker is not here. */
static bool compile(struct fixture *f, const char *command, const char *source, const char *out)
{
	const char *c = temp_dir_path(&f->dir, "source.c");
	write_text(c, source);
	char *line = mem_format("%s -O1 -o %s %s 2>/dev/null", command, out, c);
	int status = system(line);
	mem_free(line);
	return status == 0;
}

static void elf_read(struct elf_file *elf, const char *path)
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	struct stat st;
	assert_int_equal(fstat(fileno(file), &st), 0);
	elf->path = path;
	elf->size = (size_t)st.st_size;
	elf->bytes = mem_alloc(elf->size);
	assert_int_equal(fread(elf->bytes, 1, elf->size, file), elf->size);
	fclose(file);
}

static const Elf64_Phdr *code_segment(const struct elf_file *elf)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->bytes;
	const Elf64_Phdr *segments = (const Elf64_Phdr *)(elf->bytes + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
			return &segments[i];
	}
	fail();
	return NULL;
}

static const Elf64_Sym *find_symbol(const struct elf_file *elf, const char *name)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(elf->bytes + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		const char *names =
			(const char *)elf->bytes + sections[sections[i].sh_link].sh_offset;
		const Elf64_Sym *symbols = (const Elf64_Sym *)(elf->bytes + sections[i].sh_offset);
		for (size_t s = 0; s < sections[i].sh_size / sizeof(*symbols); s++) {
			if (strcmp(names + symbols[s].st_name, name) == 0)
				return &symbols[s];
		}
	}
	return NULL;
}

/* The record of the kernel's mapping of the code segment, whole pages, at bias. */
static void map_code(struct fixture *f, const struct elf_file *elf, uint64_t bias, bool with_id)
{
	const Elf64_Phdr *code = code_segment(elf);
	uint64_t start = (bias + code->p_vaddr) & -(uint64_t)PAGE;
	uint64_t end = (bias + code->p_vaddr + code->p_filesz + PAGE - 1) & -(uint64_t)PAGE;
	struct stat st;
	assert_int_equal(stat(elf->path, &st), 0);
	struct record_maker_file file = {
		.path = elf->path,
		.device_major = major(st.st_dev),
		.device_minor = minor(st.st_dev),
		.inode = st.st_ino,
	};
	if (with_id)
		assert_true(build_id_parse(BUILD_ID_HEX, &file.build_id));
	record_maker_mmap2(&f->maker, PID, start, end - start, code->p_offset & -(uint64_t)PAGE,
			   &file);
}

static void sample_chain(struct fixture *f, const uint64_t *chain, size_t n)
{
	const struct record_maker_sample sample = {
		.ip = chain[1], .pid = PID, .tid = PID, .chain = chain, .n_chain = n};
	record_maker_sample(&f->maker, PERF_RECORD_MISC_USER, &f->event.attr, &sample);
}

static void convert(struct fixture *f)
{
	assert_null(converter_feed(f->converter, f->maker.records, f->maker.n));
	record_maker_clear(&f->maker);
	profile_free(f->profile);
	f->profile = NULL;
	assert_null(converter_finish(f->converter, NULL, NULL, &f->profile));
	buf_clear(&f->text);
	profile_dump(f->profile, &f->text);
}

static void check_location(const struct fixture *f, uint64_t address, const Elf64_Phdr *code)
{
	for (uint32_t i = 0; i < f->profile->locations.n; i++) {
		const struct profile_location *location = &f->profile->locations.items[i];
		if (location->address != address)
			continue;
		const struct profile_mapping *m = &f->profile->mappings.items[location->mapping];
		assert_int_equal(m->memory_start, code->p_vaddr);
		assert_int_equal(m->memory_limit, code->p_vaddr + code->p_memsz);
		assert_int_equal(m->file_offset, code->p_offset);
		return;
	}
	fail_msg("no location at 0x%" PRIx64 " in\n%s", address,
		 buf_string((struct buf *)&f->text));
}

/*
 * hot_a called by mid called by main: names, and addresses in the ELF. The return address into mid
 * is the byte behind mid, as after a call that never returns.
 */
static void check_build(const char *command, uint64_t bias, bool with_id)
{
	struct fixture f;
	fixture_init(&f);
	const char *path = temp_dir_path(&f.dir, "bin/burn");
	if (!compile(&f, command, burn_source, path)) {
		print_message("skipped, cannot build here: %s\n", command);
		fixture_fini(&f);
		return;
	}
	struct elf_file elf;
	elf_read(&elf, path);
	const Elf64_Phdr *code = code_segment(&elf);
	const Elf64_Sym *hot_a = find_symbol(&elf, "hot_a"), *mid = find_symbol(&elf, "mid"),
			*start = find_symbol(&elf, "main");
	assert_true(hot_a && mid && start);
	map_code(&f, &elf, bias, with_id);
	const uint64_t chain[] = {
		PERF_CONTEXT_USER,
		bias + hot_a->st_value,
		bias + mid->st_value + mid->st_size,
		bias + start->st_value + 4,
	};
	sample_chain(&f, chain, 4);
	convert(&f);
	const char *text = buf_string(&f.text);
	if (!strstr(text, "sample 1 99 | main;mid;hot_a\n"))
		fail_msg("%s:\n%s", command, text);
	check_location(&f, hot_a->st_value, code);
	check_location(&f, mid->st_value + mid->st_size - 1, code);
	check_location(&f, start->st_value + 3, code);
	if (with_id)
		assert_non_null(strstr(text, BUILD_ID_HEX));
	assert_int_equal(f.profile->mappings.n, 1);
	assert_true(f.profile->mappings.items[0].has_functions);
	mem_free(elf.bytes);
	fixture_fini(&f);
}

#define WITH_ID " -Wl,--build-id=0x" BUILD_ID_HEX

/* FR-08 */
static void symbolize_names_pie_no_pie_and_shared_library(void **state)
{
	(void)state;
	for (int with_id = 0; with_id < 2; with_id++) {
		check_build("gcc -pie -fPIE" WITH_ID, 0x555555554000, with_id);
		check_build("gcc -no-pie -fno-pie" WITH_ID, 0, with_id);
		check_build("gcc -shared -fPIC" WITH_ID, 0x7f1234560000, with_id);
		check_build("gcc -static -no-pie -fno-pie" WITH_ID, 0, with_id);
		check_build("gcc -static-pie -fPIE" WITH_ID, 0x7ffff7f00000, with_id);
	}
}

/* FR-01, FR-06: segments whose address is not their offset, or that share pages with others. */
static void symbolize_names_what_other_linkers_make(void **state)
{
	(void)state;
	static const char *const linkers[] = {
		"gcc -fuse-ld=gold",
		"clang-14 --ld-path=ld.lld-14",
		"clang-14 --ld-path=ld.lld-14 -Wl,-z,separate-code",
		"clang-14 --ld-path=ld.lld-14 -Wl,--no-rosegment",
		"gcc -Wl,-z,noseparate-code",
		"gcc -Wl,-z,max-page-size=0x200000",
		"gcc -Wl,-Ttext-segment=0x10000000",
	};
	for (size_t i = 0; i < sizeof(linkers) / sizeof(linkers[0]); i++) {
		bool is_placed = strstr(linkers[i], "Ttext") != NULL;
		char *pie = mem_format("%s -pie -fPIE%s", linkers[i], WITH_ID);
		char *no_pie = mem_format("%s -no-pie -fno-pie%s", linkers[i], WITH_ID);
		if (!is_placed)
			check_build(pie, 0x555555554000, true);
		check_build(no_pie, 0, true);
		check_build(no_pie, 0, false);
		mem_free(pie);
		mem_free(no_pie);
	}
}

/* Two processes, the library at two places: one mapping, one location. */
static void symbolize_processes_share_locations(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	const char *path = temp_dir_path(&f.dir, "lib/libburn.so");
	if (!compile(&f, "gcc -shared -fPIC" WITH_ID, burn_source, path)) {
		fixture_fini(&f);
		skip();
	}
	struct elf_file elf;
	elf_read(&elf, path);
	const Elf64_Sym *hot_a = find_symbol(&elf, "hot_a");
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t bias = 0x7f0000000000 + i * 0x10000000;
		record_maker_comm(&f.maker, PID, PID, "x", true); /* exec: maps go */
		map_code(&f, &elf, bias, true);
		const uint64_t chain[] = {PERF_CONTEXT_USER, bias + hot_a->st_value};
		sample_chain(&f, chain, 2);
	}
	convert(&f);
	assert_int_equal(f.profile->mappings.n, 1);
	assert_int_equal(f.profile->locations.n, 1);
	assert_int_equal(f.profile->samples.n, 1);
	mem_free(elf.bytes);
	fixture_fini(&f);
}

/* FR-02: the middle page mprotected: three records, one segment. */
static void symbolize_pieces_of_a_segment_are_one_mapping(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	const char *path = temp_dir_path(&f.dir, "bin/burn");
	if (!compile(&f, "gcc -static -no-pie -fno-pie" WITH_ID, burn_source, path)) {
		fixture_fini(&f);
		skip();
	}
	struct elf_file elf;
	elf_read(&elf, path);
	const Elf64_Phdr *code = code_segment(&elf);
	const Elf64_Sym *hot_a = find_symbol(&elf, "hot_a"), *start = find_symbol(&elf, "main");
	map_code(&f, &elf, 0, true);
	uint64_t page = hot_a->st_value & -(uint64_t)PAGE;
	struct record_maker_file file = {.path = path};
	assert_true(build_id_parse(BUILD_ID_HEX, &file.build_id));
	record_maker_mmap2(&f.maker, PID, page, PAGE, page - code->p_vaddr + code->p_offset, &file);
	const uint64_t chain[] = {PERF_CONTEXT_USER, hot_a->st_value, start->st_value + 4,
				  (code->p_vaddr + code->p_filesz - 16) | 1};
	sample_chain(&f, chain, 4);
	convert(&f);
	assert_non_null(strstr(buf_string(&f.text), ";main;hot_a\n"));
	assert_int_equal(f.profile->mappings.n, 1);
	mem_free(elf.bytes);
	fixture_fini(&f);
}

/* FR-13: what is at the path by now is another build. */
static void check_replaced(const char *link, bool with_id, bool in_place)
{
	struct fixture f;
	fixture_init(&f);
	const char *path = temp_dir_path(&f.dir, "bin/burn");
	char *command = mem_format("gcc -no-pie -fno-pie %s", link);
	char *other = mem_format("gcc -no-pie -fno-pie %s",
				 with_id ? "-Wl,--build-id=0xdeadbeef" : "-Wl,--build-id=none");
	if (!compile(&f, command, burn_source, path)) {
		mem_free(command);
		mem_free(other);
		fixture_fini(&f);
		skip();
	}
	struct elf_file elf;
	elf_read(&elf, path);
	const Elf64_Phdr *code = code_segment(&elf);
	const Elf64_Sym *hot_a = find_symbol(&elf, "hot_a");
	map_code(&f, &elf, 0, with_id);
	const uint64_t chain[] = {PERF_CONTEXT_USER, hot_a->st_value};
	sample_chain(&f, chain, 2);
	const char *next = in_place ? path : temp_dir_path(&f.dir, "bin/next");
	if (!in_place)
		assert_true(compile(&f, other, burn2_source, next));
	else
		assert_int_equal(unlink(path), 0);
	if (!in_place)
		assert_int_equal(rename(next, path), 0);
	convert(&f);
	const char *text = buf_string(&f.text);
	/* No name, and the file offset that any reader with the right file can use. */
	uint64_t offset = hot_a->st_value - code->p_vaddr + code->p_offset;
	char *want = mem_format("| %s+0x%" PRIx64 "\n", path, offset);
	if (!strstr(text, want))
		fail_msg("wanted %s in\n%s", want, text);
	assert_null(strstr(text, "other"));
	const struct profile_mapping *m = &f.profile->mappings.items[0];
	assert_int_equal(m->memory_start, m->file_offset);
	assert_true(m->memory_start <= offset && offset < m->memory_limit);
	assert_false(m->has_functions);
	if (with_id)
		assert_non_null(strstr(text, BUILD_ID_HEX));
	mem_free(want);
	mem_free(command);
	mem_free(other);
	mem_free(elf.bytes);
	fixture_fini(&f);
}

static void symbolize_never_names_from_a_rebuilt_binary(void **state)
{
	(void)state;
	check_replaced("-Wl,--build-id=0x" BUILD_ID_HEX, true, false);
	check_replaced("-Wl,--build-id=none", false, false);
}

static void symbolize_gives_file_offsets_when_the_file_is_gone(void **state)
{
	(void)state;
	check_replaced("-Wl,--build-id=0x" BUILD_ID_HEX, true, true);
	check_replaced("-Wl,--build-id=none", false, true);
}

/* FR-47: named by kallsyms alone, or by a record too: one program at one place. */
static void symbolize_bpf_program_is_the_same_by_kallsyms_and_by_record(void **state)
{
	(void)state;
	const uint64_t program = 0xffffffffc0b01000;
	const char *name = "bpf_prog_6deef7357e7b4530_probe";
	for (int has_record = 0; has_record < 2; has_record++) {
		struct fixture f;
		fixture_init(&f);
		converter_free(f.converter);
		symcache_free(f.cache);
		char kallsyms[PATH_MAX];
		snprintf(kallsyms, sizeof(kallsyms), "%s", temp_dir_path(&f.dir, "kallsyms"));
		char *text = mem_format("ffffffff81000000 T _text\nffffffff82000000 T _etext\n"
					"%" PRIx64 " t %s\t[bpf]\n",
					program, name);
		write_text(kallsyms, text);
		mem_free(text);
		f.cache = symcache_new(
			&(struct symcache_config){.no_cache = true, .kallsyms = kallsyms});
		const struct converter_config config = {.labels = 0};
		f.converter = converter_new(&config, &f.source, f.cache);
		record_maker_kernel(&f.maker, 0xffffffff81000000, 0x1000000, 0xffffffff81000000,
				    "[kernel.kallsyms]_text");
		if (has_record)
			record_maker_ksymbol(&f.maker, program, 0x100, name, false);
		const uint64_t chain[] = {PERF_CONTEXT_KERNEL, program + 0x10};
		const struct record_maker_sample sample = {
			.ip = chain[1], .pid = PID, .tid = PID, .chain = chain, .n_chain = 2};
		record_maker_sample(&f.maker, PERF_RECORD_MISC_KERNEL, &f.event.attr, &sample);
		convert(&f);
		const char *dump = buf_string(&f.text);
		if (!strstr(dump, "mapping [bpf] 0x0-0xffffffffffffffff") ||
		    !strstr(dump, "location [bpf] 0xffffffffc0b01010 "
				  "bpf_prog_6deef7357e7b4530_probe"))
			fail_msg("record %d:\n%s", has_record, dump);
		fixture_fini(&f);
	}
}

/* FR-88 */
static void symbolize_puts_the_program_first_though_only_a_library_was_sampled(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	const char *path = temp_dir_path(&f.dir, "bin/burn");
	if (!compile(&f, "gcc" WITH_ID, burn_source, path)) {
		fixture_fini(&f);
		skip();
	}
	struct elf_file elf;
	elf_read(&elf, path);
	const Elf64_Phdr *code = code_segment(&elf);
	const uint64_t bias = 0x555555554000, library = 0x7f0000000000;
	const struct record_maker_file file = {.path = "/nonexistent/libburn.so.6", .inode = 7};
	const uint64_t chain[] = {PERF_CONTEXT_USER, library + 0x100};
	for (int is_program_sampled = 0; is_program_sampled < 2; is_program_sampled++) {
		map_code(&f, &elf, bias, true);
		record_maker_mmap2(&f.maker, PID, library, PAGE, 0, &file);
		const uint64_t own[] = {PERF_CONTEXT_USER, bias + code->p_vaddr + 4};
		sample_chain(&f, chain, 2);
		if (is_program_sampled)
			sample_chain(&f, own, 2);
		convert(&f);
		const struct profile_mapping *first = &f.profile->mappings.items[0];
		assert_int_equal(f.profile->mappings.n, 2);
		assert_string_equal(profile_text(f.profile, first->filename), path);
		assert_string_equal(profile_text(f.profile, first->build_id), BUILD_ID_HEX);
		assert_int_equal(first->memory_start, code->p_vaddr);
		assert_int_equal(first->memory_limit, code->p_vaddr + code->p_memsz);
		assert_int_equal(first->file_offset, code->p_offset);
		for (uint32_t i = 0; i < f.profile->locations.n; i++)
			assert_true(f.profile->locations.items[i].mapping <= 1);
	}
	mem_free(elf.bytes);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbolize_bpf_program_is_the_same_by_kallsyms_and_by_record),
		cmocka_unit_test(symbolize_names_pie_no_pie_and_shared_library),
		cmocka_unit_test(symbolize_names_what_other_linkers_make),
		cmocka_unit_test(symbolize_processes_share_locations),
		cmocka_unit_test(symbolize_pieces_of_a_segment_are_one_mapping),
		cmocka_unit_test(symbolize_never_names_from_a_rebuilt_binary),
		cmocka_unit_test(symbolize_gives_file_offsets_when_the_file_is_gone),
		cmocka_unit_test(
			symbolize_puts_the_program_first_though_only_a_library_was_sampled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
