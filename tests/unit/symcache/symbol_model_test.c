/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "symcache/symbol_model.h"

static uint32_t add_string(struct symbol_model *model, const char *text)
{
	return symbol_model_add_string(model, text, strlen(text));
}

static uint32_t add_root(struct symbol_model *model, const char *name)
{
	return symbol_model_add_chain(
		model,
		(struct symbol_chain){
			.function = symbol_model_add_function(
				model, (struct symbol_function){.name = add_string(model, name)}),
			.parent = SYMBOL_CHAIN_NONE});
}

static void add_range(struct symbol_model *model, uint64_t start, uint64_t end, const char *name,
		      enum symbol_rank rank)
{
	symbol_model_add_range(model, (struct symbol_range){.start = start,
							    .end = end,
							    .chain = add_root(model, name),
							    .rank = (uint8_t)rank});
}

/* "100-200 main 200-210 f" */
static const char *ranges_text(const struct symbol_model *model)
{
	static char text[4096];
	size_t n = 0;
	text[0] = 0;
	for (size_t i = 0; i < model->ranges.n; i++) {
		const struct symbol_range *range = &model->ranges.items[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llx-%llx", i ? " " : "",
				      (unsigned long long)range->start,
				      (unsigned long long)range->end);
		for (uint32_t chain = range->chain; chain != SYMBOL_CHAIN_NONE;
		     chain = model->chains.items[chain].parent) {
			uint32_t function = model->chains.items[chain].function;
			n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
					      intern_text(&model->strings,
							  model->functions.items[function].name));
		}
	}
	return text;
}

static void add_row(struct symbol_model *model, uint64_t address, uint32_t line)
{
	symbol_model_add_line(model, (struct symbol_line){.address = address,
							  .line = line & 0x7fffffff,
							  .is_end = line == 0});
}

/* "100:5 110:end" */
static const char *lines_text(const struct symbol_model *model)
{
	static char text[4096];
	size_t n = 0;
	text[0] = 0;
	for (size_t i = 0; i < model->lines.n; i++) {
		const struct symbol_line *row = &model->lines.items[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llx:", i ? " " : "",
				      (unsigned long long)row->address);
		if (row->is_end)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "end");
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%u", row->line);
	}
	return text;
}

static void symbol_model_finds_equal_files_and_functions(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	uint32_t folder = add_string(&model, "/src");
	struct symbol_file_name file = {.folder = folder, .name = add_string(&model, "a.c")};
	uint32_t first = symbol_model_add_file(&model, file);
	assert_int_not_equal(first, 0);
	for (uint32_t i = 0; i < 1000; i++)
		symbol_model_add_function(&model, (struct symbol_function){.start_line = i});
	assert_int_equal(symbol_model_add_file(&model, file), first);
	assert_int_equal(model.functions.n, 1000);
	assert_int_equal(
		symbol_model_add_function(&model, (struct symbol_function){.start_line = 500}),
		500);
	symbol_model_fini(&model);
}

static void symbol_model_cuts_overlaps_by_rank(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	add_range(&model, 0x300, 0x400, "c", SYMBOL_RANK_SYMTAB);
	add_range(&model, 0x100, 0x1000, "all", SYMBOL_RANK_DYNSYM);
	add_range(&model, 0x120, 0x130, "dwarf", SYMBOL_RANK_DWARF);
	add_range(&model, 0x110, 0x140, "table", SYMBOL_RANK_SYMTAB);
	add_range(&model, 0x3f0, 0x410, "last", SYMBOL_RANK_DWARF);
	symbol_model_finish(&model);
	assert_string_equal(ranges_text(&model),
			    "100-110 all 110-120 table 120-130 dwarf 130-140 table 140-300 all "
			    "300-3f0 c 3f0-410 last 410-1000 all");
	symbol_model_fini(&model);
}

static void symbol_model_lets_inner_ranges_of_one_rank_win(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	add_range(&model, 0x100, 0x200, "outer", SYMBOL_RANK_SYMTAB);
	add_range(&model, 0x110, 0x120, "inner", SYMBOL_RANK_SYMTAB);
	add_range(&model, 0x110, 0x110, "empty", SYMBOL_RANK_SYMTAB);
	symbol_model_finish(&model);
	assert_string_equal(ranges_text(&model), "100-110 outer 110-120 inner 120-200 outer");
	symbol_model_fini(&model);
}

/* Appends parts of one input in an order made from seed. */
static void append_shuffled(struct symbol_model *model, unsigned seed)
{
	enum { N = 40 };
	unsigned order[N];
	for (unsigned i = 0; i < N; i++)
		order[i] = i;
	srandom(seed);
	for (unsigned i = N - 1; i > 0; i--) {
		unsigned j = (unsigned)random() % (i + 1);
		unsigned swap = order[i];
		order[i] = order[j];
		order[j] = swap;
	}
	for (unsigned i = 0; i < N; i++) {
		unsigned k = order[i];
		char name[16];
		snprintf(name, sizeof(name), "f%u", k % 13);
		uint32_t root = add_root(model, name);
		uint32_t inlined = symbol_model_add_chain(
			model, (struct symbol_chain){.function = model->chains.items[root].function,
						     .parent = root,
						     .call_line = k});
		uint64_t start = 0x1000 + k / 2 * 0x18;
		symbol_model_add_range(model, (struct symbol_range){.start = start,
								    .end = start + 0x20 + k % 3,
								    .chain = inlined,
								    .rank = (uint8_t)(k % 2)});
		add_row(model, start, k + 1);
		add_row(model, start + 8, k + 2);
		add_row(model, start + 0x1a, 0);
	}
}

static void symbol_model_does_not_depend_on_the_order_of_appends(void **state)
{
	(void)state;
	struct symbol_model first;
	symbol_model_init(&first);
	append_shuffled(&first, 1);
	symbol_model_finish(&first);
	for (unsigned seed = 2; seed < 20; seed++) {
		struct symbol_model other;
		symbol_model_init(&other);
		append_shuffled(&other, seed);
		symbol_model_finish(&other);
		assert_int_equal(first.ranges.n, other.ranges.n);
		assert_int_equal(first.chains.n, other.chains.n);
		assert_int_equal(first.functions.n, other.functions.n);
		assert_int_equal(first.lines.n, other.lines.n);
		assert_int_equal(first.strings.n, other.strings.n);
		for (size_t i = 0; i < first.ranges.n; i++) {
			assert_int_equal(first.ranges.items[i].start, other.ranges.items[i].start);
			assert_int_equal(first.ranges.items[i].chain, other.ranges.items[i].chain);
		}
		assert_memory_equal(first.chains.items, other.chains.items,
				    first.chains.n * sizeof(*first.chains.items));
		assert_memory_equal(first.functions.items, other.functions.items,
				    first.functions.n * sizeof(*first.functions.items));
		for (size_t i = 0; i < first.lines.n; i++) {
			assert_int_equal(first.lines.items[i].address,
					 other.lines.items[i].address);
			assert_int_equal(first.lines.items[i].line, other.lines.items[i].line);
		}
		for (uint32_t i = 0; i < first.strings.n; i++)
			assert_string_equal(intern_text(&first.strings, i),
					    intern_text(&other.strings, i));
		symbol_model_fini(&other);
	}
	symbol_model_fini(&first);
}

static void symbol_model_keeps_what_is_said_once(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	add_row(&model, 0x100, 5);
	add_row(&model, 0x104, 5);
	add_row(&model, 0x108, 6);
	add_row(&model, 0x108, 5);
	add_row(&model, 0x10c, 7);
	add_row(&model, 0x110, 0);
	add_row(&model, 0x110, 7);
	add_row(&model, 0x120, 0);
	add_row(&model, 0x10, 1);
	add_row(&model, 0x10, 0);
	symbol_model_finish(&model);
	assert_string_equal(lines_text(&model), "100:5 10c:7 120:end");
	symbol_model_fini(&model);
}

static void symbol_model_cuts_overlapping_sequences(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	add_row(&model, 0x200, 8);
	add_row(&model, 0x210, 9);
	add_row(&model, 0x240, 0);
	add_row(&model, 0x100, 1);
	add_row(&model, 0x110, 2);
	add_row(&model, 0x220, 0);
	add_row(&model, 0x150, 11);
	add_row(&model, 0x170, 0);
	symbol_model_finish(&model);
	assert_string_equal(lines_text(&model), "100:1 110:2 220:9 240:end");
	symbol_model_fini(&model);
}

static void symbol_model_drops_what_nothing_refers_to(void **state)
{
	(void)state;
	struct symbol_model model;
	symbol_model_init(&model);
	add_string(&model, "unused");
	add_root(&model, "also unused");
	add_range(&model, 1, 2, "used", SYMBOL_RANK_DWARF);
	symbol_model_finish(&model);
	assert_int_equal(model.strings.n, 2);
	assert_int_equal(model.functions.n, 2);
	assert_int_equal(model.chains.n, 1);
	assert_string_equal(ranges_text(&model), "1-2 used");
	symbol_model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbol_model_finds_equal_files_and_functions),
		cmocka_unit_test(symbol_model_cuts_overlaps_by_rank),
		cmocka_unit_test(symbol_model_lets_inner_ranges_of_one_rank_win),
		cmocka_unit_test(symbol_model_does_not_depend_on_the_order_of_appends),
		cmocka_unit_test(symbol_model_keeps_what_is_said_once),
		cmocka_unit_test(symbol_model_cuts_overlapping_sequences),
		cmocka_unit_test(symbol_model_drops_what_nothing_refers_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
