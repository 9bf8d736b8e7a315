/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's [vdso], copied out of this process: all 64-bit processes of a host share its text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { VDSO_IMAGE_MAX_BYTES = 1 << 20 };

/* mem_alloc'ed copy for the caller; NULL when there is none. */
uint8_t *vdso_image_copy(size_t *n_out);
