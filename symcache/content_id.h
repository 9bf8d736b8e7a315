/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities for files without a GNU build-id. They never leave the host as lookup keys: their kind
 * tells them apart (BUILD_ID_GO, BUILD_ID_HASH).
 *
 * The hash: bytes are taken as little-endian 64-bit words (the last one padded with zeros), each
 * mixed into three lanes that start from different seeds; the lanes are closed with the length.
 * A Go note gives 20 bytes of it. A file gives 16 bytes over its size and
 *   - all of it, up to 1 MiB; else
 *   - the first and the last 64 KiB and 128 pages of 4 KiB spread evenly between,
 * so that a large file costs at most 640 KiB of reading.
 */
#pragma once

#include <stddef.h>

#include "base/build_id.h"

struct build_id content_id_of_file(const void *data, size_t size);
struct build_id content_id_of_go_note(const void *note, size_t size);
