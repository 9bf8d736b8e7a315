/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information as sections can have it, well-formed and not, and what is made of it. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "symcache/cfi_source.h"
#include "symcache/elf_image.h"
#include "symcache/unwind_table.h"
#include "symcache/unwind_table_writer.h"
#include "tests/support/elf_writer.h"

#define TEXT_AT	 UINT64_C(0x1000)
#define FRAME_AT UINT64_C(0x8000)
#define OTHER_AT UINT64_C(0xc000)

enum { TEXT_BYTES = 0x1000, MAX_BYTES = 1 << 20, RBX = 3, RBP = 6, RSP = 7 };

/* ---- sections ---- */

static void put(struct buf *buf, const void *bytes, size_t n)
{
	assert_null(buf_append(buf, bytes, n));
}

static void put_number(struct buf *buf, uint64_t value, size_t n)
{
	put(buf, &value, n);
}

/* Length, then what comes; end_entry fills it up with DW_CFA_nop. */
static size_t begin_entry(struct buf *buf, bool is_64)
{
	if (is_64)
		put_number(buf, UINT32_MAX, 4);
	size_t at = buf->size;
	put_number(buf, 0, is_64 ? 8 : 4);
	return at;
}

static void end_entry(struct buf *buf, size_t at, bool is_64)
{
	size_t length_bytes = is_64 ? 8 : 4;
	while ((buf->size - at - length_bytes) % 8)
		put_number(buf, 0, 1);
	uint64_t length = buf->size - at - length_bytes;
	memcpy(buf->data + at, &length, length_bytes);
}

struct cie {
	const char *augmentation; /* NULL = "zR" */
	const uint8_t *data;	  /* of a z augmentation; NULL = pcrel sdata4 */
	uint8_t data_bytes;
	uint8_t version; /* 0 = 1 */
	bool is_64, is_debug_frame, is_arm64;
	const uint8_t *code; /* NULL = what compilers begin with */
	uint8_t code_bytes;
};

/* Its offset. */
static size_t put_cie(struct buf *buf, const struct cie *cie)
{
	static const uint8_t pcrel_sdata4[] = {0x1b};
	static const uint8_t x86_code[] = {0x0c, RSP, 8, 0x90, 1};
	static const uint8_t arm64_code[] = {0x0c, 31, 0};
	size_t offset = buf->size, at = begin_entry(buf, cie->is_64);
	const char *augmentation = cie->augmentation ? cie->augmentation : "zR";
	put_number(buf, cie->is_debug_frame ? UINT64_MAX : 0, cie->is_64 ? 8 : 4);
	put_number(buf, cie->version ? cie->version : 1, 1);
	put(buf, augmentation, strlen(augmentation) + 1);
	if (cie->version == 4) {
		put_number(buf, 8, 1);
		put_number(buf, 0, 1);
	}
	if (strcmp(augmentation, "eh") == 0)
		put_number(buf, 0x1234, 8);
	put_number(buf, cie->is_arm64 ? 4 : 1, 1);
	put_number(buf, 0x78, 1); /* -8 */
	put_number(buf, cie->is_arm64 ? 30 : 16, 1);
	if (augmentation[0] == 'z') {
		put_number(buf, cie->data ? cie->data_bytes : 1, 1);
		put(buf, cie->data ? cie->data : pcrel_sdata4, cie->data ? cie->data_bytes : 1);
	}
	if (cie->code)
		put(buf, cie->code, cie->code_bytes);
	else
		put(buf, cie->is_arm64 ? arm64_code : x86_code,
		    cie->is_arm64 ? sizeof(arm64_code) : sizeof(x86_code));
	end_entry(buf, at, cie->is_64);
	return offset;
}

/* Of the usual kind: pcrel sdata4. */
static void put_fde(struct buf *buf, size_t cie, uint64_t start, uint64_t n, const uint8_t *code,
		    size_t code_bytes)
{
	size_t at = begin_entry(buf, false);
	put_number(buf, buf->size - cie, 4);
	put_number(buf, start - (FRAME_AT + buf->size), 4);
	put_number(buf, n, 4);
	put_number(buf, 0, 1);
	put(buf, code, code_bytes);
	end_entry(buf, at, false);
}

/* Addresses of 8 bytes, in .debug_frame. */
static void put_plain_fde(struct buf *buf, uint64_t cie, uint64_t start, uint64_t n,
			  const uint8_t *code, size_t code_bytes)
{
	size_t at = begin_entry(buf, false);
	put_number(buf, cie, 4);
	put_number(buf, start, 8);
	put_number(buf, n, 8);
	put(buf, code, code_bytes);
	end_entry(buf, at, false);
}

/* ---- a binary, and what its table says ---- */

struct fixture {
	struct elf_writer writer;
	uint16_t machine;
	uint8_t text[TEXT_BYTES];
	size_t text_bytes;
	struct buf eh_frame, debug_frame; /* empty = no such section */
	const uint8_t *plt;		  /* lies at OTHER_AT */
	size_t plt_bytes;
	uint64_t entry;
	bool has_no_sections;
	struct elf_image *debug;
	uint8_t *bytes;
	struct unwind_table table;
};

static void begin(struct fixture *f, uint16_t machine)
{
	memset(f, 0, sizeof(*f));
	f->machine = machine;
	/* Code, not padding: push %rax, or what is no nop on arm64 either. */
	memset(f->text, 0x50, sizeof(f->text));
	f->text_bytes = sizeof(f->text);
	buf_init(&f->eh_frame, MAX_BYTES);
	buf_init(&f->debug_frame, MAX_BYTES);
}

static void make_image(struct fixture *f, struct elf_image *image)
{
	elf_writer_init(&f->writer, true, false, f->machine);
	uint32_t text =
		elf_writer_section(&f->writer, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
				   TEXT_AT, f->text, f->text_bytes);
	elf_writer_segment(&f->writer, PT_LOAD, PF_R | PF_X, text, TEXT_AT, f->text_bytes);
	if (f->eh_frame.size) {
		uint32_t frame =
			elf_writer_section(&f->writer, ".eh_frame", SHT_PROGBITS, SHF_ALLOC,
					   FRAME_AT, f->eh_frame.data, f->eh_frame.size);
		elf_writer_segment(&f->writer, PT_LOAD, PF_R, frame, FRAME_AT, f->eh_frame.size);
	}
	if (f->debug_frame.size)
		elf_writer_section(&f->writer, ".debug_frame", SHT_PROGBITS, 0, 0,
				   f->debug_frame.data, f->debug_frame.size);
	if (f->plt) {
		uint32_t plt = elf_writer_section(&f->writer, ".plt", SHT_PROGBITS,
						  SHF_ALLOC | SHF_EXECINSTR, OTHER_AT, f->plt,
						  f->plt_bytes);
		elf_writer_segment(&f->writer, PT_LOAD, PF_R | PF_X, plt, OTHER_AT, f->plt_bytes);
	}
	if (f->has_no_sections) {
		/* version, encodings: pcrel sdata4 to .eh_frame, no table */
		uint8_t header[8] = {1, 0x1b, 0xff, 0xff};
		int32_t distance = (int32_t)(FRAME_AT - (OTHER_AT + 4));
		memcpy(header + 4, &distance, sizeof(distance));
		uint32_t section = elf_writer_section(&f->writer, ".eh_frame_hdr", SHT_PROGBITS,
						      SHF_ALLOC, OTHER_AT, header, sizeof(header));
		elf_writer_segment(&f->writer, PT_LOAD, PF_R, section, OTHER_AT, sizeof(header));
		elf_writer_segment(&f->writer, PT_GNU_EH_FRAME, PF_R, section, OTHER_AT,
				   sizeof(header));
		f->writer.has_no_sections = true;
	}
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&f->writer, &n);
	assert_null(elf_image_init(image, bytes, n));
	image->entry_svma = f->entry;
}

static void build(struct fixture *f)
{
	struct elf_image image;
	struct unwind_model model;
	struct buf out;
	buf_init(&out, MAX_BYTES);
	make_image(f, &image);
	assert_null(cfi_source_read(&image, f->debug, &model));
	assert_null(unwind_table_write(&model, &out));
	f->bytes = malloc(out.size);
	memcpy(f->bytes, out.data, out.size);
	assert_null(unwind_table_open(f->bytes, out.size, &f->table));
	buf_fini(&out);
	unwind_model_fini(&model);
	elf_image_fini(&image);
	elf_writer_fini(&f->writer);
}

static void end(struct fixture *f)
{
	unwind_table_close(&f->table);
	free(f->bytes);
	buf_fini(&f->eh_frame);
	buf_fini(&f->debug_frame);
}

static void format_value(const struct fixture *f, const struct unwind_value *value, char *out,
			 size_t size)
{
	static const char *const names[] = {"undefined", "same",   "at cfa", "cfa",
					    "r",	 "at exp", "exp"};
	size_t n = 0;
	if (value->kind == UNWIND_REGISTER && value->offset)
		snprintf(out, size, "r%u%+d", value->register_number, value->offset);
	else if (value->kind == UNWIND_REGISTER)
		snprintf(out, size, "r%u", value->register_number);
	else if (value->kind == UNWIND_AT_EXPRESSION || value->kind == UNWIND_EXPRESSION)
		snprintf(out, size, "%s %02x", names[value->kind],
			 unwind_table_expression(&f->table, value->offset, &n)[0]);
	else if (value->kind == UNWIND_AT_CFA || value->kind == UNWIND_CFA)
		snprintf(out, size, "%s%+d", names[value->kind], value->offset);
	else
		snprintf(out, size, "%s", names[value->kind]);
}

/* "CFA, return address, frame pointer[, extra][ flags]"; "-" without a rule. */
static const char *show(const struct fixture *f, uint64_t svma)
{
	static char text[256];
	char cfa[64], return_address[64], frame_pointer[64], extra[64];
	const struct unwind_rule *rule = unwind_table_find(&f->table, svma);
	if (!rule)
		return "-";
	format_value(f, &rule->cfa, cfa, sizeof(cfa));
	format_value(f, &rule->return_address, return_address, sizeof(return_address));
	format_value(f, &rule->frame_pointer, frame_pointer, sizeof(frame_pointer));
	format_value(f, &rule->extra, extra, sizeof(extra));
	int n = snprintf(text, sizeof(text), "%s, %s, %s", cfa, return_address, frame_pointer);
	if (rule->extra_register)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", r%u %s", rule->extra_register,
			      extra);
	snprintf(text + n, sizeof(text) - (size_t)n, "%s%s%s",
		 rule->flags & UNWIND_SIGNAL_FRAME ? " signal" : "",
		 rule->flags & UNWIND_RETURN_ADDRESS_SIGNED ? " signed" : "",
		 rule->flags & UNWIND_SYNTHETIC ? " synthetic" : "");
	return text;
}

/* ---- instructions ---- */

struct step {
	uint8_t code[24]; /* after the first, moves on by one byte before */
	uint8_t n;
	const char *rule; /* then */
};

/* Each step's instructions at the next address. */
static void check_steps(uint16_t machine, const struct step *steps, size_t n)
{
	struct fixture f;
	struct buf code;
	const unsigned unit = machine == EM_AARCH64 ? 4 : 1;
	begin(&f, machine);
	buf_init(&code, MAX_BYTES);
	for (size_t i = 0; i < n; i++) {
		if (i)
			put_number(&code, 0x41, 1);
		put(&code, steps[i].code, steps[i].n);
	}
	size_t cie = put_cie(&f.eh_frame, &(struct cie){.is_arm64 = machine == EM_AARCH64});
	put_fde(&f.eh_frame, cie, TEXT_AT, n * unit, code.data, code.size);
	build(&f);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(show(&f, TEXT_AT + i * unit), steps[i].rule);
		assert_string_equal(show(&f, TEXT_AT + i * unit + unit - 1), steps[i].rule);
	}
	assert_string_equal(show(&f, TEXT_AT + n * unit), "-");
	buf_fini(&code);
	end(&f);
}

static void cfi_source_runs_all_instructions(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{{0}, 0, "r7+8, at cfa-8, same"},
		{{0x0e, 16}, 2, "r7+16, at cfa-8, same"},
		{{0x86, 2}, 2, "r7+16, at cfa-8, at cfa-16"},
		{{0x0d, RBP}, 2, "r6+16, at cfa-8, at cfa-16"},
		{{0x0a}, 1, "r6+16, at cfa-8, at cfa-16"},	   /* remember */
		{{0x0c, RSP, 8, 0xc6}, 4, "r7+8, at cfa-8, same"}, /* restore rbp */
		{{0x0b}, 1, "r6+16, at cfa-8, at cfa-16"},	   /* restore state */
		{{0x05, RBP, 3}, 3, "r6+16, at cfa-8, at cfa-24"},
		{{0x06, RBP}, 2, "r6+16, at cfa-8, same"},
		{{0x11, RBP, 0x7e}, 3, "r6+16, at cfa-8, at cfa+16"}, /* offset_extended_sf */
		{{0x2f, RBP, 4}, 3, "r6+16, at cfa-8, at cfa+32"},    /* negative offset */
		{{0x14, RBP, 2}, 3, "r6+16, at cfa-8, cfa-16"},
		{{0x15, RBP, 0x7f}, 3, "r6+16, at cfa-8, cfa+8"},
		{{0x07, RBP}, 2, "r6+16, at cfa-8, undefined"},
		{{0x08, RBP}, 2, "r6+16, at cfa-8, same"},
		{{0x09, RBP, 9}, 3, "r6+16, at cfa-8, r9"},
		{{0x10, RBP, 2, 0x77, 0}, 5, "r6+16, at cfa-8, at exp 77"},
		{{0x16, RBP, 2, 0x73, 0}, 5, "r6+16, at cfa-8, exp 73"},
		{{0x86, 2, 0x12, RSP, 0x7c}, 5, "r7+32, at cfa-8, at cfa-16"}, /* def_cfa_sf */
		{{0x13, 0x7d}, 2, "r7+24, at cfa-8, at cfa-16"},
		{{0x2e, 16}, 2, "r7+24, at cfa-8, at cfa-16"},	       /* args_size */
		{{0x83, 5, 0x8c, 6}, 4, "r7+24, at cfa-8, at cfa-16"}, /* others */
		{{0x10, 12, 1, 0x9c}, 4, "r7+24, at cfa-8, at cfa-16"},
		{{0x09, 16, 5}, 3, "r7+24, r5, at cfa-16"},
		{{0x07, 16}, 2, "r7+24, undefined, at cfa-16"},
		{{0xd0}, 1, "r7+24, at cfa-8, at cfa-16"}, /* restore the return address */
		{{0x0f, 3, 0x76, 0x78, 0x06}, 5, "exp 76, at cfa-8, at cfa-16"},
		{{0x0c, 10, 0}, 3, "r10, at cfa-8, at cfa-16"},
		{{0x0c, RSP, 0x80, 0x80, 0x40}, 5, "r7+1048576, at cfa-8, at cfa-16"},
	};
	check_steps(EM_X86_64, steps, ARRAY_LEN(steps));
}

static void cfi_source_knows_the_arm64_instructions(void **state)
{
	(void)state;
	static const struct step steps[] = {
		{{0}, 0, "r31, r30, same"},
		{{0x2d}, 1, "r31, r30, same signed"},
		{{0x0e, 32, 0x9d, 4, 0x9e, 3}, 6, "r31+32, at cfa-24, at cfa-32 signed"},
		{{0x0a, 0x0c, 29, 32}, 4, "r29+32, at cfa-24, at cfa-32 signed"},
		{{0x0c, 31, 0, 0xdd, 0xde}, 5, "r31, r30, same signed"},
		{{0x2d}, 1, "r31, r30, same"},
		{{0x0b}, 1, "r31+32, at cfa-24, at cfa-32 signed"},
		{{0xdd}, 1, "r31+32, at cfa-24, same signed"},
		{{0x9d, 2}, 2, "r31+32, at cfa-24, at cfa-16 signed"},
		{{0x07, 30}, 2, "r31+32, undefined, at cfa-16 signed"},
	};
	check_steps(EM_AARCH64, steps, ARRAY_LEN(steps));
}

static void cfi_source_moves_by_all_widths(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	uint8_t code[] = {
		0x02, 0x20, 0x0e, 16,				      /* advance_loc1 to 0x1020 */
		0x03, 0x00, 0x01, 0x0e, 24,			      /* advance_loc2 to 0x1120 */
		0x04, 0,    0x02, 0,	0,  0x0e, 32,		      /* advance_loc4 to 0x1320 */
		0x01, 0,    0,	  0,	0,  0x0e, 40,		      /* set_loc to 0x1400 */
		0x1d, 0,    1,	  0,	0,  0,	  0,  0, 0, 0x0e, 48, /* advance_loc8 to 0x1500 */
	};
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	/* An FDE's code lies 17 bytes behind its start. */
	int32_t distance = (int32_t)(TEXT_AT + 0x400 - (FRAME_AT + f.eh_frame.size + 17 + 17));
	memcpy(code + 17, &distance, sizeof(distance));
	put_fde(&f.eh_frame, cie, TEXT_AT, 0x600, code, sizeof(code));
	build(&f);
	const uint64_t moves[] = {0, 0x20, 0x120, 0x320, 0x400, 0x500, 0x600};
	for (unsigned i = 0; i + 1 < ARRAY_LEN(moves); i++) {
		char want[64];
		snprintf(want, sizeof(want), "r7+%u, at cfa-8, same", 8 * (i + 1));
		assert_string_equal(show(&f, TEXT_AT + moves[i]), want);
		assert_string_equal(show(&f, TEXT_AT + moves[i + 1] - 1), want);
	}
	end(&f);
}

static void cfi_source_has_no_rule_behind_a_malformed_instruction(void **state)
{
	(void)state;
	static const struct {
		uint8_t code[8], n;
	} bad[] = {
		{{0x3f}, 1},				   /* unknown */
		{{0x0b}, 1},				   /* nothing was remembered */
		{{0x0c, 40, 8}, 3},			   /* no such register */
		{{0x0f, 1, 0x03}, 3},			   /* DW_OP_addr */
		{{0x0f, 100, 0x77}, 3},			   /* expression behind the end */
		{{0x10, RBP, 2, 0x31, 0x9c}, 5},	   /* not allowed here */
		{{0x09, RBP, 99}, 3},			   /* no such register */
		{{0x0f, 2, 0x77, 0, 0x0e, 8}, 6},	   /* offset of an expression */
		{{0x0e, 0xff, 0xff, 0xff, 0xff, 0x7f}, 6}, /* more than 32 bits */
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fixture f;
		uint8_t code[16] = {0x44, 0x0e, 16, 0x44};
		begin(&f, EM_X86_64);
		memcpy(code + 4, bad[i].code, bad[i].n);
		size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
		put_fde(&f.eh_frame, cie, TEXT_AT, 16, code, 4 + (size_t)bad[i].n);
		put_fde(&f.eh_frame, cie, TEXT_AT + 16, 16, NULL, 0);
		build(&f);
		assert_string_equal(show(&f, TEXT_AT + 3), "r7+8, at cfa-8, same");
		assert_string_equal(show(&f, TEXT_AT + 7), "r7+16, at cfa-8, same");
		assert_string_equal(show(&f, TEXT_AT + 8), "-");
		assert_string_equal(show(&f, TEXT_AT + 15), "-");
		assert_string_equal(show(&f, TEXT_AT + 16), "r7+8, at cfa-8, same");
		end(&f);
	}
}

static void cfi_source_bounds_remembered_states(void **state)
{
	(void)state;
	struct fixture f;
	uint8_t code[100];
	begin(&f, EM_X86_64);
	memset(code, 0x0a, sizeof(code));
	code[0] = code[1] = 0x44;
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 16, code, sizeof(code));
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 7), "r7+8, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 8), "-");
	end(&f);
}

/* ---- entries ---- */

static void cfi_source_reads_all_augmentations(void **state)
{
	(void)state;
	static const struct {
		const char *augmentation;
		uint8_t data[16], n;
		const char *rule;
	} cases[] = {
		{"zR", {0x1b}, 1, "r7+8, at cfa-8, same"},
		{"zRS", {0x1b}, 1, "r7+8, at cfa-8, same signal"},
		{"zRB", {0x1b}, 1, "r7+8, at cfa-8, same"},
		{"zPLR", {0x9b, 1, 2, 3, 4, 0x1b, 0x1b}, 7, "r7+8, at cfa-8, same"},
		{"zPLR", {0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 0x1b}, 11, "r7+8, at cfa-8, same"},
		{"zRx", {0x1b, 9, 9, 9}, 4, "r7+8, at cfa-8, same"}, /* unknown, but of a length */
		{"q", {0}, 0, "-"},				     /* unknown */
		{"zR", {0x9b}, 1, "-"},	   /* an indirect pointer: known when it runs */
		{"zR", {0x0f}, 1, "-"},	   /* no such format */
		{"zP", {0x9b, 1}, 2, "-"}, /* cut */
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fixture f;
		begin(&f, EM_X86_64);
		size_t cie =
			put_cie(&f.eh_frame, &(struct cie){.augmentation = cases[i].augmentation,
							   .data = cases[i].data,
							   .data_bytes = cases[i].n});
		put_fde(&f.eh_frame, cie, TEXT_AT, 16, NULL, 0);
		build(&f);
		assert_string_equal(show(&f, TEXT_AT), cases[i].rule);
		end(&f);
	}
}

/* Start and length in each format; all lead to [TEXT_AT + 0x10, TEXT_AT + 0x20). */
static void cfi_source_reads_all_pointer_encodings(void **state)
{
	(void)state;
	static const uint8_t encodings[] = {0x00, 0x03, 0x0b, 0x04, 0x0c, 0x02, 0x01,
					    0x09, 0x1b, 0x1c, 0x20, 0x23, 0x50, 0x13};
	for (size_t i = 0; i < ARRAY_LEN(encodings); i++) {
		struct fixture f;
		struct buf *frame = &f.eh_frame;
		uint8_t encoding = encodings[i];
		begin(&f, EM_X86_64);
		size_t cie = put_cie(frame, &(struct cie){.data = &encoding, .data_bytes = 1});
		size_t at = begin_entry(frame, false);
		put_number(frame, frame->size - cie, 4);
		uint64_t start = TEXT_AT + 0x10;
		if ((encoding & 0x70) == 0x50)
			while ((FRAME_AT + frame->size) % 8)
				put_number(frame, 0, 1);
		if ((encoding & 0x70) == 0x10)
			start -= FRAME_AT + frame->size;
		if ((encoding & 0x70) == 0x20)
			start -= TEXT_AT;
		switch (encoding & 0x0f) {
		case 0x01:
		case 0x09:
			put(frame, "\x90\x20", 2); /* 0x1010 */
			put_number(frame, 0x10, 1);
			break;
		case 0x02:
			put_number(frame, start, 2);
			put_number(frame, 0x10, 2);
			break;
		case 0x03:
		case 0x0b:
			put_number(frame, start, 4);
			put_number(frame, 0x10, 4);
			break;
		default:
			put_number(frame, start, 8);
			put_number(frame, 0x10, 8);
		}
		put_number(frame, 0, 1);
		end_entry(frame, at, false);
		build(&f);
		/* udata4 with pcrel does not reach back. */
		bool is_reached = encoding != 0x13;
		assert_string_equal(show(&f, TEXT_AT + 0xf), "-");
		assert_string_equal(show(&f, TEXT_AT + 0x10),
				    is_reached ? "r7+8, at cfa-8, same" : "-");
		assert_string_equal(show(&f, TEXT_AT + 0x1f),
				    is_reached ? "r7+8, at cfa-8, same" : "-");
		assert_string_equal(show(&f, TEXT_AT + 0x20), "-");
		end(&f);
	}
}

static void cfi_source_reads_old_and_large_forms(void **state)
{
	(void)state;
	struct fixture f;
	struct buf *frame = &f.eh_frame;
	begin(&f, EM_X86_64);
	/* "eh": a word behind the text, absolute addresses */
	size_t cie = put_cie(frame, &(struct cie){.augmentation = "eh"});
	size_t at = begin_entry(frame, false);
	put_number(frame, frame->size - cie, 4);
	put_number(frame, TEXT_AT, 8);
	put_number(frame, 16, 8);
	end_entry(frame, at, false);
	put_number(frame, 0, 4); /* a terminator that is none */
	/* A signal frame without data; gas writes it into .debug_frame. */
	cie = put_cie(frame, &(struct cie){.augmentation = "S"});
	at = begin_entry(frame, false);
	put_number(frame, frame->size - cie, 4);
	put_number(frame, TEXT_AT + 32, 8);
	put_number(frame, 16, 8);
	end_entry(frame, at, false);
	/* 64-bit DWARF */
	cie = put_cie(frame, &(struct cie){.is_64 = true});
	at = begin_entry(frame, true);
	put_number(frame, frame->size - cie, 8);
	put_number(frame, TEXT_AT + 16 - (FRAME_AT + frame->size), 4);
	put_number(frame, 16, 4);
	put(frame, "\0\x0e\x18", 3);
	end_entry(frame, at, true);
	build(&f);
	assert_string_equal(show(&f, TEXT_AT), "r7+8, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 16), "r7+24, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 32), "r7+8, at cfa-8, same signal");
	end(&f);
}

static void cfi_source_lets_the_last_start_win(void **state)
{
	(void)state;
	static const uint8_t inner[] = {0x0e, 32}, first[] = {0x0e, 48}, second[] = {0x0e, 64};
	static const uint8_t outer[] = {0x50, 0x0e, 16, 0x60, 0x0e, 24};
	struct fixture f;
	begin(&f, EM_X86_64);
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT + 24, 8, inner, sizeof(inner));
	put_fde(&f.eh_frame, cie, TEXT_AT, 64, outer, sizeof(outer));
	put_fde(&f.eh_frame, cie, TEXT_AT + 80, 8, first, sizeof(first));
	put_fde(&f.eh_frame, cie, TEXT_AT + 80, 16, second, sizeof(second));
	/* Not in the text, and beyond its end. */
	put_fde(&f.eh_frame, cie, 0, 16, NULL, 0);
	put_fde(&f.eh_frame, cie, TEXT_AT + TEXT_BYTES - 8, 4096, NULL, 0);
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 23), "r7+16, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 24), "r7+32, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 31), "r7+32, at cfa-8, same");
	/* The outer one goes on as it would have been. */
	assert_string_equal(show(&f, TEXT_AT + 32), "r7+16, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 48), "r7+24, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 64), "-");
	assert_string_equal(show(&f, TEXT_AT + 80), "r7+48, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 88), "r7+64, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 96), "-");
	assert_string_equal(show(&f, 0), "-");
	assert_string_equal(show(&f, TEXT_AT + TEXT_BYTES - 1), "r7+8, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + TEXT_BYTES), "-");
	end(&f);
}

static void cfi_source_gives_padding_to_the_function_before(void **state)
{
	(void)state;
	static const uint8_t nops[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0,
				       0,    0,	   0x0f, 0x1f, 0x44, 0, 0, 0x90};
	static const uint8_t code[] = {0x0e, 16};
	struct fixture f;
	begin(&f, EM_X86_64);
	memcpy(f.text + 16, nops, sizeof(nops));
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 16, code, sizeof(code));
	put_fde(&f.eh_frame, cie, TEXT_AT + 32, 16, NULL, 0);
	put_fde(&f.eh_frame, cie, TEXT_AT + 64, 16, NULL, 0);
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 31), "r7+16, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 32), "r7+8, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 48), "-"); /* code */
	end(&f);
}

static void cfi_source_reads_debug_frame_where_there_is_no_other(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x0e, 16}, other[] = {0x0e, 24};
	struct fixture binary, debug;
	struct elf_image image;
	begin(&debug, EM_X86_64);
	size_t cie =
		put_cie(&debug.debug_frame,
			&(struct cie){.augmentation = "", .version = 4, .is_debug_frame = true});
	put_plain_fde(&debug.debug_frame, cie, TEXT_AT, 64, other, sizeof(other));
	put_plain_fde(&debug.debug_frame, cie, TEXT_AT + 128, 16, other, sizeof(other));
	make_image(&debug, &image);
	begin(&binary, EM_X86_64);
	cie = put_cie(&binary.debug_frame,
		      &(struct cie){.augmentation = "", .version = 3, .is_debug_frame = true});
	put_plain_fde(&binary.debug_frame, cie, TEXT_AT, 32, code, sizeof(code));
	cie = put_cie(&binary.eh_frame, &(struct cie){0});
	put_fde(&binary.eh_frame, cie, TEXT_AT, 16, NULL, 0);
	binary.debug = &image;
	build(&binary);
	assert_string_equal(show(&binary, TEXT_AT + 15), "r7+8, at cfa-8, same");
	assert_string_equal(show(&binary, TEXT_AT + 16), "r7+16, at cfa-8, same");
	assert_string_equal(show(&binary, TEXT_AT + 32), "r7+24, at cfa-8, same");
	assert_string_equal(show(&binary, TEXT_AT + 64), "-");
	assert_string_equal(show(&binary, TEXT_AT + 128), "r7+24, at cfa-8, same");
	end(&binary);
	elf_image_fini(&image);
	elf_writer_fini(&debug.writer);
	buf_fini(&debug.debug_frame);
	buf_fini(&debug.eh_frame);
}

static void cfi_source_finds_eh_frame_without_section_headers(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 16, NULL, 0);
	f.has_no_sections = true;
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 15), "r7+8, at cfa-8, same");
	end(&f);
}

static void cfi_source_follows_a_preserved_register_that_a_cfa_needs(void **state)
{
	(void)state;
	static const uint8_t user[] = {0x41, 0x0e, 16, 0x83, 2, 0x43, 0x0d, RBX};
	struct fixture f;
	begin(&f, EM_X86_64);
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 16, user, sizeof(user));
	put_fde(&f.eh_frame, cie, TEXT_AT + 16, 16, NULL, 0);
	build(&f);
	assert_string_equal(show(&f, TEXT_AT), "r7+8, at cfa-8, same, r3 same");
	assert_string_equal(show(&f, TEXT_AT + 1), "r7+16, at cfa-8, same, r3 at cfa-16");
	assert_string_equal(show(&f, TEXT_AT + 4), "r3+16, at cfa-8, same, r3 at cfa-16");
	assert_string_equal(show(&f, TEXT_AT + 16), "r7+8, at cfa-8, same, r3 same");
	end(&f);
}

/* ---- what the code says ---- */

static void cfi_source_makes_out_the_plt_of_lld(void **state)
{
	(void)state;
	static const uint8_t plt[] = {
		0xff, 0x35, 1, 0, 0, 0, 0xff, 0x25, 2, 0, 0, 0,	   0x0f, 0x1f, 0x40, 0x00,
		0xff, 0x25, 3, 0, 0, 0, 0x68, 0,    0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff,
		0xff, 0x25, 4, 0, 0, 0, 0x68, 1,    0, 0, 0, 0xe9, 0xd0, 0xff, 0xff, 0xff,
	};
	static const char *const depths[] = {"r7+8, at cfa-8, same synthetic",
					     "r7+16, at cfa-8, same synthetic",
					     "r7+24, at cfa-8, same synthetic"};
	struct fixture f;
	begin(&f, EM_X86_64);
	f.plt = plt;
	f.plt_bytes = sizeof(plt);
	build(&f);
	assert_string_equal(show(&f, OTHER_AT), depths[1]);
	assert_string_equal(show(&f, OTHER_AT + 6), depths[2]);
	for (uint64_t slot = 16; slot < sizeof(plt); slot += 16) {
		assert_string_equal(show(&f, OTHER_AT + slot), depths[0]);
		assert_string_equal(show(&f, OTHER_AT + slot + 6), depths[0]);
		assert_string_equal(show(&f, OTHER_AT + slot + 11), depths[1]);
	}
	end(&f);
}

static void cfi_source_makes_out_the_plt_of_mold(void **state)
{
	(void)state;
	static const uint8_t plt[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x53, 0xff, 0x35, 1,    0,    0,	  0,
		0xff, 0x25, 2,	  0,	0,    0,    0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
		0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xf3, 0x0f, 0x1e, 0xfa,
		0x41, 0xbb, 0,	  0,	0,    0,    0xff, 0x25, 3,    0,    0,	  0,
	};
	struct fixture f;
	begin(&f, EM_X86_64);
	f.plt = plt;
	f.plt_bytes = sizeof(plt);
	build(&f);
	assert_string_equal(show(&f, OTHER_AT), "r7+8, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 6), "r7+16, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 12), "r7+24, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 32), "r7+8, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 47), "r7+8, at cfa-8, same synthetic");
	end(&f);
}

static void cfi_source_stops_at_plt_code_it_does_not_know(void **state)
{
	(void)state;
	static const uint8_t plt[] = {0xff, 0x25, 3, 0, 0, 0, 0x0f, 0x0b, 0xe9, 0, 0, 0, 0};
	struct fixture f;
	begin(&f, EM_X86_64);
	f.plt = plt;
	f.plt_bytes = sizeof(plt);
	build(&f);
	assert_string_equal(show(&f, OTHER_AT + 5), "r7+8, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 6), "-");
	end(&f);
}

static void cfi_source_makes_out_the_plt_of_arm64(void **state)
{
	(void)state;
	static const uint32_t plt[] = {0xa9bf7bf0, 0x90000090, 0xf9400211, 0x91000210,
				       0xd61f0220, 0xd503201f, 0xd503201f, 0xd503201f,
				       0x90000090, 0xf9400611, 0x91002210, 0xd61f0220};
	struct fixture f;
	begin(&f, EM_AARCH64);
	f.plt = (const uint8_t *)plt;
	f.plt_bytes = sizeof(plt);
	build(&f);
	assert_string_equal(show(&f, OTHER_AT), "r31, r30, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 4), "r31+16, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 16), "r31+16, at cfa-8, same synthetic");
	assert_string_equal(show(&f, OTHER_AT + 32), "r31, r30, same synthetic");
	end(&f);
}

static void cfi_source_keeps_the_plt_rule_of_binutils(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x0e, 16, 0x46, 0x0e, 24,   0x4a, 0x0f, 11,   0x77, 8,
				       0x80, 0,	 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	struct fixture f;
	begin(&f, EM_X86_64);
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 64, code, sizeof(code));
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 5), "r7+16, at cfa-8, same");
	assert_string_equal(show(&f, TEXT_AT + 6), "r7+24, at cfa-8, same");
	for (uint64_t slot = 16; slot < 64; slot += 16) {
		assert_string_equal(show(&f, TEXT_AT + slot + 10), "r7+8, at cfa-8, same");
		assert_string_equal(show(&f, TEXT_AT + slot + 11), "r7+16, at cfa-8, same");
	}
	end(&f);

	/* With more than that the expression stays one. */
	begin(&f, EM_X86_64);
	cie = put_cie(&f.eh_frame, &(struct cie){.augmentation = "zRS"});
	put_fde(&f.eh_frame, cie, TEXT_AT, 64, code, sizeof(code));
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 16), "exp 77, at cfa-8, same signal");
	end(&f);
}

static void cfi_source_finds_signal_trampolines(void **state)
{
	(void)state;
	static const uint8_t x86[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t arm64[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
	struct fixture f;
	begin(&f, EM_X86_64);
	memcpy(f.text + 100, x86, sizeof(x86));
	build(&f);
	const char *rule = "exp 77, at exp 77, at exp 77 signal synthetic";
	assert_string_equal(show(&f, TEXT_AT + 98), "-");
	/* The handler returns to the first byte, and is looked up one before. */
	assert_string_equal(show(&f, TEXT_AT + 99), rule);
	assert_string_equal(show(&f, TEXT_AT + 108), rule);
	assert_string_equal(show(&f, TEXT_AT + 109), "-");
	const struct unwind_rule *found = unwind_table_find(&f.table, TEXT_AT + 100);
	size_t n;
	/* rsp + 160, loaded; the kernel's ucontext has rsp there */
	assert_memory_equal(unwind_table_expression(&f.table, found->cfa.offset, &n),
			    "\x77\xa0\x01\x06", 4);
	assert_int_equal(n, 4);
	assert_memory_equal(unwind_table_expression(&f.table, found->return_address.offset, &n),
			    "\x77\xa8\x01", 3);
	assert_memory_equal(unwind_table_expression(&f.table, found->frame_pointer.offset, &n),
			    "\x77\xf8\x00", 3);
	end(&f);

	/* The vdso's own rule leads to the link register of what was interrupted. */
	begin(&f, EM_AARCH64);
	memcpy(f.text + 64, arm64, sizeof(arm64));
	size_t cie = put_cie(&f.eh_frame, &(struct cie){.is_arm64 = true});
	put_fde(&f.eh_frame, cie, TEXT_AT + 60, 12, (const uint8_t *)"\x0c\x1d\x00", 3);
	build(&f);
	rule = "exp 8f, at exp 8f, at exp 8f, r30 at exp 8f signal synthetic";
	assert_string_equal(show(&f, TEXT_AT + 63), rule);
	assert_string_equal(show(&f, TEXT_AT + 71), rule);
	found = unwind_table_find(&f.table, TEXT_AT + 64);
	assert_memory_equal(unwind_table_expression(&f.table, found->return_address.offset, &n),
			    "\x8f\xb8\x04", 3); /* sp + 568 */
	end(&f);
}

static void cfi_source_ends_stacks_at_the_entry_point(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, EM_X86_64);
	f.entry = TEXT_AT + 32;
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT + 64, 16, NULL, 0);
	build(&f);
	assert_string_equal(show(&f, TEXT_AT + 31), "-");
	assert_string_equal(show(&f, TEXT_AT + 32), "r7+8, undefined, undefined synthetic");
	assert_string_equal(show(&f, TEXT_AT + 63), "r7+8, undefined, undefined synthetic");
	assert_string_equal(show(&f, TEXT_AT + 64), "r7+8, at cfa-8, same");
	end(&f);
}

static void cfi_source_refuses_other_machines(void **state)
{
	(void)state;
	struct elf_writer writer;
	struct elf_image image;
	struct unwind_model model;
	const uint16_t machines[] = {EM_386, EM_PPC64, EM_X86_64};
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		size_t n;
		elf_writer_init(&writer, machines[i] != EM_386, false, machines[i]);
		if (machines[i] == EM_X86_64)
			writer.type = ET_REL;
		const uint8_t *bytes = elf_writer_finish(&writer, &n);
		assert_null(elf_image_init(&image, bytes, n));
		struct error *err = cfi_source_read(&image, NULL, &model);
		assert_int_equal(error_get_code(err), ERROR_UNSUPPORTED);
		error_free(err);
		elf_image_fini(&image);
		elf_writer_fini(&writer);
	}
}

static void cfi_source_survives_every_flipped_byte(void **state)
{
	(void)state;
	static const uint8_t code[] = {0x44, 0x0e, 16,	 0x86, 2,  0x43, 0x0d, RBP,  0x0a,
				       0x02, 9,	   0x0c, RSP,  8,  0x41, 0x0b, 0x0f, 3,
				       0x76, 0x78, 0x06, 0x10, 16, 2,	 0x77, 0};
	struct fixture f;
	begin(&f, EM_X86_64);
	size_t cie = put_cie(&f.eh_frame, &(struct cie){0});
	put_fde(&f.eh_frame, cie, TEXT_AT, 64, code, sizeof(code));
	put_fde(&f.eh_frame, cie, TEXT_AT + 64, 64, code, sizeof(code));
	for (size_t i = 0; i < f.eh_frame.size; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			f.eh_frame.data[i] ^= (uint8_t)(1 << bit);
			build(&f);
			for (uint64_t svma = TEXT_AT - 1; svma < TEXT_AT + 200; svma++)
				(void)show(&f, svma);
			unwind_table_close(&f.table);
			free(f.bytes);
			f.eh_frame.data[i] ^= (uint8_t)(1 << bit);
		}
	}
	build(&f);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_source_runs_all_instructions),
		cmocka_unit_test(cfi_source_knows_the_arm64_instructions),
		cmocka_unit_test(cfi_source_moves_by_all_widths),
		cmocka_unit_test(cfi_source_has_no_rule_behind_a_malformed_instruction),
		cmocka_unit_test(cfi_source_bounds_remembered_states),
		cmocka_unit_test(cfi_source_reads_all_augmentations),
		cmocka_unit_test(cfi_source_reads_all_pointer_encodings),
		cmocka_unit_test(cfi_source_reads_old_and_large_forms),
		cmocka_unit_test(cfi_source_lets_the_last_start_win),
		cmocka_unit_test(cfi_source_gives_padding_to_the_function_before),
		cmocka_unit_test(cfi_source_reads_debug_frame_where_there_is_no_other),
		cmocka_unit_test(cfi_source_finds_eh_frame_without_section_headers),
		cmocka_unit_test(cfi_source_follows_a_preserved_register_that_a_cfa_needs),
		cmocka_unit_test(cfi_source_makes_out_the_plt_of_lld),
		cmocka_unit_test(cfi_source_makes_out_the_plt_of_mold),
		cmocka_unit_test(cfi_source_stops_at_plt_code_it_does_not_know),
		cmocka_unit_test(cfi_source_makes_out_the_plt_of_arm64),
		cmocka_unit_test(cfi_source_keeps_the_plt_rule_of_binutils),
		cmocka_unit_test(cfi_source_finds_signal_trampolines),
		cmocka_unit_test(cfi_source_ends_stacks_at_the_entry_point),
		cmocka_unit_test(cfi_source_refuses_other_machines),
		cmocka_unit_test(cfi_source_survives_every_flipped_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
