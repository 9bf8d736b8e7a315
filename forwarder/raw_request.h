/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request that Parca's WriteRaw and Pyroscope's Push have in common: series of labels with
 * pprof bytes in them, written and read by hand because the pprof is nearly all there is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"
#include "proto/profile.h"

/* Where the two differ. */
struct raw_request_format {
	uint32_t series_field;
	bool has_label_set;  /* labels stand in a message of their own */
	bool has_one_series; /* a request has one series only */
};
extern const struct raw_request_format raw_request_parca, raw_request_pyroscope;

/* Fills requests up to the limits and hands them out. */
struct raw_request {
	const struct raw_request_format *format;
	int gzip_level;
	uint64_t max_message_bytes;
	uint32_t max_samples;
	backend_emit_fn emit;
	void *context;
	/* The request being filled. */
	struct buf message;
	uint64_t n_bytes; /* with pprof uncompressed, as receivers count */
	struct request_summary summary;
};

void raw_request_init(struct raw_request *request, const struct raw_request_format *format,
		      const struct exporter_config *config, const struct backend *backend,
		      backend_emit_fn emit, void *context);
void raw_request_fini(struct raw_request *request);
/* Adds a series as parts within the limits; labels get sorted by name. */
struct error *raw_request_add(struct raw_request *request, const struct profile *profile,
			      struct key_value *labels, size_t n_labels) MUST_USE;
/* Hands out what is left. */
struct error *raw_request_end(struct raw_request *request) MUST_USE;

/* As backend.h has them. */
struct error *raw_request_split(const struct raw_request_format *format,
				const struct exporter_config *config, const uint8_t *message,
				size_t n, backend_emit_fn emit, void *context) MUST_USE;
struct error *raw_request_profiles(const struct raw_request_format *format, const uint8_t *message,
				   size_t n, backend_profile_fn emit, void *context) MUST_USE;
