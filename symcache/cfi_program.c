/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/cfi_program.h"

#include <string.h>

#include "base/mem.h"
#include "symcache/dwarf_leb.h"
#include "symcache/unwind_expression.h"

/* Pointer encodings, LSB Core 5.0, 10.5. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT_MASK = 0x0f,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_FUNCREL = 0x40,
	PE_ALIGNED = 0x50,
	PE_BASE_MASK = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* Instructions, DWARF 5 section 7.24, and extensions of GNU and Arm. */
enum {
	CFA_ADVANCE_LOC = 0x40, /* with an operand in the low 6 bits, as the next two */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_HIGH_MASK = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC,
	CFA_ADVANCE_LOC1,
	CFA_ADVANCE_LOC2,
	CFA_ADVANCE_LOC4,
	CFA_OFFSET_EXTENDED,
	CFA_RESTORE_EXTENDED,
	CFA_UNDEFINED,
	CFA_SAME_VALUE,
	CFA_REGISTER,
	CFA_REMEMBER_STATE,
	CFA_RESTORE_STATE,
	CFA_DEF_CFA,
	CFA_DEF_CFA_REGISTER,
	CFA_DEF_CFA_OFFSET,
	CFA_DEF_CFA_EXPRESSION,
	CFA_EXPRESSION,
	CFA_OFFSET_EXTENDED_SF,
	CFA_DEF_CFA_SF,
	CFA_DEF_CFA_OFFSET_SF,
	CFA_VAL_OFFSET,
	CFA_VAL_OFFSET_SF,
	CFA_VAL_EXPRESSION,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d, /* DW_CFA_GNU_window_save elsewhere */
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum { PLT_EXPRESSION_BYTES = 11, PLT_SLOT_BYTES = 8 };

/* What we follow of the registers. */
enum tracked {
	TRACKED_RETURN_ADDRESS,
	TRACKED_FRAME_POINTER,
	TRACKED_EXTRA,
	TRACKED_N,
};

/* Where a run stands. Kinds are enum unwind_kind; what was never said has is_set false. */
struct state {
	struct unwind_value cfa;
	bool has_cfa, is_signed;
	uint8_t plt_bound;	/* of the CFA, see struct unwind_model_rule */
	const uint8_t *plt;	/* the expression that said so */
	uint64_t cfa_registers; /* that an expression for the CFA reads */
	struct unwind_value values[TRACKED_N];
	bool is_set[TRACKED_N];
};

struct cfi_cie {
	uint64_t code_alignment;
	int64_t data_alignment;
	uint64_t return_register;
	size_t code, code_bytes;
	uint8_t pointer_encoding, address_bytes;
	bool is_good, has_length, is_signal_frame;
	/* After the CIE's own instructions. */
	bool is_run, has_failed;
	struct state initial;
};

void cfi_section_fini(struct cfi_section *section)
{
	mem_free(section->cies);
	hash_map_fini(&section->cies_by_offset);
	*section = (struct cfi_section){0};
}

static struct cursor section_cursor(const struct cfi_section *section, size_t begin, size_t n)
{
	struct cursor c = cursor_make(section->data, section->size, false);
	cursor_seek(&c, begin);
	struct cursor sub = cursor_sub(&c, n);
	return sub;
}

/* ---- pointers ---- */

static uint64_t read_format(struct cursor *c, uint8_t format, uint8_t address_bytes)
{
	switch (format) {
	case PE_ABSPTR:
	case PE_SIGNED:
		return address_bytes == 8   ? cursor_u64(c)
		       : address_bytes == 4 ? cursor_u32(c)
					    : cursor_u16(c);
	case PE_ULEB128:
		return dwarf_leb_unsigned(c);
	case PE_UDATA2:
		return cursor_u16(c);
	case PE_UDATA4:
		return cursor_u32(c);
	case PE_UDATA8:
	case PE_SDATA8:
		return cursor_u64(c);
	case PE_SLEB128:
		return (uint64_t)dwarf_leb_signed(c);
	case PE_SDATA2:
		return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
	case PE_SDATA4:
		return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
	default:
		c->is_bad = true;
		return 0;
	}
}

/* A cursor of this section, whose positions are offsets in it. */
static uint64_t read_pointer(const struct cfi_section *section, struct cursor *c, uint8_t encoding,
			     uint8_t address_bytes, uint64_t function)
{
	uint64_t base = 0, position = section->svma + cursor_position(c);
	if (encoding == PE_OMIT || encoding & PE_INDIRECT) {
		/* What an indirect one points to is known at run time only. */
		c->is_bad = true;
		return 0;
	}
	switch (encoding & PE_BASE_MASK) {
	case 0:
		break;
	case PE_PCREL:
		base = position;
		break;
	case PE_TEXTREL:
		base = section->text_svma;
		break;
	case PE_DATAREL:
		base = section->data_svma;
		break;
	case PE_FUNCREL:
		base = function;
		break;
	case PE_ALIGNED:
		cursor_skip(c, (size_t)(-position % address_bytes));
		return read_format(c, PE_ABSPTR, address_bytes);
	default:
		c->is_bad = true;
	}
	return base + read_format(c, encoding & PE_FORMAT_MASK, address_bytes);
}

/* ---- entries ---- */

/* Length and id of an entry. */
struct entry_header {
	size_t offset; /* of the entry */
	size_t id_offset;
	struct cursor body; /* behind the id */
	uint64_t id;
	bool is_64, is_terminator;
};

/* False when there is no whole entry at the offset; *end_out is behind it otherwise. */
static bool read_entry_header(const struct cfi_section *section, size_t offset,
			      struct entry_header *out, size_t *end_out)
{
	struct cursor c = cursor_make(section->data, section->size, false);
	cursor_seek(&c, offset);
	*out = (struct entry_header){.offset = offset};
	uint64_t length = cursor_u32(&c);
	if (length == UINT32_MAX) {
		length = cursor_u64(&c);
		out->is_64 = true;
	}
	if (!cursor_is_ok(&c) || length > cursor_left(&c))
		return false;
	out->id_offset = (size_t)cursor_position(&c);
	out->body = cursor_sub(&c, (size_t)length);
	*end_out = (size_t)cursor_position(&c);
	out->is_terminator = length == 0;
	if (!out->is_terminator)
		out->id = out->is_64 ? cursor_u64(&out->body) : cursor_u32(&out->body);
	return true;
}

static bool is_cie(const struct cfi_section *section, const struct entry_header *header)
{
	if (section->is_eh_frame)
		return header->id == 0;
	return header->id == (header->is_64 ? UINT64_MAX : UINT32_MAX);
}

/* A letter that has no data; false when it is another. */
static bool read_flag(char letter, struct cfi_cie *out)
{
	out->is_signal_frame |= letter == 'S';
	/* B: signed with the B key, G: the stack's memory is tagged. */
	return letter == 'S' || letter == 'B' || letter == 'G';
}

/* What the letters of an augmentation say; false when one is unknown and tells no length. */
static bool read_augmentation(const struct cfi_section *section, struct cursor *c, const char *text,
			      struct cfi_cie *out)
{
	if (text[0] != 'z') {
		while (*text && read_flag(*text, out))
			text++;
		return *text == 0;
	}
	out->has_length = true;
	uint64_t n = dwarf_leb_unsigned(c);
	if (n > cursor_left(c))
		return false;
	struct cursor data = cursor_sub(c, (size_t)n);
	for (text++; *text; text++) {
		if (*text == 'L') {
			(void)cursor_u8(&data);
		} else if (*text == 'R') {
			out->pointer_encoding = cursor_u8(&data);
		} else if (*text == 'P') {
			uint8_t encoding = cursor_u8(&data) & (uint8_t)~PE_INDIRECT;
			(void)read_pointer(section, &data, encoding, out->address_bytes, 0);
		} else if (!read_flag(*text, out)) {
			/* The length leads past it, and what it means is not about registers. */
			break;
		}
	}
	return cursor_is_ok(&data);
}

static struct cfi_cie parse_cie(const struct cfi_section *section, struct entry_header *header)
{
	struct cfi_cie cie = {.address_bytes = 8};
	struct cursor *c = &header->body;
	uint8_t version = cursor_u8(c);
	const char *augmentation = cursor_string(c, 64);
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return cie;
	if (version == 4) {
		cie.address_bytes = cursor_u8(c);
		if (cursor_u8(c) != 0) /* segment selectors */
			return cie;
	}
	if (cie.address_bytes != 8 && cie.address_bytes != 4 && cie.address_bytes != 2)
		return cie;
	/* The old form has its word before the factors. */
	bool is_old = strcmp(augmentation, "eh") == 0;
	if (is_old)
		cursor_skip(c, cie.address_bytes);
	cie.code_alignment = dwarf_leb_unsigned(c);
	cie.data_alignment = dwarf_leb_signed(c);
	cie.return_register = version == 1 ? cursor_u8(c) : dwarf_leb_unsigned(c);
	if (!is_old && !read_augmentation(section, c, augmentation, &cie))
		return cie;
	cie.code = (size_t)cursor_position(c);
	cie.code_bytes = cursor_left(c);
	cie.is_good = cursor_is_ok(c);
	return cie;
}

/* Its number; false when there is no good one there. */
static bool find_cie(struct cfi_section *section, size_t offset, uint32_t *out)
{
	bool is_new;
	uint64_t *number = hash_map_put(&section->cies_by_offset, offset, &is_new);
	if (!is_new) {
		*out = (uint32_t)*number;
		return section->cies[*out].is_good;
	}
	struct entry_header header;
	size_t end;
	struct cfi_cie cie = {0};
	if (read_entry_header(section, offset, &header, &end) && !header.is_terminator &&
	    is_cie(section, &header))
		cie = parse_cie(section, &header);
	if (section->n_cies == section->cies_capacity) {
		section->cies_capacity = section->cies_capacity ? 2 * section->cies_capacity : 8;
		section->cies =
			mem_realloc(section->cies, section->cies_capacity, sizeof(*section->cies));
	}
	*number = *out = section->n_cies;
	section->cies[section->n_cies++] = cie;
	return cie.is_good;
}

static bool parse_fde(struct cfi_section *section, struct entry_header *header,
		      struct cfi_entry *out)
{
	struct cursor *c = &header->body;
	uint64_t offset = section->is_eh_frame ? header->id_offset - header->id : header->id;
	if (offset >= section->size || !find_cie(section, (size_t)offset, &out->cie))
		return false;
	const struct cfi_cie *cie = &section->cies[out->cie];
	out->start = read_pointer(section, c, cie->pointer_encoding, cie->address_bytes, 0);
	uint64_t length =
		read_format(c, cie->pointer_encoding & PE_FORMAT_MASK, cie->address_bytes);
	if (cie->has_length) {
		uint64_t n = dwarf_leb_unsigned(c);
		if (n > cursor_left(c))
			return false;
		cursor_skip(c, (size_t)n);
	}
	out->code = (size_t)cursor_position(c);
	out->code_bytes = cursor_left(c);
	return cursor_is_ok(c) && length && !__builtin_add_overflow(out->start, length, &out->end);
}

bool cfi_section_next(struct cfi_section *section, size_t *offset_io, struct cfi_entry *out)
{
	struct entry_header header;
	/* A terminator does not end it: linkers leave some within. */
	while (read_entry_header(section, *offset_io, &header, offset_io)) {
		if (!header.is_terminator && cursor_is_ok(&header.body) &&
		    !is_cie(section, &header) && parse_fde(section, &header, out))
			return true;
	}
	return false;
}

/* ---- instructions ---- */

struct run {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	struct unwind_model *model;
	const struct state *initial; /* NULL while the CIE itself is run */
	struct cursor code;
	uint64_t svma;
	struct state state;
	struct state *remembered; /* CFI_MAX_REMEMBERED */
	unsigned n_remembered;
	bool is_malformed;
	struct error *err;
};

/* What is followed of that register; TRACKED_N = nothing. */
static enum tracked tracked_of(const struct run *run, uint64_t number)
{
	bool is_x86 = run->model->machine == UNWIND_X86_64;
	if (number == run->cie->return_register)
		return TRACKED_RETURN_ADDRESS;
	if (number == (is_x86 ? UNWIND_X86_64_FP : UNWIND_ARM64_FP))
		return TRACKED_FRAME_POINTER;
	if (run->model->extra_register && number == run->model->extra_register)
		return TRACKED_EXTRA;
	return TRACKED_N;
}

/* Offsets that do not fit are no rule. */
static int32_t narrow(struct run *run, int64_t offset)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		run->is_malformed = true;
	return (int32_t)offset;
}

static int64_t factored(const struct run *run, int64_t offset)
{
	return (int64_t)((uint64_t)offset * (uint64_t)run->cie->data_alignment);
}

static void set_value(struct run *run, uint64_t number, enum unwind_kind kind, int64_t offset)
{
	enum tracked which = tracked_of(run, number);
	if (which == TRACKED_N)
		return;
	run->state.values[which] =
		(struct unwind_value){.kind = (uint8_t)kind, .offset = narrow(run, offset)};
	run->state.is_set[which] = true;
}

static void set_register(struct run *run, uint64_t number, uint64_t source)
{
	enum tracked which = tracked_of(run, number);
	if (source >= UNWIND_N_REGISTERS) {
		run->is_malformed |= which != TRACKED_N;
		return;
	}
	set_value(run, number, UNWIND_REGISTER, 0);
	if (which != TRACKED_N)
		run->state.values[which].register_number = (uint8_t)source;
}

static void restore_value(struct run *run, uint64_t number)
{
	static const struct state nothing;
	enum tracked which = tracked_of(run, number);
	const struct state *initial = run->initial ? run->initial : &nothing;
	if (which == TRACKED_N)
		return;
	run->state.values[which] = initial->values[which];
	run->state.is_set[which] = initial->is_set[which];
}

/* The bytes of an expression, which move behind; NULL when it cannot be used. */
static const uint8_t *read_expression(struct run *run, size_t *n_out, uint64_t *registers_out)
{
	uint64_t n = dwarf_leb_unsigned(&run->code);
	const uint8_t *bytes =
		n <= cursor_left(&run->code) ? cursor_bytes(&run->code, (size_t)n) : NULL;
	if (!bytes || !unwind_expression_check(bytes, (size_t)n, registers_out)) {
		run->is_malformed = true;
		return NULL;
	}
	*n_out = (size_t)n;
	return bytes;
}

static int32_t keep_expression(struct run *run, const uint8_t *bytes, size_t n)
{
	int32_t offset = 0;
	if (!run->err)
		run->err = unwind_model_expression(run->model, bytes, n, &offset);
	return offset;
}

static void set_expression(struct run *run, enum unwind_kind kind)
{
	uint64_t number = dwarf_leb_unsigned(&run->code), registers;
	if (tracked_of(run, number) == TRACKED_N) {
		uint64_t n = dwarf_leb_unsigned(&run->code);
		if (n > cursor_left(&run->code))
			run->is_malformed = true;
		else
			cursor_skip(&run->code, (size_t)n);
		return;
	}
	size_t n;
	const uint8_t *bytes = read_expression(run, &n, &registers);
	if (bytes)
		set_value(run, number, kind, keep_expression(run, bytes, n));
}

/*
 * What binutils' linker says of an x86-64 PLT: rsp + 8 + ((rip & 15) >= bound) * 8. The bound, 0
 * when it is another expression.
 */
static uint8_t plt_bound_of(const struct run *run, const uint8_t *bytes, size_t n)
{
	static const uint8_t plt[PLT_EXPRESSION_BYTES] = {0x77, 8,    0x80, 0,	  0x3f, 0x1a,
							  0x30, 0x2a, 0x33, 0x24, 0x22};
	enum { AT_BOUND = 6, LIT0 = 0x30, LIT15 = 0x3f };
	if (run->model->machine != UNWIND_X86_64 || n != sizeof(plt) ||
	    memcmp(bytes, plt, AT_BOUND) != 0 ||
	    memcmp(bytes + AT_BOUND + 1, plt + AT_BOUND + 1, n - AT_BOUND - 1) != 0 ||
	    bytes[AT_BOUND] <= LIT0 || bytes[AT_BOUND] > LIT15)
		return 0;
	return (uint8_t)(bytes[AT_BOUND] - LIT0);
}

static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
	if (number >= UNWIND_N_REGISTERS) {
		run->is_malformed = true;
		return;
	}
	run->state.cfa = (struct unwind_value){.kind = UNWIND_REGISTER,
					       .register_number = (uint8_t)number,
					       .offset = narrow(run, offset)};
	run->state.has_cfa = true;
	run->state.plt_bound = 0;
	run->state.cfa_registers = UINT64_C(1) << number;
}

static void set_cfa_expression(struct run *run)
{
	size_t n;
	uint64_t registers;
	const uint8_t *bytes = read_expression(run, &n, &registers);
	if (!bytes)
		return;
	uint8_t plt_bound = plt_bound_of(run, bytes, n);
	if (plt_bound) {
		set_cfa(run, UNWIND_X86_64_SP, PLT_SLOT_BYTES);
		run->state.plt_bound = plt_bound;
		run->state.plt = bytes;
		return;
	}
	run->state.cfa = (struct unwind_value){.kind = UNWIND_EXPRESSION,
					       .offset = keep_expression(run, bytes, n)};
	run->state.has_cfa = true;
	run->state.plt_bound = 0;
	run->state.cfa_registers = registers;
}

/* Parts of a CFA rule that is a register and an offset. */
static void change_cfa(struct run *run, bool is_register, int64_t value)
{
	const struct unwind_value *cfa = &run->state.cfa;
	if (!run->state.has_cfa || cfa->kind != UNWIND_REGISTER || run->state.plt_bound)
		run->is_malformed = true;
	else if (is_register)
		set_cfa(run, (uint64_t)value, cfa->offset);
	else
		set_cfa(run, cfa->register_number, value);
}

static void remember(struct run *run)
{
	if (run->n_remembered == CFI_MAX_REMEMBERED)
		run->is_malformed = true;
	else
		run->remembered[run->n_remembered++] = run->state;
}

static void restore(struct run *run)
{
	if (run->n_remembered)
		run->state = run->remembered[--run->n_remembered];
	else
		run->is_malformed = true;
}

/* Instructions about registers and the CFA; those that move on are the caller's. */
static void run_instruction(struct run *run, uint8_t code)
{
	struct cursor *c = &run->code;
	uint64_t number = 0;
	if (code >= CFA_OFFSET) {
		number = code & (uint8_t)~CFA_HIGH_MASK;
		if ((code & CFA_HIGH_MASK) == CFA_OFFSET)
			set_value(run, number, UNWIND_AT_CFA,
				  factored(run, (int64_t)dwarf_leb_unsigned(c)));
		else
			restore_value(run, number);
		return;
	}
	switch (code) {
	case CFA_OFFSET_EXTENDED:
		number = dwarf_leb_unsigned(c);
		set_value(run, number, UNWIND_AT_CFA,
			  factored(run, (int64_t)dwarf_leb_unsigned(c)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		number = dwarf_leb_unsigned(c);
		set_value(run, number, UNWIND_AT_CFA, factored(run, dwarf_leb_signed(c)));
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		number = dwarf_leb_unsigned(c);
		set_value(run, number, UNWIND_AT_CFA,
			  -factored(run, (int64_t)dwarf_leb_unsigned(c)));
		break;
	case CFA_VAL_OFFSET:
		number = dwarf_leb_unsigned(c);
		set_value(run, number, UNWIND_CFA, factored(run, (int64_t)dwarf_leb_unsigned(c)));
		break;
	case CFA_VAL_OFFSET_SF:
		number = dwarf_leb_unsigned(c);
		set_value(run, number, UNWIND_CFA, factored(run, dwarf_leb_signed(c)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore_value(run, dwarf_leb_unsigned(c));
		break;
	case CFA_UNDEFINED:
		set_value(run, dwarf_leb_unsigned(c), UNWIND_UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		set_value(run, dwarf_leb_unsigned(c), UNWIND_SAME, 0);
		break;
	case CFA_REGISTER:
		number = dwarf_leb_unsigned(c);
		set_register(run, number, dwarf_leb_unsigned(c));
		break;
	case CFA_REMEMBER_STATE:
		remember(run);
		break;
	case CFA_RESTORE_STATE:
		restore(run);
		break;
	case CFA_DEF_CFA:
		number = dwarf_leb_unsigned(c);
		set_cfa(run, number, (int64_t)dwarf_leb_unsigned(c));
		break;
	case CFA_DEF_CFA_SF:
		number = dwarf_leb_unsigned(c);
		set_cfa(run, number, factored(run, dwarf_leb_signed(c)));
		break;
	case CFA_DEF_CFA_REGISTER:
		change_cfa(run, true, (int64_t)dwarf_leb_unsigned(c));
		break;
	case CFA_DEF_CFA_OFFSET:
		change_cfa(run, false, (int64_t)dwarf_leb_unsigned(c));
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		change_cfa(run, false, factored(run, dwarf_leb_signed(c)));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		set_cfa_expression(run);
		break;
	case CFA_EXPRESSION:
		set_expression(run, UNWIND_AT_EXPRESSION);
		break;
	case CFA_VAL_EXPRESSION:
		set_expression(run, UNWIND_EXPRESSION);
		break;
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		run->state.is_signed ^= run->model->machine == UNWIND_ARM64;
		break;
	case CFA_GNU_ARGS_SIZE:
		(void)dwarf_leb_unsigned(c); /* of a call: the CFA does not depend on it */
		break;
	case CFA_NOP:
		break;
	default:
		run->is_malformed = true;
	}
}

/* Where an instruction moves to; false when it is none that moves. */
static bool read_advance(struct run *run, uint8_t code, uint64_t *svma_out)
{
	struct cursor *c = &run->code;
	uint64_t delta;
	if ((code & CFA_HIGH_MASK) == CFA_ADVANCE_LOC)
		delta = code & (uint8_t)~CFA_HIGH_MASK;
	else if (code == CFA_ADVANCE_LOC1)
		delta = cursor_u8(c);
	else if (code == CFA_ADVANCE_LOC2)
		delta = cursor_u16(c);
	else if (code == CFA_ADVANCE_LOC4)
		delta = cursor_u32(c);
	else if (code == CFA_MIPS_ADVANCE_LOC8)
		delta = cursor_u64(c);
	else if (code == CFA_SET_LOC) {
		*svma_out = read_pointer(run->section, c, run->cie->pointer_encoding,
					 run->cie->address_bytes, run->svma);
		run->is_malformed |= *svma_out < run->svma;
		return true;
	} else
		return false;
	if (__builtin_mul_overflow(delta, run->cie->code_alignment, &delta) ||
	    __builtin_add_overflow(run->svma, delta, svma_out))
		run->is_malformed = true;
	return true;
}

/* Until the code ends, moves on (true, to *next_out) or is malformed. */
static bool run_to_advance(struct run *run, uint64_t *next_out)
{
	while (cursor_left(&run->code) && !run->is_malformed && !run->err) {
		uint8_t code = cursor_u8(&run->code);
		bool moves = read_advance(run, code, next_out);
		if (!moves)
			run_instruction(run, code);
		run->is_malformed |= !cursor_is_ok(&run->code);
		if (moves && !run->is_malformed)
			return true;
	}
	return false;
}

/* ---- rules ---- */

/* All that a PLT says of it. */
static bool is_plain_plt(const struct unwind_rule *rule)
{
	return rule->return_address.kind == UNWIND_AT_CFA &&
	       rule->return_address.offset == -PLT_SLOT_BYTES &&
	       rule->frame_pointer.kind == UNWIND_SAME &&
	       rule->extra.kind == (rule->extra_register ? UNWIND_SAME : UNWIND_UNDEFINED) &&
	       !rule->flags;
}

static uint32_t rule_of(struct run *run)
{
	const struct state *state = &run->state;
	bool is_x86 = run->model->machine == UNWIND_X86_64;
	uint32_t number = UNWIND_RULE_NONE;
	if (run->is_malformed || !state->has_cfa || run->err)
		return number;
	struct unwind_rule rule = {.cfa = state->cfa};
	/* Callee-saved registers keep their values unless something is said. */
	for (unsigned i = 0; i < TRACKED_N; i++) {
		struct unwind_value value = state->values[i];
		if (!state->is_set[i])
			value = (struct unwind_value){.kind = UNWIND_SAME};
		if (i == TRACKED_RETURN_ADDRESS)
			rule.return_address = value;
		else if (i == TRACKED_FRAME_POINTER)
			rule.frame_pointer = value;
		else if (run->model->extra_register)
			rule.extra = value;
	}
	if (rule.return_address.kind == UNWIND_SAME)
		rule.return_address =
			is_x86 ? (struct unwind_value){.kind = UNWIND_UNDEFINED}
			       : (struct unwind_value){.kind = UNWIND_REGISTER,
						       .register_number =
							       (uint8_t)run->cie->return_register};
	if (rule.return_address.register_number >= UNWIND_N_REGISTERS)
		return number;
	rule.extra_register = run->model->extra_register;
	rule.flags = (uint8_t)((run->cie->is_signal_frame ? UNWIND_SIGNAL_FRAME : 0) |
			       (state->is_signed ? UNWIND_RETURN_ADDRESS_SIGNED : 0));
	uint8_t plt_bound = state->plt_bound;
	if (plt_bound && !is_plain_plt(&rule)) {
		plt_bound = 0;
		rule.cfa = (struct unwind_value){
			.kind = UNWIND_EXPRESSION,
			.offset = keep_expression(run, state->plt, PLT_EXPRESSION_BYTES)};
	}
	if (!run->err)
		run->err = unwind_model_rule(run->model, &rule, plt_bound, &number);
	return number;
}

void cfi_rows_add(struct cfi_rows *rows, uint64_t svma, uint32_t rule)
{
	if (rows->n && rows->rows[rows->n - 1].rule == rule)
		return;
	if (rows->n == rows->capacity) {
		rows->capacity = rows->capacity ? 2 * rows->capacity : 64;
		rows->rows = mem_realloc(rows->rows, rows->capacity, sizeof(*rows->rows));
	}
	rows->rows[rows->n++] = (struct unwind_row){.svma = svma, .rule = rule};
}

static void note_usage(const struct run *run, struct cfi_usage *usage)
{
	uint64_t registers = run->state.cfa_registers & ((UINT64_C(1) << UNWIND_N_REGISTERS) - 1);
	for (; registers; registers &= registers - 1)
		usage->n_rows[__builtin_ctzll(registers)]++;
}

/* The state that the CIE's instructions leave, found once. */
static struct error *run_cie(struct cfi_section *section, struct cfi_cie *cie,
			     struct unwind_model *model)
{
	struct state remembered[CFI_MAX_REMEMBERED];
	struct run run = {.section = section,
			  .cie = cie,
			  .model = model,
			  .remembered = remembered,
			  .code = section_cursor(section, cie->code, cie->code_bytes)};
	uint64_t next;
	cie->has_failed = run_to_advance(&run, &next) || run.is_malformed;
	cie->initial = run.state;
	cie->is_run = true;
	return run.err;
}

struct error *cfi_section_run(struct cfi_section *section, const struct cfi_entry *entry,
			      struct unwind_model *model, struct cfi_usage *usage,
			      struct cfi_rows *rows)
{
	struct cfi_cie *cie = &section->cies[entry->cie];
	struct error *err = cie->is_run ? NULL : run_cie(section, cie, model);
	rows->n = 0;
	if (err)
		return err;
	struct state remembered[CFI_MAX_REMEMBERED];
	struct run run = {
		.section = section,
		.cie = cie,
		.model = model,
		.remembered = remembered,
		.initial = &cie->initial,
		.code = section_cursor(section, entry->code, entry->code_bytes),
		.svma = entry->start,
		.state = cie->initial,
		.is_malformed = cie->has_failed,
	};
	for (bool is_over = false; !is_over;) {
		uint64_t next = entry->end;
		is_over = !run_to_advance(&run, &next) || next >= entry->end;
		if (next > run.svma || is_over) {
			uint32_t rule = rule_of(&run);
			if (rule != UNWIND_RULE_NONE)
				note_usage(&run, usage);
			cfi_rows_add(rows, run.svma, rule);
			run.svma = next;
		}
	}
	return run.err;
}
