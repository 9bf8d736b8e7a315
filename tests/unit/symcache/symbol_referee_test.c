/* SPDX-License-Identifier: Apache-2.0 */
/* Names of real binaries against those that nm(1) lists: every sized function, at its ends. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "symcache/symcache.h"
#include "tests/support/temp_dir.h"

enum { MAX_SYMBOLS = 100000, NAME_BYTES = 1024 };

struct listed {
	uint64_t start, size;
	char *name;
};

static struct listed *symbols;
static size_t n_symbols;

static bool has_program(const char *name)
{
	char command[128];
	snprintf(command, sizeof(command), "command -v %s > /dev/null 2>&1", name);
	return system(command) == 0;
}

/* ADDRESS SIZE TYPE NAME, functions only. */
static void read_nm(const char *options, const char *path)
{
	char command[PATH_MAX + 64];
	snprintf(command, sizeof(command), "nm %s --defined-only -S %s 2>/dev/null", options, path);
	FILE *nm = popen(command, "r");
	assert_non_null(nm);
	char line[NAME_BYTES + 64], name[NAME_BYTES], type;
	struct listed symbol;
	while (n_symbols < MAX_SYMBOLS && fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %1023s", &symbol.start, &symbol.size,
			   &type, name) != 4 ||
		    !strchr("TtWwi", type) || !symbol.size)
			continue;
		name[strcspn(name, "@")] = 0;
		symbol.name = strdup(name);
		symbols[n_symbols++] = symbol;
	}
	pclose(nm);
}

static int compare_starts(const void *a, const void *b)
{
	uint64_t left = ((const struct listed *)a)->start;
	uint64_t right = ((const struct listed *)b)->start;
	return left < right ? -1 : left > right;
}

/* With DWARF the seldom run part of a function has the function's name, "foo.cold" is foo. */
static bool is_name_of(const char *symbol, const char *name)
{
	size_t n = strlen(name);
	return strncmp(symbol, name, n) == 0 && (!symbol[n] || strcmp(symbol + n, ".cold") == 0);
}

/* Whether nm has a function of that name that covers svma, and none that starts later does. */
static bool agrees(uint64_t svma, const char *name)
{
	size_t low = 0;
	for (size_t high = n_symbols; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (symbols[middle].start <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i-- > 0 && svma - symbols[i].start < (1u << 20);) {
		if (svma - symbols[i].start >= symbols[i].size)
			continue;
		uint64_t start = symbols[i].start;
		for (; i < n_symbols && symbols[i].start == start; i--) {
			if (is_name_of(symbols[i].name, name))
				return true;
			if (i == 0)
				break;
		}
		return false;
	}
	return false;
}

static size_t compare_with_nm(const char *path, const char *options)
{
	symbols = calloc(MAX_SYMBOLS, sizeof(*symbols));
	n_symbols = 0;
	read_nm(options, path);
	qsort(symbols, n_symbols, sizeof(*symbols), compare_starts);
	static const char *const no_roots[] = {NULL};
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.trust_paths = true,
						       .no_cache = true,
						       .debug_roots = no_roots,
						       .demangle = SYMCACHE_DEMANGLE_NONE});
	struct module *module = symcache_module(cache, &(struct module_query){.path = path});
	assert_int_equal(module_get_state(module), MODULE_OK_TRUSTED);
	size_t n_compared = 0, n_wrong = 0, n_missed = 0;
	for (size_t i = 0; i < n_symbols; i++) {
		uint64_t ends[2] = {symbols[i].start, symbols[i].start + symbols[i].size - 1};
		for (size_t k = 0; k < 2; k++) {
			struct symbol_result result;
			symcache_resolve(cache, module, ends[k], &result);
			n_compared++;
			if (result.reason != SYMBOL_FOUND) {
				n_missed++;
				continue;
			}
			/* The symbol is that of the function in which others were inlined. */
			const char *name = result.frames[result.n_frames - 1].linkage_name;
			if (!agrees(ends[k], name) && ++n_wrong < 10)
				printf("%s: %#" PRIx64 ": %s, nm: %s\n", path, ends[k], name,
				       symbols[i].name);
		}
	}
	printf("%s: %zu addresses, %zu wrong, %zu missed\n", path, n_compared, n_wrong, n_missed);
	assert_int_equal(n_wrong, 0);

	assert_int_equal(n_missed, 0);
	symcache_free(cache);
	for (size_t i = 0; i < n_symbols; i++)
		free(symbols[i].name);
	free(symbols);
	return n_compared;
}

static void names_of_installed_binaries_are_those_of_nm(void **state)
{
	(void)state;
	static const char *const paths[] = {"/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6",
					    "/lib/aarch64-linux-gnu/libc.so.6",
					    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"};
	size_t n = 0;
	if (!has_program("nm")) {
		print_message("nm (binutils) is not installed\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (access(paths[i], R_OK) == 0)
			n += compare_with_nm(paths[i], "-D");
	}
	if (n == 0)
		skip();
	assert_true(n > 1000);
}

static void names_of_own_symbol_table_are_those_of_nm(void **state)
{
	(void)state;
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	self[n] = 0;
	if (!has_program("nm")) {
		print_message("nm (binutils) is not installed\n");
		skip();
	}
	assert_true(compare_with_nm(self, "") > 100);
}

static const char program[] = ".text\n"
			      ".globl asm_stub\n"
			      ".type asm_stub, @function\n"
			      "asm_stub: nop\n nop\n ret\n"
			      ".type secret, @function\n"
			      "secret: nop\n ret\n"
			      ".size secret, .-secret\n"
			      ".globl shown\n"
			      ".type shown, @function\n"
			      "shown: call puts@PLT\n ret\n"
			      ".size shown, .-shown\n"
			      ".globl _start\n"
			      ".type _start, @function\n"
			      "_start: call shown\n"
			      ".size _start, .-_start\n";

static void run(const char *format, ...) PRINTF_LIKE(1, 2);
static void run(const char *format, ...)
{
	char command[4 * PATH_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static void assert_reason(struct symcache *cache, struct module *module, uint64_t svma,
			  const char *name)
{
	struct symbol_result result;
	symcache_resolve(cache, module, svma, &result);
	if (!name) {
		assert_int_equal(result.reason, SYMBOL_GAP);
		return;
	}
	assert_int_equal(result.reason, SYMBOL_FOUND);
	assert_string_equal(result.frames[0].name, name);
}

static uint64_t start_of(const char *name)
{
	for (size_t i = 0; i < n_symbols; i++) {
		if (strcmp(symbols[i].name, name) == 0)
			return symbols[i].start;
	}
	fail_msg("nm does not list %s", name);
	return 0;
}

/* FR-11 and FR-12 with what gcc, ld and strip make: the stub ends where secret begins. */
static void stub_without_size_is_named_alone_after_strip(void **state)
{
	(void)state;
#ifndef __x86_64__
	skip();
#endif
	if (!has_program("gcc") || !has_program("strip") || !has_program("nm")) {
		print_message("gcc or binutils are not installed\n");
		skip();
	}
	struct temp_dir dir;
	temp_dir_init(&dir);
	const char *source = temp_dir_path(&dir, "stub.s");
	const char *whole = temp_dir_path(&dir, "stub.so");
	const char *stripped = temp_dir_path(&dir, "stripped.so");
	FILE *file = fopen(source, "w");
	fputs(program, file);
	fclose(file);
	run("gcc -nostdlib -shared -o %s %s", whole, source);
	run("strip -o %s %s", stripped, whole);
	symbols = calloc(MAX_SYMBOLS, sizeof(*symbols));
	n_symbols = 0;
	read_nm("", whole);
	uint64_t secret = start_of("secret"), shown = start_of("shown");
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.trust_paths = true, .no_cache = true});
	struct module *module = symcache_module(cache, &(struct module_query){.path = whole});
	assert_reason(cache, module, secret - 3, "asm_stub");
	assert_reason(cache, module, secret - 1, "asm_stub");
	assert_reason(cache, module, secret, "secret");
	symcache_free(cache);
	cache = symcache_new(&(struct symcache_config){.trust_paths = true, .no_cache = true});
	module = symcache_module(cache, &(struct module_query){.path = stripped});
	assert_reason(cache, module, secret - 3, "asm_stub");
	assert_reason(cache, module, secret - 2, NULL);
	assert_reason(cache, module, secret, NULL);
	assert_reason(cache, module, shown, "shown");
	bool has_plt = false;
	for (uint64_t svma = 0; svma < secret; svma++) {
		struct symbol_result result;
		symcache_resolve(cache, module, svma, &result);
		has_plt |= result.reason == SYMBOL_FOUND &&
			   strcmp(result.frames[0].name, "puts@plt") == 0;
	}
	assert_true(has_plt);
	symcache_free(cache);
	for (size_t i = 0; i < n_symbols; i++)
		free(symbols[i].name);
	free(symbols);
	temp_dir_fini(&dir);
}

/* FR-19 with real files of objcopy. */
static void separate_debug_file_of_objcopy_names_stripped_functions(void **state)
{
	(void)state;
	if (!has_program("gcc") || !has_program("objcopy") || !has_program("nm")) {
		print_message("gcc or binutils are not installed\n");
		skip();
	}
	struct temp_dir dir;
	temp_dir_init(&dir);
	const char *source = temp_dir_path(&dir, "app.c");
	const char *app = temp_dir_path(&dir, "app");
	const char *debug = temp_dir_path(&dir, "app.debug");
	FILE *file = fopen(source, "w");
	fputs("static int __attribute__((noinline)) hot(int x) { return x * 3; }\n"
	      "int main(int n, char **v) { (void)v; return hot(n); }\n",
	      file);
	fclose(file);
	static const char *const ids[] = {"-Wl,--build-id=sha1", "-Wl,--build-id=none"};
	for (size_t i = 0; i < 2; i++) {
		run("gcc -O1 -g %s -o %s %s", ids[i], app, source);
		symbols = calloc(MAX_SYMBOLS, sizeof(*symbols));
		n_symbols = 0;
		read_nm("", app);
		uint64_t hot = start_of("hot");
		run("objcopy --only-keep-debug %s %s", app, debug);
		run("strip --strip-all %s", app);
		run("objcopy --add-gnu-debuglink=%s %s", debug, app);
		struct symcache *cache = symcache_new(
			&(struct symcache_config){.trust_paths = true, .no_cache = true});
		struct module *module = symcache_module(cache, &(struct module_query){.path = app});
		assert_reason(cache, module, hot + 1, "hot");
		size_t n_places;
		const char *const *places = module_debug_places(module, &n_places);
		size_t n_found = 0;
		for (size_t k = 0; k < n_places; k++)
			n_found += strstr(places[k], "app.debug: found") != NULL;
		assert_int_equal(n_found, 1);
		symcache_free(cache);
		for (size_t k = 0; k < n_symbols; k++)
			free(symbols[k].name);
		free(symbols);
	}
	temp_dir_fini(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_installed_binaries_are_those_of_nm),
		cmocka_unit_test(names_of_own_symbol_table_are_those_of_nm),
		cmocka_unit_test(stub_without_size_is_named_alone_after_strip),
		cmocka_unit_test(separate_debug_file_of_objcopy_names_stripped_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
