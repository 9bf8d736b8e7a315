/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/group_read.h"

#include <string.h>

#include "base/mem.h"

void group_read_init(struct group_read *group, const struct perf_source_info *source)
{
	*group = (struct group_read){.source = source};
	hash_map_init(&group->event_of_id);
	hash_map_init(&group->last_values);
}

void group_read_fini(struct group_read *group)
{
	hash_map_fini(&group->event_of_id);
	hash_map_fini(&group->last_values);
	mem_free(group->n_ids);
	*group = (struct group_read){0};
}

/* The ids that the source got since the last look; false when there are none. */
static bool learn_ids(struct group_read *group)
{
	const struct perf_source_info *source = group->source;
	bool has_new = false;
	if (source->n_events > group->n_events) {
		group->n_ids = mem_realloc(group->n_ids, source->n_events, sizeof(*group->n_ids));
		memset(group->n_ids + group->n_events, 0,
		       (source->n_events - group->n_events) * sizeof(*group->n_ids));
		group->n_events = source->n_events;
	}
	for (uint32_t e = 0; e < group->n_events; e++) {
		for (; group->n_ids[e] < source->events[e].n_ids; group->n_ids[e]++) {
			uint64_t id = source->events[e].ids[group->n_ids[e]];
			*hash_map_put(&group->event_of_id, id, NULL) = e;
			has_new = true;
		}
	}
	return has_new;
}

static uint32_t event_of(struct group_read *group, uint64_t id)
{
	const uint64_t *event = hash_map_get(&group->event_of_id, id);
	if (!event && learn_ids(group))
		event = hash_map_get(&group->event_of_id, id);
	return event ? (uint32_t)*event : PERF_EVENT_INDEX_NONE;
}

struct group_read_value group_read_take(struct group_read *group,
					const struct perf_event_attr *attr,
					const struct sample *sample, uint64_t i)
{
	const struct sample_counter counter = sample_counter(sample, i, group->source->is_swapped);
	struct group_read_value out = {.event_index = event_of(group, counter.id)};
	if (out.event_index == PERF_EVENT_INDEX_NONE)
		return out;
	/* Inherited, an event counts each thread by itself under one id. */
	uint64_t thread = perf_attr_has(attr, PERF_ATTR_INHERIT) ? sample->tid : 0;
	uint64_t *last =
		hash_map_put(&group->last_values, counter.id ^ hash_mix(thread << 32), NULL);
	out.period = counter.value - *last;
	*last = counter.value;
	return out;
}
