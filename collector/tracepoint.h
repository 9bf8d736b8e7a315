/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tracefs says of a tracepoint: its id, and where a field lies in the raw data. Nothing is
 * mounted here; without tracefs the answer is ERROR_UNAVAILABLE.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

/*
 * ERROR_UNAVAILABLE: tracefs is not mounted; ERROR_DENIED: it may not be read; ERROR_NO_ENTRY: no
 * such tracepoint.
 */
struct error *tracepoint_read_id(const char *system, const char *name, uint64_t *out) MUST_USE;
/* Offset of a __data_loc or plain field; 0 when the format does not name it. */
uint32_t tracepoint_read_field(const char *system, const char *name, const char *field);
/* Appends all names, "system:name" a line; what cannot be read is left out. */
void tracepoint_read_names(struct buf *names);
/* Pure part of tracepoint_read_field. */
uint32_t tracepoint_find_field(const char *format, const char *field);
