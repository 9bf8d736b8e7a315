/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes perf.data bytes for tests. A recording is described once (events, records, features) and
 * then written in file mode or pipe mode; its byte order is chosen at the start, so that twins come
 * from the same calls.
 *
 * Order of calls: perf_data_init; perf_data_add_event …; perf_data_begin … perf_data_end for each
 * record; perf_data_add_feature …; perf_data_write_file or perf_data_write_pipe; perf_data_fini.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/perf_abi.h"

enum { PERF_DATA_EVENTS = 64, PERF_DATA_FEATURES = 32 };

struct perf_data_event {
	struct perf_event_attr attr;
	uint64_t first_id; /* ids first_id, first_id + 1 … */
	uint32_t n_ids;
};

struct perf_data_feature {
	uint8_t number;
	struct buf payload;
};

struct perf_data {
	bool is_big_endian;
	uint32_t attr_size; /* as written: 64 to 144, or more (zeros); 144 by default */
	struct perf_data_event events[PERF_DATA_EVENTS];
	size_t n_events;
	struct perf_data_feature features[PERF_DATA_FEATURES];
	size_t n_features;
	struct buf records;
	size_t record_begin;
};

void perf_data_init(struct perf_data *data, bool is_big_endian);
void perf_data_fini(struct perf_data *data);

void perf_data_add_event(struct perf_data *data, const struct perf_event_attr *attr,
			 uint64_t first_id, uint32_t n_ids);

/* One record: header, then fields in order; end pads to 8 bytes and writes the size. */
void perf_data_begin(struct perf_data *data, uint32_t type, uint16_t misc);
void perf_data_u32(struct perf_data *data, uint32_t value);
void perf_data_u64(struct perf_data *data, uint64_t value);
void perf_data_bytes(struct perf_data *data, const void *bytes, size_t n);
/* With its 0, padded to 8. */
void perf_data_text(struct perf_data *data, const char *text);
void perf_data_end(struct perf_data *data);

/* Appends to buf in data's byte order. */
void perf_data_put_u16(const struct perf_data *data, struct buf *buf, uint16_t value);
void perf_data_put_u32(const struct perf_data *data, struct buf *buf, uint32_t value);
void perf_data_put_u64(const struct perf_data *data, struct buf *buf, uint64_t value);
/* A header string: u32 length, text padded to 64. */
void perf_data_put_text(const struct perf_data *data, struct buf *buf, const char *text);
void perf_data_put_attr(const struct perf_data *data, struct buf *buf,
			const struct perf_event_attr *attr);

/* The payload to fill; features are to be added in rising order of their numbers. */
struct buf *perf_data_add_feature(struct perf_data *data, uint8_t number);
void perf_data_add_text_feature(struct perf_data *data, uint8_t number, const char *text);
/* EVENT_DESC with names[i] for event i. */
void perf_data_add_event_desc(struct perf_data *data, const char *const *names);

/* Both append to out, which the caller made with a maximum that suffices. */
void perf_data_write_file(const struct perf_data *data, struct buf *out);
void perf_data_write_pipe(const struct perf_data *data, struct buf *out);
/* A memory file with these bytes; the caller closes it. */
int perf_data_open_bytes(const void *bytes, size_t n);
