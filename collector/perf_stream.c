/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/perf_stream.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "collector/perf_features.h"

enum {
	READ_BYTES = PERF_STREAM_BLOCK_BYTES,
	FREE_BLOCKS_MAX = 64,
	ID_INDEX_ENTRY_BYTES = 32,
	EVENT_UPDATE_UNIT = 0,
	EVENT_UPDATE_SCALE = 1,
	EVENT_UPDATE_NAME = 2,
	EVENT_TYPE_NAME_BYTES = 64,
};

/* Whole records of up to PERF_STREAM_TAIL_BYTES carried over, and PERF_STREAM_BLOCK_BYTES read. */
enum { CAPACITY = PERF_STREAM_BLOCK_BYTES + PERF_STREAM_TAIL_BYTES };

struct perf_stream_block {
	struct reorder_block base;
	struct perf_stream_pool *pool;
	struct perf_stream_block *next_free;
	uint8_t data[CAPACITY];
};

void perf_stream_pool_fini(struct perf_stream_pool *pool)
{
	while (pool->free) {
		struct perf_stream_block *block = pool->free;
		pool->free = block->next_free;
		mem_free(block);
	}
	pool->n_free = 0;
	pool->is_over = true;
}

static void release_block(struct reorder_block *base)
{
	struct perf_stream_block *block = (struct perf_stream_block *)base;
	struct perf_stream_pool *pool = block->pool;
	if (pool->n_free == FREE_BLOCKS_MAX || pool->is_over) {
		mem_free(block);
		return;
	}
	block->next_free = pool->free;
	pool->free = block;
	pool->n_free++;
}

static struct perf_stream_block *take_block(struct perf_stream_pool *pool)
{
	struct perf_stream_block *block = pool->free;
	if (block) {
		pool->free = block->next_free;
		pool->n_free--;
	} else {
		block = mem_alloc(sizeof(*block));
	}
	block->pool = pool;
	block->base = (struct reorder_block){
		.bytes = sizeof(*block), .is_open = true, .release = release_block};
	return block;
}

void perf_stream_init(struct perf_stream *stream, struct perf_file *file, struct reorder *reorder,
		      struct perf_stream_pool *pool, int fd)
{
	*stream = (struct perf_stream){.file = file,
				       .reorder = reorder,
				       .pool = pool,
				       .fd = fd,
				       .has_rounds = true,
				       .end_offset = UINT64_MAX};
}

static void close_layer(struct perf_stream_layer *layer)
{
	if (layer->block)
		reorder_block_close(&layer->block->base);
	layer->block = NULL;
	layer->begin = layer->end = 0;
}

void perf_stream_fini(struct perf_stream *stream)
{
	close_layer(&stream->raw);
	close_layer(&stream->inflated);
	perf_decompress_fini(&stream->decompress);
}

/*
 * Makes room for at least half of READ_BYTES more. A block that records still wait in is left
 * to them; the start of a record that is not whole yet moves on.
 */
static void make_room(struct perf_stream *stream, struct perf_stream_layer *layer)
{
	struct perf_stream_block *old = layer->block;
	if (old && layer->begin == layer->end && old->base.n_held == 0) {
		layer->begin = layer->end = 0;
		return;
	}
	if (old && CAPACITY - layer->end >= READ_BYTES / 2)
		return;
	struct perf_stream_block *block = take_block(stream->pool);
	size_t n = layer->end - layer->begin;
	if (old) {
		memcpy(block->data, old->data + layer->begin, n);
		reorder_block_close(&old->base);
	}
	layer->block = block;
	layer->begin = 0;
	layer->end = n;
}

static struct error *corrupt(const struct perf_stream *stream, int number, const char *text,
			     uint32_t type, uint64_t position)
{
	return error_number(error_new(ERROR_BAD_DATA,
				      "%s%s%s (record of type %" PRIu32 " at byte %" PRIu64 ")",
				      stream->name ? stream->name : "", stream->name ? ": " : "",
				      text, type, position),
			    number);
}

/* Trouble with a record that only describes the recording. */
static void note_damaged(struct perf_stream *stream, const char *what, uint64_t position)
{
	struct buf *damaged = &stream->file->damaged;
	/* The list is for people; past its cap the first ones do. */
	error_free(buf_printf(damaged, "%s%s at byte %" PRIu64, damaged->size ? ", " : "", what,
			      position));
}

/* A cursor behind the header. */
static struct cursor open_body(const struct perf_stream *stream, const struct perf_record *record,
			       uint64_t position)
{
	struct cursor c = cursor_make(record->bytes, record->size, stream->file->info.is_swapped);
	c.origin = position;
	cursor_skip(&c, sizeof(struct perf_event_header));
	return c;
}

static struct error *take_attr(struct perf_stream *stream, const struct perf_record *record,
			       uint64_t position)
{
	struct perf_file *file = stream->file;
	struct cursor c = open_body(stream, record, position);
	struct perf_event_attr attr;
	uint32_t attr_bytes;
	struct error *err = perf_file_events_read_attr(&c, file->is_big_endian, &attr, &attr_bytes);
	if (!err)
		err = perf_file_events_add(&file->events, &attr, attr_bytes, &c,
					   cursor_left(&c) / sizeof(uint64_t));
	if (err)
		return error_number(
			error_wrap(err, "HEADER_ATTR record at byte %" PRIu64, position), 601);
	perf_feature_apply_event_desc(file);
	return NULL;
}

static void take_feature(struct perf_stream *stream, const struct perf_record *record,
			 uint64_t position)
{
	struct perf_file *file = stream->file;
	struct cursor c = open_body(stream, record, position);
	uint64_t feature = cursor_u64(&c);
	if (!cursor_is_ok(&c) || feature >= PERF_FILE_FEATURES) {
		note_damaged(stream, "HEADER_FEATURE", position);
		return;
	}
	perf_file_add_feature(file, (uint8_t)feature);
	if (cursor_left(&c) == 0) {
		/* How perf says that no more features come. */
		file->end_feature = (uint8_t)feature;
		return;
	}
	if (feature == PERF_FEATURE_EVENT_DESC) {
		buf_clear(&file->event_desc);
		error_free(buf_append(&file->event_desc, c.next, cursor_left(&c)));
	}
	if (!perf_feature_apply(file, (uint8_t)feature, &c)) {
		const char *name = collector_feature_name((uint8_t)feature);
		note_damaged(stream, name ? name : "HEADER_FEATURE", position);
	}
}

static void take_event_update(struct perf_stream *stream, const struct perf_record *record,
			      uint64_t position)
{
	struct perf_file *file = stream->file;
	struct cursor c = open_body(stream, record, position);
	uint64_t kind = cursor_u64(&c);
	uint64_t id = cursor_u64(&c);
	uint32_t index = perf_file_events_find(&file->events, id);
	if (!cursor_is_ok(&c) || index == PERF_EVENT_INDEX_NONE)
		return;
	struct perf_event_info *event = &file->info.events[index];
	size_t n = strnlen((const char *)c.next, cursor_left(&c));
	char *text CLEANUP(cleanup_mem) = mem_format("%.*s", (int)n, (const char *)c.next);
	switch (kind) {
	case EVENT_UPDATE_UNIT:
		mem_free(event->unit);
		event->unit = TAKE(text);
		break;
	case EVENT_UPDATE_SCALE: {
		uint64_t bits = cursor_u64(&c);
		if (cursor_is_ok(&c))
			memcpy(&event->scale, &bits, sizeof(bits));
		break;
	}
	case EVENT_UPDATE_NAME:
		perf_file_events_set_name(&file->events, index, text);
		break;
	default:
		break;
	}
}

/* Names by config, of perf before 3.13; of use where the attr alone has no good name. */
static void take_event_type(struct perf_stream *stream, const struct perf_record *record,
			    uint64_t position)
{
	struct perf_file *file = stream->file;
	struct cursor c = open_body(stream, record, position);
	uint64_t config = cursor_u64(&c);
	const char *text = (const char *)cursor_bytes(&c, EVENT_TYPE_NAME_BYTES);
	if (!text || memchr(text, 0, EVENT_TYPE_NAME_BYTES) == NULL)
		return;
	for (uint32_t i = 0; i < file->info.n_events; i++) {
		const struct perf_event_info *event = &file->info.events[i];
		if (event->attr.type == PERF_TYPE_TRACEPOINT && event->attr.config == config &&
		    !event->is_name_from_file)
			perf_file_events_set_name(&file->events, i, text);
	}
}

/*
 * Only checked: that its entries fit shows that this is mainline perf, for types from 69 on had
 * other meanings in a perf of 2012, which no header tells apart.
 */
static struct error *check_id_index(struct perf_stream *stream, const struct perf_record *record,
				    uint64_t position)
{
	struct cursor c = open_body(stream, record, position);
	uint64_t n = cursor_u64(&c);
	if (cursor_is_ok(&c) && n <= cursor_left(&c) / ID_INDEX_ENTRY_BYTES)
		return NULL;
	if (stream->file->format.is_pipe && stream->file->info.n_events == 0)
		return corrupt(stream, 608, "unknown pipe dialect: this is no ID_INDEX of perf",
			       record->type, position);
	note_damaged(stream, "ID_INDEX", position);
	return NULL;
}

/* How many bytes follow a record without being records. */
static uint64_t read_payload_size(const struct perf_stream *stream,
				  const struct perf_record *record, uint64_t position)
{
	struct cursor c = open_body(stream, record, position);
	if (record->type == PERF_RECORD_AUXTRACE)
		return cursor_u64(&c);
	uint64_t size = cursor_u32(&c);
	return (size + 7) & ~7ull; /* TRACING_DATA is padded */
}

static struct error *cut(struct perf_stream *stream, struct perf_stream_layer *layer);

static struct error *unpack(struct perf_stream *stream, const struct perf_record *record,
			    uint64_t position)
{
	struct perf_file *file = stream->file;
	struct cursor c = open_body(stream, record, position);
	file->format.n_compressed_records++;
	if (file->compression != PERF_COMPRESSION_NONE &&
	    file->compression != PERF_COMPRESSION_ZSTD)
		return corrupt(stream, 605, "decompression failed: the method is not zstd",
			       record->type, position);
	uint64_t n = cursor_left(&c);
	if (record->type == PERF_RECORD_COMPRESSED2) {
		n = cursor_u64(&c);
		if (!cursor_is_ok(&c) || n > cursor_left(&c))
			return corrupt(stream, 605,
				       "decompression failed: more data than the record holds",
				       record->type, position);
	}
	struct perf_stream_layer *layer = &stream->inflated;
	perf_decompress_feed(&stream->decompress, c.next, (size_t)n);
	for (;;) {
		make_room(stream, layer);
		size_t room = CAPACITY - layer->end;
		size_t got;
		struct error *err = perf_decompress_read(
			&stream->decompress, layer->block->data + layer->end, room, &got);
		if (err)
			return error_number(
				error_wrap(err, "compressed record at byte %" PRIu64, position),
				605);
		layer->position = position;
		layer->end += got;
		err = cut(stream, layer);
		if (err || got < room)
			return err;
	}
}

/* Records that perf itself wrote. Most are handed on too, at once. */
static struct error *take_user_record(struct perf_stream *stream, struct perf_stream_layer *layer,
				      struct perf_record *record, uint64_t position)
{
	struct error *err = NULL;
	switch (record->type) {
	case PERF_RECORD_COMPRESSED:
	case PERF_RECORD_COMPRESSED2:
		if (layer == &stream->inflated)
			return corrupt(
				stream, 605,
				"decompression failed: compressed records inside one another",
				record->type, position);
		return unpack(stream, record, position);
	case PERF_RECORD_HEADER_ATTR:
		err = take_attr(stream, record, position);
		break;
	case PERF_RECORD_HEADER_FEATURE:
		take_feature(stream, record, position);
		break;
	case PERF_RECORD_EVENT_UPDATE:
		take_event_update(stream, record, position);
		break;
	case PERF_RECORD_HEADER_EVENT_TYPE:
		take_event_type(stream, record, position);
		break;
	case PERF_RECORD_HEADER_BUILD_ID: {
		struct cursor c = open_body(stream, record, position);
		if (!perf_feature_add_build_id(stream->file, record->misc, &c))
			note_damaged(stream, "HEADER_BUILD_ID", position);
		break;
	}
	case PERF_RECORD_ID_INDEX:
		err = check_id_index(stream, record, position);
		break;
	case PERF_RECORD_HEADER_TRACING_DATA:
		perf_file_add_feature(stream->file, PERF_FEATURE_TRACING_DATA);
		layer->n_to_skip = read_payload_size(stream, record, position);
		break;
	case PERF_RECORD_AUXTRACE:
		layer->n_to_skip = read_payload_size(stream, record, position);
		break;
	default:
		break;
	}
	if (!err)
		err = reorder_pass(stream->reorder, record, &layer->block->base);
	if (!err && record->type == PERF_RECORD_FINISHED_ROUND && stream->has_rounds &&
	    !stream->is_file_order)
		err = reorder_round(stream->reorder);
	return err;
}

static struct error *take_record(struct perf_stream *stream, struct perf_stream_layer *layer,
				 struct perf_record *record, uint64_t position)
{
	if (LIKELY(record->type < PERF_RECORD_KERNEL_MAX && record->type != 0)) {
		perf_file_events_route(&stream->file->events, record);
		if (record->time_ns)
			stream->last_time_ns = record->time_ns;
		stream->n_samples += record->type == PERF_RECORD_SAMPLE;
		return stream->is_file_order
			       ? reorder_pass(stream->reorder, record, &layer->block->base)
			       : reorder_add(stream->reorder, record, &layer->block->base);
	}
	if (record->type >= PERF_RECORD_USER_TYPE_START && record->type < PERF_RECORD_USER_MAX)
		return take_user_record(stream, layer, record, position);
	stats_add(STAT_RECORDS_UNKNOWN, 1);
	perf_file_count_unknown(stream->file, record->type);
	return NULL;
}

static void skip_payload(struct perf_stream_layer *layer)
{
	uint64_t n = layer->end - layer->begin;
	if (n > layer->n_to_skip)
		n = layer->n_to_skip;
	layer->begin += (size_t)n;
	layer->position += n;
	layer->n_to_skip -= n;
}

static void set_stopped(struct perf_file *file, char *text)
{
	mem_free(file->stopped);
	file->stopped = text;
	file->format.stream_stopped = text;
}

/* Hands on all records that are whole. */
static struct error *cut(struct perf_stream *stream, struct perf_stream_layer *layer)
{
	struct perf_file *file = stream->file;
	bool is_swapped = file->info.is_swapped;
	bool is_raw = layer == &stream->raw;
	for (;;) {
		if (UNLIKELY(layer->n_to_skip > 0))
			skip_payload(layer);
		const uint8_t *bytes = layer->block->data + layer->begin;
		size_t left = layer->end - layer->begin;
		struct cursor c = cursor_make(bytes, left, is_swapped);
		struct perf_record record = {.bytes = bytes, .event_index = PERF_EVENT_INDEX_NONE};
		record.type = cursor_u32(&c);
		record.misc = cursor_u16(&c);
		record.size = cursor_u16(&c);
		if (!cursor_is_ok(&c))
			return NULL;
		if (UNLIKELY(record.size < sizeof(struct perf_event_header))) {
			bool is_hole = record.type == 0 && record.misc == 0 && record.size == 0;
			/* A recorder that dies later still left room for its table of features. */
			if (file->is_unfinished && is_raw && is_hole) {
				layer->end = layer->begin;
				stream->next_offset = stream->end_offset = layer->position;
				return NULL;
			}
			set_stopped(file, mem_format("record size %" PRIu32 " at byte %" PRIu64,
						     record.size, layer->position));
			return corrupt(stream, 601, "bad record size", record.type,
				       layer->position);
		}
		if (record.size > left)
			return NULL;
		uint64_t position = layer->position;
		layer->begin += record.size;
		if (is_raw)
			layer->position += record.size;
		stream->n_records++;
		if (record.type < ARRAY_LEN(file->format.n_records_by_type))
			file->format.n_records_by_type[record.type]++;
		struct error *err = take_record(stream, layer, &record, position);
		if (UNLIKELY(err))
			return err;
	}
}

/* Nothing more comes; says so when that is in the middle of something. */
static void finish(struct perf_stream *stream)
{
	struct perf_file *file = stream->file;
	const struct perf_stream_layer *raw = &stream->raw;
	const struct perf_stream_layer *inflated = &stream->inflated;
	stream->is_at_end = true;
	uint64_t end = raw->position + (raw->end - raw->begin);
	const char *what = NULL;
	uint64_t position = raw->position;
	if (raw->n_to_skip > 0)
		what = "payload past end";
	else if (raw->end - raw->begin >= sizeof(struct perf_event_header))
		what = "record past end";
	else if (raw->end > raw->begin)
		what = "partial header";
	else if (inflated->end > inflated->begin || inflated->n_to_skip > 0) {
		what = "partial record in compressed data";
		position = inflated->position;
	}
	bool is_short = stream->is_positional && stream->end_offset != UINT64_MAX &&
			end < stream->end_offset;
	if (!what && !is_short)
		return;
	set_stopped(file, mem_format("%s at byte %" PRIu64, what ? what : "end of file", position));
	const char *name = stream->name ? stream->name : "the recording";
	char *text;
	if (is_short)
		text = mem_format("%s is truncated: %s at byte %" PRIu64 "; the data section needs "
				  "bytes up to %" PRIu64 ", available are %" PRIu64 "; %" PRIu64
				  " records before that are intact",
				  name, what ? what : "end of file", position, stream->end_offset,
				  end, stream->n_records);
	else
		text = mem_format("%s has an unexpected end: %s at byte %" PRIu64 ", the data ends "
				  "at byte %" PRIu64 "; %" PRIu64 " records before that are intact",
				  name, what, position, end, stream->n_records);
	perf_file_warn_take(file, 601, true,
			    "the recorder was stopped while it wrote, or a copy was cut short",
			    text);
}

/* A payload of gigabytes need not be read to be skipped. */
static void seek_past_payload(struct perf_stream *stream)
{
	struct perf_stream_layer *layer = &stream->raw;
	uint64_t end = stream->end_offset;
	if (stream->file->size < end)
		end = stream->file->size;
	if (!stream->is_positional || layer->n_to_skip == 0 || stream->next_offset >= end)
		return;
	uint64_t n = end - stream->next_offset;
	if (n > layer->n_to_skip)
		n = layer->n_to_skip;
	stream->next_offset += n;
	stream->file->format.bytes_read += n;
	layer->position += n;
	layer->n_to_skip -= n;
}

struct error *perf_stream_step(struct perf_stream *stream)
{
	struct perf_stream_layer *layer = &stream->raw;
	make_room(stream, layer);
	seek_past_payload(stream);
	size_t room = CAPACITY - layer->end;
	if (room > READ_BYTES)
		room = READ_BYTES;
	if (stream->end_offset - stream->next_offset < room)
		room = (size_t)(stream->end_offset - stream->next_offset);
	size_t n = 0;
	struct error *err = NULL;
	if (room > 0) {
		uint8_t *to = layer->block->data + layer->end;
		err = stream->is_positional
			      ? file_read_at(stream->fd, stream->next_offset, to, room, &n)
			      : file_read(stream->fd, to, room, &n);
	}
	if (err)
		return err;
	stream->next_offset += n;
	stream->file->format.bytes_read += n;
	layer->end += n;
	if (n > 0)
		err = cut(stream, layer);
	if (!err && n < room)
		finish(stream);
	else if (!err && stream->next_offset == stream->end_offset)
		finish(stream);
	return err;
}
