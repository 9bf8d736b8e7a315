/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One profile into several: by size, for receivers with limits, or by label values, for receivers
 * that know series instead of sample labels. Every value lands in exactly one part; a part carries
 * what its samples refer to (and mapping 0, the main binary), and the scalars and comments of the
 * whole. Order of samples is kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "proto/profile.h"

/* 0 = no limit. */
struct profile_split_limits {
	uint64_t max_encoded_bytes; /* of the uncompressed message */
	uint32_t max_samples;
};

/*
 * Takes the part. values are those of the keys split by ("" where a sample has none, numbers in
 * decimal) and valid during the call; NULL when split by limits. An error ends the split.
 */
typedef struct error *(*profile_split_fn)(void *context, struct profile *part,
					  const char *const *values);

/*
 * A part is closed before the sample that would pass a limit. A sample that alone passes
 * max_encoded_bytes still becomes a part: the receiver of the parts decides. A profile without
 * samples gives one part without samples.
 */
struct error *profile_split_by_limits(const struct profile *profile,
				      const struct profile_split_limits *limits,
				      profile_split_fn emit, void *context) MUST_USE;
enum { PROFILE_SPLIT_MAX_KEYS = 16 };
/*
 * One part for each combination of values of the n_keys keys, in order of first appearance. Those
 * labels are taken out of the part's samples. ERROR_USAGE past PROFILE_SPLIT_MAX_KEYS keys.
 */
struct error *profile_split_by_labels(const struct profile *profile, const char *const *keys,
				      uint32_t n_keys, profile_split_fn emit,
				      void *context) MUST_USE;

/* Takes the part; label_set is the whole's. An error ends the split. */
typedef struct error *(*profile_split_set_fn)(void *context, struct profile *part,
					      uint32_t label_set);
/* One part, without labels, for each label set that has samples, in order of first appearance. */
struct error *profile_split_by_label_sets(const struct profile *profile, profile_split_set_fn emit,
					  void *context) MUST_USE;

/* Those of the samples that have a value in the n columns from first on, with these columns alone.
 */
struct profile *profile_split_take_columns(const struct profile *profile, uint32_t first,
					   uint32_t n);
