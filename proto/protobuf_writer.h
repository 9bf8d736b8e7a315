/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages written by hand into a buffer. The first failure sticks: what follows does nothing, and
 * protobuf_writer_end() gives the error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "proto/protobuf_wire.h"

struct protobuf_writer {
	struct buf *out;
	struct error *err;
};

/* Appends to out, which is borrowed until end. */
static inline struct protobuf_writer protobuf_writer_make(struct buf *out)
{
	return (struct protobuf_writer){.out = out};
}
/* ERROR_LIMIT: out's maximum was reached. */
struct error *protobuf_writer_end(struct protobuf_writer *writer) MUST_USE;

/* Fields that hold their default (0, "") are left out, as proto3 has it. */
void protobuf_writer_number(struct protobuf_writer *writer, uint32_t field, uint64_t value);
void protobuf_writer_fixed64(struct protobuf_writer *writer, uint32_t field, uint64_t value);
void protobuf_writer_text(struct protobuf_writer *writer, uint32_t field, const char *text);
/* Also when it is 0: a member of a oneof. */
void protobuf_writer_number_set(struct protobuf_writer *writer, uint32_t field, uint64_t value);
/* Also when they are empty: an element of a repeated field, or a message that has to be there. */
void protobuf_writer_bytes(struct protobuf_writer *writer, uint32_t field, const void *bytes,
			   size_t n);
/* Tag and length of a field whose n bytes follow. */
void protobuf_writer_header(struct protobuf_writer *writer, uint32_t field, size_t n);
void protobuf_writer_raw(struct protobuf_writer *writer, const void *bytes, size_t n);
/* An element of a packed field. */
void protobuf_writer_varint(struct protobuf_writer *writer, uint64_t value);

/* Size of a field with n bytes in it. */
static inline size_t protobuf_writer_field_bytes(uint32_t field, size_t n)
{
	return protobuf_wire_varint_bytes((uint64_t)field << 3) + protobuf_wire_varint_bytes(n) + n;
}
