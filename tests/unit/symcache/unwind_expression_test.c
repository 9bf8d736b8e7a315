/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of unwind rules: each operation, and what must not go wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "symcache/unwind_expression.h"

#define STACK_AT UINT64_C(0x7ffc00001000)

static const uint8_t stack[16] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
				  0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
static const struct unwind_memory memory = {
	.bytes = stack, .vaddr = STACK_AT, .size = sizeof(stack)};

struct expectation {
	const char *what;
	uint8_t bytes[24];
	uint8_t n;
	enum unwind_expression_outcome outcome;
	uint64_t value;
};

/* Register 7 is STACK_AT, 16 is 0x40102b, 32 is 5; no other is known. */
static enum unwind_expression_outcome run(const uint8_t *bytes, size_t n, bool has_cfa,
					  uint64_t *out)
{
	struct unwind_registers registers = {0};
	registers.values[7] = STACK_AT;
	registers.values[16] = 0x40102b;
	registers.values[32] = 5;
	registers.known = UINT64_C(1) << 7 | UINT64_C(1) << 16 | UINT64_C(1) << 32;
	/* Of just that size, so that a sanitizer sees a read behind it. */
	uint8_t *copy = malloc(n ? n : 1);
	memcpy(copy, bytes, n);
	const struct unwind_expression_input input = {
		.registers = &registers, .memory = &memory, .has_cfa = has_cfa, .cfa = 0x1000};
	enum unwind_expression_outcome outcome = unwind_expression_run(copy, n, &input, out);
	free(copy);
	return outcome;
}

static const struct expectation expectations[] = {
	{"lit31", {0x4f}, 1, UNWIND_EXPRESSION_OK, 31},
	{"const1u", {0x08, 0xff}, 2, UNWIND_EXPRESSION_OK, 255},
	{"const1s", {0x09, 0xff}, 2, UNWIND_EXPRESSION_OK, UINT64_MAX},
	{"const2u", {0x0a, 0xfe, 0xff}, 3, UNWIND_EXPRESSION_OK, 0xfffe},
	{"const2s", {0x0b, 0xfe, 0xff}, 3, UNWIND_EXPRESSION_OK, (uint64_t)-2},
	{"const4u", {0x0c, 1, 0, 0, 0x80}, 5, UNWIND_EXPRESSION_OK, 0x80000001},
	{"const4s", {0x0d, 1, 0, 0, 0x80}, 5, UNWIND_EXPRESSION_OK, 0xffffffff80000001},
	{"const8u", {0x0e, 1, 2, 3, 4, 5, 6, 7, 8}, 9, UNWIND_EXPRESSION_OK, 0x0807060504030201},
	{"constu", {0x10, 0x80, 0x01}, 3, UNWIND_EXPRESSION_OK, 128},
	{"consts", {0x11, 0x80, 0x7f}, 3, UNWIND_EXPRESSION_OK, (uint64_t)-128},
	{"breg7 8", {0x77, 8}, 2, UNWIND_EXPRESSION_OK, STACK_AT + 8},
	{"breg7 -8", {0x77, 0x78}, 2, UNWIND_EXPRESSION_OK, STACK_AT - 8},
	{"bregx 32 1", {0x92, 32, 1}, 3, UNWIND_EXPRESSION_OK, 6},
	{"breg7 0; deref", {0x77, 0, 0x06}, 3, UNWIND_EXPRESSION_OK, 0x8877665544332211},
	{"breg7 1; deref_size 2", {0x77, 1, 0x94, 2}, 4, UNWIND_EXPRESSION_OK, 0x3322},
	{"dup; plus", {0x35, 0x12, 0x22}, 3, UNWIND_EXPRESSION_OK, 10},
	{"drop", {0x35, 0x36, 0x13}, 3, UNWIND_EXPRESSION_OK, 5},
	{"over", {0x35, 0x36, 0x14}, 3, UNWIND_EXPRESSION_OK, 5},
	{"pick 2", {0x35, 0x36, 0x37, 0x15, 2}, 5, UNWIND_EXPRESSION_OK, 5},
	{"swap; minus", {0x35, 0x37, 0x16, 0x1c}, 4, UNWIND_EXPRESSION_OK, 2},
	/* 5 6 7 becomes 7 5 6; 5 - 6 = -1; 7 - -1 = 8 */
	{"rot", {0x35, 0x36, 0x37, 0x17, 0x1c, 0x1c}, 6, UNWIND_EXPRESSION_OK, 8},
	{"abs", {0x09, 0xfb, 0x19}, 3, UNWIND_EXPRESSION_OK, 5},
	{"and", {0x3e, 0x37, 0x1a}, 3, UNWIND_EXPRESSION_OK, 6},
	{"div is signed", {0x09, 0xf8, 0x32, 0x1b}, 4, UNWIND_EXPRESSION_OK, (uint64_t)-4},
	{"mod is unsigned", {0x09, 0xff, 0x3a, 0x1d}, 4, UNWIND_EXPRESSION_OK, 5},
	{"mul", {0x35, 0x37, 0x1e}, 3, UNWIND_EXPRESSION_OK, 35},
	{"neg", {0x35, 0x1f}, 2, UNWIND_EXPRESSION_OK, (uint64_t)-5},
	{"not", {0x30, 0x20}, 2, UNWIND_EXPRESSION_OK, UINT64_MAX},
	{"or", {0x35, 0x3a, 0x21}, 3, UNWIND_EXPRESSION_OK, 15},
	{"plus_uconst", {0x35, 0x23, 0x80, 0x01}, 4, UNWIND_EXPRESSION_OK, 133},
	{"shl", {0x31, 0x34, 0x24}, 3, UNWIND_EXPRESSION_OK, 16},
	{"shl by 64", {0x31, 0x08, 64, 0x24}, 4, UNWIND_EXPRESSION_OK, 0},
	{"shr", {0x09, 0xff, 0x08, 60, 0x25}, 5, UNWIND_EXPRESSION_OK, 15},
	{"shra", {0x09, 0xf0, 0x32, 0x26}, 4, UNWIND_EXPRESSION_OK, (uint64_t)-4},
	{"shra by 200", {0x09, 0xf0, 0x08, 200, 0x26}, 5, UNWIND_EXPRESSION_OK, UINT64_MAX},
	{"xor", {0x35, 0x36, 0x27}, 3, UNWIND_EXPRESSION_OK, 3},
	{"comparisons are signed", {0x09, 0xff, 0x31, 0x2d}, 4, UNWIND_EXPRESSION_OK, 1},
	{"eq", {0x35, 0x35, 0x29}, 3, UNWIND_EXPRESSION_OK, 1},
	{"ge", {0x35, 0x36, 0x2a}, 3, UNWIND_EXPRESSION_OK, 0},
	{"gt", {0x36, 0x35, 0x2b}, 3, UNWIND_EXPRESSION_OK, 1},
	{"le", {0x36, 0x35, 0x2c}, 3, UNWIND_EXPRESSION_OK, 0},
	{"ne", {0x36, 0x35, 0x2e}, 3, UNWIND_EXPRESSION_OK, 1},
	{"bra taken", {0x39, 0x31, 0x28, 1, 0, 0x35, 0x96}, 7, UNWIND_EXPRESSION_OK, 9},
	{"bra not taken", {0x39, 0x30, 0x28, 1, 0, 0x35, 0x96}, 7, UNWIND_EXPRESSION_OK, 5},
	{"skip to the end", {0x39, 0x2f, 1, 0, 0x35}, 5, UNWIND_EXPRESSION_OK, 9},
	/* What binutils says of a lazy PLT, at 0x40102b: rsp + 8 + ((rip & 15) >= 11) * 8. */
	{"plt",
	 {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	 11,
	 UNWIND_EXPRESSION_OK,
	 STACK_AT + 16},

	{"nothing", {0}, 0, UNWIND_EXPRESSION_BAD, 0},
	{"pops of an empty stack", {0x22}, 1, UNWIND_EXPRESSION_BAD, 0},
	{"one operand of two", {0x35, 0x22}, 2, UNWIND_EXPRESSION_BAD, 0},
	{"pick beyond the stack", {0x35, 0x15, 1}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"rot of two", {0x35, 0x36, 0x17}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"division by zero", {0x35, 0x30, 0x1b}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"mod by zero", {0x35, 0x30, 0x1d}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"the quotient that does not fit",
	 {0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b},
	 12,
	 UNWIND_EXPRESSION_OK,
	 UINT64_C(1) << 63},
	{"an operand that is cut", {0x0e, 1, 2}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"a loop", {0x2f, 0xfd, 0xff}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"a loop that pushes", {0x31, 0x2f, 0xfc, 0xff}, 4, UNWIND_EXPRESSION_BAD, 0},
	{"a branch before the start", {0x31, 0x28, 0, 0x80}, 4, UNWIND_EXPRESSION_BAD, 0},
	{"a branch behind the end", {0x31, 0x28, 0xff, 0x7f}, 4, UNWIND_EXPRESSION_BAD, 0},
	{"DW_OP_addr", {0x03, 0, 0, 0, 0, 0, 0, 0, 0}, 9, UNWIND_EXPRESSION_BAD, 0},
	{"call_frame_cfa", {0x9c}, 1, UNWIND_EXPRESSION_BAD, 0},
	{"deref_size 0", {0x77, 0, 0x94, 0}, 4, UNWIND_EXPRESSION_BAD, 0},
	{"deref_size 9", {0x77, 0, 0x94, 9}, 4, UNWIND_EXPRESSION_BAD, 0},
	{"register 33", {0x92, 33, 0}, 3, UNWIND_EXPRESSION_BAD, 0},
	{"an unknown register", {0x70, 0}, 2, UNWIND_EXPRESSION_NO_REGISTER, 0},
	{"memory below", {0x77, 0x7f, 0x06}, 3, UNWIND_EXPRESSION_NO_MEMORY, 0},
	{"memory behind", {0x77, 9, 0x06}, 3, UNWIND_EXPRESSION_NO_MEMORY, 0},
	{"memory at the end of all", {0x09, 0xff, 0x06}, 3, UNWIND_EXPRESSION_NO_MEMORY, 0},
};

static void unwind_expression_computes_as_dwarf_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(expectations); i++) {
		const struct expectation *want = &expectations[i];
		uint64_t value = 0;
		enum unwind_expression_outcome outcome = run(want->bytes, want->n, false, &value);
		if (outcome != want->outcome ||
		    (outcome == UNWIND_EXPRESSION_OK && value != want->value))
			fail_msg("%s: outcome %d, value %#llx", want->what, (int)outcome,
				 (unsigned long long)value);
		/* What is fine to run passes the check before. */
		if (outcome != UNWIND_EXPRESSION_BAD)
			assert_true(unwind_expression_check(want->bytes, want->n, NULL));
	}
}

static void unwind_expression_begins_with_the_cfa(void **state)
{
	(void)state;
	const uint8_t plus_4[] = {0x23, 4};
	uint64_t value;
	assert_int_equal(run(plus_4, sizeof(plus_4), true, &value), UNWIND_EXPRESSION_OK);
	assert_int_equal(value, 0x1004);
	assert_int_equal(run(plus_4, sizeof(plus_4), false, &value), UNWIND_EXPRESSION_BAD);
}

static void unwind_expression_bounds_its_stack(void **state)
{
	(void)state;
	uint8_t bytes[UNWIND_EXPRESSION_MAX_DEPTH + 1];
	uint64_t value;
	memset(bytes, 0x31, sizeof(bytes));
	assert_int_equal(run(bytes, sizeof(bytes) - 1, false, &value), UNWIND_EXPRESSION_OK);
	assert_int_equal(run(bytes, sizeof(bytes), false, &value), UNWIND_EXPRESSION_BAD);
}

static void unwind_expression_check_finds_what_never_works(void **state)
{
	(void)state;
	static const struct {
		uint8_t bytes[8], n;
	} bad[] = {
		{{0}, 0},
		{{0x03}, 1},		       /* DW_OP_addr */
		{{0x0a, 1}, 2},		       /* cut */
		{{0x10, 0x80}, 2},	       /* cut */
		{{0x31, 0x28, 0x10, 0}, 4},    /* out of it */
		{{0x2f, 1, 0, 0x08, 0x31}, 5}, /* into an operand */
		{{0x92, 33, 0}, 3},	       /* no such register */
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(unwind_expression_check(bad[i].bytes, bad[i].n, NULL));
	uint8_t *large = calloc(1, UNWIND_EXPRESSION_MAX_BYTES + 1);
	memset(large, 0x96, UNWIND_EXPRESSION_MAX_BYTES + 1);
	assert_true(unwind_expression_check(large, UNWIND_EXPRESSION_MAX_BYTES, NULL));
	assert_false(unwind_expression_check(large, UNWIND_EXPRESSION_MAX_BYTES + 1, NULL));
	free(large);
	const uint8_t two[] = {0x76, 0, 0x92, 32, 0, 0x22};
	uint64_t registers;
	assert_true(unwind_expression_check(two, sizeof(two), &registers));
	assert_int_equal(registers, UINT64_C(1) << 6 | UINT64_C(1) << 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unwind_expression_computes_as_dwarf_says),
		cmocka_unit_test(unwind_expression_begins_with_the_cfa),
		cmocka_unit_test(unwind_expression_bounds_its_stack),
		cmocka_unit_test(unwind_expression_check_finds_what_never_works),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
