/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample's copied user stack → the user part of its call chain, in the form that the kernel gives
 * chains: the chain's kernel part as it is, PERF_CONTEXT_USER, the addresses leaf first, and one
 * more PERF_CONTEXT_USER before an address that is not a return address (behind a signal frame). So
 * nothing behind it knows where a chain came from.
 *
 * Where the sample has a user chain of its own as well, the longer one that can be believed stays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/perf_record.h"
#include "converter/address_space.h"
#include "converter/image.h"
#include "converter/sample.h"
#include "converter/unwind.h"
#include "symcache/symcache.h"

/* What became of the user stacks. */
struct user_stack_totals {
	uint64_t unwound;   /* taken for the sample's chain */
	uint64_t outdone;   /* the chain of frame pointers reached further and stayed */
	uint64_t contested; /* of both: those that had a chain of frame pointers beside it */
	uint64_t skipped;   /* not unwound: no registers, 32-bit code, another machine */
	uint64_t frames, by_frame_pointer; /* steps of the unwound, and those without a table */
	uint64_t stops[UNWIND_STOP_N];	   /* of the unwound */
};

struct user_stack {
	const struct perf_source_info *source;
	struct image_table *images;
	struct symcache *cache;
	bool may_wait;
	struct unwind_walk walk;
	struct unwind_cache rules;
	const struct address_space *space; /* of the walk */
	uint64_t asked_generation;	   /* the space whose tables were asked for last */
	uint8_t *chains;		   /* of the samples since user_stack_reset */
	size_t used_bytes;
	struct user_stack_totals totals;
};

/* Chains that fit together until a reset. */
enum { USER_STACK_CHAINS_BYTES = 1 << 20 };

/*
 * may_wait: a one-shot command. The first stack of a process whose tables are not there yet waits
 * for them to be made; else it gets what frame pointers give, and NO_TABLE is counted.
 */
void user_stack_init(struct user_stack *stacks, const struct perf_source_info *source,
		     struct image_table *images, struct symcache *cache, bool may_wait);
void user_stack_fini(struct user_stack *stacks);

static inline bool user_stack_is_there(const struct sample *sample)
{
	return sample->stack != NULL;
}
/* Whether the chain made for one more sample has room; if not, reset is due. */
bool user_stack_has_room(const struct user_stack *stacks, const struct sample *sample);
/* The chains made so far are not used any more. */
static inline void user_stack_reset(struct user_stack *stacks)
{
	stacks->used_bytes = 0;
}
/*
 * Puts the new chain in sample (valid until the reset), and in sample->cut why it ends before the
 * thread's start. There is room.
 */
void user_stack_unwind(struct user_stack *stacks, const struct perf_event_attr *attr,
		       const struct address_space *space, uint16_t misc, struct sample *sample);

/*
 * The registers of a sample by DWARF number; false when they are not there or not of a machine that
 * can be unwound. mask: attr.sample_regs_user. Numbers in the mask: the kernel's
 * arch/x86/include/uapi/asm/perf_regs.h, arch/arm64/include/uapi/asm/perf_regs.h.
 */
bool user_stack_read_registers(const struct sample *sample, uint64_t mask,
			       enum unwind_machine machine, bool is_swapped,
			       struct unwind_registers *out);
