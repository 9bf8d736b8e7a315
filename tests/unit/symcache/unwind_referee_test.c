/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables against readelf(1): every row of every entry, at its first and its last byte. The
 * tables come the way they do in use, out of the builder's process.
 */
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

#include "base/compiler.h"
#include "symcache/symcache.h"
#include "tests/support/temp_dir.h"

enum { MAX_COLUMNS = 40, TEXT_BYTES = 24, LINE_BYTES = 1024, MAX_CIES = 4096 };

#define PROGRAMS TEST_SOURCE_DIR "/tests/unit/symcache/unwind_programs"

/* What readelf says of an address: the texts of three columns, "" = it does not mention it. */
struct row {
	uint64_t svma;
	char cfa[TEXT_BYTES], return_address[TEXT_BYTES], frame_pointer[TEXT_BYTES];
};

struct referee {
	const char *path;
	const struct unwind_table *table;
	char columns[MAX_COLUMNS][TEXT_BYTES];
	size_t n_columns;
	struct {
		uint64_t offset;
		struct row row;
	} cies[MAX_CIES];
	size_t n_cies;
	bool is_in_cie, is_in_fde, has_row;
	uint64_t end; /* of the FDE */
	struct row row;
	size_t n_compared, n_wrong;
};

static bool is_x86(const struct referee *referee)
{
	return referee->table->machine == UNWIND_X86_64;
}

/* -1 = no register. */
static int register_number(const struct referee *referee, const char *name)
{
	static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					  "rbp", "rsp", "r8",  "r9",  "r10", "r11",
					  "r12", "r13", "r14", "r15", "rip"};
	int number;
	if (!is_x86(referee)) {
		if (strcmp(name, "sp") == 0)
			return UNWIND_ARM64_SP;
		return sscanf(name, "x%d", &number) == 1 ? number : -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(x86); i++) {
		if (strcmp(name, x86[i]) == 0)
			return (int)i;
	}
	return -1;
}

/* "rsp+8", "exp". */
static bool is_cfa(const struct referee *referee, const char *text, const struct unwind_rule *rule)
{
	char name[TEXT_BYTES];
	int offset;
	if (strcmp(text, "exp") == 0)
		/* That of a PLT is made out. */
		return rule->cfa.kind == UNWIND_EXPRESSION ||
		       (is_x86(referee) && rule->cfa.kind == UNWIND_REGISTER &&
			rule->cfa.register_number == UNWIND_X86_64_SP);
	return sscanf(text, "%23[a-z0-9]%d", name, &offset) == 2 &&
	       rule->cfa.kind == UNWIND_REGISTER && rule->cfa.offset == offset &&
	       rule->cfa.register_number == register_number(referee, name);
}

/* "c-16", "v+8", "exp", "vexp", a register; "u", "s" and "" are the caller's. */
static bool is_place(const struct referee *referee, const char *text,
		     const struct unwind_value *value)
{
	if (strcmp(text, "exp") == 0)
		return value->kind == UNWIND_AT_EXPRESSION;
	if (strcmp(text, "vexp") == 0)
		return value->kind == UNWIND_EXPRESSION;
	if (text[0] == 'c' && (text[1] == '-' || text[1] == '+'))
		return value->kind == UNWIND_AT_CFA && value->offset == atoi(text + 1);
	if (text[0] == 'v' && (text[1] == '-' || text[1] == '+'))
		return value->kind == UNWIND_CFA && value->offset == atoi(text + 1);
	return value->kind == UNWIND_REGISTER &&
	       value->register_number == register_number(referee, text);
}

/* readelf writes "u" also for what was never said. */
static bool is_unsaid(const char *text)
{
	return !*text || strcmp(text, "u") == 0;
}

static bool is_right(const struct referee *referee, const struct row *row,
		     const struct unwind_rule *rule)
{
	const struct unwind_value *pc = &rule->return_address, *fp = &rule->frame_pointer;
	bool is_pc_right, is_fp_right;
	if (is_unsaid(row->return_address))
		is_pc_right = pc->kind == UNWIND_UNDEFINED ||
			      (!is_x86(referee) && pc->kind == UNWIND_REGISTER &&
			       pc->register_number == UNWIND_ARM64_LR);
	else
		is_pc_right = is_place(referee, row->return_address, pc);
	if (is_unsaid(row->frame_pointer))
		is_fp_right = fp->kind == UNWIND_SAME ||
			      (*row->frame_pointer && fp->kind == UNWIND_UNDEFINED);
	else if (strcmp(row->frame_pointer, "s") == 0)
		is_fp_right = fp->kind == UNWIND_SAME;
	else
		is_fp_right = is_place(referee, row->frame_pointer, fp);
	return is_cfa(referee, row->cfa, rule) && is_pc_right && is_fp_right;
}

/* The row holds until end. */
static void compare_row(struct referee *referee, const struct row *row, uint64_t end)
{
	const uint64_t places[] = {row->svma, end - 1};
	if (row->svma >= end)
		return;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const struct unwind_rule *rule = unwind_table_find(referee->table, places[i]);
		referee->n_compared++;
		if ((!rule || !is_right(referee, row, rule)) && referee->n_wrong++ < 10)
			printf("%s: %#" PRIx64 ": %s %s %s, ours: %s\n", referee->path, places[i],
			       row->cfa, row->return_address, row->frame_pointer,
			       rule ? "differs" : "none");
	}
}

static void end_fde(struct referee *referee)
{
	if (referee->is_in_fde)
		compare_row(referee, &referee->row, referee->end);
	referee->is_in_fde = referee->is_in_cie = false;
}

/* "OFFSET LENGTH ID FDE cie=OFFSET pc=START..END", or a CIE. */
static bool read_heading(struct referee *referee, const char *line)
{
	uint64_t offset, cie, start, end;
	if (sscanf(line, "%" SCNx64 " %*x %*x FDE cie=%" SCNx64 " pc=%" SCNx64 "..%" SCNx64,
		   &offset, &cie, &start, &end) == 4) {
		end_fde(referee);
		referee->row = (struct row){0};
		for (size_t i = 0; i < referee->n_cies; i++) {
			if (referee->cies[i].offset == cie)
				referee->row = referee->cies[i].row;
		}
		referee->row.svma = start;
		referee->end = end;
		referee->is_in_fde = true;
		referee->n_columns = 0;
		return true;
	}
	if (strstr(line, " CIE ") && sscanf(line, "%" SCNx64, &offset) == 1) {
		end_fde(referee);
		assert_true(referee->n_cies < MAX_CIES);
		memset(&referee->cies[referee->n_cies], 0, sizeof(referee->cies[0]));
		referee->cies[referee->n_cies++].offset = offset;
		referee->is_in_cie = true;
		referee->n_columns = 0;
		return true;
	}
	return false;
}

/* readelf writes "r5 (rdi)" for a register. */
static void shorten_registers(char *line)
{
	for (char *open; (open = strstr(line, " (")) && strchr(open, ')');) {
		char *start = open;
		while (start > line && start[-1] != ' ')
			start--;
		size_t n = (size_t)(strchr(open, ')') - (open + 2));
		char *rest = strchr(open, ')') + 1;
		memmove(start, open + 2, n);
		memmove(start + n, rest, strlen(rest) + 1);
	}
}

static void read_row(struct referee *referee, char *line)
{
	char words[MAX_COLUMNS][TEXT_BYTES];
	size_t n = 0;
	struct row row = {0};
	shorten_registers(line);
	for (char *save, *word = strtok_r(line, " \n", &save); word && n < MAX_COLUMNS;
	     word = strtok_r(NULL, " \n", &save))
		snprintf(words[n++], TEXT_BYTES, "%s", word);
	if (n && strcmp(words[0], "LOC") == 0) {
		memcpy(referee->columns, words, sizeof(words));
		referee->n_columns = n;
		return;
	}
	if (!n || n != referee->n_columns)
		return;
	row.svma = strtoull(words[0], NULL, 16);
	const char *fp = is_x86(referee) ? "rbp" : "x29";
	for (size_t i = 1; i < n; i++) {
		if (strcmp(referee->columns[i], "CFA") == 0)
			memcpy(row.cfa, words[i], TEXT_BYTES);
		else if (strcmp(referee->columns[i], "ra") == 0)
			memcpy(row.return_address, words[i], TEXT_BYTES);
		else if (strcmp(referee->columns[i], fp) == 0)
			memcpy(row.frame_pointer, words[i], TEXT_BYTES);
	}
	if (referee->is_in_cie)
		referee->cies[referee->n_cies - 1].row = row;
	if (!referee->is_in_fde)
		return;
	compare_row(referee, &referee->row, row.svma < referee->end ? row.svma : referee->end);
	referee->row = row;
}

static size_t compare_with_readelf(const char *path)
{
	char command[PATH_MAX + 64], line[LINE_BYTES];
	static const char *const no_roots[] = {NULL};
	struct symcache *cache = symcache_new(&(struct symcache_config){.trust_paths = true,
									.no_cache = true,
									.no_symbols = true,
									.wants_unwind = true,
									.debug_roots = no_roots});
	struct module *module = symcache_module(cache, &(struct module_query){.path = path});
	enum unwind_state unwind_state;
	assert_null(module_unwind(module, &unwind_state));
	assert_int_equal(unwind_state, UNWIND_NOT_ASKED);
	symcache_prepare(cache, &module, 1, NULL, NULL);
	struct referee *referee = calloc(1, sizeof(*referee));
	referee->path = path;
	referee->table = module_unwind(module, &unwind_state);
	assert_int_equal(unwind_state, UNWIND_READY);
	snprintf(command, sizeof(command),
		 "LC_ALL=C readelf -W --debug-dump=frames-interp '%s' 2>/dev/null", path);
	FILE *readelf = popen(command, "r");
	assert_non_null(readelf);
	while (fgets(line, sizeof(line), readelf)) {
		if (strncmp(line, "Contents of", 11) == 0) {
			end_fde(referee);
			referee->n_cies = 0;
		} else if (!strstr(line, "terminator") && !read_heading(referee, line)) {
			read_row(referee, line);
		}
	}
	end_fde(referee);
	pclose(readelf);
	printf("%s: %zu places, %zu wrong\n", path, referee->n_compared, referee->n_wrong);
	assert_int_equal(referee->n_wrong, 0);
	size_t n = referee->n_compared;
	free(referee);
	symcache_free(cache);
	return n;
}

static void require_readelf(void)
{
	if (system("command -v readelf >/dev/null 2>&1") != 0) {
		puts("no readelf");
		exit(77);
	}
}

static void tables_of_installed_binaries_are_those_of_readelf(void **state)
{
	(void)state;
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/aarch64-linux-gnu/libc.so.6",
		"/lib/ld-linux-aarch64.so.1",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/bin/git",
		"/bin/bash",
		"/proc/self/exe",
	};
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char path[PATH_MAX];
		if (realpath(paths[i], path))
			n += compare_with_readelf(path);
	}
	assert_true(n > 10000);
}

/* False when the program to build with is missing. */
static bool build(const char *folder, const char *name, const char *command)
{
	char line[4 * PATH_MAX];
	snprintf(line, sizeof(line), "cd '%s' && %s -o '%s' 2>log", folder, command, name);
	if (system(line) == 0)
		return true;
	snprintf(line, sizeof(line), "cat '%s/log'", folder);
	(void)!system(line);
	printf("not built: %s\n", command);
	return false;
}

static void tables_of_odd_programs_are_those_of_readelf(void **state)
{
	(void)state;
	static const struct {
		const char *name, *command;
		bool is_needed; /* its compiler is that of the build */
	} programs[] = {
#ifdef __x86_64__
		{"odd", "cc -shared -nostdlib " PROGRAMS "/odd_x86_64.S", true},
		{"odd_lld", "clang-14 -shared -nostdlib -fuse-ld=lld " PROGRAMS "/odd_x86_64.S",
		 false},
		{"odd_gold", "cc -shared -nostdlib -fuse-ld=gold " PROGRAMS "/odd_x86_64.S", false},
		{"odd_debug_frame",
		 "{ echo .cfi_sections .debug_frame; cat " PROGRAMS "/odd_x86_64.S; } | "
		 "cc -shared -nostdlib -gz -x assembler-with-cpp -",
		 true},
#endif
		{"odd_arm64",
		 "clang-14 --target=aarch64-linux-gnu -march=armv8.3-a -shared -nostdlib "
		 "-fuse-ld=lld " PROGRAMS "/odd_arm64.S",
		 false},
	};
	struct temp_dir dir;
	temp_dir_init(&dir);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		char path[PATH_MAX];
		bool is_built = build(dir.path, programs[i].name, programs[i].command);
		assert_true(is_built || !programs[i].is_needed);
		snprintf(path, sizeof(path), "%s/%s", dir.path, programs[i].name);
		if (is_built)
			assert_true(compare_with_readelf(path) > 10);
	}
	temp_dir_fini(&dir);
}

static void vdso_has_a_table(void **state)
{
	(void)state;
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.is_live = true, .no_cache = true});
	struct module *module =
		symcache_module(cache, &(struct module_query){.path = "[vdso]", .pid = getpid()});
	if (module_get_state(module) != MODULE_OK) {
		symcache_free(cache);
		skip();
	}
	symcache_prepare(cache, &module, 1, NULL, NULL);
	enum unwind_state unwind_state;
	const struct unwind_table *table = module_unwind(module, &unwind_state);
	assert_int_equal(unwind_state, UNWIND_READY);
	assert_true(table->n_rows > 1);
	symcache_free(cache);
}

static void file_without_code_has_no_table(void **state)
{
	(void)state;
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.trust_paths = true, .no_cache = true});
	struct module *missing =
		symcache_module(cache, &(struct module_query){.path = "/nowhere/at/all"});
	struct temp_dir dir;
	char path[PATH_MAX];
	temp_dir_init(&dir);
	enum unwind_state unwind_state;
	if (build(dir.path, "data", "echo 'int x = 1;' | cc -x c -c -")) {
		/* A relocatable file: nothing runs there. */
		snprintf(path, sizeof(path), "%s/data", dir.path);
		struct module *module =
			symcache_module(cache, &(struct module_query){.path = path});
		symcache_prepare(cache, &module, 1, NULL, NULL);
		assert_null(module_unwind(module, &unwind_state));
		assert_int_equal(unwind_state, UNWIND_NO_TABLE);
	}
	assert_null(module_unwind(missing, &unwind_state));
	assert_int_equal(unwind_state, UNWIND_NO_FILE);
	temp_dir_fini(&dir);
	symcache_free(cache);
}

int main(void)
{
	require_readelf();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_installed_binaries_are_those_of_readelf),
		cmocka_unit_test(tables_of_odd_programs_are_those_of_readelf),
		cmocka_unit_test(vdso_has_a_table),
		cmocka_unit_test(file_without_code_has_no_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
