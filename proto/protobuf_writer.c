/* SPDX-License-Identifier: Apache-2.0 */
/* A field is a tag (number and wire type) and its content. */
#include "proto/protobuf_writer.h"

#include <string.h>

struct error *protobuf_writer_end(struct protobuf_writer *writer)
{
	struct error *err = writer->err;
	writer->err = NULL;
	return err;
}

void protobuf_writer_raw(struct protobuf_writer *writer, const void *bytes, size_t n)
{
	if (!writer->err && n)
		writer->err = buf_append(writer->out, bytes, n);
}

void protobuf_writer_varint(struct protobuf_writer *writer, uint64_t value)
{
	uint8_t bytes[PROTOBUF_WIRE_VARINT_MAX];
	protobuf_writer_raw(writer, bytes, (size_t)(protobuf_wire_put(bytes, value) - bytes));
}

static void put_tag(struct protobuf_writer *writer, uint32_t field, enum protobuf_wire_type type)
{
	protobuf_writer_varint(writer, (uint64_t)field << 3 | type);
}

void protobuf_writer_number(struct protobuf_writer *writer, uint32_t field, uint64_t value)
{
	if (value)
		protobuf_writer_number_set(writer, field, value);
}

void protobuf_writer_number_set(struct protobuf_writer *writer, uint32_t field, uint64_t value)
{
	put_tag(writer, field, PROTOBUF_WIRE_VARINT);
	protobuf_writer_varint(writer, value);
}

void protobuf_writer_fixed64(struct protobuf_writer *writer, uint32_t field, uint64_t value)
{
	if (!value)
		return;
	uint8_t bytes[sizeof(value)]; /* little-endian */
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	put_tag(writer, field, PROTOBUF_WIRE_FIXED64);
	protobuf_writer_raw(writer, bytes, sizeof(bytes));
}

void protobuf_writer_header(struct protobuf_writer *writer, uint32_t field, size_t n)
{
	put_tag(writer, field, PROTOBUF_WIRE_BYTES);
	protobuf_writer_varint(writer, n);
}

void protobuf_writer_bytes(struct protobuf_writer *writer, uint32_t field, const void *bytes,
			   size_t n)
{
	protobuf_writer_header(writer, field, n);
	protobuf_writer_raw(writer, bytes, n);
}

void protobuf_writer_text(struct protobuf_writer *writer, uint32_t field, const char *text)
{
	if (*text)
		protobuf_writer_bytes(writer, field, text, strlen(text));
}
