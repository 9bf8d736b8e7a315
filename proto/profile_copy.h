/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies samples from one profile into new ones, with what they refer to and nothing else. The
 * maps of a copier serve one target after the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "proto/profile.h"

/* Where an element went, valid for the target of that generation. */
struct profile_copy_entry {
	uint32_t generation;
	uint32_t index;
};

/* What a target has already, by what it holds. */
struct profile_copy_index {
	struct hash_map mappings, locations;
};

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	/* Targets have these columns alone; n_columns 0 = all. Set before the first target. */
	uint32_t first_column, n_columns;
	/* Joins what several sources have in common (profile_merge.h); NULL = there is one. */
	struct profile_copy_index *index;
	uint32_t generation;
	struct profile_copy_entry *strings;
	struct profile_copy_entry *mappings;
	struct profile_copy_entry *functions;
	struct profile_copy_entry *locations;
	struct profile_copy_entry *stacks;
	struct profile_label *labels; /* scratch, as what follows */
	struct profile_line *lines;
	uint32_t *path;
	uint32_t path_capacity, labels_capacity, lines_capacity;
};

/* from is borrowed and does not change while the copier lives. */
void profile_copy_init(struct profile_copy *copy, const struct profile *from);
void profile_copy_fini(struct profile_copy *copy);
/* Begins a new target with from's sample types, scalars, comments and main mapping. */
void profile_copy_begin(struct profile_copy *copy);
/* Goes on with a target that another source began, which has the same columns. Takes it. */
void profile_copy_continue(struct profile_copy *copy, struct profile *target);
/* Without the labels whose keys (strings of from) are among the n_dropped. */
void profile_copy_sample(struct profile_copy *copy, uint32_t sample, const uint32_t *dropped_keys,
			 uint32_t n_dropped);
/*
 * Upper bound of what the sample would add to the target's uncompressed message, exact but for a
 * few bytes when nothing in it is shared twice.
 */
uint64_t profile_copy_cost(const struct profile_copy *copy, uint32_t sample);
/* The caller owns the target from here. */
struct profile *profile_copy_end(struct profile_copy *copy);
