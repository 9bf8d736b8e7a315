/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli, reflected, as in iSCSI): the processor's instruction where it has one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Start with 0; the result of one piece is the start of the next. */
uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n);
/* The same by tables alone, for machines without the instruction and for tests. */
uint32_t crc32c_update_portable(uint32_t crc, const void *bytes, size_t n);
