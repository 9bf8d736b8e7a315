/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinct places of a window: (image, address in it) → location index of the profile. While the
 * window is open they are kept here, small; an address is a file offset (or what image.h says for
 * its kind). At its end they become the profile's locations, and symbolize gives each its final
 * form and its names, once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/index_table.h"
#include "proto/profile.h"

struct location {
	uint64_t address;
	uint32_t image;
	bool is_return; /* a return address less 1, not a sampled one */
};

struct location_item {
	uint64_t address;
	uint32_t image_and_return; /* image << 1 | is_return */
} __attribute__((packed, aligned(4)));

struct location_table {
	struct location_item *items; /* same indices as profile.locations will have */
	uint32_t n, capacity;
	struct index_table table;
	uint64_t seed;
};

void location_table_init(struct location_table *table);
void location_table_fini(struct location_table *table);
void location_table_clear(struct location_table *table);
/* Starts to load what location_table_intern will look at. */
void location_table_prefetch(const struct location_table *table, const struct location *location);
/* Index, made when absent. */
uint32_t location_table_intern(struct location_table *table, const struct location *location);
static inline struct location location_table_get(const struct location_table *table, uint32_t index)
{
	const struct location_item *item = &table->items[index];
	return (struct location){.address = item->address,
				 .image = item->image_and_return >> 1,
				 .is_return = item->image_and_return & 1};
}
/*
 * Ends the window: moves all into the profile and leaves the table empty. Until symbolize gives a
 * location its mapping, location_of_profile tells what it was here.
 */
void location_table_move(struct location_table *table, struct profile *profile);
static inline struct location location_of_profile(const struct profile_location *location)
{
	return (struct location){.address = location->address,
				 .image = location->mapping >> 1,
				 .is_return = location->mapping & 1};
}
