/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runtimes put into the name of a piece of code: function, source file and the line that the
 * function begins at, where that can be told apart without doubt.
 *
 *     CPython 3.12+ -X perf       py::NAME:FILE               → py::NAME, FILE
 *     node --perf-basic-prof      JS:*NAME FILE:LINE:COLUMN   → the name as it is, FILE, LINE
 *     (TAG:, then ~ ^ + * or nothing for the tier, LazyCompile: in older ones)
 *
 * node's name stays whole, since most of its functions have no name but their place.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct jit_name {
	size_t name_bytes; /* of raw, from its beginning */
	const char *file;  /* into raw, NULL when it tells none */
	size_t file_bytes;
	uint32_t start_line; /* 0 when it tells none */
};

struct jit_name jit_name_split(const char *raw);
