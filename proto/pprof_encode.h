/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile to pprof bytes, streamed: a staging block is all that exists of the message at any time.
 * Field order is fixed (sample types, samples, mappings, locations, functions, strings, scalars)
 * and ids are array positions + 1, so equal profiles give equal bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "proto/profile.h"

struct pprof_encode_options {
	int gzip_level; /* 1 to 9, 0 = uncompressed protobuf */
};

typedef struct error *(*pprof_encode_sink_fn)(void *context, const void *bytes, size_t n);

/* The sink's first error ends the encoding and is returned. */
struct error *pprof_encode(const struct profile *profile,
			   const struct pprof_encode_options *options, pprof_encode_sink_fn sink,
			   void *context) MUST_USE;
struct error *pprof_encode_fd(const struct profile *profile,
			      const struct pprof_encode_options *options, int fd) MUST_USE;
/* Appends; ERROR_LIMIT past buf's maximum. */
struct error *pprof_encode_buf(const struct profile *profile,
			       const struct pprof_encode_options *options,
			       struct buf *out) MUST_USE;
/* Size of the uncompressed message, without making it. */
uint64_t pprof_encode_count_bytes(const struct profile *profile);
