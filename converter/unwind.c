/* SPDX-License-Identifier: Apache-2.0 */
/* One frame to the next, by rule or by frame pointer. */
#include "converter/unwind.h"

#include "base/compiler.h"
#include "base/hash_map.h"
#include "base/mem.h"

const char *unwind_stop_text(enum unwind_stop stop)
{
	static const char *const texts[UNWIND_STOP_N] = {
		[UNWIND_STOP_END] = "thread start",
		[UNWIND_STOP_DUMP_SHORT] = "copied stack too short",
		[UNWIND_STOP_NO_TABLE] = "no unwind table",
		[UNWIND_STOP_NO_RULE] = "no unwind rule",
		[UNWIND_STOP_NO_MAP] = "code outside of all mappings",
		[UNWIND_STOP_BAD_CFA] = "bad frame address",
		[UNWIND_STOP_NO_REGISTER] = "register not known",
		[UNWIND_STOP_DEPTH] = "too deep",
		[UNWIND_STOP_OTHER_STACK] = "goes on in another stack",
	};
	return texts[stop];
}

void unwind_cache_init(struct unwind_cache *cache)
{
	cache->slots = mem_zalloc(UNWIND_CACHE_SLOTS, sizeof(*cache->slots));
}

void unwind_cache_fini(struct unwind_cache *cache)
{
	mem_free(cache->slots);
	*cache = (struct unwind_cache){0};
}

struct machine {
	uint8_t pc, sp, fp;
	uint64_t pc_mask; /* what is left of a return address without authentication code */
};

static const struct machine machines[] = {
	[UNWIND_X86_64] = {UNWIND_X86_64_PC, UNWIND_X86_64_SP, UNWIND_X86_64_FP, UINT64_MAX},
	/* User addresses have 48 bits unless a program asks mmap for more (kernel's
	 * Documentation/arch/arm64/memory.rst); the code is in those above. */
	[UNWIND_ARM64] = {UNWIND_ARM64_PC, UNWIND_ARM64_SP, UNWIND_ARM64_FP,
			  ((uint64_t)1 << 48) - 1},
};

static bool is_known(const struct unwind_registers *registers, unsigned number)
{
	return registers->known >> number & 1;
}

static void set_register(struct unwind_registers *registers, unsigned number, uint64_t value)
{
	registers->values[number] = value;
	registers->known |= (uint64_t)1 << number;
}

/* What is found of a value; anything but FOUND ends the walk, or makes the register unknown. */
enum outcome { FOUND, NOT_COPIED, NOT_KNOWN };

static enum outcome run_expression(const struct unwind_walk *walk, const struct unwind_table *table,
				   const struct unwind_value *rule, const uint64_t *cfa,
				   uint64_t *out)
{
	size_t n;
	const uint8_t *bytes = unwind_table_expression(table, rule->offset, &n);
	const struct unwind_expression_input input = {
		.registers = &walk->registers,
		.memory = &walk->stack,
		.has_cfa = cfa,
		.cfa = cfa ? *cfa : 0,
	};
	switch (unwind_expression_run(bytes, n, &input, out)) {
	case UNWIND_EXPRESSION_OK:
		return FOUND;
	case UNWIND_EXPRESSION_NO_MEMORY:
		return NOT_COPIED;
	case UNWIND_EXPRESSION_BAD:
	case UNWIND_EXPRESSION_NO_REGISTER:
		break;
	}
	return NOT_KNOWN;
}

static enum outcome read_memory(const struct unwind_walk *walk, uint64_t vaddr, uint64_t *out)
{
	return unwind_memory_read(&walk->stack, vaddr, sizeof(*out), out) ? FOUND : NOT_COPIED;
}

/* number: the register that UNWIND_SAME means. */
static enum outcome find_value(const struct unwind_walk *walk, const struct unwind_table *table,
			       const struct unwind_value *rule, unsigned number, uint64_t cfa,
			       uint64_t *out)
{
	const struct unwind_registers *registers = &walk->registers;
	uint64_t offset = (uint64_t)(int64_t)rule->offset;
	enum outcome outcome;
	switch ((enum unwind_kind)rule->kind) {
	case UNWIND_AT_CFA:
		return read_memory(walk, cfa + offset, out);
	case UNWIND_CFA:
		*out = cfa + offset;
		return FOUND;
	case UNWIND_SAME:
		*out = registers->values[number];
		return is_known(registers, number) ? FOUND : NOT_KNOWN;
	case UNWIND_REGISTER:
		*out = registers->values[rule->register_number] + offset;
		return is_known(registers, rule->register_number) ? FOUND : NOT_KNOWN;
	case UNWIND_AT_EXPRESSION:
		outcome = run_expression(walk, table, rule, &cfa, out);
		return outcome == FOUND ? read_memory(walk, *out, out) : outcome;
	case UNWIND_EXPRESSION:
		return run_expression(walk, table, rule, &cfa, out);
	case UNWIND_UNDEFINED:
	case UNWIND_KIND_N:
		break;
	}
	return NOT_KNOWN;
}

/* The caller's stack pointer may lie above the copy by as much as one frame. */
enum { FRAME_BYTES_MAX = 1 << 16 };

static enum unwind_stop stop_of(const struct unwind_walk *walk, uint64_t sp, enum outcome outcome)
{
	if (outcome != NOT_COPIED)
		return UNWIND_STOP_NO_REGISTER;
	return sp - walk->stack.vaddr > walk->stack.size + FRAME_BYTES_MAX ? UNWIND_STOP_OTHER_STACK
									   : UNWIND_STOP_DUMP_SHORT;
}

/* The registers of the caller; false sets walk->stop. */
static bool step_by_rule(struct unwind_walk *walk, const struct machine *machine,
			 const struct unwind_table *table, const struct unwind_rule *rule)
{
	const struct unwind_registers *registers = &walk->registers;
	if (rule->return_address.kind == UNWIND_UNDEFINED) {
		walk->stop = UNWIND_STOP_END;
		return false;
	}
	uint64_t cfa, pc, fp, extra;
	enum outcome outcome = rule->cfa.kind == UNWIND_EXPRESSION
				       ? run_expression(walk, table, &rule->cfa, NULL, &cfa)
				       : find_value(walk, table, &rule->cfa, machine->sp, 0, &cfa);
	uint64_t sp = registers->values[machine->sp];
	if (outcome != FOUND) {
		walk->stop = stop_of(walk, sp, outcome);
		return false;
	}
	/* A leaf that has pushed nothing keeps its return address in a register: its CFA is the
	 * stack pointer. A handler on a stack of its own was called from any other one. */
	bool may_stay = walk->n == 1 && rule->return_address.kind == UNWIND_REGISTER;
	bool is_signal = rule->flags & UNWIND_SIGNAL_FRAME;
	if (cfa % sizeof(uint64_t) || (!is_signal && (cfa < sp || (cfa == sp && !may_stay)))) {
		walk->stop = UNWIND_STOP_BAD_CFA;
		return false;
	}
	outcome = find_value(walk, table, &rule->return_address, machine->pc, cfa, &pc);
	if (outcome != FOUND) {
		walk->stop = stop_of(walk, sp, outcome);
		return false;
	}
	if (rule->flags & UNWIND_RETURN_ADDRESS_SIGNED)
		pc &= machine->pc_mask;
	bool has_fp = find_value(walk, table, &rule->frame_pointer, machine->fp, cfa, &fp) == FOUND;
	bool has_extra =
		rule->extra_register &&
		find_value(walk, table, &rule->extra, rule->extra_register, cfa, &extra) == FOUND;
	walk->registers.known = 0;
	set_register(&walk->registers, machine->pc, pc);
	set_register(&walk->registers, machine->sp, cfa);
	if (has_fp)
		set_register(&walk->registers, machine->fp, fp);
	if (has_extra)
		set_register(&walk->registers, rule->extra_register, extra);
	return true;
}

/* Code that a rule covers may keep anything in the frame pointer's register. */
static bool has_rule(const struct unwind_place *place, uint64_t vaddr)
{
	return place->table && unwind_table_find(place->table, vaddr - place->bias);
}

/*
 * Saved frame pointer and return address side by side, as both machines' ABIs lay them out. Only
 * what looks like a frame is followed: within the copy, back into code, and up the stack unless the
 * caller has rules.
 */
static bool step_by_frame_pointer(struct unwind_walk *walk, const struct machine *machine)
{
	const struct unwind_registers *registers = &walk->registers;
	struct unwind_place place;
	uint64_t fp = registers->values[machine->fp], caller_fp, pc;
	if (!is_known(registers, machine->fp) || fp % sizeof(uint64_t) ||
	    fp < registers->values[machine->sp])
		return false;
	if (read_memory(walk, fp, &caller_fp) != FOUND ||
	    read_memory(walk, fp + sizeof(uint64_t), &pc) != FOUND)
		return false;
	pc &= machine->pc_mask;
	if (pc && !walk->locate(walk->context, pc - 1, &place))
		return false;
	if (caller_fp && caller_fp <= fp && !(pc && has_rule(&place, pc - 1)))
		return false;
	walk->registers.known = 0;
	set_register(&walk->registers, machine->pc, pc);
	set_register(&walk->registers, machine->sp, fp + 2 * sizeof(uint64_t));
	set_register(&walk->registers, machine->fp, caller_fp);
	walk->n_by_frame_pointer++;
	return true;
}

/* What is known of the code of one frame. */
struct step {
	const struct unwind_table *table;
	const struct unwind_rule *rule; /* NULL: none */
	enum unwind_stop without;
};

/* False: no mapping is there. */
static bool search(struct unwind_walk *walk, uint64_t vaddr, struct unwind_place *place,
		   struct step *out)
{
	if (vaddr - place->start >= place->end - place->start &&
	    !walk->locate(walk->context, vaddr, place)) {
		*place = (struct unwind_place){0};
		return false;
	}
	out->table = place->table;
	out->rule = place->table ? unwind_table_find(place->table, vaddr - place->bias) : NULL;
	out->without = place->table ? UNWIND_STOP_NO_RULE : place->without;
	return true;
}

/* As search, by way of the cache. What has no rule may have one later and is not kept. */
static bool find_step(struct unwind_walk *walk, uint64_t vaddr, struct unwind_place *place,
		      struct step *out)
{
	if (!walk->cache)
		return search(walk, vaddr, place, out);
	uint64_t hash = hash_mix(vaddr ^ walk->generation << 40);
	struct unwind_cache_slot *slot = &walk->cache->slots[hash % UNWIND_CACHE_SLOTS];
	if (LIKELY(slot->vaddr == vaddr && slot->generation == walk->generation)) {
		out->table = slot->table;
		out->rule = slot->rule;
		return true;
	}
	if (!search(walk, vaddr, place, out))
		return false;
	if (out->rule)
		*slot = (struct unwind_cache_slot){vaddr, walk->generation, out->table, out->rule};
	return true;
}

/*
 * A frame pointer of 0 is how both ABIs mark the outermost frame; where it was not used as one so
 * far it is any number.
 */
static bool is_outermost(const struct unwind_walk *walk, const struct machine *machine,
			 bool is_by_frame_pointer)
{
	return is_by_frame_pointer && is_known(&walk->registers, machine->fp) &&
	       !walk->registers.values[machine->fp];
}

void unwind_walk(struct unwind_walk *walk)
{
	const struct machine *machine = &machines[walk->machine];
	struct unwind_place place = {0};
	struct step step = {0};
	bool is_exact = true, is_by_frame_pointer = false;
	walk->n = walk->n_by_frame_pointer = 0;
	for (;;) {
		uint64_t pc = walk->registers.values[machine->pc];
		if (!pc) {
			walk->stop = UNWIND_STOP_END;
			return;
		}
		if (UNLIKELY(!find_step(walk, pc - !is_exact, &place, &step))) {
			/* The sampled address itself is a frame wherever it is. */
			if (!walk->n)
				walk->frames[walk->n++] = (struct unwind_frame){pc, true};
			walk->stop = UNWIND_STOP_NO_MAP;
			return;
		}
		if (UNLIKELY(walk->n == UNWIND_MAX_FRAMES)) {
			walk->stop = UNWIND_STOP_DEPTH;
			return;
		}
		walk->frames[walk->n++] = (struct unwind_frame){pc, is_exact};
		if (LIKELY(step.rule)) {
			if (!step_by_rule(walk, machine, step.table, step.rule))
				return;
			is_exact = step.rule->flags & UNWIND_SIGNAL_FRAME;
			is_by_frame_pointer = false;
		} else if (step_by_frame_pointer(walk, machine)) {
			is_exact = false;
			is_by_frame_pointer = true;
		} else {
			walk->stop = is_outermost(walk, machine, is_by_frame_pointer)
					     ? UNWIND_STOP_END
					     : step.without;
			return;
		}
	}
}
