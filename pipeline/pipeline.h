/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries batches of records from a source to its sinks (converter, perf.data writer, process log),
 * either straight through, or, for live sources, by way of a thread of its own, so that no sink
 * ever delays the reading of rings:
 *
 *   main thread                                      convert thread
 *   rings ──drain──► pipeline_feed ──blocks──► mailbox ──► sinks
 *
 * When the convert thread falls behind and the mailbox is full, samples are dropped and counted
 * (STAT_MAILBOX_DROPPED); records that describe processes and maps wait for room, because every
 * later sample needs them.
 *
 * Order of calls: pipeline_open; pipeline_feed as the sink of record_source_drain, pipeline_flush
 * behind each drain; pipeline_finish; then the sinks are the caller's again; pipeline_close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"

struct pipeline;

struct pipeline_sink {
	perf_record_sink_fn add;
	void *context;
};

enum { PIPELINE_SINKS_MAX = 4, PIPELINE_BLOCKS_DEFAULT = 96 };

struct pipeline_config {
	struct pipeline_sink sinks[PIPELINE_SINKS_MAX]; /* each batch goes to each, in this order */
	size_t n_sinks;
	bool is_threaded;
	size_t max_blocks; /* in the mailbox, 0 = PIPELINE_BLOCKS_DEFAULT (about 16 MiB) */
};

/* What did not fit through the mailbox. */
struct pipeline_losses {
	uint64_t samples;
	uint64_t others; /* side-band records: names and maps may be missing */
};

struct error *pipeline_open(const struct pipeline_config *config, struct pipeline **out) MUST_USE;
/* A perf_record_sink_fn; context is the pipeline. Threaded: never waits and never fails. */
struct error *pipeline_feed(void *context, const struct perf_record *records, size_t n) MUST_USE;
/* Hands on what was fed, where there is room. */
void pipeline_flush(struct pipeline *pipeline);
/* Readable once a sink has failed; -1 when it is not threaded. */
int pipeline_failure_fd(const struct pipeline *pipeline);

/* On the convert thread; an error counts as one of a sink. */
typedef struct error *(*pipeline_call_fn)(void *context);
/*
 * Threaded: has the convert thread call fn between what was fed before and what is fed after. Until
 * it is back and the thread has caught up, blocks wait for it in memory, up to about 200 MiB, so
 * that no sample is dropped for fn's sake. One at a time: see pipeline_is_calling.
 */
void pipeline_call(struct pipeline *pipeline, pipeline_call_fn fn, void *context);
/* Readable when a call may be back; -1 when it is not threaded. */
int pipeline_call_fd(const struct pipeline *pipeline);
/* Whether a call is not back yet. */
bool pipeline_is_calling(struct pipeline *pipeline);

/* Waits until the sinks have everything; gives the first error of a sink. */
struct error *pipeline_finish(struct pipeline *pipeline) MUST_USE;
struct pipeline_losses pipeline_get_losses(const struct pipeline *pipeline);
void pipeline_close(struct pipeline *pipeline);
