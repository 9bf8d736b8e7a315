/* SPDX-License-Identifier: Apache-2.0 */
/* Text that came from a peer, made fit for a message: valid UTF-8 on one line, capped. */
#pragma once

#include <stddef.h>

/*
 * Copies up to size - 1 bytes and a 0: white space becomes one blank, other control characters
 * and what is no UTF-8 become '?', and what does not fit ends in "…". size ≥ 8.
 */
void text_escape(const void *text, size_t n, char *out, size_t size);
