/* SPDX-License-Identifier: Apache-2.0 */
/* Names what a file is that was given for a pprof profile but is not one. */
#pragma once

#include <stddef.h>

/* "a perf.data file", "an ELF file" …; NULL when nothing known starts like this. */
const char *foreign_profile_name(const void *bytes, size_t size);
