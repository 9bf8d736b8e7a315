/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of perf records: live rings, a perf.data file or stream, or a test's own list. All
 * three stand behind one table; what comes after cannot tell which it is.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"

struct record_source;

struct record_source_ops {
	const char *kind; /* "live", "recorded", "fake" */
	/*
	 * Hands what is there to sink, in order. A recorded source reads on until its end and then
	 * returns ERROR_NO_ENTRY; a live one drains its rings once and returns NULL, also when
	 * nothing was there. An error from sink ends the call and is returned as it is.
	 */
	struct error *(*drain)(struct record_source *source, perf_record_sink_fn sink,
			       void *context);
	const struct perf_source_info *(*info)(struct record_source *source);
	void (*close)(struct record_source *source);
};

/* Implementations put this first in their own struct. */
struct record_source {
	const struct record_source_ops *ops;
};

static inline struct error *record_source_drain(struct record_source *source,
						perf_record_sink_fn sink, void *context)
{
	return source->ops->drain(source, sink, context);
}

static inline const struct perf_source_info *record_source_info(struct record_source *source)
{
	return source->ops->info(source);
}

static inline void record_source_close(struct record_source *source)
{
	if (source)
		source->ops->close(source);
}
