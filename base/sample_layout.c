/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of fields, from perf_event_open(2). Only IDENTIFIER to CPU can precede what we look
 * for, and each of them is 8 bytes; what varies in size (READ, CALLCHAIN …) comes later.
 *
 *   SAMPLE   header IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU …
 *   others   header … TID TIME ID STREAM_ID CPU IDENTIFIER
 */
#include "base/sample_layout.h"

#include <stddef.h>

#include "base/compiler.h"

enum { FIELD_BYTES = 8 };

static const uint32_t start_order[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,       PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR,	PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
};
static const uint32_t trailer_order[] = {
	PERF_SAMPLE_TID,       PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,	 PERF_SAMPLE_IDENTIFIER,
};

static uint16_t from_start(uint64_t sample_type, uint32_t field)
{
	if (!(sample_type & field))
		return SAMPLE_LAYOUT_NONE;
	uint16_t offset = sizeof(struct perf_event_header);
	for (size_t i = 0; start_order[i] != field; i++)
		if (sample_type & start_order[i])
			offset += FIELD_BYTES;
	return offset;
}

static uint16_t from_end(uint64_t sample_type, uint32_t field)
{
	if (!(sample_type & field))
		return SAMPLE_LAYOUT_NONE;
	uint16_t offset = FIELD_BYTES;
	for (size_t i = ARRAY_LEN(trailer_order) - 1; trailer_order[i] != field; i--)
		if (sample_type & trailer_order[i])
			offset += FIELD_BYTES;
	return offset;
}

static uint16_t trailer_size(uint64_t sample_type)
{
	uint16_t bytes = 0;
	for (size_t i = 0; i < ARRAY_LEN(trailer_order); i++)
		if (sample_type & trailer_order[i])
			bytes += FIELD_BYTES;
	return bytes;
}

struct sample_layout sample_layout_of(const struct perf_event_attr *attr)
{
	uint64_t type = attr->sample_type;
	uint32_t id = type & PERF_SAMPLE_IDENTIFIER ? PERF_SAMPLE_IDENTIFIER : PERF_SAMPLE_ID;
	struct sample_layout layout = {
		.id_from_start = from_start(type, id),
		.tid_from_start = from_start(type, PERF_SAMPLE_TID),
		.time_from_start = from_start(type, PERF_SAMPLE_TIME),
		.cpu_from_start = from_start(type, PERF_SAMPLE_CPU),
	};
	if (perf_attr_has(attr, PERF_ATTR_SAMPLE_ID_ALL)) {
		layout.id_from_end = from_end(type, id);
		layout.tid_from_end = from_end(type, PERF_SAMPLE_TID);
		layout.time_from_end = from_end(type, PERF_SAMPLE_TIME);
		layout.cpu_from_end = from_end(type, PERF_SAMPLE_CPU);
		layout.trailer_bytes = trailer_size(type);
	}
	return layout;
}
