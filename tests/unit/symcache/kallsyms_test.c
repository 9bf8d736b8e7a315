/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/kallsyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/mem.h"

static struct kallsyms parse(const char *text)
{
	struct kallsyms table;
	kallsyms_parse(&table, text, strlen(text));
	return table;
}

static void assert_name(const struct kallsyms *table, uint64_t address, const char *name,
			const char *module)
{
	struct kallsyms_hit hit;
	bool is_found = kallsyms_find(table, address, &hit);
	assert_int_equal(is_found, name != NULL);
	if (!name)
		return;
	assert_string_equal(hit.name, name);
	assert_string_equal(hit.module, module);
}

static void kallsyms_symbol_runs_to_the_next_one(void **state)
{
	(void)state;
	struct kallsyms table = parse("ffffffff81000000 T _text\n"
				      "ffffffff81000100 t do_idle\n"
				      "ffffffff81000200 W weak_one\n"
				      "ffffffff81000300 T _etext\n"
				      "ffffffff82000000 D some_data\n"
				      "ffffffff82000100 T init_text\n"
				      "ffffffff82000180 d more_data\n");
	assert_name(&table, 0xffffffff80ffffff, NULL, NULL);
	assert_name(&table, 0xffffffff81000000, "_text", "");
	assert_name(&table, 0xffffffff810001ff, "do_idle", "");
	assert_name(&table, 0xffffffff810002ff, "weak_one", "");
	assert_name(&table, 0xffffffff81000300, NULL, NULL);
	assert_name(&table, 0xffffffff82000010, NULL, NULL);
	assert_name(&table, 0xffffffff82000100, "init_text", "");
	assert_name(&table, 0xffffffff82000180, NULL, NULL);
	assert_int_equal(table.text, 0xffffffff81000000);
	kallsyms_fini(&table);
}

/* FR-46 */
static void kallsyms_reads_module_names_after_a_tab(void **state)
{
	(void)state;
	struct kallsyms table =
		parse("ffffffff81000000 T _text\n"
		      "ffffffff81000100 T _etext\n"
		      "ffffffffc0a01000 t nft_do_chain\t[nf_tables]\n"
		      "ffffffffc0a01100 t nft_last\t[nf_tables]\n"
		      "ffffffffc0b00000 t other\t[xt_x]\n"
		      "ffffffffc0c00000 t bpf_prog_6deef7357e7b4530_sd_devices\t[bpf]\n");
	assert_name(&table, 0xffffffffc0a01050, "nft_do_chain", "nf_tables");
	/* The last one of a module ends a page or two later, not at the next module. */
	assert_name(&table, 0xffffffffc0a01fff, "nft_last", "nf_tables");
	assert_name(&table, 0xffffffffc0a04000, NULL, NULL);
	assert_name(&table, 0xffffffffc0b00010, "other", "xt_x");
	assert_name(&table, 0xffffffffc0c00010, "bpf_prog_6deef7357e7b4530_sd_devices", "bpf");
	kallsyms_fini(&table);
}

/* FR-44 */
static void kallsyms_of_zeros_is_hidden_and_holds_no_symbol(void **state)
{
	(void)state;
	struct kallsyms table = parse("0000000000000000 T _text\n"
				      "0000000000000000 t do_idle\n"
				      "0000000000000000 t nft_do_chain\t[nf_tables]\n");
	assert_true(table.is_hidden);
	assert_name(&table, 0, NULL, NULL);
	assert_name(&table, 0xffffffff81000000, NULL, NULL);
	assert_int_equal(table.ranges.n, 0);
	kallsyms_fini(&table);
}

static void kallsyms_with_one_symbol_at_zero_is_not_hidden(void **state)
{
	(void)state;
	struct kallsyms table = parse("0000000000000000 A fixed_percpu_data\n"
				      "0000000000000000 T startup\n"
				      "ffffffff81000000 T _text\n");
	assert_false(table.is_hidden);
	assert_name(&table, 0xffffffff81000001, "_text", "");
	kallsyms_fini(&table);
}

static void kallsyms_chooses_aliases_in_fixed_order(void **state)
{
	(void)state;
	struct kallsyms table = parse("ffffffff81000000 t aa\n"
				      "ffffffff81000000 T long_name\n"
				      "ffffffff81000000 T name_b\n"
				      "ffffffff81000000 T name_a\n"
				      "ffffffff81000100 T alone\n");
	struct kallsyms_hit hit;
	assert_true(kallsyms_find(&table, 0xffffffff81000000, &hit));
	assert_string_equal(hit.name, "name_a");
	assert_true(hit.is_folded);
	assert_true(kallsyms_find(&table, 0xffffffff81000100, &hit));
	assert_false(hit.is_folded);
	kallsyms_fini(&table);
}

static void kallsyms_skips_lines_of_other_forms(void **state)
{
	(void)state;
	struct kallsyms table = parse("garbage\n"
				      "\n"
				      "ffffffff81000000\n"
				      "ffffffff81000000 T\n"
				      "ffffffff81000000 T \n"
				      "fffffffff81000000 T too_many_digits\n"
				      "ffffffff81000000 T good\n"
				      "ffffffff81000100 T last_without_newline");
	assert_name(&table, 0xffffffff81000000, "good", "");
	assert_name(&table, 0xffffffff81000100, "last_without_newline", "");
	kallsyms_fini(&table);
}

/* FR-107: as a stream, compact and fast; the bound is far above what it takes (20 to 60 ms). */
static void kallsyms_of_250000_symbols_is_read_quickly_and_small(void **state)
{
	(void)state;
	enum { N = 250000 };
	const char *path = "kallsyms_test.tmp";
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < N; i++)
		fprintf(file, "%016llx t kernel_function_%u\n", 0xffffffff81000000ull + i * 64ull,
			i);
	fclose(file);
	struct timespec start, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	struct kallsyms table;
	assert_null(kallsyms_read(&table, path));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	double ms = (double)(end.tv_sec - start.tv_sec) * 1e3 +
		    (double)(end.tv_nsec - start.tv_nsec) / 1e6;
	printf("250000 symbols in %.1f ms\n", ms);
	assert_true(ms < 1000);
	assert_int_equal(table.ranges.n, N + 1);
	assert_non_null(table.ranges.narrow);
	for (unsigned i = 0; i < N; i += 997) {
		char name[64];
		snprintf(name, sizeof(name), "kernel_function_%u", i);
		assert_name(&table, 0xffffffff81000000ull + i * 64ull + 63, name, "");
	}
	kallsyms_fini(&table);
	remove(path);
}

static void kallsyms_says_when_there_is_no_file(void **state)
{
	(void)state;
	struct kallsyms table;
	struct error *err = kallsyms_read(&table, "/nonexistent/kallsyms");
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kallsyms_symbol_runs_to_the_next_one),
		cmocka_unit_test(kallsyms_reads_module_names_after_a_tab),
		cmocka_unit_test(kallsyms_of_zeros_is_hidden_and_holds_no_symbol),
		cmocka_unit_test(kallsyms_with_one_symbol_at_zero_is_not_hidden),
		cmocka_unit_test(kallsyms_chooses_aliases_in_fixed_order),
		cmocka_unit_test(kallsyms_skips_lines_of_other_forms),
		cmocka_unit_test(kallsyms_of_250000_symbols_is_read_quickly_and_small),
		cmocka_unit_test(kallsyms_says_when_there_is_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
