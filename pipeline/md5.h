/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321), for the hashmod action of relabel rules; nothing here is meant to be secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MD5_BYTES = 16 };

void md5_digest(const void *data, size_t n, uint8_t out[MD5_BYTES]);
