/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the fields that order and route a record lie, for one attr: at fixed places from the start
 * of a SAMPLE, and in the sample_id trailer of every other record (perf_event_open(2),
 * "sample_id_all"). Pure arithmetic on sample_type; collector and converter share it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/perf_abi.h"

enum { SAMPLE_LAYOUT_NONE = 0 };

/* Offsets in bytes; SAMPLE_LAYOUT_NONE = the field is absent. */
struct sample_layout {
	uint16_t id_from_start;	 /* SAMPLE: u64 IDENTIFIER, or ID when that lies at a fixed place */
	uint16_t tid_from_start; /* u32 pid, u32 tid */
	uint16_t time_from_start;
	uint16_t cpu_from_start;
	uint16_t id_from_end; /* other records: subtract from the record's end */
	uint16_t tid_from_end;
	uint16_t time_from_end;
	uint16_t cpu_from_end;
	uint16_t trailer_bytes; /* size of the sample_id trailer, 0 without sample_id_all */
};

struct sample_layout sample_layout_of(const struct perf_event_attr *attr);
