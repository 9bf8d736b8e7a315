/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bounds-checked view of one ELF file, in memory or read through a descriptor: ELF32 and ELF64,
 * both byte orders. Knows program headers, section headers and notes, nothing of what sections
 * mean. Damaged program headers make it fail; damaged section headers leave it without sections,
 * because a file cut by its owner still translates addresses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "base/error.h"
#include "symcache/symcache.h"

enum {
	ELF_IMAGE_MAX_PROGRAM_HEADERS = 4096,
	ELF_IMAGE_MAX_SECTIONS = 1 << 18,
	ELF_IMAGE_MAX_NOTES = 4096,	    /* looked at in one file */
	ELF_IMAGE_MAX_NOTE_BYTES = 1 << 20, /* of one segment or section */
	/* Read through a descriptor: held at a time. The tables and names of a vmlinux take 30 MB.
	 */
	ELF_IMAGE_MAX_READ_BYTES = 128 << 20,
};
#define ELF_IMAGE_MAX_FILE_BYTES ((uint64_t)16 << 30)

struct elf_section {
	uint64_t flags, address, file_offset, size, entry_bytes;
	uint32_t name; /* offset in the section name table */
	uint32_t type, link, info;
};

/* What was read of a file through a descriptor. */
struct elf_spans;

struct elf_image {
	const uint8_t *data; /* NULL when it is read through the descriptor */
	size_t size;
	struct elf_spans *spans; /* NULL when it is in memory */
	int fd;			 /* with spans: borrowed; -1 = no more than what was read */
	bool is_64, is_swapped;
	uint16_t type, machine;
	struct load_segment *segments; /* PT_LOADs in file order */
	uint32_t n_segments;
	struct elf_section *sections;
	uint32_t n_sections;
	uint32_t name_section;	    /* index of the section name table, 0 = none */
	uint64_t entry_svma;	    /* where the program starts, 0 = nowhere */
	uint64_t eh_frame_hdr_svma; /* of PT_GNU_EH_FRAME, 0 = none */
	struct build_id build_id;   /* from notes: kind GNU or GO; empty when there are none */
};

/* data is borrowed and outlives image. ERROR_BAD_DATA: not ELF or damaged; ERROR_LIMIT: over a cap.
 */
struct error *elf_image_init(struct elf_image *image, const void *data, size_t size) MUST_USE;
/*
 * Of a file that others may write to: nothing is mapped, so one that is cut meanwhile reads as what
 * is left of it. fd is borrowed and outlives image, unless image->fd is set to -1. Sections and
 * names are read when they are asked for, and empty where that would be over a cap.
 */
struct error *elf_image_open(struct elf_image *image, int fd) MUST_USE;
void elf_image_fini(struct elf_image *image);
/* Gives back what was read through the descriptor; cursors into it end. */
void elf_image_trim(const struct elf_image *image);

/* The section's bytes in the file; empty for SHT_NOBITS and for what lies past the file's end. */
struct cursor elf_image_section(const struct elf_image *image, const struct elf_section *section);
/* The file's bytes that are loaded at svma and behind it; empty where none are. */
struct cursor elf_image_at(const struct elf_image *image, uint64_t svma);
/* NULL when there is no section of that name (or type). */
const struct elf_section *elf_image_find(const struct elf_image *image, const char *name);
const struct elf_section *elf_image_find_type(const struct elf_image *image, uint32_t type);
/* The build-id in a run of notes of this machine's byte order (/sys/kernel/notes). */
struct build_id elf_image_note_build_id(const void *notes, size_t size);
/* A 4-byte or 8-byte word, as the file's class wants it. */
static inline uint64_t elf_image_word(const struct elf_image *image, struct cursor *c)
{
	return image->is_64 ? cursor_u64(c) : cursor_u32(c);
}
