/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When copied user stacks turn out too short, more is to be copied: a decision from counters alone,
 * a second apart, so that a few deep stacks do not make all copies large.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	STACK_GROWTH_FIRST_BYTES = 32 << 10,
	STACK_GROWTH_INTERVAL_MS = 1000,
	STACK_GROWTH_LEAST_STACKS = 50, /* fewer say nothing */
	STACK_GROWTH_SHORT_SHARE = 50,	/* one in so many may be too short */
};

/* Zeroed at first. */
struct stack_growth {
	uint64_t looked_ns;
	uint64_t n_unwound, n_short; /* as they were when the size was last judged */
};

/* Counters since the program's start. True: the copies should grow. */
bool stack_growth_is_due(struct stack_growth *growth, uint64_t now_ns, uint64_t n_unwound,
			 uint64_t n_short);
