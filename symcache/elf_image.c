/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "symcache/content_id.h"

enum { NOTE_HEADER_BYTES = 12, NT_GO_BUILD_ID = 4 };

/* Where the tables lie, as the ELF header (and section 0, for large counts) says. */
struct elf_tables {
	uint64_t program_offset, section_offset;
	uint32_t program_entry_bytes, section_entry_bytes;
	uint32_t n_programs, n_sections;
	uint32_t name_section;
};

struct program_header {
	uint32_t type, flags;
	struct load_segment segment;
	uint64_t align;
};

struct span {
	uint64_t offset;
	size_t size;
	uint8_t *data;
};

struct elf_spans {
	struct span *items;
	size_t n;
	uint64_t bytes;
};

static void drop_spans(struct elf_spans *spans)
{
	for (size_t i = 0; i < spans->n; i++)
		mem_free(spans->items[i].data);
	mem_free(spans->items);
	*spans = (struct elf_spans){0};
}

static const struct span *find_span(const struct elf_spans *spans, uint64_t offset, uint64_t n)
{
	for (size_t i = 0; i < spans->n; i++) {
		const struct span *span = &spans->items[i];
		if (offset >= span->offset && offset - span->offset <= span->size &&
		    n <= span->size - (offset - span->offset))
			return span;
	}
	return NULL;
}

/* NULL when it is over the cap or there is nothing; shorter than n when the file was cut. */
static const struct span *read_span(const struct elf_image *image, uint64_t offset, uint64_t n)
{
	struct elf_spans *spans = image->spans;
	if (!n || image->fd < 0 || n > ELF_IMAGE_MAX_READ_BYTES - spans->bytes)
		return NULL;
	struct span span = {.offset = offset, .data = mem_alloc((size_t)n)};
	struct error *err = file_read_at(image->fd, offset, span.data, (size_t)n, &span.size);
	if (err || !span.size) {
		error_free(err);
		mem_free(span.data);
		return NULL;
	}
	spans->items = mem_realloc(spans->items, spans->n + 1, sizeof(*spans->items));
	spans->items[spans->n] = span;
	spans->bytes += n;
	return &spans->items[spans->n++];
}

static struct cursor read_file(const struct elf_image *image, uint64_t offset, uint64_t n)
{
	const struct span *span = find_span(image->spans, offset, n);
	if (!span)
		span = read_span(image, offset, n);
	if (!span)
		return cursor_make(NULL, 0, image->is_swapped);
	size_t skipped = (size_t)(offset - span->offset);
	size_t left = span->size - skipped;
	return cursor_make(span->data + skipped, n < left ? (size_t)n : left, image->is_swapped);
}

/* Bytes [offset, offset + n) of the file, cut at its end. */
static struct cursor file_span(const struct elf_image *image, uint64_t offset, uint64_t n)
{
	if (offset > image->size)
		offset = image->size;
	if (n > image->size - offset)
		n = image->size - offset;
	struct cursor c = image->spans
				  ? read_file(image, offset, n)
				  : cursor_make(image->data + offset, (size_t)n, image->is_swapped);
	c.origin = offset;
	return c;
}

static struct error *read_header(struct elf_image *image, struct elf_tables *tables)
{
	static const uint8_t magic[4] = {0x7f, 'E', 'L', 'F'};
	struct cursor c = file_span(image, 0, sizeof(Elf64_Ehdr));
	const uint8_t *ident = cursor_bytes(&c, EI_NIDENT);
	if (!ident || memcmp(ident, magic, sizeof(magic)) != 0)
		return error_new(ERROR_BAD_DATA, "not an ELF file");
	uint8_t file_class = ident[EI_CLASS];
	uint8_t order = ident[EI_DATA];
	if ((file_class != ELFCLASS32 && file_class != ELFCLASS64) ||
	    (order != ELFDATA2LSB && order != ELFDATA2MSB))
		return error_new(ERROR_BAD_DATA, "ELF header: class %u, byte order %u", file_class,
				 order);
	image->is_64 = file_class == ELFCLASS64;
	uint8_t host_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	image->is_swapped = order != host_order;
	c.is_swapped = image->is_swapped;
	image->type = cursor_u16(&c);
	image->machine = cursor_u16(&c);
	cursor_skip(&c, 4);
	image->entry_svma = elf_image_word(image, &c);
	tables->program_offset = elf_image_word(image, &c);
	tables->section_offset = elf_image_word(image, &c);
	cursor_skip(&c, 4 + 2);
	tables->program_entry_bytes = cursor_u16(&c);
	tables->n_programs = cursor_u16(&c);
	tables->section_entry_bytes = cursor_u16(&c);
	tables->n_sections = cursor_u16(&c);
	tables->name_section = cursor_u16(&c);
	if (!cursor_is_ok(&c))
		return error_new(ERROR_BAD_DATA, "ELF header: file ends within it");
	return NULL;
}

static bool read_section(const struct elf_image *image, struct cursor *c,
			 struct elf_section *section)
{
	section->name = cursor_u32(c);
	section->type = cursor_u32(c);
	section->flags = elf_image_word(image, c);
	section->address = elf_image_word(image, c);
	section->file_offset = elf_image_word(image, c);
	section->size = elf_image_word(image, c);
	section->link = cursor_u32(c);
	section->info = cursor_u32(c);
	(void)elf_image_word(image, c);
	section->entry_bytes = elf_image_word(image, c);
	return cursor_is_ok(c);
}

static size_t section_header_bytes(const struct elf_image *image)
{
	return image->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

/* Counts that do not fit 16 bits stand in section 0 (gABI, "extended numbering"). */
static void read_extended_counts(const struct elf_image *image, struct elf_tables *tables)
{
	if (!tables->section_offset || tables->section_offset >= image->size)
		return;
	struct cursor c = file_span(image, tables->section_offset, section_header_bytes(image));
	struct elf_section first;
	if (!read_section(image, &c, &first))
		return;
	if (tables->n_sections == 0)
		tables->n_sections = first.size > UINT32_MAX ? UINT32_MAX : (uint32_t)first.size;
	if (tables->name_section == SHN_XINDEX)
		tables->name_section = first.link;
	if (tables->n_programs == PN_XNUM)
		tables->n_programs = first.info;
}

static void read_sections(struct elf_image *image, const struct elf_tables *tables)
{
	size_t entry_bytes = tables->section_entry_bytes;
	if (!tables->section_offset || !tables->n_sections ||
	    entry_bytes < section_header_bytes(image) ||
	    tables->n_sections > ELF_IMAGE_MAX_SECTIONS)
		return;
	struct cursor c = file_span(image, tables->section_offset,
				    (uint64_t)tables->n_sections * entry_bytes);
	if (cursor_left(&c) < tables->n_sections * entry_bytes)
		return;
	image->sections = mem_zalloc(tables->n_sections, sizeof(*image->sections));
	image->n_sections = tables->n_sections;
	for (uint32_t i = 0; i < tables->n_sections; i++) {
		struct cursor entry = cursor_sub(&c, entry_bytes);
		(void)read_section(image, &entry, &image->sections[i]);
	}
	if (tables->name_section < image->n_sections)
		image->name_section = tables->name_section;
}

static bool read_program_header(const struct elf_image *image, struct cursor *c,
				struct program_header *out)
{
	out->type = cursor_u32(c);
	if (image->is_64)
		out->flags = cursor_u32(c);
	out->segment.file_offset = elf_image_word(image, c);
	out->segment.svma = elf_image_word(image, c);
	(void)elf_image_word(image, c);
	out->segment.file_bytes = elf_image_word(image, c);
	out->segment.memory_bytes = elf_image_word(image, c);
	if (!image->is_64)
		out->flags = cursor_u32(c);
	out->align = elf_image_word(image, c);
	out->segment.is_executable = out->flags & PF_X;
	return cursor_is_ok(c);
}

/*
 * The first GNU build-id in a run of notes wins and ends the search; Go's note is kept until then.
 * Notes are padded to 4 bytes, to 8 where the segment says so (x86 property notes).
 */
static bool scan_notes(struct build_id *id, struct cursor notes, uint64_t align, uint32_t *n_left)
{
	size_t pad = align == 8 ? 8 : 4;
	while (cursor_left(&notes) >= NOTE_HEADER_BYTES && *n_left) {
		(*n_left)--;
		uint32_t name_bytes = cursor_u32(&notes);
		uint32_t value_bytes = cursor_u32(&notes);
		uint32_t type = cursor_u32(&notes);
		const uint8_t *name = cursor_bytes(&notes, name_bytes);
		size_t name_end = NOTE_HEADER_BYTES + (size_t)name_bytes;
		cursor_skip(&notes, (pad - name_end % pad) % pad);
		const uint8_t *value = cursor_bytes(&notes, value_bytes);
		if (!name || !value)
			return false;
		size_t value_pad = (pad - value_bytes % pad) % pad;
		cursor_skip(&notes,
			    value_pad < cursor_left(&notes) ? value_pad : cursor_left(&notes));
		if (type == NT_GNU_BUILD_ID && name_bytes == 4 && memcmp(name, "GNU", 4) == 0 &&
		    value_bytes >= 1 && value_bytes <= BUILD_ID_MAX_BYTES) {
			*id = build_id_make(value, value_bytes);
			return true;
		}
		if (type == NT_GO_BUILD_ID && name_bytes == 4 && memcmp(name, "Go\0", 4) == 0 &&
		    value_bytes && !build_id_is_set(id))
			*id = content_id_of_go_note(value, value_bytes);
	}
	return false;
}

/* Of a run of that many. */
static uint64_t note_bytes(uint64_t n)
{
	return n < ELF_IMAGE_MAX_NOTE_BYTES ? n : ELF_IMAGE_MAX_NOTE_BYTES;
}

static struct error *read_program_headers(struct elf_image *image, const struct elf_tables *tables,
					  uint32_t *n_notes_left)
{
	size_t need = image->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	size_t entry_bytes = tables->program_entry_bytes;
	if (!tables->n_programs || !tables->program_offset)
		return NULL;
	if (tables->n_programs > ELF_IMAGE_MAX_PROGRAM_HEADERS)
		return error_new(ERROR_LIMIT, "%u program headers, at most %d are read",
				 tables->n_programs, ELF_IMAGE_MAX_PROGRAM_HEADERS);
	struct cursor c = file_span(image, tables->program_offset,
				    (uint64_t)tables->n_programs * entry_bytes);
	if (entry_bytes < need || cursor_left(&c) < tables->n_programs * entry_bytes)
		return error_new(ERROR_BAD_DATA, "program headers lie outside the file");
	image->segments = mem_zalloc(tables->n_programs, sizeof(*image->segments));
	bool has_build_id = false;
	for (uint32_t i = 0; i < tables->n_programs; i++) {
		struct cursor entry = cursor_sub(&c, entry_bytes);
		struct program_header header = {0};
		if (!read_program_header(image, &entry, &header))
			continue;
		const struct load_segment *segment = &header.segment;
		if (header.type == PT_LOAD)
			image->segments[image->n_segments++] = *segment;
		else if (header.type == PT_GNU_EH_FRAME)
			image->eh_frame_hdr_svma = segment->svma;
		else if (header.type == PT_NOTE && !has_build_id)
			has_build_id = scan_notes(&image->build_id,
						  file_span(image, segment->file_offset,
							    note_bytes(segment->file_bytes)),
						  header.align, n_notes_left);
	}
	return NULL;
}

static void read_note_sections(struct elf_image *image, uint32_t *n_notes_left)
{
	if (image->build_id.kind == BUILD_ID_GNU)
		return;
	for (uint32_t i = 0; i < image->n_sections; i++) {
		const struct elf_section *section = &image->sections[i];
		/* Their alignment is left out of sh_entsize and friends: build-ids use 4. */
		if (section->type == SHT_NOTE &&
		    scan_notes(&image->build_id,
			       file_span(image, section->file_offset, note_bytes(section->size)), 4,
			       n_notes_left))
			return;
	}
}

struct build_id elf_image_note_build_id(const void *notes, size_t size)
{
	struct build_id id = {0};
	uint32_t n_left = ELF_IMAGE_MAX_NOTES;
	(void)scan_notes(&id, cursor_make(notes, size, false), 4, &n_left);
	return id;
}

static struct error *read_tables(struct elf_image *image)
{
	struct elf_tables tables = {0};
	struct error *err = read_header(image, &tables);
	if (err)
		return err;
	read_extended_counts(image, &tables);
	uint32_t n_notes_left = ELF_IMAGE_MAX_NOTES;
	err = read_program_headers(image, &tables, &n_notes_left);
	if (err)
		return err;
	read_sections(image, &tables);
	read_note_sections(image, &n_notes_left);
	return NULL;
}

struct error *elf_image_init(struct elf_image *image, const void *data, size_t size)
{
	*image = (struct elf_image){.data = data, .size = size, .fd = -1};
	struct error *err = read_tables(image);
	if (err)
		elf_image_fini(image);
	return err;
}

struct error *elf_image_open(struct elf_image *image, int fd)
{
	struct stat st;
	*image = (struct elf_image){.fd = -1};
	if (fstat(fd, &st) < 0)
		return error_errno(errno, "fstat");
	if (!S_ISREG(st.st_mode))
		return error_new(ERROR_BAD_DATA, "not a regular file");
	if ((uint64_t)st.st_size > ELF_IMAGE_MAX_FILE_BYTES)
		return error_new(ERROR_LIMIT, "%" PRIu64 " bytes are more than the maximum",
				 (uint64_t)st.st_size);
	*image = (struct elf_image){
		.size = (size_t)st.st_size,
		.spans = mem_zalloc(1, sizeof(*image->spans)),
		.fd = fd,
	};
	struct error *err = read_tables(image);
	/* They are unpacked. */
	drop_spans(image->spans);
	if (err)
		elf_image_fini(image);
	return err;
}

void elf_image_trim(const struct elf_image *image)
{
	if (image->spans)
		drop_spans(image->spans);
}

void elf_image_fini(struct elf_image *image)
{
	elf_image_trim(image);
	mem_free(image->spans);
	mem_free(image->segments);
	mem_free(image->sections);
	*image = (struct elf_image){0};
}

struct cursor elf_image_section(const struct elf_image *image, const struct elf_section *section)
{
	if (section->type == SHT_NOBITS)
		return file_span(image, 0, 0);
	return file_span(image, section->file_offset, section->size);
}

struct cursor elf_image_at(const struct elf_image *image, uint64_t svma)
{
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct load_segment *segment = &image->segments[i];
		uint64_t skipped = svma - segment->svma;
		if (svma >= segment->svma && skipped < segment->file_bytes &&
		    segment->file_offset <= UINT64_MAX - skipped)
			return file_span(image, segment->file_offset + skipped,
					 segment->file_bytes - skipped);
	}
	return file_span(image, 0, 0);
}

const struct elf_section *elf_image_find(const struct elf_image *image, const char *name)
{
	if (!image->name_section)
		return NULL;
	struct cursor names = elf_image_section(image, &image->sections[image->name_section]);
	size_t n = strlen(name) + 1;
	for (uint32_t i = 1; i < image->n_sections; i++) {
		struct cursor c = names;
		cursor_seek(&c, image->sections[i].name);
		const uint8_t *found = cursor_bytes(&c, n);
		if (found && memcmp(found, name, n) == 0)
			return &image->sections[i];
	}
	return NULL;
}

const struct elf_section *elf_image_find_type(const struct elf_image *image, uint32_t type)
{
	for (uint32_t i = 1; i < image->n_sections; i++) {
		if (image->sections[i].type == type)
			return &image->sections[i];
	}
	return NULL;
}
