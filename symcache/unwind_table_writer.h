/* SPDX-License-Identifier: Apache-2.0 */
/* A filled model → the bytes of an unwind section. The same model gives the same bytes. */
#pragma once

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "symcache/unwind_model.h"

/* Appends to out. ERROR_LIMIT: more than out or the format can hold. */
struct error *unwind_table_write(const struct unwind_model *model, struct buf *out) MUST_USE;
