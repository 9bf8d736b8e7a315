/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile as sorted text, for comparison in tests: what it says, and nothing of the order in
 * which it came to be.
 */
#pragma once

#include "base/buf.h"
#include "proto/profile.h"

/* Appends; out must be big enough. */
void profile_dump(const struct profile *profile, struct buf *out);
/* "root;caller;leaf" of one stack; a location without a name is file+0xADDRESS. */
void profile_dump_stack(const struct profile *profile, uint32_t stack, struct buf *out);
