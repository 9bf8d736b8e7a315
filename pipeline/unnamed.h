/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which binaries of a profile gave no names, or ended copied stacks for want of unwind rules, how
 * many samples that touches, and what would help: a note for each remedy, with the most touched
 * binaries in it.
 */
#pragma once

#include "pipeline/message.h"
#include "proto/profile.h"
#include "symcache/symcache.h"

/* cache is the one that named the profile. is_other_kernel: its kernel's names were not at hand. */
void unnamed_state(const struct message *message, const struct profile *profile,
		   const struct symcache *cache, bool is_other_kernel);
/* The same for stacks that end in a binary that could not be unwound through. */
void unnamed_state_cut(const struct message *message, const struct profile *profile,
		       const struct symcache *cache);
