/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The .debug_* sections of one ELF image: plain, SHF_COMPRESSED (zlib, zstd) or .zdebug_*, in a
 * binary or in a .dwo or .dwp file. Compressed sections are unpacked as far as they are asked for
 * and given back behind the reader, so that a walk in order holds a window, not the section.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "symcache/elf_image.h"

#define DEBUG_SECTION_MAX_BYTES ((uint64_t)8 << 30) /* unpacked */
/* zlib cannot do better than 1032; zstd can, but debug data never does. */
#define DEBUG_SECTION_MAX_RATIO 1032

enum debug_section_kind {
	DEBUG_SECTION_INFO,
	DEBUG_SECTION_ABBREV,
	DEBUG_SECTION_LINE,
	DEBUG_SECTION_STR,
	DEBUG_SECTION_LINE_STR,
	DEBUG_SECTION_STR_OFFSETS,
	DEBUG_SECTION_ADDR,
	DEBUG_SECTION_RANGES,
	DEBUG_SECTION_RNGLISTS,
	DEBUG_SECTION_CU_INDEX,
	DEBUG_SECTION_FRAME,
	DEBUG_SECTION_KINDS,
};

struct debug_unpack;

struct debug_section {
	const uint8_t *data;
	size_t size;
	size_t ready;		     /* [forgotten, ready) can be read */
	size_t forgotten;	     /* given back */
	struct debug_unpack *unpack; /* NULL when the section is not compressed */
};

struct debug_sections {
	struct debug_section items[DEBUG_SECTION_KINDS];
	bool is_swapped;
	bool is_file_mapping; /* pages of the image may be given back: they are a file's */
	uint32_t n_damaged;   /* sections that did not unpack, or not whole */
};

/*
 * The image outlives the sections. is_dwo: take .debug_info.dwo and so on. is_file_mapping: the
 * image's bytes are a mapping of a file that nobody wrote to; its pages are dropped once read.
 */
void debug_sections_init(struct debug_sections *sections, const struct elf_image *image,
			 bool is_dwo, bool is_file_mapping);
void debug_sections_fini(struct debug_sections *sections);

/* Makes [begin, end) readable; false when the section does not have it. */
bool debug_sections_need(struct debug_sections *sections, enum debug_section_kind kind,
			 uint64_t begin, uint64_t end);
/* [begin, end) will be read in order, once, from front to back: what lies below may go. */
void debug_sections_forget(struct debug_sections *sections, enum debug_section_kind kind,
			   uint64_t below);
/* The section from its begin to end, which was asked for before. */
static inline struct cursor debug_sections_cursor(const struct debug_sections *sections,
						  enum debug_section_kind kind)
{
	const struct debug_section *section = &sections->items[kind];
	/* Pointers into nothing may not be moved, not even by 0. */
	return cursor_make(section->data ? section->data : (const uint8_t *)"", section->ready,
			   sections->is_swapped);
}
