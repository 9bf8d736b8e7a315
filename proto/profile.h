/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The neutral profile: what converter fills, pprof_read rebuilds, and encoders, splitters and
 * reports walk. Everything lives in the profile's own arena and refers to everything else by
 * 32-bit index, so a walk is an encode.
 *
 * Order of calls: profile_new, then strings/mappings/functions/locations/stacks/label sets/samples
 * in any order that defines before it uses, then read; profile_free drops all at once.
 *
 * Indices count from 0 except stacks, where 0 is the empty stack. pprof ids are index + 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"

#define PROFILE_NONE UINT32_MAX

struct profile_value_type {
	uint32_t type; /* string */
	uint32_t unit; /* string */
};

struct profile_mapping {
	uint64_t memory_start, memory_limit, file_offset;
	uint32_t filename, build_id; /* strings; build_id lower-case hex */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct profile_function {
	uint32_t name, system_name, filename; /* strings */
	uint32_t reserved;
	int64_t start_line;
};

struct profile_line {
	uint32_t function; /* index */
	uint32_t column;
	int64_t line;
};

struct profile_location {
	uint64_t address;
	uint32_t mapping;    /* index or PROFILE_NONE */
	uint32_t first_line; /* into lines; innermost inlined first */
	uint32_t n_lines;
	bool is_folded;
};

/* A stack is its leaf node; parent leads towards the root (the caller), 0 ends it. */
struct profile_stack_node {
	uint32_t parent;
	uint32_t location; /* index */
};

struct profile_label {
	uint32_t key; /* string */
	uint32_t str; /* string; 0 and is_number false means the empty string */
	int64_t num;
	uint32_t unit; /* string, numbers only */
	bool is_number;
};

/* How a label is kept: profile_label_at unpacks it. There may be several for each sample. */
struct profile_packed_label {
	uint32_t key;
	uint32_t str_or_unit; /* the upper bit marks a number */
	int64_t num;
};

/* Labels of a sample, interned as a set: equal sets have equal indices. */
struct profile_label_set {
	uint32_t first; /* into labels */
	uint32_t n;
};

struct profile_sample {
	uint32_t stack;	    /* stack node, 0 = no frames */
	uint32_t label_set; /* index; set 0 is the empty one */
};

/*
 * A growing array. Elements move when it grows, so hold indices, not pointers. Owned by the
 * profile.
 */
#define PROFILE_ARRAY(type)                                                                        \
	struct {                                                                                   \
		type *items;                                                                       \
		uint32_t n;                                                                        \
		uint32_t capacity;                                                                 \
	}

struct profile {
	struct arena arena; /* texts */
	struct intern strings;
	PROFILE_ARRAY(struct profile_value_type) sample_types;
	PROFILE_ARRAY(struct profile_mapping) mappings;
	PROFILE_ARRAY(struct profile_function) functions;
	PROFILE_ARRAY(struct profile_line) lines;
	PROFILE_ARRAY(struct profile_location) locations;
	PROFILE_ARRAY(struct profile_stack_node) stacks; /* [0] is the empty stack */
	PROFILE_ARRAY(struct profile_packed_label) labels;
	PROFILE_ARRAY(struct profile_label_set) label_sets; /* [0] is the empty set */
	PROFILE_ARRAY(struct profile_sample) samples;
	PROFILE_ARRAY(int64_t) values; /* samples.n rows */
	/*
	 * 0: a row has all columns. Else it has this many, from column first_columns[sample] on,
	 * and all others are 0: what many events make of a profile is mostly zeros.
	 */
	uint32_t row_width;
	PROFILE_ARRAY(uint32_t) first_columns;
	PROFILE_ARRAY(uint32_t) comments; /* strings */
	struct profile_value_type period_type;
	int64_t period;
	int64_t time_nanos; /* UTC ns since the epoch */
	int64_t duration_nanos;
	uint32_t default_sample_type;		    /* string, 0 = none */
	uint32_t doc_url, drop_frames, keep_frames; /* strings, 0 = none */
	struct profile_index *index;		    /* hash tables of the makers below */
};

struct profile *profile_new(void);
void profile_free(struct profile *profile);
/* For CLEANUP. */
static inline void cleanup_profile(struct profile **profile)
{
	profile_free(*profile);
}
/* Bytes in use, all arrays and tables counted. Cheap. */
size_t profile_memory_bytes(const struct profile *profile);

/*
 * Gives back the memory that only the makers of stacks, label sets and samples need. They may be
 * called all the same, and take it again.
 */
void profile_trim(struct profile *profile);

/* Makers return indices. Those marked (interned) give the same index for equal content. */
uint32_t
profile_string(struct profile *profile,
	       const char *text); /* (interned) made valid UTF-8: bad bytes become U+FFFD */
uint32_t profile_string_n(struct profile *profile, const char *text, size_t size); /* (interned) */
void profile_add_sample_type(struct profile *profile, const char *type, const char *unit);
uint32_t profile_add_mapping(struct profile *profile, const struct profile_mapping *mapping);
uint32_t profile_function(struct profile *profile,
			  const struct profile_function *function); /* (interned) */
/* Not interned: the caller keeps one per (mapping, address). It has no lines yet. */
uint32_t profile_add_location(struct profile *profile, uint32_t mapping, uint64_t address);
/* Takes n locations that the caller made, from mem_alloc, in the place of those that are there. */
void profile_adopt_locations(struct profile *profile, struct profile_location *items, uint32_t n);
/* Sets all lines of a location at once (innermost first). Locations may share what is equal. */
void profile_set_lines(struct profile *profile, uint32_t location, const struct profile_line *lines,
		       uint32_t n);
/*
 * Stack of n locations, leaf first (interned by sharing nodes from the root).
 */
uint32_t profile_stack(struct profile *profile, const uint32_t *locations, uint32_t n);
/* The node for `location` called from `parent` (interned); the hot loop's own door to the tree. */
uint32_t profile_stack_push(struct profile *profile, uint32_t parent, uint32_t location);
/*
 * As profile_stack with the root first, for whole chains: what it shares with the chain before
 * costs a comparison, the rest is looked up with all its cache misses in flight at once.
 */
uint32_t profile_stack_path(struct profile *profile, const uint32_t *locations, uint32_t n);
/* Starts to load what profile_stack will look at; worth it a few chains ahead. */
void profile_prefetch_stack(const struct profile *profile, const uint32_t *locations, uint32_t n);
/*
 * (interned) order of labels is kept: the same labels in another order are another set. A number 0
 * without a unit gets the unit that readers assume for its key, as it would vanish otherwise.
 */
uint32_t profile_label_set(struct profile *profile, const struct profile_label *labels, uint32_t n);
/*
 * Adds to the sample with this stack and label set, made when absent (interned). values has
 * sample_types.n entries; they are added. Returns the sample's index.
 */
uint32_t profile_add_sample(struct profile *profile, uint32_t stack, uint32_t label_set,
			    const int64_t *values);
/*
 * Rows of this many columns from now on; only while there are no samples. Sample types may then be
 * added at any time.
 */
void profile_set_row_width(struct profile *profile, uint32_t width);
/* Rows of all columns keep the width they have, so that sample types may be added. */
void profile_fix_row_width(struct profile *profile);
/*
 * The row of this stack, label set and first column (interned), zeros when it is new; with a row
 * width of 0 first_column is 0. Returns the sample's index.
 */
uint32_t profile_add_row(struct profile *profile, uint32_t stack, uint32_t label_set,
			 uint32_t first_column);
/* Starts to load what profile_add_row will look at; worth it a few samples ahead. */
void profile_prefetch_row(const struct profile *profile, uint32_t stack, uint32_t label_set,
			  uint32_t first_column);
/*
 * Gives every sample a new row: width columns from new_column[its first column] on. What the old
 * and the new width share of its values is kept.
 */
void profile_move_rows(struct profile *profile, uint32_t width, const uint32_t *new_column);
void profile_add_comment(struct profile *profile, const char *text);
/*
 * Makes rows of all columns out of narrow ones: samples of one stack and label set become one, in
 * the order of the first. Costs sample_types.n values a sample, so this is for a few columns.
 */
void profile_join_rows(struct profile *profile);
/*
 * Puts to[i] ≤ i in the place of location i, which goes; stacks and rows that become equal are
 * joined. All indices of locations, stacks and samples are new ones afterwards, in the same order.
 * For a profile that gets no more stacks and samples.
 */
void profile_join_locations(struct profile *profile, const uint32_t *to);
static inline const char *profile_text(const struct profile *profile, uint32_t string)
{
	return intern_text(&profile->strings, string);
}
/*
 * Changes a label in place, in all samples of its sets. Sets are found no more by what they hold,
 * so this is for a profile that gets no more samples.
 */
void profile_set_label(struct profile *profile, uint32_t i, const struct profile_label *label);
/* i counts in profile.labels. */
static inline struct profile_label profile_label_at(const struct profile *profile, uint32_t i)
{
	const struct profile_packed_label *packed = &profile->labels.items[i];
	bool is_number = packed->str_or_unit >> 31;
	return (struct profile_label){
		.key = packed->key,
		.str = is_number ? 0 : packed->str_or_unit,
		.num = packed->num,
		.unit = is_number ? packed->str_or_unit & UINT32_MAX >> 1 : 0,
		.is_number = is_number,
	};
}
static inline uint32_t profile_row_width(const struct profile *profile)
{
	return profile->row_width ? profile->row_width : profile->sample_types.n;
}
/* Row of a sample's values. Valid until the next sample is added. */
static inline int64_t *profile_values(const struct profile *profile, uint32_t sample)
{
	return profile->values.items + (size_t)sample * profile_row_width(profile);
}
/* Adds n values of a row to those of another; what passes 63 bits wraps. */
static inline void profile_add_values(int64_t *to, const int64_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)from[i]);
}
/* Column of the row's first value. */
static inline uint32_t profile_first_column(const struct profile *profile, uint32_t sample)
{
	return profile->row_width ? profile->first_columns.items[sample] : 0;
}
static inline int64_t profile_value(const struct profile *profile, uint32_t sample, uint32_t column)
{
	uint32_t i = column - profile_first_column(profile, sample);
	return i < profile_row_width(profile) ? profile_values(profile, sample)[i] : 0;
}
/* Moves the mapping to the front (pprof takes the first one for the main binary); locations follow.
 */
void profile_set_main_mapping(struct profile *profile, uint32_t mapping);
/*
 * Sets has_functions, has_filenames and has_line_numbers of every mapping where all its locations
 * carry them, and clears them elsewhere (wire contract of pprof: a flag set makes readers skip the
 * mapping). has_inline_frames is set where functions are complete and some location has several.
 */
void profile_set_symbol_flags(struct profile *profile);
