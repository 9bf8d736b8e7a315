/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump, jit-PID.dump: names, lines and machine code of what a runtime compiled, each record
 * with the time from which it holds (linux, tools/perf/Documentation/jitdump-specification.txt).
 * Either byte order. Written by node --perf-prof, CPython -X perf_jit, LLVM, wasmtime, .NET and JVM
 * agents. Bytes in, pieces out; files are not this one's business. The code itself is skipped:
 * names and addresses do not depend on the machine.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "converter/jit_code.h"

enum jit_dump_state {
	JIT_DUMP_OK,
	JIT_DUMP_FOREIGN,	/* no jitdump */
	JIT_DUMP_VERSION,	/* of a version that is not known */
	JIT_DUMP_ARCH_CLOCK,	/* its times are those of the processor's own counter */
	JIT_DUMP_OTHER_CLOCK,	/* the samples' times are on another clock: the caller's to set */
	JIT_DUMP_OTHER_PROCESS, /* of another process than its name says: the caller's to set */
	JIT_DUMP_DAMAGED,	/* read up to there */
	JIT_DUMP_STATE_N,
};
const char *jit_dump_state_text(enum jit_dump_state state);

/* Of one record, as far as more than its head is read. */
enum { JIT_DUMP_MAX_RECORD_BYTES = 1 << 20 };

struct jit_dump {
	struct jit_code_list *codes;
	enum jit_dump_state state;
	bool has_header, is_swapped, is_closed;
	uint32_t machine, pid; /* of the header */
	uint64_t n_skipped;    /* records that are damaged, too large, or lead nowhere */
	/* The last line table, for the LOAD that follows it. */
	uint64_t lines_of; /* its code's address */
	uint32_t first_line, n_lines;
	struct hash_map by_index; /* the runtime's number of a piece → index + 1 in its list */
};

/* codes is borrowed and gets all pieces in the order of the file. */
void jit_dump_init(struct jit_dump *dump, struct jit_code_list *codes);
void jit_dump_fini(struct jit_dump *dump);
/*
 * Reads the header or one record from the n bytes at hand; n_file ≥ n is how many the file has from
 * there on. Returns how many are done with, which may be more than n; 0 when it needs more of them:
 * n is below JIT_DUMP_MAX_RECORD_BYTES then, or the file ends within a record. Also 0 when the
 * state is no longer JIT_DUMP_OK, or the dump is closed.
 */
uint64_t jit_dump_read(struct jit_dump *dump, const uint8_t *bytes, size_t n, uint64_t n_file);
