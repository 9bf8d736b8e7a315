/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/cfi_synthetic.h"

#include <string.h>

enum { ARM64_WORD_BYTES = 4, SLOT_BYTES = 8, PLT0_BYTES = 16 };

static uint32_t load_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* ---- padding ---- */

/* Bytes of a nop, int3 or zero; 0 when it is something else (Intel SDM, "NOP"). */
static size_t x86_filler_bytes(const uint8_t *code, size_t n)
{
	size_t at = 0;
	while (at < n && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < n && (code[at] == 0x90 || code[at] == 0xcc || code[at] == 0x00))
		return at + 1;
	if (n - at < 3 || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	uint8_t modrm = code[at + 2], mode = modrm >> 6;
	size_t size = at + 3 + ((modrm & 7) == 4) + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
	return mode == 3 || size > n ? 0 : size;
}

bool cfi_synthetic_is_padding(enum unwind_machine machine, const uint8_t *code, size_t n)
{
	const uint32_t nop = 0xd503201f;
	for (size_t at = 0; at < n;) {
		size_t size;
		if (machine == UNWIND_X86_64) {
			size = x86_filler_bytes(code + at, n - at);
		} else {
			size = ARM64_WORD_BYTES;
			if (n - at < size ||
			    (load_u32(code + at) != nop && load_u32(code + at) != 0))
				return false;
		}
		if (!size)
			return false;
		at += size;
	}
	return true;
}

/* ---- PLT ---- */

enum step { STEP_UNKNOWN, STEP_OTHER, STEP_PUSH, STEP_JUMP };

struct plt_instruction {
	uint8_t bytes[4], n; /* how it begins */
	uint8_t size;
	enum step step;
};

static const struct plt_instruction x86_instructions[] = {
	{{0xff, 0x25}, 2, 6, STEP_JUMP},	      /* jmp *slot(%rip) */
	{{0xf2, 0xff, 0x25}, 3, 7, STEP_JUMP},	      /* bnd jmp *slot(%rip) */
	{{0xe9}, 1, 5, STEP_JUMP},		      /* jmp */
	{{0xf2, 0xe9}, 2, 6, STEP_JUMP},	      /* bnd jmp */
	{{0x68}, 1, 5, STEP_PUSH},		      /* push index */
	{{0xff, 0x35}, 2, 6, STEP_PUSH},	      /* push slot(%rip) */
	{{0x41, 0x53}, 2, 2, STEP_PUSH},	      /* push %r11 */
	{{0x41, 0xbb}, 2, 6, STEP_OTHER},	      /* mov index, %r11d */
	{{0xf3, 0x0f, 0x1e, 0xfa}, 4, 4, STEP_OTHER}, /* endbr64 */
};

static enum step x86_step(const uint8_t *code, size_t n, size_t *size_out)
{
	for (size_t i = 0; i < ARRAY_LEN(x86_instructions); i++) {
		const struct plt_instruction *known = &x86_instructions[i];
		if (n >= known->size && memcmp(code, known->bytes, known->n) == 0) {
			*size_out = known->size;
			return known->step;
		}
	}
	*size_out = x86_filler_bytes(code, n);
	return *size_out ? STEP_OTHER : STEP_UNKNOWN;
}

/* Only PLT0 pushes, and its instructions are the adrp, ldr, add, br of the others. */
static enum step arm64_step(const uint8_t *code, size_t n, size_t *size_out)
{
	const uint32_t stp_x16_x30_push = 0xa9bf7bf0, br_x17 = 0xd61f0220;
	*size_out = ARM64_WORD_BYTES;
	if (n < ARM64_WORD_BYTES)
		return STEP_UNKNOWN;
	uint32_t word = load_u32(code);
	return word == stp_x16_x30_push ? STEP_PUSH : word == br_x17 ? STEP_JUMP : STEP_OTHER;
}

static struct error *plt_rule(struct unwind_model *model, int32_t pushed_bytes, uint32_t *out)
{
	bool is_x86 = model->machine == UNWIND_X86_64;
	struct unwind_rule rule = {
		.cfa = {.kind = UNWIND_REGISTER,
			.register_number = is_x86 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP,
			.offset = pushed_bytes + (is_x86 ? SLOT_BYTES : 0)},
		.return_address = {.kind = UNWIND_AT_CFA, .offset = -SLOT_BYTES},
		.frame_pointer = {.kind = UNWIND_SAME},
		.extra_register = model->extra_register,
		.flags = UNWIND_SYNTHETIC,
	};
	if (model->extra_register)
		rule.extra.kind = UNWIND_SAME;
	if (!is_x86 && !pushed_bytes)
		rule.return_address = (struct unwind_value){.kind = UNWIND_REGISTER,
							    .register_number = UNWIND_ARM64_LR};
	return unwind_model_rule(model, &rule, 0, out);
}

/* What the slots have pushed when they jump to PLT0, which pushes one more thing. */
static int32_t pushed_before_plt0(const uint8_t *code, size_t n)
{
	bool has_plt0 = false, has_push = false;
	for (size_t at = 0, size; at < n; at += size) {
		enum step step = x86_step(code + at, n - at, &size);
		if (step == STEP_UNKNOWN)
			break;
		has_plt0 |= at < PLT0_BYTES && code[at] == 0xff && step == STEP_PUSH;
		has_push |= at >= PLT0_BYTES && code[at] == 0x68;
	}
	return has_plt0 && has_push ? SLOT_BYTES : 0;
}

struct error *cfi_synthetic_plt(struct unwind_model *model, uint64_t svma, const uint8_t *code,
				size_t n, struct cfi_rows *rows)
{
	bool is_x86 = model->machine == UNWIND_X86_64;
	int32_t push_bytes = is_x86 ? SLOT_BYTES : 2 * SLOT_BYTES;
	int32_t pushed_bytes = is_x86 ? pushed_before_plt0(code, n) : 0;
	rows->n = 0;
	for (size_t at = 0, size; at < n; at += size) {
		uint32_t rule;
		enum step step = is_x86 ? x86_step(code + at, n - at, &size)
					: arm64_step(code + at, n - at, &size);
		if (step == STEP_UNKNOWN) {
			cfi_rows_add(rows, svma + at, UNWIND_RULE_NONE);
			return NULL;
		}
		struct error *err = plt_rule(model, pushed_bytes, &rule);
		if (err)
			return err;
		cfi_rows_add(rows, svma + at, rule);
		if (step == STEP_PUSH)
			pushed_bytes += push_bytes;
		else if (step == STEP_JUMP)
			pushed_bytes = 0;
	}
	return NULL;
}

/* ---- signal trampolines ---- */

/* mov $__NR_rt_sigreturn, %rax; syscall */
static const uint8_t x86_trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
/* mov x8, #__NR_rt_sigreturn; svc #0 */
static const uint8_t arm64_trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};

size_t cfi_synthetic_find_trampoline(enum unwind_machine machine, const uint8_t *code, size_t n,
				     size_t *n_out)
{
	bool is_x86 = machine == UNWIND_X86_64;
	*n_out = is_x86 ? sizeof(x86_trampoline) : sizeof(arm64_trampoline);
	const uint8_t *found =
		n ? memmem(code, n, is_x86 ? x86_trampoline : arm64_trampoline, *n_out) : NULL;
	return found ? (size_t)(found - code) : n;
}

/*
 * Where the kernel puts registers, from the stack pointer on when the trampoline begins. x86-64:
 * struct ucontext, its gregs behind flags, link and stack (arch/x86/include/uapi/asm/sigcontext.h).
 * arm64: struct rt_sigframe, siginfo (128 bytes) and ucontext, whose sigcontext is at a multiple of
 * 16 and begins with the fault address (arch/arm64/include/uapi/asm/sigcontext.h).
 */
enum {
	X86_GREGS = 40,
	X86_FP_AT = X86_GREGS + 10 * 8,
	X86_RBX_AT = X86_GREGS + 11 * 8,
	X86_SP_AT = X86_GREGS + 15 * 8,
	X86_PC_AT = X86_GREGS + 16 * 8,
	ARM64_REGS = 128 + 176 + 8,
	ARM64_FP_AT = ARM64_REGS + 29 * 8,
	ARM64_LR_AT = ARM64_REGS + 30 * 8,
	ARM64_SP_AT = ARM64_REGS + 31 * 8,
	ARM64_PC_AT = ARM64_REGS + 32 * 8,
};

/* DW_OP_breg of the stack pointer, and DW_OP_deref when it is to be loaded. */
static struct error *sp_expression(struct unwind_model *model, int32_t offset, bool is_loaded,
				   struct unwind_value *out)
{
	enum { OP_DEREF = 0x06, OP_BREG0 = 0x70 };
	uint8_t sp = model->machine == UNWIND_X86_64 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP;
	/* Signed LEB128 of two bytes: offsets lie between 64 and 8192. */
	uint8_t bytes[4] = {(uint8_t)(OP_BREG0 + sp), (uint8_t)(offset | 0x80),
			    (uint8_t)(offset >> 7), OP_DEREF};
	*out = (struct unwind_value){.kind = is_loaded ? UNWIND_EXPRESSION : UNWIND_AT_EXPRESSION};
	return unwind_model_expression(model, bytes, is_loaded ? 4 : 3, &out->offset);
}

/* Of a register that calls preserve; 0 = it is not told. */
static int32_t extra_at(const struct unwind_model *model)
{
	enum { RBX = 3, R12 = 12, R15 = 15, X19 = 19 };
	uint8_t number = model->extra_register;
	if (model->machine == UNWIND_ARM64)
		return number >= X19 ? ARM64_REGS + number * 8 : 0;
	if (number == RBX)
		return X86_RBX_AT;
	return number >= R12 && number <= R15 ? X86_GREGS + (number - 8) * 8 : 0;
}

struct error *cfi_synthetic_trampoline(struct unwind_model *model, uint32_t *rule_out)
{
	bool is_x86 = model->machine == UNWIND_X86_64;
	struct unwind_rule rule = {
		.extra_register = is_x86 ? model->extra_register : UNWIND_ARM64_LR,
		.flags = UNWIND_SIGNAL_FRAME | UNWIND_SYNTHETIC,
	};
	int32_t extra = is_x86 ? extra_at(model) : ARM64_LR_AT;
	struct error *err = sp_expression(model, is_x86 ? X86_SP_AT : ARM64_SP_AT, true, &rule.cfa);
	if (!err)
		err = sp_expression(model, is_x86 ? X86_PC_AT : ARM64_PC_AT, false,
				    &rule.return_address);
	if (!err)
		err = sp_expression(model, is_x86 ? X86_FP_AT : ARM64_FP_AT, false,
				    &rule.frame_pointer);
	if (!err && extra)
		err = sp_expression(model, extra, false, &rule.extra);
	return err ? err : unwind_model_rule(model, &rule, 0, rule_out);
}

struct error *cfi_synthetic_entry(struct unwind_model *model, uint32_t *rule_out)
{
	bool is_x86 = model->machine == UNWIND_X86_64;
	const struct unwind_rule rule = {
		.cfa = {.kind = UNWIND_REGISTER,
			.register_number = is_x86 ? UNWIND_X86_64_SP : UNWIND_ARM64_SP,
			.offset = is_x86 ? SLOT_BYTES : 0},
		.return_address = {.kind = UNWIND_UNDEFINED},
		.frame_pointer = {.kind = UNWIND_UNDEFINED},
		.extra_register = model->extra_register,
		.flags = UNWIND_SYNTHETIC,
	};
	return unwind_model_rule(model, &rule, 0, rule_out);
}
