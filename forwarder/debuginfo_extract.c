/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result is the ELF header, the program headers, the kept sections in their order, and the
 * section headers:
 *
 *   | ELF header | program headers | .note… | .symtab | .debug_… | … | section headers |
 *
 * Every number of the file is checked against the file's size before it is used; sizes are added
 * up under max_bytes, so that sections that overlap cannot make the result grow without bound.
 */
#include "forwarder/debuginfo_extract.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/mem.h"

enum {
	MAX_ALIGNMENT = 4096,
	MAX_NAMES_BYTES = 4 << 20,
	MAX_NOTES_BYTES = 1 << 20,
	HEADERS_MAX_BYTES = 16 << 20,
};

struct section {
	uint64_t flags, offset, size, alignment;
	uint64_t new_offset;
	uint32_t name, type;
	bool is_kept;
};

struct extraction {
	int fd;
	uint64_t file_bytes;
	bool is_64, is_swapped;
	struct buf elf_header, program_headers, section_headers, names;
	uint64_t section_headers_at;
	uint32_t n_program_headers, n_sections, name_section;
	struct section *sections;
	bool has_names; /* something that names addresses */
	uint64_t max_bytes;
	struct debuginfo_image *image;
};

static void extraction_fini(struct extraction *e)
{
	buf_fini(&e->elf_header);
	buf_fini(&e->program_headers);
	buf_fini(&e->section_headers);
	buf_fini(&e->names);
	mem_free(e->sections);
}

static struct error *damaged(const char *what) MUST_USE;
static struct error *damaged(const char *what)
{
	return error_new(ERROR_BAD_DATA, "ELF file: %s", what);
}

/* Appends n bytes of the file. */
static struct error *read_part(const struct extraction *e, uint64_t offset, uint64_t n,
			       struct buf *out)
{
	if (offset > e->file_bytes || n > e->file_bytes - offset)
		return damaged("a part lies past its end");
	if (!n)
		return NULL;
	struct error *err = buf_reserve(out, (size_t)n);
	if (err)
		return err;
	size_t got;
	err = file_read_at(e->fd, offset, out->data + out->size, (size_t)n, &got);
	if (err)
		return err;
	if (got != n)
		return damaged("it got shorter");
	out->size += got;
	return NULL;
}

static uint64_t get_word(const struct extraction *e, struct cursor *c)
{
	return e->is_64 ? cursor_u64(c) : cursor_u32(c);
}

static struct cursor cursor_over(const struct extraction *e, const struct buf *buf)
{
	return cursor_make(buf->data, buf->size, e->is_swapped);
}

/* Writes a word in the file's class and byte order. */
static void put_word(const struct extraction *e, struct buf *buf, size_t at, uint64_t value)
{
	uint64_t wide = e->is_swapped ? __builtin_bswap64(value) : value;
	uint32_t narrow = e->is_swapped ? __builtin_bswap32((uint32_t)value) : (uint32_t)value;
	if (e->is_64)
		memcpy(buf->data + at, &wide, sizeof(wide));
	else
		memcpy(buf->data + at, &narrow, sizeof(narrow));
}

static void put_u32(const struct extraction *e, struct buf *buf, size_t at, uint32_t value)
{
	value = e->is_swapped ? __builtin_bswap32(value) : value;
	memcpy(buf->data + at, &value, sizeof(value));
}

/* Places of fields that are read or changed. */
static size_t program_header_bytes(const struct extraction *e)
{
	return e->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

static size_t section_header_bytes(const struct extraction *e)
{
	return e->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

#define FIELD_AT(e, type, field)                                                                   \
	((e)->is_64 ? offsetof(Elf64_##type, field) : offsetof(Elf32_##type, field))

static struct error *read_elf_header(struct extraction *e)
{
	uint64_t n = e->file_bytes < sizeof(Elf64_Ehdr) ? e->file_bytes : sizeof(Elf64_Ehdr);
	struct error *err = read_part(e, 0, n, &e->elf_header);
	if (err)
		return err;
	const uint8_t *ident = e->elf_header.data;
	if (n < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return damaged("no ELF magic");
	e->is_64 = ident[EI_CLASS] == ELFCLASS64;
	e->is_swapped = (ident[EI_DATA] == ELFDATA2LSB) != (__BYTE_ORDER == __LITTLE_ENDIAN);
	if (!e->is_64 && ident[EI_CLASS] != ELFCLASS32)
		return damaged("unknown class");
	size_t header = e->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	if (n < header)
		return damaged("header cut short");
	e->elf_header.size = header;
	return NULL;
}

/* Counts that do not fit 16 bits stand in section 0 (elf(5)). */
static struct error *read_counts(struct extraction *e, struct cursor *section_0, uint32_t *n_ph,
				 uint32_t *n_sh, uint32_t *names)
{
	cursor_seek(section_0, FIELD_AT(e, Shdr, sh_size));
	uint64_t size = get_word(e, section_0);
	cursor_seek(section_0, FIELD_AT(e, Shdr, sh_link));
	uint32_t link = cursor_u32(section_0);
	cursor_seek(section_0, FIELD_AT(e, Shdr, sh_info));
	uint32_t info = cursor_u32(section_0);
	if (!*n_sh)
		*n_sh = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
	if (*names == SHN_XINDEX)
		*names = link;
	if (*n_ph == PN_XNUM)
		*n_ph = info;
	if (!cursor_is_ok(section_0) || !*n_sh || *n_sh > DEBUGINFO_MAX_SECTIONS ||
	    *n_ph > DEBUGINFO_MAX_PROGRAM_HEADERS || *names >= *n_sh)
		return damaged("counts of headers out of range");
	return NULL;
}

static struct error *read_tables(struct extraction *e)
{
	struct cursor c = cursor_over(e, &e->elf_header);
	cursor_seek(&c, FIELD_AT(e, Ehdr, e_phoff));
	uint64_t program_headers_at = get_word(e, &c);
	e->section_headers_at = get_word(e, &c);
	cursor_seek(&c, FIELD_AT(e, Ehdr, e_phentsize));
	uint16_t ph_bytes = cursor_u16(&c);
	uint32_t n_ph = cursor_u16(&c);
	uint16_t sh_bytes = cursor_u16(&c);
	uint32_t n_sh = cursor_u16(&c), names = cursor_u16(&c);
	if (!e->section_headers_at)
		return error_new(ERROR_NO_ENTRY, "ELF file: it has no section headers");
	if (sh_bytes != section_header_bytes(e) || (n_ph && ph_bytes != program_header_bytes(e)))
		return damaged("headers of unknown size");
	struct error *err =
		read_part(e, e->section_headers_at, section_header_bytes(e), &e->section_headers);
	if (err)
		return err;
	struct cursor section_0 = cursor_over(e, &e->section_headers);
	err = read_counts(e, &section_0, &n_ph, &n_sh, &names);
	if (err)
		return err;
	e->n_program_headers = n_ph;
	e->n_sections = n_sh;
	e->name_section = names;
	buf_clear(&e->section_headers);
	err = read_part(e, e->section_headers_at, (uint64_t)n_sh * sh_bytes, &e->section_headers);
	if (!err && n_ph)
		err = read_part(e, program_headers_at, (uint64_t)n_ph * ph_bytes,
				&e->program_headers);
	return err;
}

static void read_sections(struct extraction *e)
{
	e->sections = mem_zalloc(e->n_sections, sizeof(*e->sections));
	struct cursor c = cursor_over(e, &e->section_headers);
	for (uint32_t i = 0; i < e->n_sections; i++) {
		struct section *section = &e->sections[i];
		cursor_seek(&c, i * section_header_bytes(e));
		section->name = cursor_u32(&c);
		section->type = cursor_u32(&c);
		section->flags = get_word(e, &c);
		(void)get_word(e, &c); /* address */
		section->offset = get_word(e, &c);
		section->size = get_word(e, &c);
		cursor_skip(&c, 2 * sizeof(uint32_t)); /* link, info */
		section->alignment = get_word(e, &c);
	}
}

static const char *name_of(struct extraction *e, const struct section *section)
{
	if (section->name >= e->names.size)
		return "";
	struct cursor c = cursor_over(e, &e->names);
	cursor_seek(&c, section->name);
	const char *name = cursor_string(&c, cursor_left(&c));
	return name ? name : "";
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (size_t i = 0; names[i]; i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

static bool starts_with(const char *name, const char *start)
{
	return !strncmp(name, start, strlen(start));
}

/* Sections that are loaded into memory and that symbolizers read all the same. */
static bool is_loaded_and_read(const struct section *section, const char *name)
{
	static const char *const names[] = {
		".eh_frame",
		".eh_frame_hdr",
		".dynstr",
		".gopclntab",
		".data.rel.ro.gopclntab",
		".go.buildinfo",
		".ARM.exidx",
		".ARM.extab",
		NULL,
	};
	return section->type == SHT_NOTE || section->type == SHT_DYNSYM || is_one_of(name, names);
}

static struct error *choose_sections(struct extraction *e)
{
	const struct section *names = &e->sections[e->name_section];
	if (names->type == SHT_STRTAB) {
		struct error *err = read_part(e, names->offset, names->size, &e->names);
		if (err)
			return err;
	}
	for (uint32_t i = 1; i < e->n_sections; i++) {
		struct section *section = &e->sections[i];
		if (section->type == SHT_NULL || section->type == SHT_NOBITS)
			continue;
		const char *name = name_of(e, section);
		section->is_kept =
			!(section->flags & SHF_ALLOC) || is_loaded_and_read(section, name);
		e->has_names |= section->type == SHT_SYMTAB || section->type == SHT_DYNSYM ||
				starts_with(name, ".debug_info") ||
				starts_with(name, ".zdebug_info") ||
				(section->is_kept && strstr(name, ".gopclntab") != NULL);
	}
	return NULL;
}

static uint64_t align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

/* Values that are no power of two mean nothing; large ones matter for loading only. */
static uint64_t alignment_of(const struct section *section)
{
	uint64_t alignment = section->alignment;
	if (!alignment || (alignment & (alignment - 1)))
		return 1;
	return alignment < MAX_ALIGNMENT ? alignment : MAX_ALIGNMENT;
}

static void add_piece(struct debuginfo_image *image, int kind, uint64_t source, uint64_t n)
{
	if (!n)
		return;
	if (image->n_pieces == image->capacity) {
		image->capacity = image->capacity ? image->capacity * 2 : 64;
		image->pieces = mem_realloc(image->pieces, image->capacity, sizeof(*image->pieces));
	}
	image->pieces[image->n_pieces++] = (struct debuginfo_piece){
		.offset = image->n_bytes, .source = source, .n = n, .kind = kind};
	image->n_bytes += n;
}

static void pad(struct debuginfo_image *image, uint64_t alignment)
{
	add_piece(image, DEBUGINFO_PIECE_ZEROS, 0,
		  align(image->n_bytes, alignment) - image->n_bytes);
}

static struct error *over_limit(const struct extraction *e)
{
	return error_new(ERROR_LIMIT, "ELF file: its debug information passes %llu bytes",
			 (unsigned long long)e->max_bytes);
}

/* Places the kept sections behind the headers. */
static struct error *place_sections(struct extraction *e)
{
	struct debuginfo_image *image = e->image;
	for (uint32_t i = 1; i < e->n_sections; i++) {
		struct section *section = &e->sections[i];
		if (section->is_kept && (section->offset > e->file_bytes ||
					 section->size > e->file_bytes - section->offset))
			return damaged("a section lies past its end");
		if (section->is_kept)
			pad(image, alignment_of(section));
		section->new_offset = image->n_bytes;
		if (section->is_kept)
			add_piece(image, DEBUGINFO_PIECE_FILE, section->offset, section->size);
		if (image->n_bytes > e->max_bytes)
			return over_limit(e);
	}
	return NULL;
}

static void change_section_headers(struct extraction *e)
{
	for (uint32_t i = 1; i < e->n_sections; i++) {
		const struct section *section = &e->sections[i];
		size_t at = i * section_header_bytes(e);
		if (section->type == SHT_NULL)
			continue;
		if (!section->is_kept)
			put_u32(e, &e->section_headers, at + FIELD_AT(e, Shdr, sh_type),
				SHT_NOBITS);
		put_word(e, &e->section_headers, at + FIELD_AT(e, Shdr, sh_offset),
			 section->new_offset);
	}
}

/* Whether the bytes lie in a kept section; they moved with it. */
static bool find_moved(const struct extraction *e, uint64_t offset, uint64_t n, uint64_t *out)
{
	for (uint32_t i = 1; i < e->n_sections; i++) {
		const struct section *section = &e->sections[i];
		if (section->is_kept && offset >= section->offset && n <= section->size &&
		    offset - section->offset <= section->size - n) {
			*out = section->new_offset + (offset - section->offset);
			return true;
		}
	}
	return false;
}

static void change_program_headers(struct extraction *e)
{
	struct cursor c = cursor_over(e, &e->program_headers);
	for (uint32_t i = 0; i < e->n_program_headers; i++) {
		size_t at = i * program_header_bytes(e);
		cursor_seek(&c, at);
		uint32_t type = cursor_u32(&c);
		cursor_seek(&c, at + FIELD_AT(e, Phdr, p_offset));
		uint64_t offset = get_word(e, &c);
		cursor_seek(&c, at + FIELD_AT(e, Phdr, p_filesz));
		uint64_t n = get_word(e, &c);
		uint64_t moved;
		if (type != PT_LOAD && n && find_moved(e, offset, n, &moved))
			put_word(e, &e->program_headers, at + FIELD_AT(e, Phdr, p_offset), moved);
	}
}

static struct error *append_header(struct debuginfo_image *image, const struct buf *part)
{
	return part->size ? buf_append(&image->headers, part->data, part->size) : NULL;
}

static struct error *lay_out(struct extraction *e)
{
	struct debuginfo_image *image = e->image;
	add_piece(image, DEBUGINFO_PIECE_HEADER, 0, e->elf_header.size);
	uint64_t program_headers_at = image->n_bytes;
	add_piece(image, DEBUGINFO_PIECE_HEADER, e->elf_header.size, e->program_headers.size);
	struct error *err = place_sections(e);
	if (err)
		return err;
	pad(image, sizeof(uint64_t));
	put_word(e, &e->elf_header, FIELD_AT(e, Ehdr, e_phoff),
		 e->n_program_headers ? program_headers_at : 0);
	put_word(e, &e->elf_header, FIELD_AT(e, Ehdr, e_shoff), image->n_bytes);
	add_piece(image, DEBUGINFO_PIECE_HEADER, e->elf_header.size + e->program_headers.size,
		  e->section_headers.size);
	if (image->n_bytes > e->max_bytes || (!e->is_64 && image->n_bytes > UINT32_MAX))
		return over_limit(e);
	change_section_headers(e);
	change_program_headers(e);
	err = append_header(image, &e->elf_header);
	if (!err)
		err = append_header(image, &e->program_headers);
	return err ? err : append_header(image, &e->section_headers);
}

/* The GNU build-id among the notes of a section. */
static bool find_build_id(const struct extraction *e, const struct buf *notes, struct build_id *out)
{
	struct cursor c = cursor_over(e, notes);
	while (cursor_is_ok(&c) && cursor_left(&c)) {
		uint32_t n_name = cursor_u32(&c), n_value = cursor_u32(&c), type = cursor_u32(&c);
		const uint8_t *name = cursor_bytes(&c, (size_t)align(n_name, 4));
		const uint8_t *value = cursor_bytes(&c, n_value);
		if (!value || !name)
			return false;
		if (type == NT_GNU_BUILD_ID && n_name == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU))) {
			*out = build_id_make(value, n_value);
			return true;
		}
		size_t rest = (size_t)(align(n_value, 4) - n_value);
		cursor_skip(&c, rest < cursor_left(&c) ? rest : cursor_left(&c));
	}
	return false;
}

static struct error *check_build_id(const struct extraction *e, const struct build_id *want)
{
	if (want->kind != BUILD_ID_GNU)
		return NULL;
	for (uint32_t i = 1; i < e->n_sections; i++) {
		const struct section *section = &e->sections[i];
		if (section->type != SHT_NOTE || section->size > MAX_NOTES_BYTES)
			continue;
		CLEANUP(buf_fini) struct buf notes;
		buf_init(&notes, MAX_NOTES_BYTES);
		struct error *err = read_part(e, section->offset, section->size, &notes);
		if (err)
			return err;
		struct build_id id;
		if (!find_build_id(e, &notes, &id))
			continue;
		return build_id_equal(&id, want) ? NULL : damaged("it has another build-id");
	}
	return damaged("it has no build-id");
}

static void make_hash(struct debuginfo_image *image, const struct build_id *id)
{
	XXH3_state_t *state = XXH3_createState();
	XXH3_128bits_reset(state);
	XXH3_128bits_update(state, image->headers.data, image->headers.size);
	XXH3_128bits_update(state, id->bytes, id->size);
	XXH3_128bits_update(state, &image->n_bytes, sizeof(image->n_bytes));
	XXH128_hash_t hash = XXH3_128bits_digest(state);
	XXH3_freeState(state);
	snprintf(image->hash, sizeof(image->hash), "%016llx%016llx",
		 (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static struct error *extract(struct extraction *e, const struct build_id *id)
{
	struct error *err = read_elf_header(e);
	if (!err)
		err = read_tables(e);
	if (err)
		return err;
	read_sections(e);
	err = choose_sections(e);
	if (err)
		return err;
	if (!e->has_names)
		return error_new(ERROR_NO_ENTRY, "ELF file: nothing in it names an address");
	err = check_build_id(e, id);
	if (err)
		return err;
	if (e->file_bytes > DEBUGINFO_WHOLE_BYTES)
		return lay_out(e);
	if (e->file_bytes > e->max_bytes)
		return over_limit(e);
	add_piece(e->image, DEBUGINFO_PIECE_FILE, 0, e->file_bytes);
	return append_header(e->image, &e->section_headers); /* for the hash */
}

struct error *debuginfo_extract(int fd, const struct build_id *id, uint64_t max_bytes,
				struct debuginfo_image *out)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_errno(errno, "fstat");
	if (!S_ISREG(st.st_mode))
		return error_new(ERROR_BAD_DATA, "ELF file: not a regular file");
	struct debuginfo_image image = {.fd = fd};
	CLEANUP(extraction_fini)
	struct extraction e = {.fd = fd,
			       .file_bytes = (uint64_t)st.st_size,
			       .max_bytes = max_bytes,
			       .image = &image};
	buf_init(&image.headers, HEADERS_MAX_BYTES);
	buf_init(&e.elf_header, sizeof(Elf64_Ehdr));
	buf_init(&e.program_headers, HEADERS_MAX_BYTES);
	buf_init(&e.section_headers, HEADERS_MAX_BYTES);
	buf_init(&e.names, MAX_NAMES_BYTES);
	struct error *err = extract(&e, id);
	if (err) {
		debuginfo_image_fini(&image);
		return err;
	}
	make_hash(&image, id);
	*out = image;
	return NULL;
}

void debuginfo_image_fini(struct debuginfo_image *image)
{
	mem_free(image->pieces);
	buf_fini(&image->headers);
	*image = (struct debuginfo_image){.fd = -1};
}

/* The piece that holds the byte at offset. */
static const struct debuginfo_piece *find_piece(const struct debuginfo_image *image,
						uint64_t offset)
{
	size_t low = 0, high = image->n_pieces;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (image->pieces[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &image->pieces[low];
}

static struct error *read_piece(const struct debuginfo_image *image,
				const struct debuginfo_piece *piece, uint64_t skipped, uint8_t *out,
				size_t n)
{
	size_t got = n;
	struct error *err = NULL;
	if (piece->kind == DEBUGINFO_PIECE_ZEROS)
		memset(out, 0, n);
	else if (piece->kind == DEBUGINFO_PIECE_HEADER)
		memcpy(out, image->headers.data + piece->source + skipped, n);
	else
		err = file_read_at(image->fd, piece->source + skipped, out, n, &got);
	return !err && got != n ? damaged("it got shorter") : err;
}

struct error *debuginfo_image_read(const struct debuginfo_image *image, uint64_t offset,
				   uint8_t *out, size_t n)
{
	if (offset > image->n_bytes || n > image->n_bytes - offset)
		return damaged("read past the end");
	while (n) {
		const struct debuginfo_piece *piece = find_piece(image, offset);
		uint64_t skipped = offset - piece->offset;
		uint64_t left = piece->n - skipped;
		size_t part = left < n ? (size_t)left : n;
		struct error *err = read_piece(image, piece, skipped, out, part);
		if (err)
			return err;
		out += part;
		offset += part;
		n -= part;
	}
	return NULL;
}
