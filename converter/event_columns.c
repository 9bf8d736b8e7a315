/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/event_columns.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/mem.h"

enum { COLUMNS_PER_EVENT = 2, NAME_MAX_BYTES = 200 };

void event_columns_fini(struct event_columns *columns)
{
	mem_free(columns->first_column);
	*columns = (struct event_columns){0};
}

static bool is_clock(const struct perf_event_info *event)
{
	return event->attr.type == PERF_TYPE_SOFTWARE &&
	       (event->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
		event->attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool is_cycles_by_frequency(const struct perf_event_info *event)
{
	return event->attr.type == PERF_TYPE_HARDWARE &&
	       (event->attr.config & UINT32_MAX) == PERF_COUNT_HW_CPU_CYCLES &&
	       perf_attr_has(&event->attr, PERF_ATTR_FREQ) && event->attr.sample_period;
}

/* Length of an event's name without modifiers ("cycles:ppp" → 6); "sys:name" is whole. */
static size_t base_length(const struct perf_event_info *event)
{
	const char *colon = strrchr(event->name, ':');
	if (!colon || event->attr.type == PERF_TYPE_TRACEPOINT || colon == event->name)
		return strlen(event->name);
	for (const char *p = colon + 1; *p; p++) {
		if (!strchr("ukhGHpPSDIeWb", *p))
			return strlen(event->name);
	}
	return (size_t)(colon - event->name);
}

static bool is_named(const struct perf_event_info *event, const char *name)
{
	size_t n = base_length(event);
	return strcmp(event->name, name) == 0 ||
	       (strlen(name) == n && strncmp(event->name, name, n) == 0);
}

static bool is_dummy(const struct perf_event_info *event)
{
	return (event->attr.type == PERF_TYPE_SOFTWARE &&
		event->attr.config == PERF_COUNT_SW_DUMMY) ||
	       is_named(event, "dummy");
}

/* Readers of pprof and backends take [a-z0-9_] everywhere. */
static void reduce_name(const struct perf_event_info *event, char out[NAME_MAX_BYTES])
{
	size_t n = base_length(event), used = 0;
	for (size_t i = 0; i < n && used + 1 < NAME_MAX_BYTES; i++) {
		unsigned char c = (unsigned char)event->name[i];
		bool is_plain = c < 128 && isalnum(c);
		if (is_plain)
			out[used++] = (char)tolower(c);
		else if (used && out[used - 1] != '_')
			out[used++] = '_';
	}
	while (used && out[used - 1] == '_')
		used--;
	out[used] = '\0';
	if (!used)
		memcpy(out, "event", sizeof("event"));
}

/*
 * Two events of one name (the core types of a hybrid CPU) stay two columns: name, name_2. taken:
 * the next number to try of each name, by its string; a file may have many thousands of one name.
 */
static void add_event_columns(struct profile *profile, const struct perf_event_info *event,
			      struct hash_map *taken)
{
	char base[NAME_MAX_BYTES];
	reduce_name(event, base);
	char *name CLEANUP(cleanup_mem) = mem_copy_string(base);
	uint64_t first = profile_string(profile, base);
	while (*hash_map_put(taken, profile_string(profile, name), NULL)) {
		mem_free(name);
		name = mem_format("%s_%" PRIu64, base, ++*hash_map_put(taken, first, NULL));
	}
	*hash_map_put(taken, profile_string(profile, name), NULL) = 1;
	char *count CLEANUP(cleanup_mem) = mem_format("%s_samples", name);
	profile_add_sample_type(profile, count, "count");
	profile_add_sample_type(profile, name, is_clock(event) ? "nanoseconds" : "count");
}

static void set_period(struct event_columns *columns, struct profile *profile,
		       const struct perf_event_info *event)
{
	bool by_frequency = perf_attr_has(&event->attr, PERF_ATTR_FREQ);
	uint64_t rate = event->attr.sample_period;
	int64_t ns = by_frequency && rate ? (int64_t)(1000000000 / rate) : (int64_t)rate;
	char name[NAME_MAX_BYTES];
	reduce_name(event, name);
	bool is_time = is_clock(event) || columns->ns_per_sample;
	profile->period_type.type = profile_string(profile, is_time ? "cpu" : name);
	profile->period_type.unit = profile_string(profile, is_time ? "nanoseconds" : "count");
	profile->period = is_time ? ns : by_frequency ? 0 : (int64_t)rate;
}

static void add_single_columns(struct event_columns *columns, struct profile *profile,
			       const struct perf_event_info *event)
{
	char name[NAME_MAX_BYTES];
	reduce_name(event, name);
	profile_add_sample_type(profile, "samples", "count");
	if (is_clock(event))
		profile_add_sample_type(profile, "cpu", "nanoseconds");
	else
		profile_add_sample_type(profile, name, "count");
	if (is_cycles_by_frequency(event)) {
		columns->ns_per_sample = (int64_t)(1000000000 / event->attr.sample_period);
		profile_add_sample_type(profile, "cpu", "nanoseconds");
	}
}

/*
 * Moves the rows of samples that are already there: an event's columns go to their new place. The
 * estimate of a single event stays as long as that is the only one.
 */
static void move_values(const struct event_columns *old, const struct event_columns *new,
			struct profile *profile)
{
	uint32_t n_samples = profile->samples.n;
	if (!n_samples)
		return;
	bool keeps_estimate = old->ns_per_sample && new->ns_per_sample;
	uint32_t n_moved = COLUMNS_PER_EVENT + keeps_estimate;
	uint32_t n_values = n_samples * new->n_columns;
	int64_t *values = mem_zalloc(n_values, sizeof(*values));
	for (uint32_t i = 0; i < n_samples; i++) {
		const int64_t *from = profile->values.items + (size_t)i * old->n_columns;
		int64_t *to = values + (size_t)i * new->n_columns;
		for (uint32_t e = 0; e < old->n_events; e++) {
			uint32_t a = old->first_column[e], b = new->first_column[e];
			if (a != EVENT_COLUMN_NONE && b != EVENT_COLUMN_NONE)
				memcpy(to + b, from + a, n_moved * sizeof(*to));
		}
	}
	mem_free(profile->values.items);
	profile->values.items = values;
	profile->values.n = profile->values.capacity = n_values;
}

static void choose_events(struct event_columns *columns, const struct perf_source_info *source,
			  const char *only)
{
	for (int take_dummies = 0; take_dummies < 2 && !columns->n_used; take_dummies++) {
		for (uint32_t e = 0; e < source->n_events; e++) {
			bool is_used = only ? is_named(&source->events[e], only)
					    : take_dummies || !is_dummy(&source->events[e]);
			columns->first_column[e] = is_used ? 0 : EVENT_COLUMN_NONE;
			if (is_used && columns->main_event == EVENT_COLUMN_NONE)
				columns->main_event = e;
			columns->n_used += is_used;
		}
	}
}

void event_columns_update(struct event_columns *columns, const struct perf_source_info *source,
			  const char *only, struct profile *profile)
{
	struct event_columns new = {
		.first_column = mem_zalloc(source->n_events + 1, sizeof(uint32_t)),
		.n_events = source->n_events,
		.main_event = EVENT_COLUMN_NONE,
	};
	choose_events(&new, source, only);
	/* Asked for one event: all of that name (the core types of a hybrid CPU) add up. */
	new.is_single = only || new.n_used <= 1;
	/* A profile takes sample types while it has no rows; those it has get theirs at the end. */
	uint32_t n_samples = profile->samples.n;
	profile->samples.n = 0;
	profile->sample_types.n = 0;
	if (new.main_event == EVENT_COLUMN_NONE) {
		profile_add_sample_type(profile, "samples", "count");
	} else if (new.is_single) {
		add_single_columns(&new, profile, &source->events[new.main_event]);
	} else {
		CLEANUP(hash_map_fini) struct hash_map taken;
		hash_map_init(&taken);
		for (uint32_t e = 0; e < source->n_events; e++) {
			if (new.first_column[e] == EVENT_COLUMN_NONE)
				continue;
			new.first_column[e] = profile->sample_types.n;
			add_event_columns(profile, &source->events[e], &taken);
		}
	}
	new.n_columns = profile->sample_types.n;
	if (new.main_event != EVENT_COLUMN_NONE) {
		set_period(&new, profile, &source->events[new.main_event]);
		/* The measure: cpu where there is an estimate, else the column behind the count. */
		profile->default_sample_type =
			profile->sample_types.items[new.ns_per_sample ? 2 : 1].type;
	} else {
		profile->period_type = profile->sample_types.items[0];
		profile->period = 1;
	}
	profile->samples.n = n_samples;
	move_values(columns, &new, profile);
	event_columns_fini(columns);
	*columns = new;
}
