/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/perf_file_events.h"

#include <string.h>

#include "base/mem.h"
#include "collector/event_name.h"

enum { NO_ID = 0 };

void perf_file_events_init(struct perf_file_events *events, struct perf_source_info *info,
			   bool is_big_endian)
{
	memset(events, 0, sizeof(*events));
	events->info = info;
	events->is_big_endian = is_big_endian;
	events->fallback = PERF_EVENT_INDEX_NONE;
	hash_map_init(&events->by_id);
}

void perf_file_events_fini(struct perf_file_events *events)
{
	struct perf_source_info *info = events->info;
	if (events->is_info_const)
		info = NULL;
	for (uint32_t i = 0; info && i < info->n_events; i++) {
		mem_free(info->events[i].name);
		mem_free(info->events[i].ids);
		mem_free(info->events[i].unit);
	}
	if (info) {
		mem_free(info->events);
		info->events = NULL;
		info->n_events = 0;
	}
	hash_map_fini(&events->by_id);
	memset(events, 0, sizeof(*events));
}

static uint8_t mirror_bits(uint8_t byte)
{
	uint8_t mirrored = 0;
	for (int i = 0; i < 8; i++)
		mirrored |= (uint8_t)((byte >> i & 1) << (7 - i));
	return mirrored;
}

/*
 * The flags are a bit field. A little-endian compiler fills it from the least significant bit of
 * the first byte on, a big-endian one from the most significant: the bytes keep their places, the
 * bits within each are mirrored.
 */
static uint64_t read_flags(struct cursor *c, bool is_big_endian)
{
	uint64_t flags = 0;
	for (int i = 0; i < 8; i++) {
		uint8_t byte = cursor_u8(c);
		flags |= (uint64_t)(is_big_endian ? mirror_bits(byte) : byte) << 8 * i;
	}
	return flags;
}

/* c holds at least PERF_ATTR_SIZE_VER0 bytes; a field past its end was not there yet and is 0. */
static void read_attr_fields(struct cursor *c, bool is_big_endian, struct perf_event_attr *attr)
{
	attr->type = cursor_u32(c);
	attr->size = cursor_u32(c);
	attr->config = cursor_u64(c);
	attr->sample_period = cursor_u64(c);
	attr->sample_type = cursor_u64(c);
	attr->read_format = cursor_u64(c);
	attr->flags = read_flags(c, is_big_endian);
	attr->wakeup_events = cursor_u32(c);
	attr->bp_type = cursor_u32(c);
	attr->config1 = cursor_u64(c);
	attr->config2 = cursor_u64(c);
	attr->branch_sample_type = cursor_u64(c);
	attr->sample_regs_user = cursor_u64(c);
	attr->sample_stack_user = cursor_u32(c);
	attr->clockid = (int32_t)cursor_u32(c);
	attr->sample_regs_intr = cursor_u64(c);
	attr->aux_watermark = cursor_u32(c);
	attr->sample_max_stack = cursor_u16(c);
	attr->reserved_2 = cursor_u16(c);
	attr->aux_sample_size = cursor_u32(c);
	attr->aux_action = cursor_u32(c);
	attr->sig_data = cursor_u64(c);
	attr->config3 = cursor_u64(c);
	attr->config4 = cursor_u64(c);
}

struct error *perf_file_events_read_attr(struct cursor *c, bool is_big_endian,
					 struct perf_event_attr *out, uint32_t *stored_size_out)
{
	uint64_t position = cursor_position(c);
	struct cursor peek = *c;
	cursor_skip(&peek, sizeof(uint32_t));
	uint32_t size = cursor_u32(&peek);
	if (size == 0)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0)
		return error_new(ERROR_BAD_DATA, "attr size %u at byte %llu is below %d", size,
				 (unsigned long long)position, PERF_ATTR_SIZE_VER0);
	struct cursor body = cursor_sub(c, size);
	if (!cursor_is_ok(&peek) || !cursor_is_ok(&body))
		return error_new(ERROR_BAD_DATA, "attr of %u bytes at byte %llu is cut off", size,
				 (unsigned long long)position);
	struct perf_event_attr attr = {0};
	read_attr_fields(&body, is_big_endian, &attr);
	*out = attr;
	*stored_size_out = size;
	return NULL;
}

static bool is_dummy(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY;
}

/* Takes the next event into account: where ids lie, and what records without one belong to. */
static void settle(struct perf_file_events *events, uint32_t index)
{
	const struct perf_event_info *all = events->info->events;
	const struct sample_layout *layout = &all[index].layout;
	bool is_timed = layout->time_from_start && layout->time_from_end;
	if (index == 0) {
		events->fallback = 0;
		events->id_from_start = layout->id_from_start;
		events->id_from_end = layout->id_from_end;
		events->is_all_timed = is_timed;
	} else {
		if (is_dummy(&all[events->fallback].attr) && !is_dummy(&all[index].attr))
			events->fallback = index;
		events->is_mixed_start |= layout->id_from_start != events->id_from_start;
		events->is_mixed_end |= layout->id_from_end != events->id_from_end;
		events->is_all_timed &= is_timed;
	}
	for (uint32_t i = 0; i < all[index].n_ids; i++) {
		bool is_new;
		uint64_t *value = hash_map_put(&events->by_id, all[index].ids[i], &is_new);
		if (is_new)
			*value = index;
	}
	events->n_ids += all[index].n_ids;
	events->has_ids = events->n_ids > 0 && index > 0;
	memset(events->cache, 0, sizeof(events->cache));
}

void perf_file_events_init_borrow(struct perf_file_events *events,
				  const struct perf_source_info *info)
{
	perf_file_events_init(events, (struct perf_source_info *)info, false);
	events->is_info_const = true;
	for (uint32_t i = 0; i < info->n_events; i++)
		settle(events, i);
}

struct error *perf_file_events_add(struct perf_file_events *events,
				   const struct perf_event_attr *attr, uint32_t stored_size,
				   struct cursor *ids, size_t n_ids)
{
	struct perf_source_info *info = events->info;
	if (info->n_events >= PERF_FILE_EVENTS_MAX)
		return error_new(ERROR_LIMIT, "more than %d events", PERF_FILE_EVENTS_MAX);
	if (n_ids > PERF_FILE_IDS_MAX - events->n_ids)
		return error_new(ERROR_LIMIT, "more than %d event ids", PERF_FILE_IDS_MAX);
	if (info->n_events == events->capacity) {
		events->capacity = events->capacity ? 2 * events->capacity : 8;
		info->events = mem_realloc(info->events, events->capacity, sizeof(*info->events));
	}
	uint32_t index = info->n_events++;
	struct perf_event_info *event = &info->events[index];
	*event = (struct perf_event_info){.attr = *attr,
					  .layout = sample_layout_of(attr),
					  .name = event_name_make(attr),
					  .n_ids = (uint32_t)n_ids,
					  .attr_size = stored_size,
					  .leader = index,
					  .scale = 1};
	if (n_ids)
		event->ids = mem_realloc(NULL, n_ids, sizeof(*event->ids));
	for (size_t i = 0; i < n_ids; i++)
		event->ids[i] = cursor_u64(ids);
	if (info->clockid < 0 && perf_attr_has(attr, PERF_ATTR_USE_CLOCKID))
		info->clockid = attr->clockid;
	settle(events, index);
	return NULL;
}

uint32_t perf_file_events_find(const struct perf_file_events *events, uint64_t id)
{
	const uint64_t *value = events->n_ids ? hash_map_get(&events->by_id, id) : NULL;
	return value ? (uint32_t)*value : PERF_EVENT_INDEX_NONE;
}

void perf_file_events_set_name(struct perf_file_events *events, uint32_t index, const char *text)
{
	struct perf_event_info *event = &events->info->events[index];
	size_t n = strnlen(text, PERF_FILE_NAME_MAX);
	if (n == 0)
		return;
	mem_free(event->name);
	event->name = mem_format("%.*s", (int)n, text);
	event->is_name_from_file = true;
}

/* The u64 at an offset; 0 when it does not lie behind the header and inside the record. */
static inline uint64_t read_field(const struct perf_record *record, uint32_t offset,
				  bool is_swapped)
{
	struct cursor c = cursor_make(record->bytes, record->size, is_swapped);
	cursor_seek(&c, offset);
	return cursor_u64(&c);
}

static inline uint64_t read_sample_field(const struct perf_record *record, uint16_t from_start,
					 bool is_swapped)
{
	return from_start ? read_field(record, from_start, is_swapped) : 0;
}

static inline uint64_t read_trailer_field(const struct perf_record *record, uint16_t from_end,
					  bool is_swapped)
{
	if (!from_end || from_end + sizeof(struct perf_event_header) > record->size)
		return 0;
	return read_field(record, record->size - from_end, is_swapped);
}

static inline uint64_t read_id(const struct perf_record *record, uint16_t from_start,
			       uint16_t from_end, bool is_swapped)
{
	return record->type == PERF_RECORD_SAMPLE
		       ? read_sample_field(record, from_start, is_swapped)
		       : read_trailer_field(record, from_end, is_swapped);
}

static inline uint32_t find_cached(struct perf_file_events *events, uint64_t id)
{
	uint32_t slot = (uint32_t)id & (PERF_FILE_EVENT_CACHE - 1);
	if (LIKELY(events->cache[slot].id == id && id != NO_ID))
		return events->cache[slot].event;
	uint32_t event = perf_file_events_find(events, id);
	events->cache[slot].id = id;
	events->cache[slot].event = event;
	return event;
}

/*
 * Without a common place, an event is right when its own id lies where its own layout says. perf
 * refuses such files; with few events trying is cheap.
 */
static uint32_t find_mixed(const struct perf_file_events *events, const struct perf_record *record)
{
	enum { TRIES_MAX = 64 };
	const struct perf_source_info *info = events->info;
	for (uint32_t i = 0; i < info->n_events && i < TRIES_MAX; i++) {
		const struct sample_layout *layout = &info->events[i].layout;
		uint64_t id = read_id(record, layout->id_from_start, layout->id_from_end,
				      info->is_swapped);
		if (id != NO_ID && perf_file_events_find(events, id) == i)
			return i;
	}
	return PERF_EVENT_INDEX_NONE;
}

void perf_file_events_route(struct perf_file_events *events, struct perf_record *record)
{
	const struct perf_source_info *info = events->info;
	bool is_swapped = info->is_swapped;
	uint32_t index = events->fallback;
	if (UNLIKELY(index == PERF_EVENT_INDEX_NONE)) {
		record->event_index = index;
		record->time_ns = 0;
		return;
	}
	const struct sample_layout *layout = &info->events[index].layout;
	if (events->has_ids) {
		uint32_t found;
		if (UNLIKELY(record->type == PERF_RECORD_SAMPLE ? events->is_mixed_start
								: events->is_mixed_end)) {
			found = find_mixed(events, record);
		} else {
			uint64_t id = read_id(record, events->id_from_start, events->id_from_end,
					      is_swapped);
			/* Records that perf made itself have an id of 0. */
			found = id == NO_ID ? index : find_cached(events, id);
		}
		if (found != PERF_EVENT_INDEX_NONE)
			layout = &info->events[found].layout;
		else if (record->type != PERF_RECORD_SAMPLE)
			found = index;
		index = found;
	}
	record->event_index = index;
	uint64_t time_ns = record->type == PERF_RECORD_SAMPLE
				   ? read_sample_field(record, layout->time_from_start, is_swapped)
				   : read_trailer_field(record, layout->time_from_end, is_swapped);
	record->time_ns = time_ns == UINT64_MAX ? 0 : time_ns;
}
