/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stack_growth.h"

enum { NS_PER_MS = 1000000 };

bool stack_growth_is_due(struct stack_growth *growth, uint64_t now_ns, uint64_t n_unwound,
			 uint64_t n_short)
{
	uint64_t n = n_unwound - growth->n_unwound, n_too_short = n_short - growth->n_short;
	if (now_ns - growth->looked_ns < (uint64_t)STACK_GROWTH_INTERVAL_MS * NS_PER_MS ||
	    n < STACK_GROWTH_LEAST_STACKS)
		return false;
	growth->looked_ns = now_ns;
	growth->n_unwound = n_unwound;
	growth->n_short = n_short;
	return n_too_short > n / STACK_GROWTH_SHORT_SHARE;
}
