/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions of DWARF take the name of a symbol. */
#include "symcache/symbol_naming.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/model_lookup.h"

struct fixture {
	struct symbol_model model;
	size_t n_dwarf;
};

static uint32_t string(struct fixture *f, const char *text)
{
	return symbol_model_add_string(&f->model, text, strlen(text));
}

static uint32_t chain(struct fixture *f, const char *linkage_name, const char *name,
		      uint32_t parent)
{
	const struct symbol_function function = {
		.linkage_name = linkage_name ? string(f, linkage_name) : 0,
		.name = name ? string(f, name) : 0,
	};
	return symbol_model_add_chain(
		&f->model,
		(struct symbol_chain){.function = symbol_model_add_function(&f->model, function),
				      .parent = parent});
}

static void range(struct fixture *f, uint64_t start, uint64_t end, uint32_t of, uint8_t rank)
{
	symbol_model_add_range(
		&f->model,
		(struct symbol_range){.start = start, .end = end, .chain = of, .rank = rank});
	if (rank == SYMBOL_RANK_DWARF)
		f->n_dwarf = f->model.ranges.n;
}

static void symbol(struct fixture *f, uint64_t start, uint64_t end, const char *name, uint8_t rank)
{
	range(f, start, end, chain(f, name, NULL, SYMBOL_CHAIN_NONE), rank);
}

static void finish(struct fixture *f)
{
	symbol_naming_apply(&f->model, f->n_dwarf);
	symbol_model_finish(&f->model);
}

/* Names at svma, the innermost first, joined by spaces. */
static void assert_names(const struct fixture *f, uint64_t svma, const char *wanted)
{
	char text[256] = "";
	const struct symbol_range *found = model_lookup_range(&f->model, svma);
	assert_non_null(found);
	for (uint32_t link = found->chain; link != SYMBOL_CHAIN_NONE;
	     link = f->model.chains.items[link].parent) {
		const struct symbol_function *function =
			&f->model.functions.items[f->model.chains.items[link].function];
		size_t n = strlen(text);
		snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
			 intern_text(&f->model.strings, function->linkage_name
								? function->linkage_name
								: function->name));
	}
	assert_string_equal(text, wanted);
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	symbol_model_init(&f->model);
}

static void end(struct fixture *f)
{
	symbol_model_fini(&f->model);
}

static void function_without_linkage_name_takes_that_of_its_symbol(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t work = chain(&f, NULL, "work", SYMBOL_CHAIN_NONE);
	range(&f, 0x1000, 0x1010, work, SYMBOL_RANK_DWARF);
	uint32_t named = chain(&f, "_Z5namedv", "named", SYMBOL_CHAIN_NONE);
	range(&f, 0x1010, 0x1020, named, SYMBOL_RANK_DWARF);
	range(&f, 0x1020, 0x1030, chain(&f, NULL, "bare", SYMBOL_CHAIN_NONE), SYMBOL_RANK_DWARF);
	/* Inlined elsewhere. */
	range(&f, 0x1014, 0x1018, chain(&f, NULL, "work", named), SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "_ZN12_GLOBAL__N_14workEv", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x1010, 0x1020, "another", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x1020, 0x1030, "bare@plt", SYMBOL_RANK_PLT);
	finish(&f);
	assert_names(&f, 0x1000, "_ZN12_GLOBAL__N_14workEv");
	assert_names(&f, 0x1010, "_Z5namedv");
	assert_names(&f, 0x1014, "_ZN12_GLOBAL__N_14workEv _Z5namedv");
	assert_names(&f, 0x1020, "bare");
	end(&f);
}

static void name_of_a_clone_stays_with_the_clone(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	range(&f, 0x1000, 0x1010, chain(&f, NULL, "foo", SYMBOL_CHAIN_NONE), SYMBOL_RANK_DWARF);
	range(&f, 0x1010, 0x1020, chain(&f, NULL, "foo", SYMBOL_CHAIN_NONE), SYMBOL_RANK_DWARF);
	uint32_t bar = chain(&f, NULL, "bar", SYMBOL_CHAIN_NONE);
	range(&f, 0x1020, 0x1030, bar, SYMBOL_RANK_DWARF);
	range(&f, 0x1024, 0x1028, chain(&f, NULL, "foo", bar), SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "foo", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x1010, 0x1020, "foo.part.0", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x1020, 0x1030, "bar", SYMBOL_RANK_SYMTAB);
	finish(&f);
	assert_names(&f, 0x1000, "foo");
	assert_names(&f, 0x1010, "foo.part.0");
	assert_names(&f, 0x1024, "foo bar");
	end(&f);
}

/* glibc's hidden aliases: the label that DWARF has is not what others call the function. */
static void label_of_a_c_function_gives_way_to_the_symbol_of_its_code(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t abort_chain = chain(&f, "__GI_abort", "abort", SYMBOL_CHAIN_NONE);
	range(&f, 0x1000, 0x1010, abort_chain, SYMBOL_RANK_DWARF);
	/* Its cold part, and what begins within another symbol, stay what they are. */
	range(&f, 0x2000, 0x2010, abort_chain, SYMBOL_RANK_DWARF);
	range(&f, 0x3004, 0x3008, chain(&f, "label", "part", SYMBOL_CHAIN_NONE), SYMBOL_RANK_DWARF);
	range(&f, 0x4000, 0x4010, chain(&f, "_Z4workv", "work", SYMBOL_CHAIN_NONE),
	      SYMBOL_RANK_DWARF);
	range(&f, 0x5000, 0x5010, chain(&f, "alone", "lone", SYMBOL_CHAIN_NONE), SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "abort", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x2000, 0x2010, "__GI_abort.cold", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x3000, 0x3010, "whole", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x4000, 0x4010, "twin", SYMBOL_RANK_SYMTAB);
	finish(&f);
	assert_names(&f, 0x1000, "abort");
	assert_names(&f, 0x2000, "abort");
	assert_names(&f, 0x3004, "label");
	assert_names(&f, 0x4000, "_Z4workv");
	assert_names(&f, 0x5000, "alone");
	end(&f);
}

static void cold_part_does_not_name_its_function(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	uint32_t work = chain(&f, NULL, "work", SYMBOL_CHAIN_NONE);
	range(&f, 0x1000, 0x1010, work, SYMBOL_RANK_DWARF);
	range(&f, 0x2000, 0x2010, work, SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "alias.cold", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x2000, 0x2010, "alias", SYMBOL_RANK_SYMTAB);
	finish(&f);
	assert_names(&f, 0x1000, "alias");
	assert_names(&f, 0x2000, "alias");
	end(&f);
}

/* A C function has its plain name in both tables; its cold part may lie before it. */
static void cold_part_of_a_c_function_does_not_name_it(void **state)
{
	(void)state;
	struct fixture f = {0};
	symbol_model_init(&f.model);
	uint32_t walk = chain(&f, NULL, "walk", SYMBOL_CHAIN_NONE);
	range(&f, 0x1000, 0x1010, walk, SYMBOL_RANK_DWARF);
	range(&f, 0x2000, 0x2100, walk, SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "walk.cold", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x2000, 0x2100, "walk", SYMBOL_RANK_SYMTAB);
	finish(&f);
	assert_names(&f, 0x1000, "walk");
	assert_names(&f, 0x2080, "walk");
	symbol_model_fini(&f.model);
}

/* Two functions of one body, which the compiler folded: the symbol names the code, but what is
 * inlined elsewhere is the function that the source calls. */
static void name_of_a_folded_function_stays_with_the_code(void **state)
{
	(void)state;
	struct fixture f = {0};
	symbol_model_init(&f.model);
	range(&f, 0x1000, 0x1010, chain(&f, NULL, "new_stmt", SYMBOL_CHAIN_NONE),
	      SYMBOL_RANK_DWARF);
	uint32_t parse = chain(&f, NULL, "parse", SYMBOL_CHAIN_NONE);
	range(&f, 0x2000, 0x2010, parse, SYMBOL_RANK_DWARF);
	range(&f, 0x2004, 0x2008, chain(&f, NULL, "new_stmt", parse), SYMBOL_RANK_DWARF);
	symbol(&f, 0x1000, 0x1010, "new_arg", SYMBOL_RANK_SYMTAB);
	symbol(&f, 0x2000, 0x2010, "parse", SYMBOL_RANK_SYMTAB);
	finish(&f);
	assert_names(&f, 0x1000, "new_arg");
	assert_names(&f, 0x2004, "new_stmt parse");
	symbol_model_fini(&f.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(function_without_linkage_name_takes_that_of_its_symbol),
		cmocka_unit_test(name_of_a_clone_stays_with_the_clone),
		cmocka_unit_test(label_of_a_c_function_gives_way_to_the_symbol_of_its_code),
		cmocka_unit_test(cold_part_does_not_name_its_function),
		cmocka_unit_test(cold_part_of_a_c_function_does_not_name_it),
		cmocka_unit_test(name_of_a_folded_function_stays_with_the_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
