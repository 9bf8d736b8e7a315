/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that carry counters (PERF_SAMPLE_READ, as of `perf record -e '{a,b}:S'`): one event fires
 * for its whole group, and the record holds what each member has counted since it was enabled. What
 * a member counted since the sample before is its count here, as perf script tells it. The record
 * is one sample, of the event that fired, with the period that it states.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/perf_record.h"
#include "converter/sample.h"

struct group_read {
	const struct perf_source_info *source;
	struct hash_map event_of_id;
	struct hash_map last_values; /* by id, and by thread where an id counts several */
	uint32_t *n_ids;	     /* of each event that are in event_of_id already */
	uint32_t n_events;
};

struct group_read_value {
	uint32_t event_index; /* PERF_EVENT_INDEX_NONE: of no event of the source */
	uint64_t period;      /* 0 = nothing was counted */
};

/* source is borrowed and may grow. */
void group_read_init(struct group_read *group, const struct perf_source_info *source);
void group_read_fini(struct group_read *group);
/* Whether samples of the event are to be taken apart; without ids nobody knows whose a value is. */
static inline bool group_read_applies(const struct perf_event_attr *attr)
{
	return attr->sample_type & PERF_SAMPLE_READ && attr->read_format & PERF_FORMAT_ID;
}
/* Counter i of sample.n_read_values. To be called once for each, in the order of records. */
struct group_read_value group_read_take(struct group_read *group,
					const struct perf_event_attr *attr,
					const struct sample *sample, uint64_t i);
