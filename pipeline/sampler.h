/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The convert thread's side of the agent: records of one source go through the converter into the
 * window that is open; a window that ended becomes profiles of its series, and goes to delivery.
 *
 * Order of calls: sampler_open; sampler_sink into a pipeline; sampler_cut for each window, on the
 * convert thread, or on any thread when that one has ended; sampler_close.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"
#include "pipeline/delivery.h"
#include "pipeline/pipeline.h"
#include "symcache/symcache.h"

struct sampler_options {
	uint32_t labels;	 /* of samples, set of enum converter_label */
	size_t max_window_bytes; /* a window that is larger ends early */
	size_t max_services;	 /* series of a window and event; the rest is one */
};

/* A moment on both clocks. */
struct sampler_moment {
	uint64_t monotonic_ns, wall_ns;
};

struct sampler;

/* All is borrowed and outlives the sampler. The first window begins. */
struct sampler *sampler_open(const struct sampler_options *options,
			     const struct perf_source_info *info, struct symcache *cache,
			     struct delivery *delivery);
void sampler_close(struct sampler *sampler);
struct pipeline_sink sampler_sink(struct sampler *sampler);

/*
 * From the window that is open now on, all are added up as well, for somebody who wants to see what
 * happens now; as sampler_cut, by the convert thread. A sum that was begun before is given up.
 */
void sampler_begin_sum(struct sampler *sampler);
/* The sum of the windows since then, which the caller owns; NULL when there is none. */
struct profile *sampler_end_sum(struct sampler *sampler);

/* Ends the window at that moment, at which the next one begins. */
struct error *sampler_cut(struct sampler *sampler, struct sampler_moment at) MUST_USE;
