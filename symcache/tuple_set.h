/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct tuples of four 32-bit numbers, numbered in the order in which they come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tuple {
	uint32_t v[4];
};

struct tuple_set {
	struct tuple *items;
	uint32_t *slots; /* number + 1, 0 = free */
	uint32_t n, capacity;
	uint32_t mask;
};

void tuple_set_init(struct tuple_set *set);
void tuple_set_fini(struct tuple_set *set);
uint32_t tuple_set_add(struct tuple_set *set, struct tuple tuple);
