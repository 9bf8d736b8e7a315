/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several profiles of one kind added up: values of equal stacks and labels, durations; the time is
 * that of the first.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "proto/profile.h"
#include "proto/profile_copy.h"

struct profile_merge {
	struct profile *sum; /* NULL = nothing was added yet */
	struct profile_copy_index index;
};

void profile_merge_init(struct profile_merge *merge);
void profile_merge_fini(struct profile_merge *merge);
/* profile is borrowed. ERROR_USAGE: its columns are others than those of the first. */
struct error *profile_merge_add(struct profile_merge *merge,
				const struct profile *profile) MUST_USE;
/* The caller owns it; NULL when nothing was added. The next sum begins. */
struct profile *profile_merge_take(struct profile_merge *merge);
