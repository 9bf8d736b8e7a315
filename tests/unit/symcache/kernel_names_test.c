/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a kernel gets, as seen through the door. */
#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "symcache/symcache.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

#define TEXT 0xffffffff81000000ull

static const uint8_t kernel_id[20] = {9, 9, 9, 9};

struct fixture {
	struct temp_dir dir;
	char kallsyms[PATH_MAX], vmlinux[PATH_MAX];
	struct symcache_config config;
	struct symcache *cache;
	struct kernel_query query;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	snprintf(f->kallsyms, sizeof(f->kallsyms), "%s", temp_dir_path(&f->dir, "kallsyms"));
	snprintf(f->vmlinux, sizeof(f->vmlinux), "%s", temp_dir_path(&f->dir, "vmlinux"));
	f->query.build_id = build_id_make(kernel_id, sizeof(kernel_id));
	f->query.text_start = TEXT;
	f->query.relocation_symbol = "_text";
}

static void end(struct fixture *f)
{
	symcache_free(f->cache);
	temp_dir_fini(&f->dir);
}

static void save_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void save_kallsyms(struct fixture *f, const char *text)
{
	save_text(f->kallsyms, text);
	f->config.kallsyms = f->kallsyms;
}

static void save_vmlinux(struct fixture *f, const uint8_t *id)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(&writer, TEXT, 0x1000);
	elf_writer_symbol(&writer, false, "_text", TEXT, 0, STB_GLOBAL, STT_NOTYPE, text);
	elf_writer_symbol(&writer, false, "_stext", TEXT + 0x100, 0, STB_GLOBAL, STT_NOTYPE, text);
	elf_writer_symbol(&writer, false, "schedule", TEXT + 0x200, 0x80, STB_GLOBAL, STT_FUNC,
			  text);
	elf_writer_note(&writer, ".notes", "GNU", NT_GNU_BUILD_ID, id, 20);
	elf_writer_save(&writer, f->vmlinux);
	elf_writer_fini(&writer);
	f->config.vmlinux = f->vmlinux;
}

static void start(struct fixture *f)
{
	f->config.no_cache = true;
	f->cache = symcache_new(&f->config);
	symcache_kernel(f->cache, &f->query);
}

static void assert_reason(struct fixture *f, uint64_t vaddr, enum symbol_reason reason)
{
	struct symbol_result result;
	const char *module = NULL;
	symcache_resolve_kernel(f->cache, vaddr, &result, &module);
	assert_int_equal(result.reason, reason);
	assert_int_equal(result.n_frames, 0);
	assert_string_equal(module, "");
}

static void assert_name(struct fixture *f, uint64_t vaddr, const char *name, const char *wanted)
{
	struct symbol_result result;
	const char *module = NULL;
	symcache_resolve_kernel(f->cache, vaddr, &result, &module);
	assert_int_equal(result.reason, SYMBOL_FOUND);
	assert_string_equal(result.frames[0].name, name);
	assert_string_equal(module, wanted);
}

static const char small_kallsyms[] = "ffffffff81000000 T _text\n"
				     "ffffffff81000200 T schedule\n"
				     "ffffffff81000300 t _RNvCs1234_6kernel3foo\n"
				     "ffffffff81000400 T _etext\n"
				     "ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n"
				     "ffffffffc0b01000 t bpf_prog_1_x\t[bpf]\n";

static void kernel_of_this_host_is_named_by_kallsyms(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_kallsyms(&f, small_kallsyms);
	f.query = (struct kernel_query){.is_this_host = true};
	start(&f);
	assert_name(&f, TEXT + 0x210, "schedule", "");
	assert_name(&f, TEXT + 0x310, "kernel::foo", "");
	assert_name(&f, 0xffffffffc0a01010, "nft_do_chain", "nf_tables");
	assert_name(&f, 0xffffffffc0b01010, "bpf_prog_1_x", "bpf");
	assert_reason(&f, TEXT + 0x400, SYMBOL_GAP);
	end(&f);
}

/* FR-45: KASLR of a recording. */
static void recorded_addresses_are_moved_by_what_kaslr_moved(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_kallsyms(&f, small_kallsyms);
	f.query.text_start = TEXT + 0x12000000;
	start(&f);
	assert_name(&f, TEXT + 0x12000210, "schedule", "");
	/* Modules do not move with the kernel. */
	assert_reason(&f, 0xffffffffc0a01010 + 0x12000000, SYMBOL_GAP);
	end(&f);
}

/* FR-44 */
static void hidden_addresses_are_told_and_never_named(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_kallsyms(&f, "0000000000000000 T _text\n0000000000000000 T schedule\n");
	f.query = (struct kernel_query){.is_this_host = true};
	start(&f);
	assert_reason(&f, TEXT + 0x210, SYMBOL_HIDDEN);
	assert_reason(&f, 0, SYMBOL_HIDDEN);
	end(&f);
}

static void hidden_addresses_are_named_by_vmlinux_of_the_same_build(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_kallsyms(&f, "0000000000000000 T _text\n");
	save_vmlinux(&f, kernel_id);
	f.query.is_this_host = true;
	f.query.text_start = TEXT + 0x3000000;
	start(&f);
	assert_name(&f, TEXT + 0x3000200, "schedule", "");
	assert_reason(&f, TEXT + 0x3000280, SYMBOL_GAP);
	end(&f);
}

static void vmlinux_of_recorded_kernel_is_used_and_relocated_by_either_symbol(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_vmlinux(&f, kernel_id);
	f.query.text_start = TEXT + 0x5000100;
	f.query.relocation_symbol = "_stext";
	start(&f);
	assert_name(&f, TEXT + 0x5000210, "schedule", "");
	end(&f);
}

static void vmlinux_of_another_build_is_not_used(void **state)
{
	(void)state;
	static const uint8_t other[20] = {8};
	struct fixture f;
	begin(&f);
	save_vmlinux(&f, other);
	start(&f);
	assert_reason(&f, TEXT + 0x210, SYMBOL_OTHER_KERNEL);
	end(&f);
}

static void vmlinux_without_known_start_is_not_used(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_vmlinux(&f, kernel_id);
	f.query.text_start = 0;
	start(&f);
	assert_reason(&f, TEXT + 0x210, SYMBOL_OTHER_KERNEL);
	end(&f);
}

static void recording_of_another_kernel_is_not_named_by_this_host(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	start(&f);
	assert_reason(&f, TEXT + 0x210, SYMBOL_OTHER_KERNEL);
	end(&f);
}

static void vmlinux_is_found_below_the_sysroot_by_release(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	save_vmlinux(&f, kernel_id);
	f.config.vmlinux = NULL;
	f.config.sysroot = f.dir.path;
	f.query.os_release = "6.1.0-test";
	assert_int_equal(
		rename(f.vmlinux, temp_dir_path(&f.dir, "usr/lib/debug/boot/vmlinux-6.1.0-test")),
		0);
	start(&f);
	assert_name(&f, TEXT + 0x200, "schedule", "");
	end(&f);
}

static void this_host_is_named_by_its_own_kallsyms(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	f.query = (struct kernel_query){.is_this_host = true};
	start(&f);
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512];
	unsigned long address = 0;
	bool is_found = false;
	while (file && !is_found && fgets(line, sizeof(line), file))
		is_found = strstr(line, " T vfs_read\n") && sscanf(line, "%lx", &address) == 1;
	if (file)
		fclose(file);
	if (!is_found || !address) {
		end(&f);
		print_message("kernel addresses are hidden or vfs_read is not listed here\n");
		skip();
	}
	assert_name(&f, address + 4, "vfs_read", "");
	end(&f);
}

/* A vmlinux with DWARF: schedule() with pick_next() inlined, and the kernel's build-id. */
static bool link_vmlinux(struct fixture *f)
{
	static const char source[] = "volatile int queue;\n"
				     "static inline int pick_next(int cpu)\n"
				     "{\n"
				     "	return queue / cpu;\n"
				     "}\n"
				     "int schedule(int cpu)\n"
				     "{\n"
				     "	return pick_next(cpu) + 3;\n"
				     "}\n"
				     "void _start(void) { schedule(1); }\n";
	save_text(temp_dir_path(&f->dir, "sched.c"), source);
	char command[2 * PATH_MAX];
	snprintf(command, sizeof(command),
		 "command -v gcc > /dev/null && cd %s && gcc -O2 -g -fno-pic -nostdlib -static "
		 "-no-pie -mcmodel=kernel -fno-ipa-icf "
		 "-Wl,-Ttext=0x%llx,--build-id=0x%040x,--defsym=_text=0x%llx -o vmlinux sched.c",
		 f->dir.path, TEXT, 7, TEXT);
	if (system(command) != 0)
		return false;
	f->config.vmlinux = f->vmlinux;
	return true;
}

static uint64_t symbol_value(struct fixture *f, const char *name)
{
	char command[2 * PATH_MAX];
	snprintf(command, sizeof(command), "nm %s | awk '$3 == \"%s\" {print $1}'", f->vmlinux,
		 name);
	FILE *nm = popen(command, "r");
	assert_non_null(nm);
	unsigned long long value = 0;
	assert_int_equal(fscanf(nm, "%llx", &value), 1);
	pclose(nm);
	return value;
}

/* The kernel lies where KASLR put it, kallsyms names it, and the vmlinux knows the lines. */
static void vmlinux_gives_lines_and_inlined_calls_where_kallsyms_gives_names(void **state)
{
	(void)state;
	const uint64_t moved = 0x7000000;
	struct fixture f;
	begin(&f);
	f.query.build_id = build_id_make((const uint8_t[20]){[19] = 7}, 20);
	if (!link_vmlinux(&f)) {
		end(&f);
		skip();
	}
	uint64_t schedule = symbol_value(&f, "schedule");
	char kallsyms[512];
	snprintf(kallsyms, sizeof(kallsyms),
		 "%" PRIx64 " T _text\n%" PRIx64 " T schedule\n%" PRIx64 " T other\n"
		 "ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n",
		 (uint64_t)TEXT + moved, schedule + moved, schedule + moved + 0x10000);
	save_kallsyms(&f, kallsyms);
	/* A recording of another boot: moved once more. */
	f.query.text_start = TEXT + 0x1000000;
	start(&f);
	struct symbol_result result;
	const char *module = NULL;
	uint64_t vaddr = schedule + 0x1000000;
	bool has_inlined = false;
	for (uint64_t at = vaddr; at < vaddr + 8; at++) {
		symcache_resolve_kernel(f.cache, at, &result, &module);
		assert_int_equal(result.reason, SYMBOL_FOUND);
		const struct symbol_frame *outer = &result.frames[result.n_frames - 1];
		assert_string_equal(outer->name, "schedule");
		assert_non_null(strstr(outer->file, "sched.c"));
		assert_int_equal(outer->start_line, 6);
		if (result.n_frames == 2) {
			has_inlined = true;
			assert_string_equal(result.frames[0].name, "pick_next");
			assert_int_equal(result.frames[0].line, 4);
			assert_int_equal(outer->line, 8);
		}
	}
	assert_true(has_inlined);
	/* What the vmlinux does not know keeps the name of kallsyms. */
	assert_name(&f, vaddr + 0x10000, "other", "");
	end(&f);
}

static void vmlinux_of_another_build_gives_no_lines_to_kallsyms(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	if (!link_vmlinux(&f)) {
		end(&f);
		skip();
	}
	save_kallsyms(&f, small_kallsyms);
	start(&f);
	struct symbol_result result;
	const char *module = NULL;
	symcache_resolve_kernel(f.cache, TEXT + 0x210, &result, &module);
	assert_string_equal(result.frames[0].name, "schedule");
	assert_null(result.frames[0].file);
	end(&f);
}

static void no_symbols_disables_kernel_names(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	f.config.no_symbols = true;
	f.query = (struct kernel_query){.is_this_host = true};
	start(&f);
	assert_reason(&f, TEXT, SYMBOL_DISABLED);
	end(&f);
}

/* 0 when hidden. */
static uint64_t find_own_text(void)
{
	char line[512];
	uint64_t text = 0;
	FILE *file = fopen("/proc/kallsyms", "r");
	while (file && !text && fgets(line, sizeof(line), file)) {
		if (strstr(line, " T _text\n"))
			text = strtoull(line, NULL, 16);
	}
	if (file)
		fclose(file);
	return text;
}

/* perf in pipe mode writes no build-id of the kernel. */
static void same_release_is_this_kernel_when_its_text_lies_where_it_lay(void **state)
{
	(void)state;
	uint64_t text = find_own_text();
	if (!text) {
		print_message("kernel addresses are hidden here\n");
		skip();
	}
	for (uint64_t moved = 0; moved < 2; moved++) {
		struct fixture f;
		begin(&f);
		f.query = (struct kernel_query){
			.text_start = text + moved * 0x200000,
			.relocation_symbol = "_text",
			.is_same_release = true,
		};
		start(&f);
		struct symbol_result result;
		const char *module = NULL;
		symcache_resolve_kernel(f.cache, f.query.text_start, &result, &module);
		assert_int_equal(result.reason, moved ? SYMBOL_OTHER_KERNEL : SYMBOL_FOUND);
		end(&f);
	}
}

/*
 * What was fetched before is used without asking; nobody listens at that port. An id that ends in
 * zeros is taken for a padded one.
 */
static void vmlinux_is_fetched_when_nothing_else_gives_names(void **state)
{
	(void)state;
	static const char *const no_roots[] = {NULL};
	const struct symcache_debuginfod debuginfod = {.urls = "http://127.0.0.1:1"};
	struct fixture f;
	begin(&f);
	save_vmlinux(&f, kernel_id);
	f.config.vmlinux = NULL;
	f.config.debug_roots = no_roots;
	f.config.cache_path = f.dir.path;
	f.config.debuginfod = &debuginfod;
	const char *kept = temp_dir_path(&f.dir, "fetched/0909090900000000.debuginfo");
	assert_int_equal(rename(f.vmlinux, kept), 0);
	assert_int_equal(chmod(kept, 0600), 0);
	assert_int_equal(chmod(temp_dir_path(&f.dir, "fetched"), 0700), 0);
	for (int i = 0; i < 2; i++) {
		f.query.has_addresses = i;
		f.query.text_start = TEXT + 0x2000;
		f.cache = symcache_new(&f.config);
		symcache_kernel(f.cache, &f.query);
		symcache_prepare(f.cache, NULL, 0, NULL, NULL);
		if (i)
			assert_name(&f, TEXT + 0x2200, "schedule", "");
		else
			assert_reason(&f, TEXT + 0x2200, SYMBOL_OTHER_KERNEL);
		if (!i)
			symcache_free(f.cache);
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vmlinux_is_fetched_when_nothing_else_gives_names),
		cmocka_unit_test(kernel_of_this_host_is_named_by_kallsyms),
		cmocka_unit_test(recorded_addresses_are_moved_by_what_kaslr_moved),
		cmocka_unit_test(hidden_addresses_are_told_and_never_named),
		cmocka_unit_test(hidden_addresses_are_named_by_vmlinux_of_the_same_build),
		cmocka_unit_test(vmlinux_of_recorded_kernel_is_used_and_relocated_by_either_symbol),
		cmocka_unit_test(vmlinux_of_another_build_is_not_used),
		cmocka_unit_test(vmlinux_without_known_start_is_not_used),
		cmocka_unit_test(recording_of_another_kernel_is_not_named_by_this_host),
		cmocka_unit_test(vmlinux_is_found_below_the_sysroot_by_release),
		cmocka_unit_test(this_host_is_named_by_its_own_kallsyms),
		cmocka_unit_test(vmlinux_gives_lines_and_inlined_calls_where_kallsyms_gives_names),
		cmocka_unit_test(vmlinux_of_another_build_gives_no_lines_to_kallsyms),
		cmocka_unit_test(no_symbols_disables_kernel_names),
		cmocka_unit_test(same_release_is_this_kernel_when_its_text_lies_where_it_lay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
