/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile out of a file lacks before it can be sent: a time, a name, whose it is. */
#pragma once

#include "proto/profile.h"

/*
 * Gives a profile without a time that of its file (now, for standard input), as servers would put
 * it to 1970 or to now.
 */
void push_profile_complete(struct profile *profile, const char *path);

/* "process_cpu", "memory", "mutex", …: what backends call a profile with such sample types. */
const char *push_profile_name(const struct profile *profile);

enum { PUSH_PROFILE_SERVICE_BYTES = 128 };
/* Base name of the main binary, "perfpipe" when there is none. */
void push_profile_service(const struct profile *profile, char out[PUSH_PROFILE_SERVICE_BYTES]);
