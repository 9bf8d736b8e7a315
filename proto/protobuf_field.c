/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/protobuf_field.h"

enum { FIELD_NUMBER_MAX = (1 << 29) - 1 };

static void get_content(struct cursor *c, struct protobuf_field *field)
{
	switch (field->type) {
	case PROTOBUF_WIRE_VARINT:
		field->value = protobuf_wire_get(c);
		break;
	case PROTOBUF_WIRE_FIXED64:
		field->value = cursor_u64(c);
		break;
	case PROTOBUF_WIRE_FIXED32:
		field->value = cursor_u32(c);
		break;
	case PROTOBUF_WIRE_BYTES: {
		uint64_t n = protobuf_wire_get(c);
		field->body = cursor_sub(c, n > cursor_left(c) ? SIZE_MAX : (size_t)n);
		break;
	}
	default:
		c->is_bad = true;
	}
}

bool protobuf_field_next(struct cursor *c, struct protobuf_field *out)
{
	if (!cursor_is_ok(c) || !cursor_left(c))
		return false;
	uint64_t tag = protobuf_wire_get(c);
	*out = (struct protobuf_field){.type = (enum protobuf_wire_type)(tag & 7)};
	if (!cursor_is_ok(c) || !(tag >> 3) || tag >> 3 > FIELD_NUMBER_MAX) {
		c->is_bad = true;
		return false;
	}
	out->number = (uint32_t)(tag >> 3);
	get_content(c, out);
	return cursor_is_ok(c);
}
