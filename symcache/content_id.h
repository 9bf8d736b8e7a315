/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities for files without a GNU build-id. They never leave the host as lookup keys: their kind
 * tells them apart (BUILD_ID_GO, BUILD_ID_HASH).
 *
 * The hash: bytes are taken as little-endian 64-bit words (the last one padded with zeros), each
 * mixed into three lanes that start from different seeds; the lanes are closed with the length.
 * A Go note gives 20 bytes of it. A file gives 16 bytes over its size and
 *   - all of it, up to 256 MiB; else
 *   - the first and the last 64 KiB and 4096 pages of 4 KiB spread evenly between: page i lies at
 *     65536 + (size - 135168) / 4096 * i, so that a large file costs 17 MB of reading. Whoever
 * keeps something by such an id adds what else tells versions of a file apart. It is made to tell
 * builds apart, not to withstand forgers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"

#define CONTENT_ID_WHOLE_BYTES ((uint64_t)256 << 20)

/* Of a file in memory. */
struct build_id content_id_of_file(const void *data, size_t size);
/*
 * Of size bytes at offset of an open file, as if they were a file. ERROR_BAD_DATA: it ends before
 * them, so it was cut.
 */
struct error *content_id_of_fd(int fd, uint64_t offset, uint64_t size,
			       struct build_id *out) MUST_USE;
/* Puts eight bytes of a hash behind an id: the same in that respect only. */
void content_id_extend(struct build_id *id, const struct build_id *hash);
struct build_id content_id_of_go_note(const void *note, size_t size);
