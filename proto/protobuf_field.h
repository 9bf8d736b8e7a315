/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the fields of a message without knowing its schema. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "proto/protobuf_wire.h"

struct protobuf_field {
	uint32_t number;
	enum protobuf_wire_type type;
	uint64_t value;	    /* of numbers, fixed ones too */
	struct cursor body; /* of length-delimited fields */
};

/*
 * The next field of the message that c stands in. False at its end, and when it is damaged (cut,
 * a group, a field number out of range): cursor_is_ok() tells these apart.
 */
bool protobuf_field_next(struct cursor *c, struct protobuf_field *out);
