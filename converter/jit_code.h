/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of code that a JIT compiler told of, in the order in which they became valid: what jit_map
 * and jit_dump read, and where names of run-time addresses are found. A later piece wins over any
 * earlier one that it overlaps, from its time on; ranges need neither order nor gaps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_CODE_NONE UINT32_MAX

enum {
	JIT_CODE_MAX = 1 << 21,		/* pieces of one process */
	JIT_CODE_MAX_LINES = 1 << 22,	/* entries of line tables of one process */
	JIT_CODE_NAME_MAX_BYTES = 4096, /* longer names are cut, and end with "…" */
};
/* Of all lists of a converter together. */
#define JIT_CODE_MAX_BYTES ((size_t)256 << 20)

/* The line of the code from offset on, up to the next entry's. */
struct jit_line {
	uint32_t offset; /* from the start of the piece */
	uint32_t line;
	uint32_t file; /* text */
};

struct jit_code {
	uint64_t start, size; /* size > 0; the end does not pass 2^64 - 1 */
	uint64_t from_ns;     /* CLOCK_MONOTONIC, 0 = from the beginning */
	uint32_t name;	      /* text, JIT_CODE_NONE: there is no code any more */
	uint32_t first_line, n_lines;
};

struct jit_code_list {
	struct jit_code *codes;
	uint32_t n, capacity;
	struct jit_line *lines;
	uint32_t n_lines, line_capacity;
	char *texts; /* 0-terminated, by offset */
	uint32_t text_bytes, text_capacity;
	size_t *budget;	      /* bytes in use of all lists, shared; may be NULL */
	uint64_t n_left_out;  /* pieces that did not fit a bound */
	bool is_out_of_order; /* from_ns fell somewhere */
};

/* budget may be NULL and outlives the list. */
void jit_code_list_init(struct jit_code_list *list, size_t *budget);
void jit_code_list_fini(struct jit_code_list *list);
/* Offset of a copy, JIT_CODE_NONE when it does not fit; long ones are cut. */
uint32_t jit_code_add_text(struct jit_code_list *list, const char *text, size_t n);
static inline const char *jit_code_text(const struct jit_code_list *list, uint32_t text)
{
	return list->texts + text;
}
/*
 * Adds a piece; false, and counted, when a bound is reached. A size of 0 counts as one byte: only
 * its first address is known.
 */
bool jit_code_add(struct jit_code_list *list, const struct jit_code *code);
/* Adds a line table's next entry; false when a bound is reached. */
bool jit_code_add_line(struct jit_code_list *list, const struct jit_line *line);
/* Puts the entries from first to the last one in the order of their offsets: one line table. */
void jit_code_sort_lines(struct jit_code_list *list, uint32_t first);
/* Puts pieces in the order of time; those of one time stay in theirs. */
void jit_code_sort(struct jit_code_list *list);
/* The time of the last change at or before time_ns, 0 when there is none; the list is sorted. */
uint64_t jit_code_moment(const struct jit_code_list *list, uint64_t time_ns);

/* Which code lay at vaddr at that moment. */
struct jit_query {
	uint64_t vaddr, moment_ns;
	uint32_t tag;  /* the caller's */
	uint32_t code; /* the answer: an index, or JIT_CODE_NONE */
};
/*
 * Answers all queries, in O((pieces + queries) log queries) whatever the input. An address that
 * nothing covered at its moment gets the first piece that did within late_ns after it: UINT64_MAX
 * where a source does not tell since when its pieces were valid. Sorts list and queries.
 */
void jit_code_find(struct jit_code_list *list, struct jit_query *queries, uint32_t n,
		   uint64_t late_ns);
/* The line table's entry for vaddr, which lies in the code; NULL when it has none. */
const struct jit_line *jit_code_line(const struct jit_code_list *list, const struct jit_code *code,
				     uint64_t vaddr);
