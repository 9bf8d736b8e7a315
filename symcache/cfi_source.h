/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information of a binary and its debug file → an unwind model, for x86-64 and arm64.
 * Sources, best first: .eh_frame of the binary, .debug_frame of the binary, of the debug file, and
 * the code itself (cfi_synthetic.h) where these say nothing.
 *
 * Of entries that overlap, the one that starts last counts, as it does for the run-time's search;
 * behind its end the one around it goes on. What fills the space between functions belongs to the
 * function before. Runs in the builder's worker: what it reads is hostile.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "symcache/elf_image.h"
#include "symcache/unwind_model.h"

enum {
	CFI_SOURCE_MAX_ENTRIES = 1 << 22,
	CFI_SOURCE_MAX_NESTED = 32, /* entries around another */
};

/*
 * Initialises out, which then ends with a row without a rule, or has no rows when there is nothing.
 * debug may be NULL. ERROR_UNSUPPORTED: another machine, or not a program; ERROR_LIMIT. On error
 * out need not be released.
 */
struct error *cfi_source_read(const struct elf_image *binary, const struct elf_image *debug,
			      struct unwind_model *out) MUST_USE;
