/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary of an unwind table: sequences of rows that come again and again (the pushes of a
 * prologue, the pops of an epilogue) get a code of their own. Pairs of neighbours that are frequent
 * become a phrase, over and over, as in byte pair encoding; the same items give the same phrases.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symcache/unwind_table_layout.h"

/* A rule that holds from a unit of text on. Afterwards: a code, which may be a phrase. */
struct unwind_item {
	uint32_t unit;
	uint32_t code;
};

struct unwind_phrase {
	uint8_t n_rows;
	uint8_t distances[UNWIND_MAX_PHRASE]; /* from the first row */
	uint16_t rules[UNWIND_MAX_PHRASE];
};

struct unwind_phrases {
	struct unwind_phrase *phrases; /* by number of rows */
	uint32_t n;
	uint16_t n_of_rows[UNWIND_MAX_PHRASE + 1];
};

/*
 * Replaces items in place, units rising and codes below n_rules; n_out is how many are left. Code
 * n_rules + i is phrases[i], of at most max_phrases. No phrase crosses a page of 1 << page_bits
 * units.
 */
void unwind_phrases_make(struct unwind_phrases *phrases, struct unwind_item *items, size_t n,
			 uint32_t n_rules, uint32_t max_phrases, unsigned page_bits, size_t *n_out);
void unwind_phrases_fini(struct unwind_phrases *phrases);
