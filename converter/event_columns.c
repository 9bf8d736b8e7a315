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
	hash_map_fini(&columns->names);
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

/* Samples that are there already follow their event to its new place. */
static void move_rows(const struct event_columns *old, const struct event_columns *new,
		      struct profile *profile, uint32_t width)
{
	uint32_t *new_column CLEANUP(cleanup_mem) =
		mem_zalloc((size_t)old->n_events * COLUMNS_PER_EVENT + 1, sizeof(*new_column));
	for (uint32_t e = 0; e < old->n_events; e++) {
		if (old->first_column[e] != EVENT_COLUMN_NONE)
			new_column[old->first_column[e]] = new->first_column[e];
	}
	profile_move_rows(profile, width, new_column);
}

/* An event that has samples stays, also a dummy that was better than nothing. */
static bool is_in_use(const struct event_columns *old, const struct profile *profile,
		      uint32_t event)
{
	return profile->samples.n && event < old->n_events &&
	       old->first_column[event] != EVENT_COLUMN_NONE;
}

static void choose_events(struct event_columns *columns, const struct event_columns *old,
			  const struct perf_source_info *source, const char *only,
			  const struct profile *profile)
{
	for (int take_dummies = 0; take_dummies < 2 && !columns->n_used; take_dummies++) {
		for (uint32_t e = 0; e < source->n_events; e++) {
			bool is_used = only ? is_named(&source->events[e], only)
					    : take_dummies || !is_dummy(&source->events[e]) ||
						       is_in_use(old, profile, e);
			columns->first_column[e] = is_used ? 0 : EVENT_COLUMN_NONE;
			if (is_used && columns->main_event == EVENT_COLUMN_NONE)
				columns->main_event = e;
			columns->n_used += is_used;
		}
	}
}

/* Several events: the columns of event e behind those there are, unless it is left out. */
static void add_columns_of(struct event_columns *columns, const struct perf_event_info *event,
			   uint32_t e, struct profile *profile)
{
	if (columns->first_column[e] == EVENT_COLUMN_NONE)
		return;
	columns->first_column[e] = profile->sample_types.n;
	add_event_columns(profile, event, &columns->names);
}

/* The events that came since the last look, each once: columns that are there stay. */
static void append_events(struct event_columns *columns, const struct perf_source_info *source,
			  struct profile *profile)
{
	columns->first_column = mem_realloc(columns->first_column, source->n_events + 1,
					    sizeof(*columns->first_column));
	for (uint32_t e = columns->n_events; e < source->n_events; e++) {
		bool is_used = !is_dummy(&source->events[e]);
		columns->first_column[e] = is_used ? 0 : EVENT_COLUMN_NONE;
		columns->n_used += is_used;
		add_columns_of(columns, &source->events[e], e, profile);
	}
	columns->n_events = source->n_events;
}

static void make_columns(struct event_columns *columns, const struct perf_source_info *source,
			 struct profile *profile)
{
	profile->sample_types.n = 0;
	if (columns->main_event == EVENT_COLUMN_NONE) {
		profile_add_sample_type(profile, "samples", "count");
		profile->period_type = profile->sample_types.items[0];
		profile->period = 1;
		return;
	}
	if (columns->is_single) {
		add_single_columns(columns, profile, &source->events[columns->main_event]);
	} else {
		for (uint32_t e = 0; e < source->n_events; e++)
			add_columns_of(columns, &source->events[e], e, profile);
	}
	set_period(columns, profile, &source->events[columns->main_event]);
	/* The measure: cpu where there is an estimate, else the column behind the count. */
	profile->default_sample_type =
		profile->sample_types.items[columns->ns_per_sample ? 2 : 1].type;
}

void event_columns_update(struct event_columns *columns, const struct perf_source_info *source,
			  const char *only, struct profile *profile)
{
	if (columns->n_used > 1 && !columns->is_single && profile->sample_types.n) {
		append_events(columns, source, profile);
		return;
	}
	struct event_columns new = {
		.first_column = mem_zalloc(source->n_events + 1, sizeof(uint32_t)),
		.n_events = source->n_events,
		.main_event = EVENT_COLUMN_NONE,
	};
	choose_events(&new, columns, source, only, profile);
	/* Asked for one event: all of that name (the core types of a hybrid CPU) add up. */
	new.is_single = only || new.n_used <= 1;
	if (profile->samples.n)
		profile_fix_row_width(profile);
	make_columns(&new, source, profile);
	/* One event a row: with several, most columns of most rows would be 0. */
	if (!profile->samples.n)
		profile_set_row_width(profile, new.is_single ? 0 : COLUMNS_PER_EVENT);
	else if (!new.is_single)
		move_rows(columns, &new, profile, COLUMNS_PER_EVENT);
	event_columns_fini(columns);
	*columns = new;
}
