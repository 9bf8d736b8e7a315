/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a perf.data: attrs with ids, their names, and the way from a record to its event
 * and time. Sits between the bytes (perf_stream) and the order (reorder).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "base/perf_record.h"

enum {
	PERF_FILE_EVENTS_MAX = 1 << 16,
	PERF_FILE_IDS_MAX = 1 << 20,
	PERF_FILE_EVENT_CACHE = 64, /* power of two */
	PERF_FILE_NAME_MAX = 4096,  /* longest name that is kept */
};

struct perf_file_events {
	struct perf_source_info *info; /* events and n_events are grown here; borrowed */
	bool is_info_const;	       /* info's events are somebody else's */
	bool is_big_endian;
	uint32_t capacity;
	uint32_t n_ids;
	uint32_t fallback; /* what a record without a known id belongs to */
	struct hash_map by_id;
	/* Where all events have their id; SAMPLE_LAYOUT_NONE when they differ or have none. */
	uint16_t id_from_start;
	uint16_t id_from_end;
	bool has_ids;	     /* some event has ids, and some place to look for them */
	bool is_mixed_start; /* the places differ: each event is asked in turn */
	bool is_mixed_end;
	bool is_all_timed; /* all have TIME, and sample_id_all for their other records */
	struct {
		uint64_t id;
		uint32_t event;
	} cache[PERF_FILE_EVENT_CACHE];
};

void perf_file_events_init(struct perf_file_events *events, struct perf_source_info *info,
			   bool is_big_endian);
/* For routing alone: info's events are there already and stay as they are. */
void perf_file_events_init_borrow(struct perf_file_events *events,
				  const struct perf_source_info *info);
/* Also frees info's events, unless they are borrowed. */
void perf_file_events_fini(struct perf_file_events *events);

/*
 * Reads one attr that occupies size bytes at most, as its own size field says (0 counts as 64);
 * what this version does not know is skipped. stored_size_out: bytes it has in the file.
 */
struct error *perf_file_events_read_attr(struct cursor *c, bool is_big_endian,
					 struct perf_event_attr *out,
					 uint32_t *stored_size_out) MUST_USE;
/* ids: n_ids integers in the cursor's order. ERROR_LIMIT past the caps above. */
struct error *perf_file_events_add(struct perf_file_events *events,
				   const struct perf_event_attr *attr, uint32_t stored_size,
				   struct cursor *ids, size_t n_ids) MUST_USE;
/* PERF_EVENT_INDEX_NONE when no event has it. */
uint32_t perf_file_events_find(const struct perf_file_events *events, uint64_t id);
/* A name found in the file; text is copied, at most PERF_FILE_NAME_MAX bytes of it. */
void perf_file_events_set_name(struct perf_file_events *events, uint32_t index, const char *text);
/* Sets event_index and time_ns of a record of the kernel's (type below 64). */
void perf_file_events_route(struct perf_file_events *events, struct perf_record *record);
