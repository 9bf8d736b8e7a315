/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's and perf's names of numbers in a perf.data, without their common beginnings. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/perf_abi.h"

enum { INSPECT_NAME_BYTES = 32 };

/* "MMAP2"; "type200" (in buffer) for one without a name. */
const char *inspect_record_name(uint32_t type, char buffer[INSPECT_NAME_BYTES]);
/* "feature40" likewise. */
const char *inspect_feature_name(uint8_t feature, char buffer[INSPECT_NAME_BYTES]);
/* "hardware"; NULL for the number of a PMU. */
const char *inspect_event_type_name(uint32_t type);
/* "CALLCHAIN", NULL for a bit without a name. */
const char *inspect_sample_bit_name(unsigned int bit);
