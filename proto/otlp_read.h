/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OTLP request as otlp_encode() makes it, back to a profile: one resource, one scope, a Profile
 * for each column. Attributes of a sample become labels of their names.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "proto/otlp_encode.h"
#include "proto/profile.h"

enum { OTLP_READ_MAX_PROFILES = 64, OTLP_READ_MAX_ATTRIBUTES = 1024 };

struct otlp_reading {
	struct profile *profile;
	const char *scope_name;
	struct otlp_attribute *resource;
	size_t n_resource;
	struct arena arena; /* texts and resource */
};

/*
 * ERROR_BAD_DATA: damaged, or not of that form. ERROR_LIMIT: over a cap. bytes are not needed
 * afterwards. fini in any case.
 */
struct error *otlp_read(const void *bytes, size_t n, struct otlp_reading *out) MUST_USE;
void otlp_reading_fini(struct otlp_reading *reading);
