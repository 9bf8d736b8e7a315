/* SPDX-License-Identifier: Apache-2.0 */
/* What comes from the store, what is built, and what is remembered. */
#include "symcache/symbol_supply.h"

#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

struct fixture {
	struct temp_dir dir;
	char path[PATH_MAX];
	struct symbol_supply *supply;
	struct symbol_outcome outcome;
	struct build_id id;
};

static const char *const no_roots[] = {NULL};

static struct symbol_supply *open_supply(struct fixture *f)
{
	return symbol_supply_new(&(struct symcache_config){.cache_path = f->path});
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){.id = build_id_make("supply", 6)};
	temp_dir_init(&f->dir);
	snprintf(f->path, sizeof(f->path), "%s/cache", f->dir.path);
	f->supply = open_supply(f);
}

static void end(struct fixture *f)
{
	symbol_outcome_fini(&f->outcome);
	symbol_supply_free(f->supply);
	temp_dir_fini(&f->dir);
}

static int make_file(const void *bytes, size_t n)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return fd;
}

static int make_binary(const char *symbol, bool has_dwarf_section)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(&writer, 0x1000, 0x100);
	elf_writer_symbol(&writer, false, symbol, 0x1000, 8, STB_GLOBAL, STT_FUNC, text);
	if (has_dwarf_section)
		elf_writer_section(&writer, ".debug_info", SHT_PROGBITS, 0, 0, "\xff\xff\xff", 3);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	int fd = make_file(bytes, n);
	elf_writer_fini(&writer);
	return fd;
}

static void build(struct fixture *f, int binary_fd, enum symbol_quality quality)
{
	const struct symbol_order order = {
		.id = f->id,
		.quality = quality,
		.binary_fd = binary_fd,
		.debug_fd = -1,
		.places = {.roots = no_roots},
	};
	symbol_supply_build(f->supply, &order, &f->outcome);
}

static void forget_outcome(struct fixture *f)
{
	symbol_outcome_fini(&f->outcome);
	symbol_supply_free(f->supply);
	f->supply = open_supply(f);
}

static void assert_named(const struct fixture *f, const char *name)
{
	struct symbol_result result;
	assert_false(f->outcome.is_pending);
	assert_non_null(f->outcome.file);
	assert_true(symbol_file_lookup(f->outcome.file, 0x1004, &result));
	assert_string_equal(result.frames[0].name, name);
}

static void built_file_is_found_by_the_next_process(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_false(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_SYMTAB, &f.outcome));
	build(&f, make_binary("first", false), SYMBOL_QUALITY_SYMTAB);
	symbol_supply_wait(f.supply);
	assert_named(&f, "first");
	forget_outcome(&f);
	assert_true(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_DYNSYM, &f.outcome));
	assert_named(&f, "first");
	symbol_outcome_fini(&f.outcome);
	/* A better source is worth another build. */
	assert_false(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_DWARF, &f.outcome));
	end(&f);
}

static void failure_is_remembered_with_its_reason(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	build(&f, make_file("no ELF at all", 13), SYMBOL_QUALITY_SYMTAB);
	symbol_supply_wait(f.supply);
	assert_null(f.outcome.file);
	assert_non_null(f.outcome.failure);
	forget_outcome(&f);
	assert_true(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_SYMTAB, &f.outcome));
	assert_null(f.outcome.file);
	assert_true(strlen(f.outcome.failure) > 5);
	symbol_outcome_fini(&f.outcome);
	assert_false(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_DWARF, &f.outcome));
	end(&f);
}

static void source_that_gave_nothing_better_is_not_tried_each_time(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	build(&f, make_binary("kept", true), SYMBOL_QUALITY_DWARF);
	symbol_supply_wait(f.supply);
	assert_named(&f, "kept");
	assert_int_equal(symbol_file_get_info(f.outcome.file).quality, SYMBOL_QUALITY_SYMTAB);
	forget_outcome(&f);
	assert_true(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_DWARF, &f.outcome));
	assert_named(&f, "kept");
	end(&f);
}

static pid_t first_child(void)
{
	char path[64];
	int pid = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "r");
	if (!file || fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

static void build_that_was_lost_is_started_once_more(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	pid_t pid = first_child();
	if (!pid) {
		end(&f);
		print_message("children are not listed here\n");
		skip();
	}
	/* Stopped before it can take the order, killed while it has it. */
	kill(pid, SIGSTOP);
	build(&f, make_binary("late", false), SYMBOL_QUALITY_SYMTAB);
	assert_true(f.outcome.is_pending);
	kill(pid, SIGKILL);
	symbol_supply_wait(f.supply);
	assert_named(&f, "late");
	end(&f);
}

static void without_a_store_symbols_live_in_memory(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	symbol_supply_free(f.supply);
	f.supply = symbol_supply_new(&(struct symcache_config){.no_cache = true});
	build(&f, make_binary("fleeting", false), SYMBOL_QUALITY_SYMTAB);
	symbol_supply_wait(f.supply);
	assert_named(&f, "fleeting");
	symbol_outcome_fini(&f.outcome);
	assert_false(symbol_supply_find(f.supply, &f.id, SYMBOL_QUALITY_SYMTAB, &f.outcome));
	end(&f);
}

/* Of what objcopy --only-keep-debug leaves, headers alone promise nothing. */
static void headers_without_bytes_promise_nothing(void **state)
{
	(void)state;
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab",
					    ".gnu_debugdata"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int has_bytes = 0; has_bytes < 2; has_bytes++) {
			struct elf_writer writer;
			elf_writer_init(&writer, true, false, EM_X86_64);
			elf_writer_section(&writer, names[i], has_bytes ? SHT_PROGBITS : SHT_NOBITS,
					   SHF_ALLOC, 0, has_bytes ? "some bytes" : NULL, 10);
			size_t n;
			const uint8_t *bytes = elf_writer_finish(&writer, &n);
			struct elf_image image;
			assert_null(elf_image_init(&image, bytes, n));
			assert_int_equal(symbol_supply_quality_of(&image),
					 has_bytes ? SYMBOL_QUALITY_SYMTAB : SYMBOL_QUALITY_NONE);
			elf_image_fini(&image);
			elf_writer_fini(&writer);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_without_bytes_promise_nothing),
		cmocka_unit_test(built_file_is_found_by_the_next_process),
		cmocka_unit_test(failure_is_remembered_with_its_reason),
		cmocka_unit_test(source_that_gave_nothing_better_is_not_tried_each_time),
		cmocka_unit_test(build_that_was_lost_is_started_once_more),
		cmocka_unit_test(without_a_store_symbols_live_in_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
