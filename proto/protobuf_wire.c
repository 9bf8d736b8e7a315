/* SPDX-License-Identifier: Apache-2.0 */
/* Varints of several bytes. */
#include "proto/protobuf_wire.h"

uint64_t protobuf_wire_get_long(struct cursor *c)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 7 * PROTOBUF_WIRE_VARINT_MAX; shift += 7) {
		uint8_t byte = cursor_u8(c);
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	c->is_bad = true;
	c->next = c->end;
	return 0;
}
