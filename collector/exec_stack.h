/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argv of a program that was just exec'ed, from the copy of its fresh stack. Pure.
 *
 *	SP → argc | argv[0] … argv[argc-1] | 0 | envp … | 0 | auxv … | strings of argv | of envp
 *
 * argv's pointers lead into the same copy. What lies behind argv's strings (the environment) is
 * never looked at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"

struct exec_stack {
	const uint8_t *bytes; /* from SP upwards */
	size_t size;
	uint64_t sp;
	bool is_32_bit; /* argc and pointers of 4 bytes */
};

/*
 * Appends the words, each with its 0. True when all of argv was in the copy and fits; otherwise
 * the first words that were may have been appended.
 */
bool exec_stack_read_argv(const struct exec_stack *stack, struct buf *words) MUST_USE;
