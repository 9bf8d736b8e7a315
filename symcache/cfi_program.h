/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information of one section, .eh_frame (LSB Core 5.0, 10.6) or .debug_frame (DWARF 5,
 * 6.4): its entries, and their instructions run into rows of an unwind model. Registers other than
 * CFA, return address, frame pointer and the model's extra register are passed over.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "symcache/unwind_model.h"

enum { CFI_MAX_REMEMBERED = 64 }; /* states; an entry that keeps more ends there */

/* A section. data and what the encodings are relative to. */
struct cfi_section {
	const uint8_t *data;
	size_t size;
	uint64_t svma;		       /* of data */
	uint64_t text_svma, data_svma; /* of .text and of the global offset table, 0 = none */
	bool is_eh_frame;
	/* The rest is the reader's own. */
	struct cfi_cie *cies;
	uint32_t n_cies, cies_capacity;
	struct hash_map cies_by_offset;
};

/* One FDE: [start, end) and where its instructions are. */
struct cfi_entry {
	uint64_t start, end;
	size_t code, code_bytes; /* in the section */
	uint32_t cie;
};

struct cfi_rows {
	struct unwind_row *rows; /* svma rises strictly; the first is at the entry's start */
	size_t n, capacity;
};

/* In how many rows the CFA depends on each register. */
struct cfi_usage {
	uint64_t n_rows[UNWIND_N_REGISTERS];
};

/* Caller has filled in data to is_eh_frame; the rest is zero. */
void cfi_section_fini(struct cfi_section *section);

/*
 * The FDE at *offset_io, which then is behind it; false at the end. Entries that are damaged or of
 * an unknown form are passed over; so are CIEs.
 */
bool cfi_section_next(struct cfi_section *section, size_t *offset_io, struct cfi_entry *out);

/*
 * Runs an entry: replaces rows. Where an instruction is malformed, the rest of the entry has no
 * rule. ERROR_LIMIT: the model cannot hold more.
 */
struct error *cfi_section_run(struct cfi_section *section, const struct cfi_entry *entry,
			      struct unwind_model *model, struct cfi_usage *usage,
			      struct cfi_rows *rows) MUST_USE;
/* Unless it changes nothing. */
void cfi_rows_add(struct cfi_rows *rows, uint64_t svma, uint32_t rule);
