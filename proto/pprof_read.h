/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof bytes to a profile. Accepts what go tool pprof accepts (packed or not, sparse ids, unknown
 * fields, gzip in one or several members or none) and refuses what it refuses, with the place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "proto/profile.h"

struct pprof_read_options {
	uint64_t max_bytes; /* of the uncompressed message; 0 = PPROF_READ_MAX_BYTES */
};

#define PPROF_READ_MAX_BYTES ((uint64_t)1 << 30)

/* What the file holds as stored, before equal samples and functions become one. */
struct pprof_read_counts {
	uint64_t bytes; /* uncompressed */
	uint64_t samples;
	uint64_t location_refs;
	uint64_t labels;
	uint64_t mappings;
	uint64_t locations;
	uint64_t functions;
	uint64_t strings;
};

/*
 * bytes are read in place and not needed afterwards; options and counts_out may be NULL. Errors:
 * ERROR_BAD_DATA with number 604 (empty), 605 (does not decompress), 610 (something else than a
 * pprof profile, named when it is known), 611 (damaged pprof); ERROR_LIMIT with number 611 when a
 * cap was reached. The profile never takes more than 4 times the uncompressed bytes plus 48 MiB.
 */
struct error *pprof_read(const void *bytes, size_t size, const struct pprof_read_options *options,
			 struct profile **out, struct pprof_read_counts *counts_out) MUST_USE;
