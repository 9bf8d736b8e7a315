/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs built here by gcc and clang in many ways; what the model says about every address of
 * their .text against llvm-symbolizer. The referee gets the programs without symbol tables, because
 * it prefers their names for outermost functions.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "symcache/dwarf_source.h"
#include "tests/support/model_lookup.h"
#include "tests/support/temp_dir.h"

enum { TEXT_BYTES = 1 << 16, MAX_OPEN = 16, MAX_FILE_BYTES = 1 << 30 };

/* Images that stay open until the model is made. */
struct opened {
	struct file_map maps[MAX_OPEN];
	struct elf_image images[MAX_OPEN];
	unsigned n;
	char package[PATH_MAX];
	char alternate[PATH_MAX];
};

static const struct elf_image *open_image(struct opened *opened, const char *path)
{
	if (opened->n == MAX_OPEN)
		return NULL;
	struct file_map *map = &opened->maps[opened->n];
	struct elf_image *image = &opened->images[opened->n];
	struct error *err = file_map_open(path, MAX_FILE_BYTES, map);
	if (err) {
		error_free(err);
		return NULL;
	}
	assert_null(elf_image_init(image, map->data, map->size));
	opened->n++;
	return image;
}

static void close_images(struct opened *opened)
{
	for (unsigned i = 0; i < opened->n; i++) {
		elf_image_fini(&opened->images[i]);
		file_map_close(&opened->maps[i]);
	}
}

static const struct elf_image *find_dwo(void *context, const char *folder, const char *name,
					uint64_t id)
{
	(void)id;
	char path[PATH_MAX];
	if (name[0] == '/')
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
	return open_image(context, path);
}

static const struct elf_image *find_package(void *context)
{
	struct opened *opened = context;
	return opened->package[0] ? open_image(opened, opened->package) : NULL;
}

static const struct elf_image *find_alternate(void *context, const char *path,
					      const struct build_id *id)
{
	struct opened *opened = context;
	(void)path;
	(void)id;
	return opened->alternate[0] ? open_image(opened, opened->alternate) : NULL;
}

static bool run(struct temp_dir *dir, const char *command)
{
	char whole[4 * PATH_MAX];
	snprintf(whole, sizeof(whole),
		 "cd %s && S=%s/tests/unit/symcache/dwarf_programs && { %s; } > log 2>&1",
		 dir->path, TEST_SOURCE_DIR, command);
	return system(whole) == 0;
}

static bool has_program(const char *name)
{
	char command[128];
	snprintf(command, sizeof(command), "command -v %s > /dev/null 2>&1", name);
	return system(command) == 0;
}

/* What only the symbol table of crt files would say is not in the model. */
static bool agree(const char *ours, const char *theirs)
{
	return strcmp(ours, theirs) == 0 || strcmp(theirs, "??\n??:0:0\n") == 0;
}

/* The next block, up to an empty line. */
static bool read_block(FILE *file, char *text, size_t n)
{
	size_t used = 0;
	text[0] = 0;
	while (used + 1 < n && fgets(text + used, (int)(n - used), file)) {
		if (text[used] == '\n') {
			text[used] = 0;
			return true;
		}
		used += strlen(text + used);
	}
	return used != 0;
}

static void write_addresses(struct temp_dir *dir, const struct elf_section *text)
{
	FILE *file = fopen(temp_dir_path(dir, "addresses"), "w");
	assert_non_null(file);
	for (uint64_t i = 0; i < text->size; i++)
		fprintf(file, "%#" PRIx64 "\n", text->address + i);
	fclose(file);
}

static void compare(struct temp_dir *dir, struct opened *opened, const char *what)
{
	const struct elf_image *image = open_image(opened, temp_dir_path(dir, "program"));
	assert_non_null(image);
	struct symbol_model model;
	struct dwarf_source_stats stats;
	symbol_model_init(&model);
	const struct dwarf_source_files files = {.context = opened,
						 .find_dwo = find_dwo,
						 .find_package = find_package,
						 .find_alternate = find_alternate};
	assert_null(dwarf_source_read(image, &files, &model, &stats));
	symbol_model_finish(&model);
	const struct elf_section *text = elf_image_find(image, ".text");
	assert_non_null(text);
	write_addresses(dir, text);
	assert_true(run(dir, "llvm-symbolizer-14 --obj=referee --no-demangle --functions=linkage "
			     "--inlines < addresses > answers"));
	FILE *answers = fopen(temp_dir_path(dir, "answers"), "r");
	assert_non_null(answers);
	static char ours[TEXT_BYTES], theirs[TEXT_BYTES];
	uint64_t n_different = 0, n_inlined = 0;
	for (uint64_t i = 0; i < text->size; i++) {
		model_lookup_text(&model, text->address + i, ours, sizeof(ours));
		assert_true(read_block(answers, theirs, sizeof(theirs)));
		const struct symbol_range *range = model_lookup_range(&model, text->address + i);
		n_inlined += range && model.chains.items[range->chain].parent != SYMBOL_CHAIN_NONE;
		if (!agree(ours, theirs) && ++n_different <= 3)
			printf("%s: %#" PRIx64 "\nours:\n%stheirs:\n%s", what, text->address + i,
			       ours, theirs);
	}
	printf("%s: %" PRIu64 " addresses, %" PRIu64 " inlined, %" PRIu64 " different, %u units\n",
	       what, text->size, n_inlined, n_different, stats.n_units);
	assert_int_equal(stats.n_damaged_units + stats.n_damaged_line_tables +
				 stats.n_damaged_sections + stats.n_dwo_missing,
			 0);
	assert_true(n_inlined > 0);
	assert_true(n_different * 1000 <= text->size);
	fclose(answers);
	symbol_model_fini(&model);
}

static void check(const char *command, const char *package, const char *alternate)
{
	struct temp_dir dir;
	temp_dir_init(&dir);
	static struct opened opened;
	opened = (struct opened){0};
	if (package)
		snprintf(opened.package, sizeof(opened.package), "%s",
			 temp_dir_path(&dir, package));
	if (alternate)
		snprintf(opened.alternate, sizeof(opened.alternate), "%s",
			 temp_dir_path(&dir, alternate));
	if (!run(&dir, command)) {
		printf("skipped, not possible here: %s\n", command);
	} else {
		/* What the referee cannot read, it gets in another form. */
		assert_true(run(&dir, "[ -e referee ] || cp program referee; "
				      "llvm-objcopy-14 --remove-section=.symtab referee"));
		compare(&dir, &opened, command);
	}
	close_images(&opened);
	temp_dir_fini(&dir);
}

static void dwarf_source_agrees_with_llvm_on_gcc_programs(void **state)
{
	(void)state;
	static const char *const options[] = {
		"-gdwarf-2 -gstrict-dwarf",
		"-gdwarf-3",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gdwarf-5 -gdwarf64",
		"-gdwarf-4 -fdebug-types-section",
		"-gdwarf-5 -flto",
		"-gdwarf-4 -ffunction-sections -Wl,--gc-sections",
		"-gdwarf-5 -O3 -no-pie",
		"-gdwarf-5 -m32",
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char command[1024];
		snprintf(command, sizeof(command), "gcc -O2 %s -o program $S/main.c $S/measure.c",
			 options[i]);
		check(command, NULL, NULL);
	}
}

static void dwarf_source_agrees_with_llvm_on_clang_programs(void **state)
{
	(void)state;
	static const char *const options[] = {
		"-gdwarf-2",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gdwarf-5 -flto -fuse-ld=lld",
		"-gdwarf-4 -ffunction-sections -fuse-ld=lld -Wl,--gc-sections",
		"-gdwarf-5 -ffunction-sections -fuse-ld=lld -Wl,--gc-sections,--icf=all",
		"-gline-tables-only",
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char command[1024];
		snprintf(command, sizeof(command),
			 "clang-14 -O2 %s -o program $S/main.c $S/measure.c", options[i]);
		check(command, NULL, NULL);
	}
}

static void dwarf_source_agrees_with_llvm_on_cpp_programs(void **state)
{
	(void)state;
	static const char *const commands[] = {
		"g++ -std=c++17 -O2 -gdwarf-5",
		"g++ -std=c++17 -O2 -gdwarf-4 -fdebug-types-section",
		"g++ -std=c++17 -O2 -gdwarf-5 -flto",
		"g++ -std=c++17 -O1 -gdwarf-3",
		"clang++-14 -std=c++17 -O2 -gdwarf-5",
		"clang++-14 -std=c++17 -O2 -gdwarf-4",
		"clang++-14 -std=c++17 -O2 -gdwarf-5 -flto -fuse-ld=lld",
	};
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char command[1024];
		snprintf(command, sizeof(command), "%s -o program $S/main.cc", commands[i]);
		check(command, NULL, NULL);
	}
}

static void dwarf_source_reads_programs_of_other_machines(void **state)
{
	(void)state;
	static const char *const machines[] = {
		"i686-linux-gnu", "aarch64-linux-gnu",	   "powerpc64-linux-gnu",
		"mips-linux-gnu", "armv7-linux-gnueabihf", "riscv64-linux-gnu",
	};
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		for (int version = 2; version <= 5; version++) {
			char command[1024];
			snprintf(command, sizeof(command),
				 "clang-14 --target=%s -O2 -gdwarf-%d -fPIC -shared -nostdlib "
				 "-fuse-ld=lld -o program $S/bare.c",
				 machines[i], version);
			check(command, NULL, NULL);
		}
	}
}

static void dwarf_source_reads_compressed_sections(void **state)
{
	(void)state;
	check("gcc -O2 -gdwarf-5 -gz=zlib -o program $S/main.c $S/measure.c", NULL, NULL);
	check("gcc -O2 -gdwarf-5 -o program $S/main.c $S/measure.c && cp program referee && "
	      "objcopy --compress-debug-sections=zlib-gnu program",
	      NULL, NULL);
	check("gcc -O2 -gdwarf-5 -o program $S/main.c $S/measure.c && cp program referee && "
	      "objcopy --compress-debug-sections=zstd program",
	      NULL, NULL);
}

/* The referee of split units is the same program with its DWARF in one piece: llvm-symbolizer 14
 * loses inlined calls that .debug_rnglists.dwo describes. */
#define SPLIT(compiler, version)                                                                   \
	compiler " -O2 -gdwarf-" version " -o referee $S/main.c $S/measure.c && " compiler         \
		 " -O2 -gdwarf-" version " -gsplit-dwarf -o program $S/main.c $S/measure.c"

static void dwarf_source_reads_split_units(void **state)
{
	(void)state;
	check(SPLIT("gcc", "4"), NULL, NULL);
	check(SPLIT("gcc", "5"), NULL, NULL);
	check(SPLIT("clang-14", "4"), NULL, NULL);
	check(SPLIT("clang-14", "5"), NULL, NULL);
}

static void dwarf_source_reads_packages(void **state)
{
	(void)state;
	check(SPLIT("gcc", "4") " && dwp -e program -o one.dwp && rm *.dwo", "one.dwp", NULL);
	check(SPLIT("clang-14", "4") " && llvm-dwp-14 -e program -o one.dwp && rm *.dwo", "one.dwp",
	      NULL);
	check(SPLIT("clang-14", "5") " && llvm-dwp-14 -e program -o one.dwp && rm *.dwo", "one.dwp",
	      NULL);
	/* References that count from the begin of the .dwo file, DW_FORM_ref_addr for
	 * DW_AT_abstract_origin: in a file of one unit they have the values of DW_FORM_ref4. */
	check(SPLIT("gcc", "4") " && dwp -e program -o one.dwp && rm *.dwo && "
				"objcopy --dump-section .debug_abbrev.dwo=abbrevs one.dwp && "
				"LC_ALL=C sed -i 's/\\x31\\x13/\\x31\\x10/g' abbrevs && "
				"objcopy --update-section .debug_abbrev.dwo=abbrevs one.dwp",
	      "one.dwp", NULL);
}

static void dwarf_source_reads_alternates_of_dwz(void **state)
{
	(void)state;
	check("gcc -O2 -gdwarf-4 -o program $S/main.c $S/measure.c && cp program referee && "
	      "dwz program",
	      NULL, NULL);
	check("gcc -O2 -gdwarf-4 -o program $S/main.c $S/measure.c && cp program referee && "
	      "cp program other && dwz -m shared program other",
	      NULL, "shared");
	check("g++ -std=c++17 -O2 -gdwarf-5 -o program $S/main.cc && cp program referee && "
	      "cp program other && dwz -5 -m shared program other",
	      NULL, "shared");
}

int main(void)
{
	if (!has_program("llvm-symbolizer-14") || !has_program("gcc")) {
		printf("skipped: llvm-symbolizer-14 and gcc are not installed\n");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dwarf_source_agrees_with_llvm_on_gcc_programs),
		cmocka_unit_test(dwarf_source_agrees_with_llvm_on_clang_programs),
		cmocka_unit_test(dwarf_source_agrees_with_llvm_on_cpp_programs),
		cmocka_unit_test(dwarf_source_reads_programs_of_other_machines),
		cmocka_unit_test(dwarf_source_reads_compressed_sections),
		cmocka_unit_test(dwarf_source_reads_split_units),
		cmocka_unit_test(dwarf_source_reads_packages),
		cmocka_unit_test(dwarf_source_reads_alternates_of_dwz),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
