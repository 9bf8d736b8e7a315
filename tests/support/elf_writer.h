/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes small ELF files of any class and byte order in memory. Order of calls: init; sections,
 * symbols, segments in any order; finish; fini. The first segment that is asked for lies over the
 * whole file from offset 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { ELF_WRITER_MAX_SECTIONS = 32, ELF_WRITER_MAX_SEGMENTS = 8 };

struct elf_writer_section {
	const char *name;
	uint32_t type, link, entry_bytes;
	uint64_t flags, address, offset, size; /* size of a section without bytes */
	struct buf bytes;
};

struct elf_writer_segment {
	uint32_t type, flags;
	uint32_t section; /* whose bytes it covers; 0 = the whole file */
	uint64_t svma, memory_bytes;
};

struct elf_writer {
	bool is_64, is_big;
	uint16_t type, machine;
	struct elf_writer_section sections[ELF_WRITER_MAX_SECTIONS];
	uint32_t n_sections;
	struct elf_writer_segment segments[ELF_WRITER_MAX_SEGMENTS];
	uint32_t n_segments;
	bool has_extended_counts; /* counts in section 0 instead of the header */
	bool has_no_sections;	  /* leave the section headers out */
	struct buf file;
};

/* machine is an EM_ constant; the writer starts as an ET_DYN without sections. */
void elf_writer_init(struct elf_writer *writer, bool is_64, bool is_big, uint16_t machine);
void elf_writer_fini(struct elf_writer *writer);
/* Gives the section's index. bytes NULL = SHT_NOBITS-like, size counts all the same. */
uint32_t elf_writer_section(struct elf_writer *writer, const char *name, uint32_t type,
			    uint64_t flags, uint64_t address, const void *bytes, size_t size);
/* An executable section without bytes. */
uint32_t elf_writer_text(struct elf_writer *writer, uint64_t address, size_t size);
/* To .symtab, or .dynsym when is_dynamic; the tables are made with the first symbol. */
void elf_writer_symbol(struct elf_writer *writer, bool is_dynamic, const char *name, uint64_t value,
		       uint64_t size, uint8_t bind, uint8_t type, uint16_t section);
/* A section of one note. */
uint32_t elf_writer_note(struct elf_writer *writer, const char *section, const char *owner,
			 uint32_t type, const void *value, size_t size);
void elf_writer_segment(struct elf_writer *writer, uint32_t type, uint32_t flags, uint32_t section,
			uint64_t svma, uint64_t memory_bytes);
/* Valid until fini. */
const uint8_t *elf_writer_finish(struct elf_writer *writer, size_t *n_out);
/* The file in the file system. */
void elf_writer_save(struct elf_writer *writer, const char *path);
