/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf wire format: varints and tags, for the hand-written codecs of this folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/cursor.h"

enum protobuf_wire_type {
	PROTOBUF_WIRE_VARINT = 0,
	PROTOBUF_WIRE_FIXED64 = 1,
	PROTOBUF_WIRE_BYTES = 2,
	PROTOBUF_WIRE_FIXED32 = 5,
};

enum { PROTOBUF_WIRE_VARINT_MAX = 10 };

static inline size_t protobuf_wire_varint_bytes(uint64_t value)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
	return (bits + 6) / 7;
}

/* p has room for PROTOBUF_WIRE_VARINT_MAX; returns the place behind. */
static inline uint8_t *protobuf_wire_put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

uint64_t protobuf_wire_get_long(struct cursor *c);

/* Bad cursor past the end and after ten bytes. */
static inline uint64_t protobuf_wire_get(struct cursor *c)
{
	if (LIKELY(c->next < c->end && *c->next < 0x80))
		return *c->next++;
	return protobuf_wire_get_long(c);
}
