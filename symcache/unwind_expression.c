/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/unwind_expression.h"

#include "symcache/dwarf_leb.h"

/* Operations, DWARF 5 section 7.7.1. */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_DUP,
	OP_DROP,
	OP_OVER,
	OP_PICK,
	OP_SWAP,
	OP_ROT,
	OP_ABS = 0x19,
	OP_AND,
	OP_DIV,
	OP_MINUS,
	OP_MOD,
	OP_MUL,
	OP_NEG,
	OP_NOT,
	OP_OR,
	OP_PLUS,
	OP_PLUS_UCONST,
	OP_SHL,
	OP_SHR,
	OP_SHRA,
	OP_XOR,
	OP_BRA,
	OP_EQ,
	OP_GE,
	OP_GT,
	OP_LE,
	OP_LT,
	OP_NE,
	OP_SKIP,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

/* One operation with its operand. */
struct operation {
	uint8_t code;
	uint32_t register_number; /* OP_BREG0 stands for all that read a register */
	uint64_t operand;	  /* of branches: how far, from behind the operation */
};

/* False at an operation that call frame information cannot have, or one that is cut. */
static bool decode(struct cursor *c, struct operation *out)
{
	uint8_t code = cursor_u8(c);
	*out = (struct operation){.code = code};
	if (code >= OP_LIT0 && code <= OP_LIT31) {
		*out = (struct operation){.code = OP_CONSTU, .operand = code - (uint64_t)OP_LIT0};
		return cursor_is_ok(c);
	}
	if ((code >= OP_BREG0 && code <= OP_BREG31) || code == OP_BREGX) {
		uint64_t number =
			code == OP_BREGX ? dwarf_leb_unsigned(c) : (uint64_t)code - OP_BREG0;
		out->code = OP_BREG0;
		out->register_number = (uint32_t)number;
		out->operand = (uint64_t)dwarf_leb_signed(c);
		return cursor_is_ok(c) && number < UNWIND_N_REGISTERS;
	}
	switch (code) {
	case OP_CONST1U:
	case OP_PICK:
	case OP_DEREF_SIZE:
		out->operand = cursor_u8(c);
		break;
	case OP_CONST1S:
		out->operand = (uint64_t)(int64_t)(int8_t)cursor_u8(c);
		break;
	case OP_CONST2U:
		out->operand = cursor_u16(c);
		break;
	case OP_CONST2S:
	case OP_BRA:
	case OP_SKIP:
		out->operand = (uint64_t)(int64_t)(int16_t)cursor_u16(c);
		break;
	case OP_CONST4U:
		out->operand = cursor_u32(c);
		break;
	case OP_CONST4S:
		out->operand = (uint64_t)(int64_t)(int32_t)cursor_u32(c);
		break;
	case OP_CONST8U:
	case OP_CONST8S:
		out->operand = cursor_u64(c);
		break;
	case OP_CONSTU:
	case OP_PLUS_UCONST:
		out->operand = dwarf_leb_unsigned(c);
		break;
	case OP_CONSTS:
		out->operand = (uint64_t)dwarf_leb_signed(c);
		break;
	case OP_NOP:
	case OP_DEREF:
		break;
	default:
		if ((code < OP_DUP || code > OP_ROT) && (code < OP_ABS || code > OP_NE))
			return false;
	}
	if (code >= OP_CONST1U && code <= OP_CONSTS)
		out->code = OP_CONSTU;
	if (code == OP_DEREF) {
		out->code = OP_DEREF_SIZE;
		out->operand = sizeof(uint64_t);
	}
	if (out->code == OP_DEREF_SIZE && (!out->operand || out->operand > sizeof(uint64_t)))
		return false;
	return cursor_is_ok(c);
}

/* Moves to a branch's target; its end is one. */
static bool take_branch(struct cursor *c, uint64_t distance)
{
	uint64_t target = (uint64_t)(c->next - c->begin) + distance;
	if (target > (uint64_t)(c->end - c->begin))
		return false;
	cursor_seek(c, (size_t)target);
	return true;
}

bool unwind_expression_check(const uint8_t *bytes, size_t n, uint64_t *registers_out)
{
	uint64_t starts[UNWIND_EXPRESSION_MAX_BYTES / 64 + 1] = {0};
	uint64_t registers = 0;
	if (n == 0 || n > UNWIND_EXPRESSION_MAX_BYTES)
		return false;
	struct operation operation;
	struct cursor c = cursor_make(bytes, n, false);
	while (cursor_left(&c)) {
		size_t at = (size_t)(c.next - c.begin);
		starts[at / 64] |= UINT64_C(1) << at % 64;
		if (!decode(&c, &operation))
			return false;
		if (operation.code == OP_BREG0)
			registers |= UINT64_C(1) << operation.register_number;
	}
	starts[n / 64] |= UINT64_C(1) << n % 64;
	c = cursor_make(bytes, n, false);
	while (cursor_left(&c)) {
		struct cursor target;
		if (!decode(&c, &operation))
			return false;
		if (operation.code != OP_BRA && operation.code != OP_SKIP)
			continue;
		target = c;
		if (!take_branch(&target, operation.operand))
			return false;
		size_t at = (size_t)(target.next - target.begin);
		if (!(starts[at / 64] >> at % 64 & 1))
			return false;
	}
	if (registers_out)
		*registers_out = registers;
	return true;
}

struct machine {
	const struct unwind_expression_input *input;
	struct cursor code;
	uint64_t stack[UNWIND_EXPRESSION_MAX_DEPTH];
	unsigned depth;
};

static bool push(struct machine *machine, uint64_t value)
{
	if (machine->depth == UNWIND_EXPRESSION_MAX_DEPTH)
		return false;
	machine->stack[machine->depth++] = value;
	return true;
}

/* Two operands, b from the top; false when there is no result. Comparisons and division are signed,
 * mod and shr are not (DWARF 5, 2.5.1.4). */
static bool compute(uint8_t code, uint64_t a, uint64_t b, uint64_t *out)
{
	int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;
	switch (code) {
	case OP_AND:
		*out = a & b;
		return true;
	case OP_DIV:
		/* The one quotient that does not fit wraps. */
		*out = b == UINT64_MAX ? -a : b ? (uint64_t)(signed_a / signed_b) : 0;
		return b != 0;
	case OP_MINUS:
		*out = a - b;
		return true;
	case OP_MOD:
		*out = b ? a % b : 0;
		return b != 0;
	case OP_MUL:
		*out = a * b;
		return true;
	case OP_OR:
		*out = a | b;
		return true;
	case OP_PLUS:
		*out = a + b;
		return true;
	case OP_SHL:
		*out = b < 64 ? a << b : 0;
		return true;
	case OP_SHR:
		*out = b < 64 ? a >> b : 0;
		return true;
	case OP_SHRA:
		*out = (uint64_t)(signed_a >> (b < 64 ? b : 63));
		return true;
	case OP_XOR:
		*out = a ^ b;
		return true;
	case OP_EQ:
		*out = a == b;
		return true;
	case OP_GE:
		*out = signed_a >= signed_b;
		return true;
	case OP_GT:
		*out = signed_a > signed_b;
		return true;
	case OP_LE:
		*out = signed_a <= signed_b;
		return true;
	case OP_LT:
		*out = signed_a < signed_b;
		return true;
	case OP_NE:
		*out = a != b;
		return true;
	default:
		return false;
	}
}

/* How many values an operation needs on the stack. */
static unsigned operands_of(const struct operation *operation)
{
	switch (operation->code) {
	case OP_CONSTU:
	case OP_BREG0:
	case OP_NOP:
	case OP_SKIP:
		return 0;
	case OP_PICK:
		return (unsigned)operation->operand + 1;
	case OP_DEREF_SIZE:
	case OP_DUP:
	case OP_DROP:
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
	case OP_BRA:
		return 1;
	case OP_ROT:
		return 3;
	default:
		return 2;
	}
}

static enum unwind_expression_outcome load(struct machine *machine, uint64_t *top, size_t n)
{
	const struct unwind_memory *memory = machine->input->memory;
	return unwind_memory_read(memory, *top, n, top) ? UNWIND_EXPRESSION_OK
							: UNWIND_EXPRESSION_NO_MEMORY;
}

static enum unwind_expression_outcome read_register(struct machine *machine,
						    const struct operation *operation)
{
	const struct unwind_registers *registers = machine->input->registers;
	if (!(registers->known >> operation->register_number & 1))
		return UNWIND_EXPRESSION_NO_REGISTER;
	return push(machine, registers->values[operation->register_number] + operation->operand)
		       ? UNWIND_EXPRESSION_OK
		       : UNWIND_EXPRESSION_BAD;
}

static void rotate(uint64_t *top)
{
	uint64_t first = top[0];
	top[0] = top[-1];
	top[-1] = top[-2];
	top[-2] = first;
}

static enum unwind_expression_outcome step(struct machine *machine,
					   const struct operation *operation)
{
	if (machine->depth < operands_of(operation))
		return UNWIND_EXPRESSION_BAD;
	/* Not read where there is none. */
	uint64_t *top = &machine->stack[machine->depth ? machine->depth - 1 : 0];
	bool is_ok = true;
	switch (operation->code) {
	case OP_CONSTU:
		is_ok = push(machine, operation->operand);
		break;
	case OP_BREG0:
		return read_register(machine, operation);
	case OP_DEREF_SIZE:
		return load(machine, top, (size_t)operation->operand);
	case OP_NOP:
		break;
	case OP_DUP:
		is_ok = push(machine, *top);
		break;
	case OP_DROP:
		machine->depth--;
		break;
	case OP_OVER:
		is_ok = push(machine, top[-1]);
		break;
	case OP_PICK:
		is_ok = push(machine, *(top - operation->operand));
		break;
	case OP_SWAP: {
		uint64_t value = top[0];
		top[0] = top[-1];
		top[-1] = value;
		break;
	}
	case OP_ROT:
		rotate(top);
		break;
	case OP_ABS:
		*top = (int64_t)*top < 0 ? -*top : *top;
		break;
	case OP_NEG:
		*top = -*top;
		break;
	case OP_NOT:
		*top = ~*top;
		break;
	case OP_PLUS_UCONST:
		*top += operation->operand;
		break;
	case OP_BRA:
		machine->depth--;
		is_ok = !*top || take_branch(&machine->code, operation->operand);
		break;
	case OP_SKIP:
		is_ok = take_branch(&machine->code, operation->operand);
		break;
	default:
		machine->depth--;
		is_ok = compute(operation->code, top[-1], top[0], &top[-1]);
	}
	return is_ok ? UNWIND_EXPRESSION_OK : UNWIND_EXPRESSION_BAD;
}

enum unwind_expression_outcome unwind_expression_run(const uint8_t *bytes, size_t n,
						     const struct unwind_expression_input *input,
						     uint64_t *out)
{
	struct machine machine;
	machine.input = input;
	machine.code = cursor_make(bytes, n, false);
	machine.depth = 0;
	if (input->has_cfa)
		(void)push(&machine, input->cfa);
	for (unsigned steps = 0; cursor_left(&machine.code); steps++) {
		struct operation operation;
		if (steps == UNWIND_EXPRESSION_MAX_STEPS || !decode(&machine.code, &operation))
			return UNWIND_EXPRESSION_BAD;
		enum unwind_expression_outcome outcome = step(&machine, &operation);
		if (outcome != UNWIND_EXPRESSION_OK)
			return outcome;
	}
	if (!machine.depth)
		return UNWIND_EXPRESSION_BAD;
	*out = machine.stack[machine.depth - 1];
	return UNWIND_EXPRESSION_OK;
}
