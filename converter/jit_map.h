/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /tmp/perf-PID.map, in which a runtime names the code that it makes: a line for each
 * piece, "START SIZE name\n", both numbers in hex, the name up to the end of the line (linux,
 * tools/perf/Documentation/jit-interface.txt). Written by node --perf-basic-prof, CPython -X perf,
 * JVM agents, .NET, Ruby and others. Lines are appended and carry no time: what a line says holds
 * from when it was seen. Bytes in, pieces out; files are not this one's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "converter/jit_code.h"

/* The numbers of a line take less than that beside its name. */
enum { JIT_MAP_MAX_LINE_BYTES = JIT_CODE_NAME_MAX_BYTES + 64 };

struct jit_map {
	uint64_t n_lines, n_malformed;
	bool is_in_long_line; /* its beginning was taken, its end is still to come */
};

/*
 * Takes the lines of bytes that are whole and returns how many bytes that were; the rest is to be
 * given again with what follows it. is_last: nothing will follow, so the last line is whole too.
 * With n > JIT_MAP_MAX_LINE_BYTES it always takes something.
 */
size_t jit_map_parse(struct jit_map *map, const char *bytes, size_t n, bool is_last,
		     uint64_t seen_ns, struct jit_code_list *list);
