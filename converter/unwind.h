/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a copied user stack (PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER) from frame to frame,
 * by the unwind tables of the binaries (symcache/unwind_table.h), and by frame pointers where a
 * binary has none: JIT code, Go, assembly. Never allocates and reads nothing outside of the copy;
 * every step has to lead up the stack, so it ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symcache/symcache.h"

/* Why a walk ended; the number stands in profiles (stack.h), so it is only appended to. */
enum unwind_stop {
	UNWIND_STOP_END,	 /* the thread's start */
	UNWIND_STOP_DUMP_SHORT,	 /* the next value lies beyond what was copied */
	UNWIND_STOP_NO_TABLE,	 /* the binary's table is not there (yet) */
	UNWIND_STOP_NO_RULE,	 /* its table does not cover the code */
	UNWIND_STOP_NO_MAP,	 /* the code lies in no mapping */
	UNWIND_STOP_BAD_CFA,	 /* a step that does not lead up the stack, or is not aligned */
	UNWIND_STOP_NO_REGISTER, /* a rule needs a register that is not known here */
	UNWIND_STOP_DEPTH,	 /* UNWIND_MAX_FRAMES */
	UNWIND_STOP_OTHER_STACK, /* a handler on a stack of its own: the one it left was not copied
				  */
	UNWIND_STOP_N,
};
const char *unwind_stop_text(enum unwind_stop stop);

/* Where code lies: what is there for a range of addresses. */
struct unwind_place {
	uint64_t start, end;		  /* vaddr */
	uint64_t bias;			  /* vaddr - svma */
	const struct unwind_table *table; /* NULL: none */
	enum unwind_stop without;	  /* the reason when there is none */
};

/* False when no executable mapping covers vaddr. */
typedef bool (*unwind_locate_fn)(void *context, uint64_t vaddr, struct unwind_place *out);

enum { UNWIND_MAX_FRAMES = 1024 };

/*
 * Rules that were found lately, so that most frames cost one load instead of two searches;
 * direct-mapped by address and space. The tables outlive it.
 */
enum { UNWIND_CACHE_SLOTS = 1 << 12 };
struct unwind_cache_slot {
	uint64_t vaddr, generation; /* generation 0 = free */
	const struct unwind_table *table;
	const struct unwind_rule *rule;
};
struct unwind_cache {
	struct unwind_cache_slot *slots;
};
void unwind_cache_init(struct unwind_cache *cache);
void unwind_cache_fini(struct unwind_cache *cache);

struct unwind_frame {
	uint64_t pc;
	bool is_exact; /* where the CPU was, not where a call returns to */
};

struct unwind_walk {
	/* Filled by the caller. */
	enum unwind_machine machine;
	struct unwind_registers registers; /* of the sample; pc and sp must be known */
	struct unwind_memory stack;
	unwind_locate_fn locate;
	void *context;
	struct unwind_cache *cache; /* NULL = none */
	uint64_t generation;	    /* of the mappings; not 0 with a cache */
	/* The result, leaf first. */
	struct unwind_frame frames[UNWIND_MAX_FRAMES];
	uint32_t n;
	uint32_t n_by_frame_pointer; /* steps that no rule was there for */
	enum unwind_stop stop;
};

void unwind_walk(struct unwind_walk *walk);
