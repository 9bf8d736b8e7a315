/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/unwind.h"
#include "symcache/unwind_model.h"
#include "symcache/unwind_table_writer.h"

/*
 * Code of a binary with a table at BIAS, in blocks of 0x100 bytes that each have one rule; JIT code
 * without a table; a stack of STACK_WORDS words.
 */
enum {
	STACK = 0x7fff0000,
	STACK_WORDS = 4096,
	BIAS = 0x400000,
	JIT = 0x900000,
	JIT_END = 0x901000,
	PLAIN = 0x1000,	      /* CFA sp + 16 */
	LEAF = 0x1100,	      /* CFA sp, return address in a register (arm64) */
	WITH_FP = 0x1200,     /* CFA fp + 16, fp saved at CFA - 16 */
	SIGNAL = 0x1300,      /* CFA in memory at sp + 16, pc at sp + 8, by expressions */
	OUTERMOST = 0x1400,   /* return address undefined */
	ODD = 0x1500,	      /* CFA sp + 12 */
	DOWN = 0x1600,	      /* CFA sp - 8 */
	BY_REGISTER = 0x1700, /* CFA r10 + 8 */
	SIGNED = 0x1800,      /* CFA sp + 16, return address with authentication code */
	NO_RULE = 0x1900,
	END = 0x2000,
};

struct fixture {
	struct unwind_table table;
	struct buf bytes;
	struct unwind_walk walk;
	uint64_t words[STACK_WORDS];
	unsigned n_located;
};

static struct unwind_rule rule_of_sp(enum unwind_machine machine, int32_t offset)
{
	uint8_t sp = machine == UNWIND_X86_64 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP;
	return (struct unwind_rule){
		.cfa = {.kind = UNWIND_REGISTER, .register_number = sp, .offset = offset},
		.return_address = {.kind = UNWIND_AT_CFA, .offset = -8},
		.frame_pointer = {.kind = UNWIND_SAME},
	};
}

static void add(struct unwind_model *model, uint64_t svma, const struct unwind_rule *rule)
{
	uint32_t index;
	assert_null(unwind_model_rule(model, rule, 0, &index));
	assert_null(unwind_model_row(model, svma, index));
}

static struct unwind_value by_expression(struct unwind_model *model, uint8_t kind, uint8_t offset)
{
	/* DW_OP_bregSP offset; DW_OP_deref */
	uint8_t sp = model->machine == UNWIND_X86_64 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP;
	const uint8_t bytes[] = {(uint8_t)(0x70 + sp), offset, 0x06};
	struct unwind_value value = {.kind = kind};
	/* UNWIND_AT_EXPRESSION reads the memory itself. */
	assert_null(unwind_model_expression(model, bytes, kind == UNWIND_EXPRESSION ? 3 : 2,
					    &value.offset));
	return value;
}

static bool locate(void *context, uint64_t vaddr, struct unwind_place *out)
{
	struct fixture *f = context;
	f->n_located++;
	if (vaddr >= JIT && vaddr < JIT_END) {
		*out = (struct unwind_place){
			.start = JIT, .end = JIT_END, .without = UNWIND_STOP_NO_TABLE};
		return true;
	}
	if (vaddr < BIAS + PLAIN || vaddr >= BIAS + END)
		return false;
	*out = (struct unwind_place){
		.start = BIAS + PLAIN, .end = BIAS + END, .bias = BIAS, .table = &f->table};
	return true;
}

static struct fixture *fixture_new(enum unwind_machine machine)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	struct unwind_model model;
	unwind_model_init(&model, machine);
	bool is_x86 = machine == UNWIND_X86_64;
	struct unwind_rule plain = rule_of_sp(machine, 16);
	add(&model, PLAIN, &plain);
	struct unwind_rule leaf = rule_of_sp(machine, 0);
	leaf.return_address = (struct unwind_value){
		.kind = UNWIND_REGISTER, .register_number = is_x86 ? 14 : UNWIND_ARM64_LR};
	add(&model, LEAF, &leaf);
	struct unwind_rule with_fp = rule_of_sp(machine, 16);
	with_fp.cfa.register_number = is_x86 ? UNWIND_X86_64_FP : UNWIND_ARM64_FP;
	with_fp.frame_pointer = (struct unwind_value){.kind = UNWIND_AT_CFA, .offset = -16};
	add(&model, WITH_FP, &with_fp);
	struct unwind_rule signal_rule = {
		.cfa = by_expression(&model, UNWIND_EXPRESSION, 16),
		.return_address = by_expression(&model, UNWIND_AT_EXPRESSION, 8),
		.frame_pointer = {.kind = UNWIND_SAME},
		.flags = UNWIND_SIGNAL_FRAME,
	};
	add(&model, SIGNAL, &signal_rule);
	struct unwind_rule outermost = rule_of_sp(machine, 16);
	outermost.return_address = (struct unwind_value){.kind = UNWIND_UNDEFINED};
	add(&model, OUTERMOST, &outermost);
	struct unwind_rule odd = rule_of_sp(machine, 12);
	add(&model, ODD, &odd);
	struct unwind_rule down = rule_of_sp(machine, -8);
	down.return_address.offset = 16;
	add(&model, DOWN, &down);
	struct unwind_rule by_register = rule_of_sp(machine, 8);
	by_register.cfa.register_number = 10;
	add(&model, BY_REGISTER, &by_register);
	struct unwind_rule sealed = rule_of_sp(machine, 16);
	sealed.flags = UNWIND_RETURN_ADDRESS_SIGNED;
	add(&model, SIGNED, &sealed);
	assert_null(unwind_model_row(&model, NO_RULE, UNWIND_RULE_NONE));
	buf_init(&f->bytes, 1 << 20);
	assert_null(unwind_table_write(&model, &f->bytes));
	unwind_model_fini(&model);
	assert_null(unwind_table_open(f->bytes.data, f->bytes.size, &f->table));

	f->walk.machine = machine;
	f->walk.locate = locate;
	f->walk.context = f;
	f->walk.stack = (struct unwind_memory){
		.bytes = (const uint8_t *)f->words, .vaddr = STACK, .size = sizeof(f->words)};
	return f;
}

static void fixture_free(struct fixture *f)
{
	unwind_table_close(&f->table);
	buf_fini(&f->bytes);
	mem_free(f);
}

static void set(struct fixture *f, unsigned number, uint64_t value)
{
	f->walk.registers.values[number] = value;
	f->walk.registers.known |= (uint64_t)1 << number;
}

/* A fresh walk from pc at the bottom of the stack; on arm64 the numbers are others. */
static void start(struct fixture *f, uint64_t pc)
{
	bool is_x86 = f->walk.machine == UNWIND_X86_64;
	f->walk.registers.known = 0;
	set(f, is_x86 ? UNWIND_X86_64_PC : UNWIND_ARM64_PC, pc);
	set(f, is_x86 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP, STACK);
}

static void expect(const struct fixture *f, enum unwind_stop stop, const uint64_t *pcs, uint32_t n)
{
	assert_int_equal(f->walk.stop, stop);
	assert_int_equal(f->walk.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->walk.frames[i].pc, pcs[i]);
}

#define EXPECT(f, stop, ...)                                                                       \
	expect(f, stop, (const uint64_t[]){__VA_ARGS__},                                           \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

enum { IN_PLAIN = BIAS + PLAIN + 0x10, IN_OUTERMOST = BIAS + OUTERMOST + 1 };

static void frames_follow_the_rules_to_the_outermost(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, IN_PLAIN);
	f->words[1] = BIAS + PLAIN + 0x20;
	f->words[3] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, IN_PLAIN, BIAS + PLAIN + 0x20, IN_OUTERMOST);
	assert_true(f->walk.frames[0].is_exact);
	assert_false(f->walk.frames[1].is_exact);
	assert_int_equal(f->walk.n_by_frame_pointer, 0);
	fixture_free(f);
}

static void return_address_of_zero_is_the_end(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, IN_PLAIN);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, IN_PLAIN);
	fixture_free(f);
}

static void return_address_belongs_to_the_call_before_it(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	/* The first byte of what follows PLAIN: the call was PLAIN's last instruction. */
	start(f, IN_PLAIN);
	f->words[1] = BIAS + LEAF;
	f->words[3] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, IN_PLAIN, BIAS + LEAF, IN_OUTERMOST);
	fixture_free(f);
}

static void every_reason_to_stop_is_told(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, IN_PLAIN);
	f->walk.stack.size = 8;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_DUMP_SHORT, IN_PLAIN);
	f->walk.stack.size = sizeof(f->words);

	start(f, JIT + 8);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_TABLE, JIT + 8);

	start(f, BIAS + NO_RULE + 1);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_RULE, BIAS + NO_RULE + 1);

	/* What is sampled is a frame wherever it is, a caller is not. */
	start(f, 0x1234);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_MAP, 0x1234);
	start(f, IN_PLAIN);
	f->words[1] = 0x1234;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_MAP, IN_PLAIN);

	start(f, BIAS + ODD + 1);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_BAD_CFA, BIAS + ODD + 1);
	start(f, BIAS + DOWN + 1);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_BAD_CFA, BIAS + DOWN + 1);

	start(f, BIAS + BY_REGISTER + 1);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_REGISTER, BIAS + BY_REGISTER + 1);
	start(f, BIAS + BY_REGISTER + 1);
	set(f, 10, STACK + 8);
	f->words[1] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, BIAS + BY_REGISTER + 1, IN_OUTERMOST);
	for (int stop = 0; stop < UNWIND_STOP_N; stop++)
		assert_non_null(unwind_stop_text((enum unwind_stop)stop));
	fixture_free(f);
}

static void recursion_without_an_end_stops_at_the_limit(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, IN_PLAIN);
	for (size_t i = 0; i < STACK_WORDS; i++)
		f->words[i] = IN_PLAIN;
	unwind_walk(&f->walk);
	assert_int_equal(f->walk.stop, UNWIND_STOP_DEPTH);
	assert_int_equal(f->walk.n, UNWIND_MAX_FRAMES);
	fixture_free(f);
}

static void leaf_alone_may_have_no_frame_at_all(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_ARM64);
	start(f, BIAS + LEAF + 4);
	set(f, UNWIND_ARM64_LR, BIAS + PLAIN + 8);
	f->words[1] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, BIAS + LEAF + 4, BIAS + PLAIN + 8, IN_OUTERMOST);
	/* Behind another frame that would not lead up the stack. */
	start(f, IN_PLAIN);
	f->words[1] = BIAS + LEAF + 4;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_BAD_CFA, IN_PLAIN, BIAS + LEAF + 4);
	fixture_free(f);
}

static void what_a_signal_interrupted_is_exact(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	/* PLAIN, the handler, returns into the trampoline, which was entered at LEAF's first byte:
	 * less 1 that would be PLAIN's. */
	start(f, IN_PLAIN);
	f->words[1] = BIAS + SIGNAL + 1;
	f->words[3] = BIAS + OUTERMOST; /* sp + 8 */
	f->words[4] = STACK + 10 * 8;	/* sp + 16 */
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, IN_PLAIN, BIAS + SIGNAL + 1, BIAS + OUTERMOST);
	assert_false(f->walk.frames[1].is_exact);
	assert_true(f->walk.frames[2].is_exact);
	fixture_free(f);
}

static void handler_on_a_stack_of_its_own_is_told(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, BIAS + SIGNAL + 1);
	f->words[1] = IN_PLAIN;
	f->words[2] = STACK - 0x100000;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_OTHER_STACK, BIAS + SIGNAL + 1, IN_PLAIN);
	f->words[2] = (uint64_t)STACK + 0x10000000;
	start(f, BIAS + SIGNAL + 1);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_OTHER_STACK, BIAS + SIGNAL + 1, IN_PLAIN);
	fixture_free(f);
}

static void authentication_code_is_cleared(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_ARM64);
	start(f, BIAS + SIGNED + 4);
	f->words[1] = (uint64_t)0x5a3f << 48 | IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, BIAS + SIGNED + 4, IN_OUTERMOST);
	/* Without the flag such an address is none. */
	start(f, IN_PLAIN);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_MAP, IN_PLAIN);
	fixture_free(f);
}

static void code_without_a_table_is_followed_by_its_frame_pointer(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	/* JIT at words[2], JIT at words[8], PLAIN with any number in the register. */
	start(f, JIT + 8);
	set(f, UNWIND_X86_64_FP, STACK + 2 * 8);
	f->words[2] = STACK + 8 * 8;
	f->words[3] = JIT + 0x10;
	f->words[8] = 5;
	f->words[9] = BIAS + PLAIN + 0x20;
	f->words[11] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, JIT + 8, JIT + 0x10, BIAS + PLAIN + 0x20, IN_OUTERMOST);
	assert_int_equal(f->walk.n_by_frame_pointer, 2);
	fixture_free(f);
}

static void what_does_not_look_like_a_frame_is_not_followed(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	const uint64_t bad_pointers[] = {STACK - 8, STACK + 3, STACK + sizeof(f->words), 0};
	for (size_t i = 0; i < sizeof(bad_pointers) / sizeof(bad_pointers[0]); i++) {
		start(f, JIT + 8);
		set(f, UNWIND_X86_64_FP, bad_pointers[i]);
		unwind_walk(&f->walk);
		EXPECT(f, UNWIND_STOP_NO_TABLE, JIT + 8);
	}
	/* Back to no code, and back down the stack. */
	start(f, JIT + 8);
	set(f, UNWIND_X86_64_FP, STACK + 16);
	f->words[2] = STACK + 64;
	f->words[3] = 0x1234;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_TABLE, JIT + 8);
	f->words[2] = STACK + 8;
	f->words[3] = JIT + 0x10;
	start(f, JIT + 8);
	set(f, UNWIND_X86_64_FP, STACK + 16);
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_NO_TABLE, JIT + 8);
	fixture_free(f);
}

static void frame_pointer_of_zero_ends_a_chain_of_them(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	start(f, JIT + 8);
	set(f, UNWIND_X86_64_FP, STACK + 16);
	f->words[2] = 0;
	f->words[3] = JIT + 0x10;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, JIT + 8, JIT + 0x10);
	fixture_free(f);
}

static void saved_frame_pointer_leads_on_through_rules(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	/* PLAIN leaves the register alone, WITH_FP needs it. */
	start(f, IN_PLAIN);
	set(f, UNWIND_X86_64_FP, STACK + 6 * 8);
	f->words[1] = BIAS + WITH_FP + 4;
	f->words[6] = STACK + 20 * 8;
	f->words[7] = BIAS + WITH_FP + 8;
	f->words[20] = 0;
	f->words[21] = IN_OUTERMOST;
	unwind_walk(&f->walk);
	EXPECT(f, UNWIND_STOP_END, IN_PLAIN, BIAS + WITH_FP + 4, BIAS + WITH_FP + 8, IN_OUTERMOST);
	fixture_free(f);
}

static void cached_rules_give_the_same_frames_without_a_search(void **state)
{
	(void)state;
	struct fixture *f = fixture_new(UNWIND_X86_64);
	struct unwind_cache cache;
	unwind_cache_init(&cache);
	f->walk.cache = &cache;
	f->walk.generation = 7;
	f->words[1] = BIAS + PLAIN + 0x20;
	f->words[3] = IN_OUTERMOST;
	for (int round = 0; round < 2; round++) {
		f->n_located = 0;
		start(f, IN_PLAIN);
		unwind_walk(&f->walk);
		EXPECT(f, UNWIND_STOP_END, IN_PLAIN, BIAS + PLAIN + 0x20, IN_OUTERMOST);
		assert_int_equal(f->n_located, round ? 0 : 1);
	}
	/* The same addresses in another process. */
	f->walk.generation = 8;
	start(f, IN_PLAIN);
	unwind_walk(&f->walk);
	assert_int_equal(f->n_located, 1);
	/* What had no rule is looked for again. */
	for (int round = 0; round < 2; round++) {
		f->n_located = 0;
		start(f, JIT + 8);
		unwind_walk(&f->walk);
		EXPECT(f, UNWIND_STOP_NO_TABLE, JIT + 8);
		assert_int_equal(f->n_located, 1);
	}
	unwind_cache_fini(&cache);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_follow_the_rules_to_the_outermost),
		cmocka_unit_test(return_address_of_zero_is_the_end),
		cmocka_unit_test(return_address_belongs_to_the_call_before_it),
		cmocka_unit_test(every_reason_to_stop_is_told),
		cmocka_unit_test(recursion_without_an_end_stops_at_the_limit),
		cmocka_unit_test(leaf_alone_may_have_no_frame_at_all),
		cmocka_unit_test(what_a_signal_interrupted_is_exact),
		cmocka_unit_test(handler_on_a_stack_of_its_own_is_told),
		cmocka_unit_test(authentication_code_is_cleared),
		cmocka_unit_test(code_without_a_table_is_followed_by_its_frame_pointer),
		cmocka_unit_test(what_does_not_look_like_a_frame_is_not_followed),
		cmocka_unit_test(frame_pointer_of_zero_ends_a_chain_of_them),
		cmocka_unit_test(saved_frame_pointer_leads_on_through_rules),
		cmocka_unit_test(cached_rules_give_the_same_frames_without_a_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
