/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which value columns the events of a source become. One event: samples/count and its measure.
 * Several: <event>_samples/count and the measure of each, in file order. dummy events never do.
 * The measure is the sum of periods: nanoseconds for clocks, counts for the rest. cycles sampled by
 * frequency alone get cpu/nanoseconds too, an estimate of 1/Hz a sample.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/perf_record.h"
#include "proto/profile.h"

#define EVENT_COLUMN_NONE UINT32_MAX

struct event_columns {
	/* Per event: the column of its count, its measure behind it; EVENT_COLUMN_NONE = left out.
	 */
	uint32_t *first_column;
	uint32_t n_events; /* events of the source that were looked at */
	uint32_t n_used;
	uint32_t main_event;   /* first one used, EVENT_COLUMN_NONE when there is none */
	int64_t ns_per_sample; /* of the third column; 0 = there is none */
	bool is_single;
	struct hash_map names; /* names that are taken, of several events */
};

void event_columns_fini(struct event_columns *columns);
/*
 * Looks at all events that source has now and sets the profile's sample types, row width, period
 * type, period and default. Samples that profile already has keep their values. only: the name of
 * the one event to keep, NULL for all.
 */
void event_columns_update(struct event_columns *columns, const struct perf_source_info *source,
			  const char *only, struct profile *profile);
static inline bool event_columns_is_current(const struct event_columns *columns,
					    const struct perf_source_info *source)
{
	return columns->n_events == source->n_events;
}
/* What a counter has moved, without a sample of its own. */
static inline void event_columns_add_period(uint64_t period, int64_t *row)
{
	row[1] = (int64_t)((uint64_t)row[1] + period);
}
/* Adds one sample with this period to a row of its event. */
static inline void event_columns_add(const struct event_columns *columns, uint64_t period,
				     int64_t *row)
{
	row[0] += 1;
	row[1] = (int64_t)((uint64_t)row[1] + period);
	if (columns->ns_per_sample)
		row[2] += columns->ns_per_sample;
}
