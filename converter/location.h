/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinct places of a window: (image, address in it) → location index of the profile. While the
 * window is open an address is a file offset (or what image.h says for its kind); symbolize gives
 * it its final form and its names, once each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/profile.h"

struct location {
	uint64_t address;
	uint32_t image;
	bool is_return; /* a return address less 1, not a sampled one */
};

/* The whole key lies in the slot, so that a look-up is one cache miss. */
struct location_slot {
	uint64_t address;
	uint32_t image_and_return; /* image << 1 | is_return */
	uint32_t index_plus_1;	   /* 0 = free */
};

struct location_table {
	struct location *items; /* same indices as profile.locations */
	uint32_t n, capacity;
	struct location_slot *slots;
	uint32_t mask;
	uint64_t seed;
};

void location_table_init(struct location_table *table);
void location_table_fini(struct location_table *table);
void location_table_clear(struct location_table *table);
/* Starts to load what location_table_intern will look at. */
void location_table_prefetch(const struct location_table *table, const struct location *location);
/* Index, made (in profile too) when absent. */
uint32_t location_table_intern(struct location_table *table, struct profile *profile,
			       const struct location *location);
