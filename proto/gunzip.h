/* SPDX-License-Identifier: Apache-2.0 */
/* Whole gzip files into memory, with caps against what unfolds without end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

bool gunzip_is_gzip(const void *bytes, size_t size);
/*
 * Appends all members, one behind the other, to out, whose maximum is the size cap. Number 605:
 * ERROR_BAD_DATA for a broken stream, ERROR_LIMIT past the maximum or past
 * GUNZIP_FREE_BYTES + GUNZIP_MAX_RATIO * size.
 */
struct error *gunzip_all(const void *bytes, size_t size, struct buf *out) MUST_USE;
enum { GUNZIP_MAX_RATIO = 256, GUNZIP_FREE_BYTES = 16 << 20 };
