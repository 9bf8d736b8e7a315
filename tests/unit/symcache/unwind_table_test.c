/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables answer as the models that they were written from; damage is found or harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "symcache/unwind_expression.h"
#include "symcache/unwind_model.h"
#include "symcache/unwind_table.h"
#include "symcache/unwind_table_writer.h"

enum { MAX_BYTES = 1 << 24, N_MODELS = 60 };

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static void fill(struct unwind_model *model, const struct unwind_rule *rule, uint8_t plt_bound,
		 uint64_t svma)
{
	uint32_t number;
	assert_null(unwind_model_rule(model, rule, plt_bound, &number));
	assert_null(unwind_model_row(model, svma, number));
}

/* A copy of exactly the table's bytes, so that a sanitizer sees reads outside. */
static uint8_t *write_table(const struct unwind_model *model, size_t *n_out)
{
	struct buf out;
	buf_init(&out, MAX_BYTES);
	assert_null(unwind_table_write(model, &out));
	uint8_t *bytes = malloc(out.size);
	memcpy(bytes, out.data, out.size);
	*n_out = out.size;
	buf_fini(&out);
	return bytes;
}

static const struct unwind_rule plain = {
	.cfa = {.kind = UNWIND_REGISTER, .register_number = UNWIND_X86_64_SP, .offset = 8},
	.return_address = {.kind = UNWIND_AT_CFA, .offset = -8},
	.frame_pointer = {.kind = UNWIND_SAME},
};

static struct unwind_value random_value(struct unwind_model *model, bool is_cfa)
{
	static const uint8_t literal[] = {0x35, 0x06};
	struct unwind_value value = {.kind = (uint8_t)random_below(UNWIND_KIND_N)};
	if (is_cfa)
		value.kind = random_below(10) ? UNWIND_REGISTER : UNWIND_EXPRESSION;
	value.offset = ((int32_t)random_below(64) - 48) * 8;
	switch (random_below(40)) {
	case 0:
		value.offset += 3;
		break;
	case 1:
		value.offset = random_below(2) ? INT32_MAX : INT32_MIN;
		break;
	case 2:
		value.offset *= 1000;
		break;
	}
	if (value.kind == UNWIND_REGISTER)
		value.register_number =
			(uint8_t)(random_below(3) ? 6 + random_below(2) : random_below(33));
	if (value.kind == UNWIND_EXPRESSION || value.kind == UNWIND_AT_EXPRESSION)
		assert_null(unwind_model_expression(
			model, literal, sizeof(literal) - random_below(2), &value.offset));
	if (value.kind == UNWIND_SAME || value.kind == UNWIND_UNDEFINED)
		value.offset = 0;
	return value;
}

static uint32_t random_rule(struct unwind_model *model)
{
	struct unwind_rule rule = plain;
	uint8_t plt_bound = 0;
	if (random_below(20) == 0)
		return UNWIND_RULE_NONE;
	if (model->machine == UNWIND_X86_64 && random_below(30) == 0) {
		plt_bound = (uint8_t)(1 + random_below(15));
	} else {
		rule.cfa = random_value(model, true);
		if (random_below(4))
			rule.return_address = random_value(model, false);
		if (rule.return_address.kind == UNWIND_SAME)
			rule.return_address.kind = UNWIND_UNDEFINED;
		rule.frame_pointer = random_value(model, false);
		rule.flags = (uint8_t)(random_below(4) ? 0 : random_below(8));
	}
	if (model->extra_register) {
		rule.extra_register = model->extra_register;
		rule.extra = plt_bound ? (struct unwind_value){.kind = UNWIND_SAME}
				       : random_value(model, false);
	} else if (random_below(20) == 0 && !plt_bound) {
		rule.extra_register = UNWIND_ARM64_LR;
		rule.extra = random_value(model, false);
	}
	uint32_t number;
	assert_null(unwind_model_rule(model, &rule, plt_bound, &number));
	return number;
}

/* Sequences come again, as they do in code; holes are small and large. */
static void random_model(struct unwind_model *model)
{
	static const uint8_t extras[] = {0, 3, 19};
	enum { N_RULES = 400 };
	uint32_t rules[N_RULES], n_rules = 2 + random_below(N_RULES - 2);
	uint32_t align = random_below(2) ? 1 : 4;
	uint64_t svma = random_below(2) ? random_below(1 << 20) : UINT64_MAX - (UINT64_C(1) << 32);
	unwind_model_init(model, random_below(2) ? UNWIND_X86_64 : UNWIND_ARM64);
	model->extra_register = extras[random_below(3)];
	for (uint32_t i = 0; i < n_rules; i++)
		rules[i] = random_rule(model);
	svma -= svma % align;
	for (uint32_t i = random_below(4000); i > 0; i--) {
		uint32_t first = random_below(n_rules), n = 1 + random_below(12);
		for (uint32_t k = 0; k < n; k++) {
			svma += align * (1 + (k + first) % 5);
			assert_null(unwind_model_row(model, svma, rules[(first + k) % n_rules]));
		}
		svma += align * random_below(random_below(8) ? 100 : 3000);
		if (random_below(100) == 0) {
			svma += align;
			assert_null(unwind_model_row(model, svma, UNWIND_RULE_NONE));
			svma += align * random_below(1 << 20);
		}
	}
	assert_null(unwind_model_row(model, svma + 1000 * align, UNWIND_RULE_NONE));
}

static void assert_value(const struct unwind_value *got, const struct unwind_value *want)
{
	assert_int_equal(got->kind, want->kind);
	assert_int_equal(got->register_number, want->register_number);
	assert_int_equal(got->offset, want->offset);
}

static void assert_rule(const struct unwind_table *table, const struct unwind_model *model,
			uint64_t svma, uint32_t number)
{
	const struct unwind_rule *got = unwind_table_find(table, svma);
	if (number == UNWIND_RULE_NONE) {
		assert_null(got);
		return;
	}
	const struct unwind_model_rule *slot = &model->rules[number];
	struct unwind_rule want = slot->rule;
	if (slot->plt_bound && svma % 16 >= slot->plt_bound)
		want.cfa.offset += 8;
	if (model->extra_register)
		want.extra_register = model->extra_register;
	assert_non_null(got);
	assert_value(&got->cfa, &want.cfa);
	assert_value(&got->return_address, &want.return_address);
	assert_value(&got->frame_pointer, &want.frame_pointer);
	assert_value(&got->extra, &want.extra);
	assert_int_equal(got->extra_register, want.extra_register);
	assert_int_equal(got->flags, want.flags);
}

static void unwind_table_answers_as_the_model(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_MODELS; i++) {
		struct unwind_model model;
		struct unwind_table table;
		size_t n;
		seed = i;
		random_model(&model);
		uint8_t *bytes = write_table(&model, &n);
		assert_null(unwind_table_open(bytes, n, &table));
		for (size_t k = 0; k < model.n_rows; k++) {
			uint64_t start = model.rows[k].svma;
			uint64_t end = k + 1 < model.n_rows ? model.rows[k + 1].svma : start + 99;
			assert_rule(&table, &model, start, model.rows[k].rule);
			assert_rule(&table, &model, start + (end - start) / 2, model.rows[k].rule);
			assert_rule(&table, &model, end - 1, model.rows[k].rule);
		}
		if (model.n_rows)
			assert_null(unwind_table_find(&table, model.rows[0].svma - 1));
		assert_null(unwind_table_find(&table, UINT64_MAX));
		unwind_table_close(&table);
		free(bytes);
		unwind_model_fini(&model);
	}
}

static void unwind_table_is_the_same_each_time(void **state)
{
	(void)state;
	uint8_t *bytes[2];
	size_t n[2];
	for (unsigned i = 0; i < 2; i++) {
		struct unwind_model model;
		seed = 77;
		random_model(&model);
		bytes[i] = write_table(&model, &n[i]);
		unwind_model_fini(&model);
	}
	assert_int_equal(n[0], n[1]);
	assert_memory_equal(bytes[0], bytes[1], n[0]);
	free(bytes[0]);
	free(bytes[1]);
}

static void unwind_table_keeps_frequent_rows_once(void **state)
{
	(void)state;
	enum { N_FUNCTIONS = 5000, FUNCTION_BYTES = 48, N_PUSHES = 6 };
	struct unwind_model model;
	unwind_model_init(&model, UNWIND_X86_64);
	for (uint64_t i = 0; i < N_FUNCTIONS; i++) {
		for (uint64_t k = 0; k <= N_PUSHES; k++) {
			struct unwind_rule rule = plain;
			rule.cfa.offset = (int32_t)(8 + 8 * k);
			fill(&model, &rule, 0, 0x1000 + i * FUNCTION_BYTES + 2 * k);
		}
	}
	assert_null(
		unwind_model_row(&model, 0x1000 + N_FUNCTIONS * FUNCTION_BYTES, UNWIND_RULE_NONE));
	size_t n;
	free(write_table(&model, &n));
	/* 35,000 rows: a function is a code, and in each fifth page it is cut in two. */
	assert_true(n < N_FUNCTIONS * 4);
	unwind_model_fini(&model);
}

static void unwind_table_without_rows_knows_nothing(void **state)
{
	(void)state;
	struct unwind_model model;
	struct unwind_table table;
	size_t n;
	unwind_model_init(&model, UNWIND_X86_64);
	uint8_t *bytes = write_table(&model, &n);
	assert_null(unwind_table_open(bytes, n, &table));
	assert_null(unwind_table_find(&table, 0));
	assert_null(unwind_table_find(&table, 0x1000));
	unwind_table_close(&table);
	free(bytes);
	unwind_model_fini(&model);
}

static void unwind_table_refuses_a_return_address_that_is_the_same(void **state)
{
	(void)state;
	struct unwind_model model;
	struct unwind_table table;
	struct unwind_rule rule = plain;
	size_t n;
	unwind_model_init(&model, UNWIND_X86_64);
	rule.flags = UNWIND_SIGNAL_FRAME; /* makes it a wide rule */
	rule.return_address = (struct unwind_value){.kind = UNWIND_SAME};
	fill(&model, &rule, 0, 16);
	assert_null(unwind_model_row(&model, 32, UNWIND_RULE_NONE));
	uint8_t *bytes = write_table(&model, &n);
	/* A walk would stay where it is for ever. */
	struct error *err = unwind_table_open(bytes, n, &table);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	free(bytes);
	unwind_model_fini(&model);
}

static void unwind_table_hands_out_expressions(void **state)
{
	(void)state;
	static const uint8_t deref[] = {0x77, 0xa0, 0x01, 0x06};
	struct unwind_model model;
	struct unwind_table table;
	struct unwind_rule rule = plain;
	size_t n;
	unwind_model_init(&model, UNWIND_X86_64);
	rule.cfa = (struct unwind_value){.kind = UNWIND_EXPRESSION};
	rule.flags = UNWIND_SIGNAL_FRAME;
	assert_null(unwind_model_expression(&model, deref, sizeof(deref), &rule.cfa.offset));
	fill(&model, &rule, 0, 16);
	assert_null(unwind_model_row(&model, 32, UNWIND_RULE_NONE));
	uint8_t *bytes = write_table(&model, &n);
	assert_null(unwind_table_open(bytes, n, &table));
	const struct unwind_rule *found = unwind_table_find(&table, 31);
	assert_non_null(found);
	assert_int_equal(found->flags, UNWIND_SIGNAL_FRAME);
	const uint8_t *expression = unwind_table_expression(&table, found->cfa.offset, &n);
	assert_int_equal(n, sizeof(deref));
	assert_memory_equal(expression, deref, sizeof(deref));
	unwind_table_close(&table);
	free(bytes);
	unwind_model_fini(&model);
}

/* All finds that a table takes, whatever it says. */
static void use(const struct unwind_table *table, const struct unwind_model *model)
{
	for (size_t i = 0; i < model->n_rows; i++) {
		const struct unwind_rule *rule = unwind_table_find(table, model->rows[i].svma);
		size_t n;
		if (rule && rule->cfa.kind == UNWIND_EXPRESSION) {
			const uint8_t *bytes = unwind_table_expression(table, rule->cfa.offset, &n);
			(void)unwind_expression_check(bytes, n, NULL);
		}
	}
}

static void unwind_table_survives_every_flipped_byte_and_cut(void **state)
{
	(void)state;
	struct unwind_model model;
	struct unwind_table table;
	size_t n;
	unsigned n_refused = 0;
	for (seed = 5;; unwind_model_fini(&model)) {
		random_model(&model);
		if (model.n_rows > 200 && model.n_rows < 800)
			break;
	}
	uint8_t *bytes = write_table(&model, &n);
	for (size_t i = 0; i < n; i++) {
		static const uint8_t masks[] = {1, 0x80, 0xff};
		for (unsigned k = 0; k < sizeof(masks); k++) {
			bytes[i] ^= masks[k];
			struct error *err = unwind_table_open(bytes, n, &table);
			if (!err) {
				use(&table, &model);
				unwind_table_close(&table);
			}
			n_refused += err != NULL;
			error_free(err);
			bytes[i] ^= masks[k];
		}
	}
	assert_true(n_refused > 100);
	for (size_t size = 0; size < n; size++) {
		uint8_t *cut = malloc(size ? size : 1);
		memcpy(cut, bytes, size);
		struct error *err = unwind_table_open(cut, size, &table);
		assert_non_null(err);
		assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
		error_free(err);
		free(cut);
	}
	bytes[0] = 99;
	struct error *err = unwind_table_open(bytes, n, &table);
	assert_int_equal(error_get_code(err), ERROR_UNSUPPORTED);
	error_free(err);
	free(bytes);
	unwind_model_fini(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unwind_table_answers_as_the_model),
		cmocka_unit_test(unwind_table_is_the_same_each_time),
		cmocka_unit_test(unwind_table_keeps_frequent_rows_once),
		cmocka_unit_test(unwind_table_without_rows_knows_nothing),
		cmocka_unit_test(unwind_table_refuses_a_return_address_that_is_the_same),
		cmocka_unit_test(unwind_table_hands_out_expressions),
		cmocka_unit_test(unwind_table_survives_every_flipped_byte_and_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
