/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of code somebody has spoken for already: a bit per byte of the executable sections.
 * When several units describe one address (a template's function in each of them), the first one
 * counts, for functions and for lines alike. Addresses outside of the code are nobody's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/elf_image.h"

#define ADDRESS_CLAIMS_MAX_BYTES ((uint64_t)1 << 30) /* of code; what is above is left out */
enum { ADDRESS_CLAIMS_MAX_SPANS = 1 << 16 };

struct address_span {
	uint64_t start, end;
	uint64_t *bits; /* made at the first claim */
};

struct address_claims {
	struct address_span *spans; /* sorted, apart from each other */
	size_t n_spans, last;
	uint64_t budget; /* bytes left to be looked at, in all */
};

void address_claims_init(struct address_claims *claims, const struct elf_image *image);
void address_claims_fini(struct address_claims *claims);
/* Whether it is code. */
bool address_claims_covers(struct address_claims *claims, uint64_t address);
/*
 * Claims the first free run in [*position, end): gives it and moves *position behind it; false when
 * nothing is left.
 */
bool address_claims_take(struct address_claims *claims, uint64_t *position, uint64_t end,
			 uint64_t *start_out, uint64_t *end_out);
/* Whether anything in [start, end) is free. */
bool address_claims_is_free(struct address_claims *claims, uint64_t start, uint64_t end);
