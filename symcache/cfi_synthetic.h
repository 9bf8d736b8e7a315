/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for code that call frame information leaves out or gets wrong, made from the code: PLTs (of
 * lld and mold on x86-64, of all linkers on arm64), signal trampolines (musl's; the vdso's on
 * arm64, whose own rules lose the interrupted pc) and the entry point.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "symcache/cfi_program.h"
#include "symcache/unwind_model.h"

/* Replaces rows by those of a PLT's code; from code that is not understood on there is no rule. */
struct error *cfi_synthetic_plt(struct unwind_model *model, uint64_t svma, const uint8_t *code,
				size_t n, struct cfi_rows *rows) MUST_USE;

/* The first signal trampoline in code, or n; *n_out are its bytes. */
size_t cfi_synthetic_find_trampoline(enum unwind_machine machine, const uint8_t *code, size_t n,
				     size_t *n_out);
struct error *cfi_synthetic_trampoline(struct unwind_model *model, uint32_t *rule_out) MUST_USE;
/* Nothing called the code at the entry point. */
struct error *cfi_synthetic_entry(struct unwind_model *model, uint32_t *rule_out) MUST_USE;

/* Whether code is nothing but what fills gaps between functions. */
bool cfi_synthetic_is_padding(enum unwind_machine machine, const uint8_t *code, size_t n);
