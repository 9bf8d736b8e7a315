/* SPDX-License-Identifier: Apache-2.0 */
/* A finished model → the bytes of a symbol file. The same model gives the same bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/symbol_model.h"

struct symbol_file_options {
	struct build_id build_id;
	const void *unwind; /* bytes of the unwind section; NULL = none */
	size_t unwind_bytes;
};

/* Appends to out. ERROR_LIMIT: more than out or the format can hold. */
struct error *symbol_file_write(const struct symbol_model *model,
				const struct symbol_file_options *options,
				struct buf *out) MUST_USE;
