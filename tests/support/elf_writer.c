/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/elf_writer.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 16 << 20 };

static void put(struct buf *buf, const void *bytes, size_t n)
{
	struct error *err = buf_append(buf, bytes, n);
	assert(!err);
	error_free(err);
}

/* n low bytes of value in the file's order. */
static void put_number(const struct elf_writer *writer, struct buf *buf, uint64_t value, unsigned n)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < n; i++)
		bytes[writer->is_big ? n - 1 - i : i] = (uint8_t)(value >> (8 * i));
	put(buf, bytes, n);
}

static void put_word(const struct elf_writer *writer, struct buf *buf, uint64_t value)
{
	put_number(writer, buf, value, writer->is_64 ? 8 : 4);
}

void elf_writer_init(struct elf_writer *writer, bool is_64, bool is_big, uint16_t machine)
{
	*writer = (struct elf_writer){
		.is_64 = is_64, .is_big = is_big, .type = ET_DYN, .machine = machine};
	buf_init(&writer->file, FILE_MAX_BYTES);
	writer->n_sections = 1;
	buf_init(&writer->sections[0].bytes, FILE_MAX_BYTES);
	writer->sections[0].name = "";
}

void elf_writer_fini(struct elf_writer *writer)
{
	for (uint32_t i = 0; i < writer->n_sections; i++)
		buf_fini(&writer->sections[i].bytes);
	buf_fini(&writer->file);
}

uint32_t elf_writer_section(struct elf_writer *writer, const char *name, uint32_t type,
			    uint64_t flags, uint64_t address, const void *bytes, size_t size)
{
	assert(writer->n_sections < ELF_WRITER_MAX_SECTIONS);
	struct elf_writer_section *section = &writer->sections[writer->n_sections];
	*section = (struct elf_writer_section){
		.name = name, .type = type, .flags = flags, .address = address, .size = size};
	buf_init(&section->bytes, FILE_MAX_BYTES);
	if (bytes)
		put(&section->bytes, bytes, size);
	return writer->n_sections++;
}

uint32_t elf_writer_text(struct elf_writer *writer, uint64_t address, size_t size)
{
	return elf_writer_section(writer, ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, address,
				  NULL, size);
}

static uint32_t find_section(const struct elf_writer *writer, const char *name)
{
	for (uint32_t i = 1; i < writer->n_sections; i++) {
		if (strcmp(writer->sections[i].name, name) == 0)
			return i;
	}
	return 0;
}

void elf_writer_symbol(struct elf_writer *writer, bool is_dynamic, const char *name, uint64_t value,
		       uint64_t size, uint8_t bind, uint8_t type, uint16_t section)
{
	uint8_t null[sizeof(Elf64_Sym)] = {0};
	size_t entry_bytes = writer->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint32_t table = find_section(writer, is_dynamic ? ".dynsym" : ".symtab");
	if (!table) {
		uint32_t strings = elf_writer_section(writer, is_dynamic ? ".dynstr" : ".strtab",
						      SHT_STRTAB, 0, 0, "", 1);
		table = elf_writer_section(writer, is_dynamic ? ".dynsym" : ".symtab",
					   is_dynamic ? SHT_DYNSYM : SHT_SYMTAB, 0, 0, null,
					   entry_bytes);
		writer->sections[table].link = strings;
		writer->sections[table].entry_bytes = (uint32_t)entry_bytes;
	}
	struct buf *strings = &writer->sections[writer->sections[table].link].bytes;
	struct buf *entries = &writer->sections[table].bytes;
	uint64_t name_offset = strings->size;
	put(strings, name, strlen(name) + 1);
	put_number(writer, entries, name_offset, 4);
	if (!writer->is_64) {
		put_number(writer, entries, value, 4);
		put_number(writer, entries, size, 4);
	}
	put_number(writer, entries, (uint64_t)bind << 4 | type, 1);
	put_number(writer, entries, 0, 1);
	put_number(writer, entries, section, 2);
	if (writer->is_64) {
		put_number(writer, entries, value, 8);
		put_number(writer, entries, size, 8);
	}
}

uint32_t elf_writer_note(struct elf_writer *writer, const char *section, const char *owner,
			 uint32_t type, const void *value, size_t size)
{
	static const uint8_t zeros[4];
	uint32_t index = elf_writer_section(writer, section, SHT_NOTE, SHF_ALLOC, 0, "", 0);
	struct buf *bytes = &writer->sections[index].bytes;
	/* "Go" is padded with zeros that count. */
	size_t owner_bytes = (strlen(owner) + 4) & ~(size_t)3;
	put_number(writer, bytes, owner_bytes, 4);
	put_number(writer, bytes, size, 4);
	put_number(writer, bytes, type, 4);
	put(bytes, owner, strlen(owner));
	put(bytes, zeros, owner_bytes - strlen(owner));
	put(bytes, value, size);
	put(bytes, zeros, (4 - size % 4) % 4);
	return index;
}

void elf_writer_segment(struct elf_writer *writer, uint32_t type, uint32_t flags, uint32_t section,
			uint64_t svma, uint64_t memory_bytes)
{
	assert(writer->n_segments < ELF_WRITER_MAX_SEGMENTS);
	writer->segments[writer->n_segments++] = (struct elf_writer_segment){
		.type = type,
		.flags = flags,
		.section = section,
		.svma = svma,
		.memory_bytes = memory_bytes,
	};
}

static void put_header(struct elf_writer *writer, uint64_t section_offset)
{
	struct buf *file = &writer->file;
	uint8_t ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F'};
	ident[EI_CLASS] = writer->is_64 ? ELFCLASS64 : ELFCLASS32;
	ident[EI_DATA] = writer->is_big ? ELFDATA2MSB : ELFDATA2LSB;
	ident[EI_VERSION] = EV_CURRENT;
	put(file, ident, sizeof(ident));
	bool is_extended = writer->has_extended_counts;
	uint64_t header_bytes = writer->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	put_number(writer, file, writer->type, 2);
	put_number(writer, file, writer->machine, 2);
	put_number(writer, file, EV_CURRENT, 4);
	put_word(writer, file, 0);
	put_word(writer, file, header_bytes);
	put_word(writer, file, section_offset);
	put_number(writer, file, 0, 4);
	put_number(writer, file, header_bytes, 2);
	put_number(writer, file, writer->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), 2);
	put_number(writer, file, is_extended ? PN_XNUM : writer->n_segments, 2);
	put_number(writer, file, writer->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2);
	bool has_no_count = is_extended || writer->has_no_sections;
	put_number(writer, file, has_no_count ? 0 : writer->n_sections, 2);
	put_number(writer, file, is_extended ? SHN_XINDEX : writer->n_sections - 1, 2);
}

static void put_segment(struct elf_writer *writer, const struct elf_writer_segment *segment,
			uint64_t file_bytes)
{
	struct buf *file = &writer->file;
	const struct elf_writer_section *section = &writer->sections[segment->section];
	uint64_t n = segment->section ? section->bytes.size : file_bytes;
	put_number(writer, file, segment->type, 4);
	if (writer->is_64)
		put_number(writer, file, segment->flags, 4);
	put_word(writer, file, segment->section ? section->offset : 0);
	put_word(writer, file, segment->svma);
	put_word(writer, file, segment->svma);
	put_word(writer, file, n);
	put_word(writer, file, segment->memory_bytes ? segment->memory_bytes : n);
	if (!writer->is_64)
		put_number(writer, file, segment->flags, 4);
	put_word(writer, file, 4);
}

static void put_section(struct elf_writer *writer, const struct elf_writer_section *section,
			uint32_t name)
{
	struct buf *file = &writer->file;
	put_number(writer, file, name, 4);
	put_number(writer, file, section->type, 4);
	put_word(writer, file, section->flags);
	put_word(writer, file, section->address);
	put_word(writer, file, section->offset);
	put_word(writer, file, section->bytes.size ? section->bytes.size : section->size);
	put_number(writer, file, section->link, 4);
	put_number(writer, file, section == writer->sections ? writer->n_segments : 0, 4);
	put_word(writer, file, 1);
	put_word(writer, file, section->entry_bytes);
}

const uint8_t *elf_writer_finish(struct elf_writer *writer, size_t *n_out)
{
	uint32_t names = elf_writer_section(writer, ".shstrtab", SHT_STRTAB, 0, 0, "", 0);
	uint32_t name_offsets[ELF_WRITER_MAX_SECTIONS];
	for (uint32_t i = 0; i < writer->n_sections; i++) {
		struct buf *bytes = &writer->sections[names].bytes;
		name_offsets[i] = (uint32_t)bytes->size;
		put(bytes, writer->sections[i].name, strlen(writer->sections[i].name) + 1);
	}
	uint64_t offset = writer->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	offset += writer->n_segments * (writer->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
	for (uint32_t i = 1; i < writer->n_sections; i++) {
		offset = (offset + 7) & ~7ull;
		writer->sections[i].offset = offset;
		offset += writer->sections[i].bytes.size;
	}
	put_header(writer, writer->has_no_sections ? 0 : offset);
	for (uint32_t i = 0; i < writer->n_segments; i++)
		put_segment(writer, &writer->segments[i], offset);
	static const uint8_t zeros[8];
	for (uint32_t i = 1; i < writer->n_sections; i++) {
		const struct elf_writer_section *section = &writer->sections[i];
		put(&writer->file, zeros, (size_t)section->offset - writer->file.size);
		put(&writer->file, section->bytes.data, section->bytes.size);
	}
	if (writer->has_extended_counts) {
		writer->sections[0].size = writer->n_sections;
		writer->sections[0].link = names;
	}
	for (uint32_t i = 0; i < writer->n_sections && !writer->has_no_sections; i++)
		put_section(writer, &writer->sections[i], name_offsets[i]);
	*n_out = writer->file.size;
	return writer->file.data;
}

void elf_writer_save(struct elf_writer *writer, const char *path)
{
	size_t n;
	const uint8_t *bytes = elf_writer_finish(writer, &n);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert(fd >= 0);
	ssize_t written = write(fd, bytes, n);
	assert(written == (ssize_t)n);
	(void)written;
	close(fd);
}
