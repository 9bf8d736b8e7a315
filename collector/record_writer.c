/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/record_writer.h"

#include <string.h>

#include "base/perf_abi.h"

void record_writer_bytes(struct record_writer *writer, const void *p, size_t n)
{
	if (!writer->err)
		writer->err = buf_append(writer->out, p, n);
}

void record_writer_begin(struct record_writer *writer, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	writer->start = writer->out->size;
	writer->err = NULL;
	record_writer_bytes(writer, &header, sizeof(header));
}

void record_writer_u16(struct record_writer *writer, uint16_t value)
{
	record_writer_bytes(writer, &value, sizeof(value));
}

void record_writer_u32(struct record_writer *writer, uint32_t value)
{
	record_writer_bytes(writer, &value, sizeof(value));
}

void record_writer_u64(struct record_writer *writer, uint64_t value)
{
	record_writer_bytes(writer, &value, sizeof(value));
}

void record_writer_string(struct record_writer *writer, const char *s, size_t n)
{
	record_writer_bytes(writer, s, n);
	record_writer_bytes(writer, "", 1);
}

struct error *record_writer_end(struct record_writer *writer)
{
	static const uint8_t zeros[128];
	size_t body_bytes = writer->out->size - writer->start;

	record_writer_bytes(writer, zeros, -body_bytes & 7);
	record_writer_bytes(writer, zeros,
			    writer->trailer_bytes < sizeof(zeros) ? writer->trailer_bytes
								  : sizeof(zeros));
	size_t size = writer->out->size - writer->start;
	if (!writer->err && size > UINT16_MAX)
		writer->err = error_new(ERROR_LIMIT, "a record of %zu bytes", size);
	struct error *err = writer->err;
	writer->err = NULL;
	if (err) {
		writer->out->size = writer->start;
		return err;
	}
	uint16_t size_field = (uint16_t)size;
	memcpy(writer->out->data + writer->start + offsetof(struct perf_event_header, size),
	       &size_field, sizeof(size_field));
	return NULL;
}
