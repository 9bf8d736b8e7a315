/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile to an OTLP request (ProfilesData), in the layout of 1.10: one Profile for each column
 * that has values, in the order of the columns, with the samples whose value there is not 0, in the
 * order of the samples. The dictionary holds what these refer to and nothing else, each table
 * beginning with its zero value.
 *
 * Labels of samples become attributes as they are. What only pprof knows goes into attributes of
 * the names that OTLP's pprof mapping has: pprof.mapping.*, pprof.location.is_folded,
 * pprof.profile.*, pprof.scope.*. A mapping's build-id is process.executable.build_id.gnu;
 * locations in it have the profile.frame.type "native", those of kernel images "kernel".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "proto/profile.h"

struct otlp_attribute {
	const char *key, *value;
};

struct otlp_encode_options {
	const char *scope_name; /* some receivers take it for the profile's name */
	const struct otlp_attribute *resource;
	size_t n_resource;
};

/*
 * Appends to out. *n_profiles_out: Profiles in it; with 0 nothing was appended, as receivers refuse
 * requests without samples. ERROR_LIMIT: out's maximum.
 */
struct error *otlp_encode(const struct profile *profile, const struct otlp_encode_options *options,
			  struct buf *out, uint32_t *n_profiles_out) MUST_USE;
