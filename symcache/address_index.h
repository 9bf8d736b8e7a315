/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted start addresses and the search in them. Addresses within 4 GiB of the first are kept in
 * 32 bits, which halves the memory that a search touches.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ADDRESS_INDEX_NONE UINT32_MAX

struct address_index {
	uint64_t base;
	uint32_t *narrow; /* offsets from base; NULL when the span is wider */
	uint64_t *wide;
	uint32_t n;
};

/* Copies n strictly rising addresses. */
void address_index_init(struct address_index *index, const uint64_t *starts, uint32_t n);
void address_index_fini(struct address_index *index);
/* Position of the last start <= address, ADDRESS_INDEX_NONE when there is none. */
uint32_t address_index_find(const struct address_index *index, uint64_t address);
