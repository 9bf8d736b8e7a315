/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: the address index leads to a block; the block is decoded up to the segment that
 * holds the address, which gives a real function, the calls inlined in it and a site in the last of
 * them, all as small numbers local to the functions; these numbers are looked up function by
 * function. Sections and index arrays are checked at open; what is coded in bits is bounded where
 * it is decoded.
 */
#include "symcache/symbol_file.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/crc32c.h"
#include "symcache/demangle.h"
#include "symcache/display_guess.h"
#include "symcache/string_code.h"
#include "symcache/symbol_file_layout.h"
#include "symcache/symbol_model.h"
#include "symcache/unwind_table.h"

#define SITE_NONE UINT32_MAX

struct section {
	const uint8_t *bytes;
	size_t size;
};

/* A stream of bits; positions at or past limit read the zeros that follow it. */
struct bit_stream {
	const uint8_t *bytes;
	uint64_t limit;
};

/*
 * A function once it was met: a cache line, and its edges and sites in the lines behind it, where
 * the processor fetches them along.
 */
struct function_slot {
	const char *name, *linkage_name;
	const char *file;		/* of its code */
	const char *declared;		/* file that start_line is in */
	const char *const *other_files; /* by number in a site, 0 = file */
	uint32_t start_line, line_base;
	uint32_t n_sites, n_edges;
	uint32_t sites_bit; /* where sites begin, behind the edges */
	uint8_t line_bits, column_bits, site_bits;
	uint8_t file_bits : 4;
	bool is_folded : 1;
};
enum { SLOT_BYTES = 64, SLOTS_BYTES = 64 << 10 };
static_assert(sizeof(struct function_slot) <= SLOT_BYTES, "one cache line");

struct symbol_file {
	struct prefix_table codes[SYMBOL_CODE_N];
	struct section sections[SYMBOL_SECTION_N];
	struct bit_stream segments;
	const uint8_t *group_addresses; /* u64 */
	const uint8_t *groups;		/* GROUP_BYTES each */
	const uint8_t *blocks;		/* BLOCK_BYTES each */
	uint32_t n_groups, n_blocks, n_functions, n_paths, n_sites, n_edges;
	uint64_t n_segments;
	uint8_t address_shift, function_bits, block_segments, flags;
	enum symcache_demangle demangle;
	enum symbol_quality quality;
	struct build_id build_id;
	struct string_code pieces;
	struct function_slot **functions; /* NULL = not met yet */
	uint8_t *slots_next;		  /* room for more, aligned */
	size_t slots_left;
	const char **paths; /* per node, NULL = not met yet */
	struct arena arena;
	struct file_map map; /* empty when the bytes are borrowed */
	size_t size;
};

enum {
	GROUP_BYTES = 12,
	BLOCK_BYTES = 4,
	NUMBER_MAX_BYTES = 5,
	PACKED_TAIL_BYTES = 8, /* fields are read 8 bytes at a time */
};

static uint16_t load_u16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static uint32_t load_u32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* At least 57 bits from pos on. */
static inline uint64_t peek_bits(const struct bit_stream *stream, uint64_t pos)
{
	pos = pos < stream->limit ? pos : stream->limit;
	return load_u64(stream->bytes + (pos >> 3)) >> (pos & 7);
}

/* The same when pos is within the stream or its tail for sure. */
static inline uint64_t peek_tail(const struct bit_stream *stream, uint64_t pos)
{
	return load_u64(stream->bytes + (pos >> 3)) >> (pos & 7);
}

static inline uint32_t low_bits(uint64_t window, unsigned n)
{
	return (uint32_t)(window & ((UINT64_C(1) << n) - 1));
}

/* LEB128 of at most 32 bits. */
static uint32_t read_number(struct cursor *c)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < NUMBER_MAX_BYTES; i++) {
		uint8_t byte = cursor_u8(c);
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			c->is_bad |= value > UINT32_MAX;
			return (uint32_t)value;
		}
	}
	c->is_bad = true;
	return 0;
}

/* ---- open ---- */

static struct error *damaged(const char *what)
{
	return error_new(ERROR_BAD_DATA, "damaged symbol file: %s", what);
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* Over header and section table, the sum's own field taken as zero. */
static uint32_t header_crc(const uint8_t *bytes, size_t n)
{
	static const uint8_t zero[sizeof(uint32_t)];
	const size_t behind = SYMBOL_FILE_AT_CRC + sizeof(zero);
	uint32_t crc = crc32c_update(0, bytes, SYMBOL_FILE_AT_CRC);
	crc = crc32c_update(crc, zero, sizeof(zero));
	return crc32c_update(crc, bytes + behind, n - behind);
}

/* Of at least SYMBOL_FILE_HEADER_BYTES. */
static struct error *parse_header(const uint8_t *bytes, struct symbol_file_header *out)
{
	uint32_t version = load_u32(bytes + SYMBOL_FILE_AT_VERSION);
	if (version != SYMBOL_FILE_VERSION)
		return error_new(ERROR_UNSUPPORTED, "symbol file of version %u, not %u", version,
				 SYMBOL_FILE_VERSION);
	uint8_t quality = bytes[SYMBOL_FILE_AT_QUALITY], id_size = bytes[SYMBOL_FILE_AT_ID_SIZE];
	uint8_t kind = bytes[SYMBOL_FILE_AT_ID_KIND];
	if (quality >= SYMBOL_QUALITY_N || id_size > BUILD_ID_MAX_BYTES || kind > BUILD_ID_HASH)
		return damaged("header");
	out->quality = quality;
	out->build_id = build_id_make(bytes + SYMBOL_FILE_AT_ID, id_size);
	out->build_id.kind = kind;
	return NULL;
}

static struct error *check_magic(const uint8_t *bytes, size_t size)
{
	if (size < sizeof(symbol_file_magic) ||
	    memcmp(bytes, symbol_file_magic, sizeof(symbol_file_magic)) != 0)
		return error_new(ERROR_BAD_DATA, "not a symbol file");
	return size < SYMBOL_FILE_HEADER_BYTES ? damaged("it ends within the header") : NULL;
}

struct error *symbol_file_read_header(int fd, struct symbol_file_header *out)
{
	uint8_t bytes[SYMBOL_FILE_HEADER_BYTES];
	size_t n;
	struct error *err = file_read_at(fd, 0, bytes, sizeof(bytes), &n);
	if (!err)
		err = check_magic(bytes, n);
	return err ? err : parse_header(bytes, out);
}

static struct error *read_header(struct symbol_file *file, const uint8_t *bytes, uint32_t *n_out)
{
	struct symbol_file_header header;
	struct error *err = check_magic(bytes, file->size);
	if (!err)
		err = parse_header(bytes, &header);
	if (err)
		return err;
	uint32_t n = load_u32(bytes + SYMBOL_FILE_AT_N_SECTIONS);
	if (load_u64(bytes + SYMBOL_FILE_AT_BYTES) != file->size)
		return damaged("its size is not what its header says");
	if (n > SYMBOL_FILE_MAX_SECTIONS ||
	    n > (file->size - SYMBOL_FILE_HEADER_BYTES) / SYMBOL_FILE_ENTRY_BYTES)
		return damaged("section table");
	if (header_crc(bytes, SYMBOL_FILE_HEADER_BYTES + n * SYMBOL_FILE_ENTRY_BYTES) !=
	    load_u32(bytes + SYMBOL_FILE_AT_CRC))
		return damaged("checksum of the header");
	file->quality = header.quality;
	file->build_id = header.build_id;
	*n_out = n;
	return NULL;
}

/* Sections lie in the order of the table, with zeros up to the alignment between them. */
static struct error *read_sections(struct symbol_file *file, const uint8_t *bytes, uint32_t n)
{
	size_t at = SYMBOL_FILE_HEADER_BYTES + (size_t)n * SYMBOL_FILE_ENTRY_BYTES;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *entry =
			bytes + SYMBOL_FILE_HEADER_BYTES + (size_t)i * SYMBOL_FILE_ENTRY_BYTES;
		uint32_t kind = load_u32(entry), crc = load_u32(entry + 4);
		uint64_t offset = load_u64(entry + 8), size = load_u64(entry + 16);
		if (offset < at || offset - at >= SYMBOL_FILE_ALIGNMENT ||
		    offset % SYMBOL_FILE_ALIGNMENT || offset > file->size ||
		    size > file->size - offset || !is_zero(bytes + at, offset - at))
			return damaged("section table");
		if (crc32c_update(0, bytes + offset, size) != crc)
			return damaged("checksum of a section");
		if (kind < SYMBOL_SECTION_N) {
			if (file->sections[kind].bytes)
				return damaged("a section stands there twice");
			file->sections[kind] = (struct section){bytes + offset, size};
		}
		at = offset + size;
	}
	if (at != file->size)
		return damaged("bytes behind the last section");
	for (unsigned kind = 1; kind < SYMBOL_SECTION_UNWIND; kind++)
		if (!file->sections[kind].bytes)
			return damaged("a section is missing");
	return NULL;
}

static struct error *read_parameters(struct symbol_file *file)
{
	const struct section *section = &file->sections[SYMBOL_SECTION_PARAMETERS];
	if (section->size < SYMBOL_FILE_PARAMETERS_BYTES)
		return damaged("parameters");
	const uint8_t *p = section->bytes;
	file->n_segments = load_u64(p);
	file->n_groups = load_u32(p + 8);
	file->n_blocks = load_u32(p + 12);
	file->n_functions = load_u32(p + 16);
	file->n_paths = load_u32(p + 20);
	file->n_sites = load_u32(p + 24);
	file->n_edges = load_u32(p + 28);
	file->address_shift = p[32];
	file->function_bits = p[33];
	file->block_segments = p[34];
	file->flags = p[35];
	if (file->address_shift > 15 || file->function_bits > SYMBOL_FILE_MAX_INDEX_BITS ||
	    file->block_segments > SYMBOL_FILE_MAX_SEGMENTS)
		return damaged("parameters");
	return NULL;
}

static struct error *read_codes(struct symbol_file *file)
{
	const struct section *section = &file->sections[SYMBOL_SECTION_CODES];
	if (section->size != SYMBOL_CODES_BYTES)
		return damaged("prefix codes");
	size_t at = 0;
	for (unsigned code = 0; code < SYMBOL_CODE_N; code++) {
		uint8_t lengths[PREFIX_CODE_MAX_SYMBOLS];
		unsigned n = symbol_code_symbols(code);
		for (unsigned i = 0; i < n; i++, at++)
			lengths[i] = section->bytes[at / 2] >> (at % 2 * 4) & 15;
		if (!prefix_table_init(&file->codes[code], lengths, n))
			return damaged("prefix codes");
	}
	return NULL;
}

static struct error *set_stream(const struct section *section, struct bit_stream *out)
{
	if (section->size < SYMBOL_FILE_TAIL_BYTES || section->size > UINT32_MAX)
		return damaged("size of a section");
	out->bytes = section->bytes;
	out->limit = (uint64_t)(section->size - SYMBOL_FILE_TAIL_BYTES) * 8;
	return NULL;
}

static uint32_t group_offset(const struct symbol_file *file, uint32_t group)
{
	return load_u32(file->groups + (size_t)group * GROUP_BYTES);
}

static uint32_t group_root(const struct symbol_file *file, uint32_t group)
{
	return load_u32(file->groups + (size_t)group * GROUP_BYTES + 4);
}

static uint32_t group_block(const struct symbol_file *file, uint32_t group)
{
	return group < file->n_groups ? load_u32(file->groups + (size_t)group * GROUP_BYTES + 8)
				      : file->n_blocks;
}

static uint64_t group_address(const struct symbol_file *file, uint32_t group)
{
	return load_u64(file->group_addresses + (size_t)group * sizeof(uint64_t));
}

/* From the group's address, in units of the address shift. */
static inline uint16_t block_delta(const struct symbol_file *file, uint32_t block)
{
	return load_u16(file->blocks + (size_t)block * BLOCK_BYTES);
}

/* From the group's offset, in bytes. */
static inline uint16_t block_offset(const struct symbol_file *file, uint32_t block)
{
	return load_u16(file->blocks + (size_t)block * BLOCK_BYTES + 2);
}

static struct error *check_group(const struct symbol_file *file, uint32_t group)
{
	uint32_t first = group_block(file, group), end = group_block(file, group + 1);
	if (first >= end || end > file->n_blocks || end - first > SYMBOL_FILE_GROUP_BLOCKS ||
	    (group && group_address(file, group) <= group_address(file, group - 1)))
		return damaged("address index");
	uint64_t last = (uint64_t)group_offset(file, group) + block_offset(file, end - 1);
	if (last > file->segments.limit / 8 || block_delta(file, first) ||
	    block_offset(file, first))
		return damaged("address index");
	for (uint32_t i = first + 1; i < end; i++)
		if (block_delta(file, i) <= block_delta(file, i - 1) ||
		    block_offset(file, i) < block_offset(file, i - 1))
			return damaged("address index");
	return NULL;
}

static struct error *read_index(struct symbol_file *file)
{
	const struct section *groups = &file->sections[SYMBOL_SECTION_GROUPS];
	const struct section *blocks = &file->sections[SYMBOL_SECTION_BLOCKS];
	struct error *err = set_stream(&file->sections[SYMBOL_SECTION_SEGMENTS], &file->segments);
	if (err)
		return err;
	if (groups->size != (uint64_t)file->n_groups * (sizeof(uint64_t) + GROUP_BYTES) ||
	    blocks->size != (uint64_t)file->n_blocks * BLOCK_BYTES ||
	    !file->n_groups != !file->n_blocks)
		return damaged("address index");
	file->group_addresses = groups->bytes;
	file->groups = groups->bytes + (size_t)file->n_groups * sizeof(uint64_t);
	file->blocks = blocks->bytes;
	if (file->n_groups && group_block(file, 0))
		return damaged("address index");
	for (uint32_t i = 0; i < file->n_groups && !err; i++)
		err = check_group(file, i);
	return err;
}

/* A directory has the place of every 16th record of n, in ascending order. */
static struct error *check_directory(const struct section *directory, uint32_t n, uint64_t limit)
{
	uint64_t n_entries = ((uint64_t)n + SYMBOL_FILE_STRIDE - 1) / SYMBOL_FILE_STRIDE;
	if (directory->size != n_entries * sizeof(uint32_t))
		return damaged("directory");
	uint32_t before = 0;
	for (size_t i = 0; i < n_entries; i++) {
		uint32_t at = load_u32(directory->bytes + i * sizeof(uint32_t));
		/* Each record takes at least a byte, so n is bounded by the section's size. */
		if (at >= limit || (i ? at - before < SYMBOL_FILE_STRIDE || at < before : at != 0))
			return damaged("directory");
		before = at;
	}
	return NULL;
}

static struct error *read_records(struct symbol_file *file)
{
	const struct section *paths = &file->sections[SYMBOL_SECTION_PATHS];
	const struct section *pieces = &file->sections[SYMBOL_SECTION_PIECES];
	struct error *err =
		check_directory(&file->sections[SYMBOL_SECTION_DIRECTORY], file->n_functions,
				file->sections[SYMBOL_SECTION_FUNCTIONS].size);
	if (err)
		return err;
	err = check_directory(&file->sections[SYMBOL_SECTION_PATH_INDEX], file->n_paths,
			      paths->size);
	if (err)
		return err;
	if (!string_code_load(&file->pieces, pieces->bytes, pieces->size))
		return damaged("dictionary");
	return NULL;
}

static struct error *read_file(struct symbol_file *file, const uint8_t *bytes)
{
	uint32_t n_sections = 0;
	struct error *err = read_header(file, bytes, &n_sections);
	if (!err)
		err = read_sections(file, bytes, n_sections);
	if (!err)
		err = read_parameters(file);
	if (!err)
		err = read_codes(file);
	if (!err)
		err = read_index(file);
	if (!err)
		err = read_records(file);
	if (err)
		return err;
	/* Zeroed memory that nobody touched costs nothing. */
	file->functions = mem_zalloc(file->n_functions, sizeof(struct function_slot *));
	file->paths = mem_zalloc(file->n_paths, sizeof(char *));
	return NULL;
}

struct error *symbol_file_open_bytes(const void *bytes, size_t size,
				     enum symcache_demangle demangle, struct symbol_file **out)
{
	if (size > SYMBOL_FILE_MAX_BYTES)
		return error_new(ERROR_LIMIT, "a symbol file of %zu bytes", size);
	struct symbol_file *file = mem_zalloc(1, sizeof(*file));
	file->size = size;
	file->demangle = demangle;
	arena_init(&file->arena, 0);
	struct error *err = read_file(file, bytes);
	if (err) {
		symbol_file_close(file);
		return err;
	}
	*out = file;
	return NULL;
}

struct error *symbol_file_open_fd(int fd, enum symcache_demangle demangle, struct symbol_file **out)
{
	struct file_map map;
	struct error *err = file_map_fd(fd, SYMBOL_FILE_MAX_BYTES, &map);
	if (err)
		return err;
	err = symbol_file_open_bytes(map.data, map.size, demangle, out);
	if (err)
		file_map_close(&map);
	else
		(*out)->map = map;
	return err;
}

struct error *symbol_file_open(const char *path, enum symcache_demangle demangle,
			       struct symbol_file **out)
{
	int fd = -1;
	struct error *err = file_open_regular(path, &fd);
	if (err)
		return err;
	err = error_wrap(symbol_file_open_fd(fd, demangle, out), "%s", path);
	close(fd);
	return err;
}

void symbol_file_close(struct symbol_file *file)
{
	if (!file)
		return;
	mem_free(file->functions);
	mem_free(file->paths);
	arena_fini(&file->arena);
	file_map_close(&file->map);
	mem_free(file);
}

struct symbol_file_info symbol_file_get_info(const struct symbol_file *file)
{
	return (struct symbol_file_info){
		.build_id = file->build_id,
		.quality = file->quality,
		.n_functions = file->n_functions,
		.n_sites = file->n_sites,
		.n_edges = file->n_edges,
		.n_paths = file->n_paths,
		.n_segments = file->n_segments,
		.has_lines = file->flags & SYMBOL_FILE_HAS_LINES,
		.has_columns = file->flags & SYMBOL_FILE_HAS_COLUMNS,
		.has_inlines = file->flags & SYMBOL_FILE_HAS_INLINES,
		.size = file->size,
	};
}

const uint8_t *symbol_file_unwind(const struct symbol_file *file, size_t *n_out)
{
	*n_out = file->sections[SYMBOL_SECTION_UNWIND].size;
	return file->sections[SYMBOL_SECTION_UNWIND].bytes;
}

/* ---- texts ---- */

/*
 * The record's bytes: those that follow its number of bytes. Records end within their stretch of
 * the directory, so that no two share bytes.
 */
static struct cursor find_record(const struct section *records, const struct section *directory,
				 uint32_t number)
{
	size_t entry = (size_t)(number / SYMBOL_FILE_STRIDE) * sizeof(uint32_t);
	uint32_t start = load_u32(directory->bytes + entry);
	bool is_last = entry + sizeof(uint32_t) == directory->size;
	size_t end =
		is_last ? records->size : load_u32(directory->bytes + entry + sizeof(uint32_t));
	struct cursor c = cursor_make(records->bytes + start, end - start, false);
	for (uint32_t i = number % SYMBOL_FILE_STRIDE; i > 0; i--)
		cursor_skip(&c, read_number(&c));
	return cursor_sub(&c, read_number(&c));
}

static struct cursor find_function(const struct symbol_file *file, uint32_t number)
{
	return find_record(&file->sections[SYMBOL_SECTION_FUNCTIONS],
			   &file->sections[SYMBOL_SECTION_DIRECTORY], number);
}

/* A number of bytes and that many coded ones; NULL when they are not there or too many. */
static const uint8_t *read_coded(struct cursor *c, size_t *n_out)
{
	*n_out = read_number(c);
	if (*n_out > 2 * SYMBOL_FILE_MAX_NAME_BYTES) {
		c->is_bad = true;
		return NULL;
	}
	return cursor_bytes(c, *n_out);
}

static const char *read_text(struct symbol_file *file, struct cursor *c)
{
	size_t n;
	const uint8_t *coded = read_coded(c, &n);
	if (!coded)
		return NULL;
	size_t size = string_code_decoded_size(&file->pieces, coded, n);
	char *text = arena_alloc(&file->arena, size + STRING_CODE_PIECE_BYTES + 1);
	string_code_decode(&file->pieces, coded, n, text);
	text[size] = 0;
	return text;
}

struct path_part {
	const uint8_t *coded;
	size_t n, size;
};

/* From the node up to the root; false when the path is too long or damaged. */
static bool gather_path(const struct symbol_file *file, uint32_t node, struct path_part *parts,
			size_t *n_out, size_t *size_out)
{
	size_t n = 0, size = 0;
	for (;; n++) {
		if (n == SYMBOL_FILE_MAX_COMPONENTS)
			return false;
		struct cursor c = find_record(&file->sections[SYMBOL_SECTION_PATHS],
					      &file->sections[SYMBOL_SECTION_PATH_INDEX], node);
		uint32_t up = read_number(&c);
		size_t n_coded = cursor_left(&c);
		const uint8_t *coded = cursor_bytes(&c, n_coded);
		if (!cursor_is_ok(&c) || up > node)
			return false;
		parts[n] = (struct path_part){
			coded, n_coded, string_code_decoded_size(&file->pieces, coded, n_coded)};
		size += parts[n].size + 1;
		if (size > SYMBOL_FILE_MAX_PATH_BYTES)
			return false;
		if (!up)
			break;
		node -= up;
	}
	*n_out = n + 1;
	*size_out = size;
	return true;
}

/* path: 0 = unknown, else a node's number + 1. */
static const char *get_path(struct symbol_file *file, uint32_t path)
{
	if (!path || path > file->n_paths)
		return NULL;
	if (file->paths[path - 1])
		return file->paths[path - 1];
	struct path_part parts[SYMBOL_FILE_MAX_COMPONENTS];
	size_t n, size;
	if (!gather_path(file, path - 1, parts, &n, &size))
		return NULL;
	char *text = arena_alloc(&file->arena, size + STRING_CODE_PIECE_BYTES);
	char *p = text;
	while (n-- > 0) {
		string_code_decode(&file->pieces, parts[n].coded, parts[n].n, p);
		p += parts[n].size;
		*p++ = n ? '/' : 0;
	}
	file->paths[path - 1] = text;
	return text;
}

/* ---- functions ---- */

static inline struct function_slot *get_function(struct symbol_file *file, uint32_t number);

/* The name in the form that was asked for. */
static const char *make_display(struct symbol_file *file, const char *linkage_name,
				enum symbol_display kind, const char *stored)
{
	struct demangled text;
	if (file->demangle == SYMCACHE_DEMANGLE_NONE)
		return linkage_name;
	if (file->demangle == SYMCACHE_DEMANGLE_FULL) {
		if (!demangle_name(linkage_name, SYMCACHE_DEMANGLE_FULL, &text))
			return linkage_name;
		return arena_copy_string(&file->arena, text.text, strlen(text.text));
	}
	if (kind == SYMBOL_DISPLAY_STORED)
		return stored;
	if (kind == SYMBOL_DISPLAY_GUESS &&
	    display_guess(linkage_name, text.text, sizeof(text.text)))
		return arena_copy_string(&file->arena, text.text, strlen(text.text));
	return linkage_name;
}

static bool read_names(struct symbol_file *file, struct cursor *c, uint8_t flags, uint32_t number,
		       struct function_slot *slot)
{
	if (flags & SYMBOL_FUNCTION_NAME_SHARED) {
		uint32_t earlier = read_number(c);
		if (earlier >= number)
			return false;
		struct cursor other = find_function(file, earlier);
		/* One step and no more, whatever the file says. */
		if (cursor_u8(&other) & SYMBOL_FUNCTION_NAME_SHARED)
			return false;
		const struct function_slot *same = get_function(file, earlier);
		slot->linkage_name = same->linkage_name;
		slot->name = same->name;
		return true;
	}
	slot->linkage_name = read_text(file, c);
	if (!slot->linkage_name)
		return false;
	enum symbol_display kind =
		flags >> SYMBOL_FUNCTION_DISPLAY_SHIFT & SYMBOL_FUNCTION_DISPLAY_MASK;
	const char *stored = NULL;
	if (kind == SYMBOL_DISPLAY_STORED) {
		size_t n;
		if (file->demangle == SYMCACHE_DEMANGLE_NORMAL)
			stored = read_text(file, c);
		else
			(void)read_coded(c, &n);
		if (!cursor_is_ok(c))
			return false;
	}
	slot->name = make_display(file, slot->linkage_name, kind, stored);
	return true;
}

static bool read_other_files(struct symbol_file *file, struct cursor *c, struct function_slot *slot)
{
	uint32_t n = read_number(c);
	if (!n || n >= 1u << SYMBOL_FILE_MAX_FILE_BITS)
		return false;
	slot->file_bits = (32u - (unsigned)__builtin_clz(n)) & 15u;
	/* A site may say any number of that many bits. */
	const char **files = arena_alloc(&file->arena, sizeof(*files) << slot->file_bits);
	memset(files, 0, sizeof(*files) << slot->file_bits);
	files[0] = slot->file;
	for (uint32_t i = 1; i <= n; i++)
		files[i] = get_path(file, read_number(c));
	slot->other_files = files;
	return cursor_is_ok(c);
}

static unsigned bits_for(uint32_t n)
{
	return n > 1 ? 32 - (unsigned)__builtin_clz(n - 1) : 0;
}

/* Sites and edges, packed behind the widths of their fields. */
static bool read_places(struct symbol_file *file, struct cursor *c, struct function_slot *slot)
{
	slot->n_sites = read_number(c);
	uint32_t edges = read_number(c);
	slot->n_edges = edges >> 1;
	slot->line_base = slot->start_line + (uint32_t)prefix_number_unzigzag(read_number(c));
	uint8_t widths = cursor_u8(c);
	uint32_t line_bits = widths & 15;
	if (line_bits == SYMBOL_WIDTH_FAR)
		line_bits = cursor_u8(c);
	if (line_bits > SYMBOL_FILE_MAX_LINE_BITS || !slot->n_sites)
		return false;
	slot->line_bits = (uint8_t)line_bits;
	slot->column_bits = widths >> 4;
	unsigned site_bits = bits_for(slot->n_sites);
	if (site_bits > SYMBOL_FILE_MAX_INDEX_BITS)
		return false;
	slot->site_bits = (uint8_t)site_bits;
	if ((edges & 1) && !read_other_files(file, c, slot))
		return false;
	uint64_t edge_bits = (uint64_t)slot->n_edges * (site_bits + file->function_bits);
	uint64_t bits = edge_bits +
			(uint64_t)slot->n_sites * (line_bits + slot->column_bits + slot->file_bits);
	slot->sites_bit = (uint32_t)edge_bits;
	return cursor_is_ok(c) && edge_bits <= UINT32_MAX && (bits + 7) / 8 == cursor_left(c);
}

/* What is left in packed are edges and sites. */
static bool read_function(struct symbol_file *file, uint32_t number, struct function_slot *slot,
			  struct cursor *packed)
{
	struct cursor c = find_function(file, number);
	uint8_t flags = cursor_u8(&c);
	if (!cursor_is_ok(&c) || !read_names(file, &c, flags, number, slot))
		return false;
	slot->is_folded = !!(flags & SYMBOL_FUNCTION_FOLDED);
	slot->file = get_path(file, read_number(&c));
	slot->declared = flags & SYMBOL_FUNCTION_HAS_DECLARATION ? get_path(file, read_number(&c))
								 : slot->file;
	slot->start_line = read_number(&c);
	bool is_whole = flags & SYMBOL_FUNCTION_HAS_PLACES ? read_places(file, &c, slot)
							   : cursor_is_ok(&c) && !cursor_left(&c);
	*packed = c;
	return is_whole;
}

static uint8_t *take_lines(struct symbol_file *file, size_t n_bytes)
{
	size_t bytes = (n_bytes + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
	if (bytes > file->slots_left) {
		size_t room = bytes > SLOTS_BYTES ? bytes : SLOTS_BYTES;
		uint8_t *p = arena_alloc(&file->arena, room + SLOT_BYTES);
		file->slots_next = p + (-(uintptr_t)p % SLOT_BYTES);
		file->slots_left = room;
	}
	uint8_t *lines = file->slots_next;
	file->slots_next += bytes;
	file->slots_left -= bytes;
	return lines;
}

/* A damaged record gives a function without a name. */
static struct function_slot *add_function(struct symbol_file *file, uint32_t number)
{
	struct function_slot slot = {0};
	struct cursor packed = cursor_make(NULL, 0, false);
	size_t n = 0;
	if (read_function(file, number, &slot, &packed))
		n = cursor_left(&packed);
	else
		slot = (struct function_slot){.name = NULL};
	uint8_t *lines = take_lines(file, SLOT_BYTES + (n ? n + PACKED_TAIL_BYTES : 0));
	memcpy(lines, &slot, sizeof(slot));
	if (n) {
		memcpy(lines + SLOT_BYTES, packed.next, n);
		memset(lines + SLOT_BYTES + n, 0, PACKED_TAIL_BYTES);
	}
	file->functions[number] = (struct function_slot *)(void *)lines;
	return file->functions[number];
}

static inline struct function_slot *get_function(struct symbol_file *file, uint32_t number)
{
	struct function_slot *function = file->functions[number];
	return LIKELY(function) ? function : add_function(file, number);
}

/* ---- segments ---- */

/* A real function and the calls inlined in it. Numbers are local to each level's function. */
struct chain_state {
	uint32_t root;
	uint32_t depth; /* inlined calls */
	struct {
		uint32_t edge; /* the call last made from here */
		uint32_t site; /* last site, SITE_NONE = not seen yet */
	} levels[SYMBOL_FILE_MAX_DEPTH + 1];
};

enum step_kind { STEP_FUNCTION, STEP_GAP, STEP_END, STEP_BAD };

/* The number of a symbol: window is behind its code. */
static inline uint32_t number_of(struct prefix_slot slot, uint64_t window)
{
	return prefix_number_bases[slot.symbol] + low_bits(window, slot.extra);
}

static inline uint32_t decode_number(const struct symbol_file *file, enum symbol_code code,
				     uint64_t *pos)
{
	uint64_t window = peek_bits(&file->segments, *pos);
	struct prefix_slot slot = file->codes[code].slots[window % PREFIX_CODE_SLOTS];
	*pos += slot.bits + slot.extra;
	return number_of(slot, window >> slot.bits);
}

static inline int32_t decode_difference(const struct symbol_file *file, enum symbol_code code,
					uint64_t *pos)
{
	return prefix_number_unzigzag(decode_number(file, code, pos));
}

static uint32_t decode_count(const struct symbol_file *file, uint32_t count, uint64_t *pos)
{
	if (LIKELY(count < SYMBOL_STEP_COUNTS - 1))
		return count;
	count = low_bits(peek_bits(&file->segments, *pos), SYMBOL_STEP_COUNT_BITS);
	*pos += SYMBOL_STEP_COUNT_BITS;
	return count;
}

/* The function's record is on its way while the rest of the block is decoded. */
static void prefetch_function(const struct symbol_file *file, uint32_t number)
{
	if (number >= file->n_functions || !file->functions[number])
		return;
	const uint8_t *line = (const uint8_t *)file->functions[number];
	__builtin_prefetch(line);
	__builtin_prefetch(line + SLOT_BYTES);
}

static bool decode_pushes(const struct symbol_file *file, struct chain_state *chain, uint32_t n,
			  uint64_t *pos)
{
	if (UNLIKELY(n > SYMBOL_FILE_MAX_DEPTH - chain->depth))
		return false;
	for (; n > 0; n--) {
		chain->levels[chain->depth].edge +=
			(uint32_t)decode_difference(file, SYMBOL_CODE_EDGE, pos);
		chain->depth++;
		chain->levels[chain->depth].edge = 0;
		chain->levels[chain->depth].site = SITE_NONE;
	}
	return true;
}

/* A segment that is not at the place in the chain where the one before it was. */
static enum step_kind decode_move(const struct symbol_file *file, struct chain_state *chain,
				  unsigned symbol, uint64_t *pos)
{
	if (symbol == SYMBOL_STEP_GAP)
		return STEP_GAP;
	if (symbol == SYMBOL_STEP_END)
		return STEP_END;
	uint32_t pushes;
	if (symbol < SYMBOL_STEP_MOVE) {
		pushes = decode_count(file, symbol - SYMBOL_STEP_ROOT, pos);
		chain->root += (uint32_t)decode_difference(file, SYMBOL_CODE_ROOT, pos);
		prefetch_function(file, chain->root);
		chain->depth = 0;
		chain->levels[0].edge = 0;
		chain->levels[0].site = SITE_NONE;
	} else {
		unsigned counts = symbol - SYMBOL_STEP_MOVE;
		uint32_t pops = decode_count(file, counts / SYMBOL_STEP_COUNTS, pos);
		pushes = decode_count(file, counts % SYMBOL_STEP_COUNTS, pos);
		if (UNLIKELY(pops > chain->depth))
			return STEP_BAD;
		chain->depth -= pops;
	}
	if (!decode_pushes(file, chain, pushes, pos))
		return STEP_BAD;
	uint32_t *site = &chain->levels[chain->depth].site;
	if (*site == SITE_NONE)
		*site = decode_number(file, SYMBOL_CODE_SITE, pos);
	else
		*site += (uint32_t)decode_difference(file, SYMBOL_CODE_SITE_STEP, pos);
	return STEP_FUNCTION;
}

/*
 * One segment: what it is, and its length. The most frequent case, another site in the same
 * function, is straight-line code; of the section's end only pos needs to be clear, as the tail
 * holds what one segment of that kind can take.
 */
static inline enum step_kind decode_step(const struct symbol_file *file, struct chain_state *chain,
					 uint64_t *pos, uint64_t *length_out)
{
	static_assert(SYMBOL_FILE_TAIL_BYTES * 8 >=
			      PREFIX_CODE_MAX_BITS + PREFIX_NUMBER_MAX_BITS + 64,
		      "two windows");
	*length_out = 0;
	if (UNLIKELY(*pos > file->segments.limit))
		return STEP_BAD;
	uint64_t window = peek_tail(&file->segments, *pos);
	struct prefix_slot slot = file->codes[SYMBOL_CODE_STEP].slots[window % PREFIX_CODE_SLOTS];
	*pos += slot.bits + slot.extra;
	enum step_kind kind = STEP_FUNCTION;
	if (LIKELY(slot.symbol < PREFIX_NUMBER_SYMBOLS)) {
		uint32_t step = number_of(slot, window >> slot.bits);
		chain->levels[chain->depth].site += (uint32_t)prefix_number_unzigzag(step);
	} else {
		kind = decode_move(file, chain, slot.symbol, pos);
		if (kind >= STEP_END)
			return kind;
		*pos = *pos < file->segments.limit ? *pos : file->segments.limit;
	}
	window = peek_tail(&file->segments, *pos);
	slot = file->codes[SYMBOL_CODE_LENGTH].slots[window % PREFIX_CODE_SLOTS];
	*pos += slot.bits + slot.extra;
	*length_out = (uint64_t)number_of(slot, window >> slot.bits) + 1;
	return kind;
}

static void start_block(struct chain_state *chain, uint32_t root)
{
	chain->root = root;
	chain->depth = 0;
	chain->levels[0].edge = 0;
	chain->levels[0].site = SITE_NONE;
}

/* Position of the last group that starts at or before svma; svma is not before the first one. */
static uint32_t find_group(const struct symbol_file *file, uint64_t svma)
{
	const uint8_t *p = file->group_addresses;
	for (uint32_t n = file->n_groups; n > 1;) {
		uint32_t half = n / 2;
		p = load_u64(p + half * sizeof(uint64_t)) <= svma ? p + half * sizeof(uint64_t) : p;
		n -= half;
	}
	return (uint32_t)((size_t)(p - file->group_addresses) / sizeof(uint64_t));
}

static uint32_t find_block(const struct symbol_file *file, uint32_t first, uint32_t n,
			   uint64_t delta)
{
	const uint8_t *start = file->blocks + (size_t)first * BLOCK_BYTES, *p = start;
	while (n > 1) {
		uint32_t half = n / 2;
		p = load_u16(p + half * BLOCK_BYTES) <= delta ? p + half * BLOCK_BYTES : p;
		n -= half;
	}
	return first + (uint32_t)((size_t)(p - start) / BLOCK_BYTES);
}

static uint64_t block_position(const struct symbol_file *file, uint32_t group, uint32_t block)
{
	return ((uint64_t)group_offset(file, group) + block_offset(file, block)) * 8;
}

/* The chain at svma; false when nothing is there. */
static bool find_chain(const struct symbol_file *file, uint64_t svma, struct chain_state *chain)
{
	if (!file->n_groups || svma < group_address(file, 0))
		return false;
	uint32_t group = find_group(file, svma);
	uint32_t first = group_block(file, group);
	uint64_t offset = (svma - group_address(file, group)) >> file->address_shift;
	uint32_t block = find_block(file, first, group_block(file, group + 1) - first, offset);
	offset -= block_delta(file, block);
	uint64_t pos = block_position(file, group, block);
	start_block(chain, group_root(file, group));
	for (uint32_t i = file->block_segments; i > 0; i--) {
		uint64_t length;
		enum step_kind kind = decode_step(file, chain, &pos, &length);
		if (kind >= STEP_END)
			return false;
		if (offset < length)
			return kind == STEP_FUNCTION;
		offset -= length;
	}
	return false;
}

/* ---- frames ---- */

/* 57 bits of a function's edges and sites. */
static uint64_t peek_packed(const struct function_slot *function, uint64_t pos)
{
	const uint8_t *packed = (const uint8_t *)function + SLOT_BYTES;
	return load_u64(packed + (pos >> 3)) >> (pos & 7);
}

static void set_place(const struct function_slot *function, uint32_t site,
		      struct symbol_frame *frame)
{
	frame->name = function->name;
	frame->linkage_name = function->linkage_name;
	frame->file = function->file;
	frame->line = frame->column = 0;
	if (site < function->n_sites) {
		uint32_t width =
			(uint32_t)function->line_bits + function->column_bits + function->file_bits;
		uint64_t window =
			peek_packed(function, function->sites_bit + (uint64_t)site * width);
		uint32_t line = low_bits(window, function->line_bits);
		if (line) {
			frame->line = function->line_base + line - 1;
			window >>= function->line_bits;
			frame->column = low_bits(window, function->column_bits);
			window >>= function->column_bits;
			if (function->file_bits)
				frame->file = function->other_files[low_bits(window,
									     function->file_bits)];
		}
	}
	if (!frame->file)
		frame->file = function->declared;
	frame->start_line = frame->file == function->declared ? function->start_line : 0;
}

static uint64_t edge_window(const struct symbol_file *file, const struct function_slot *function,
			    uint32_t edge)
{
	uint64_t width = function->site_bits + file->function_bits;
	return peek_packed(function, edge * width);
}

static uint32_t edge_callee(const struct symbol_file *file, const struct function_slot *function,
			    uint32_t edge)
{
	return low_bits(edge_window(file, function, edge) >> function->site_bits,
			file->function_bits);
}

/* From the real function inwards; frames are filled from the end of the chain. */
static bool set_frames(struct symbol_file *file, const struct chain_state *chain,
		       struct symbol_result *out)
{
	uint32_t number = chain->root;
	for (uint32_t level = 0;; level++) {
		if (UNLIKELY(number >= file->n_functions))
			return false;
		const struct function_slot *function = get_function(file, number);
		if (UNLIKELY(!function->name))
			return false;
		struct symbol_frame *frame = &out->frames[chain->depth - level];
		if (level == 0)
			out->is_folded = function->is_folded;
		if (level == chain->depth) {
			set_place(function, chain->levels[level].site, frame);
			return true;
		}
		uint32_t edge = chain->levels[level].edge;
		if (UNLIKELY(edge >= function->n_edges))
			return false;
		uint64_t window = edge_window(file, function, edge);
		set_place(function, low_bits(window, function->site_bits), frame);
		number = low_bits(window >> function->site_bits, file->function_bits);
	}
}

bool symbol_file_lookup(struct symbol_file *file, uint64_t svma, struct symbol_result *out)
{
	static_assert((int)SYMBOL_FILE_MAX_DEPTH < (int)SYMBOL_FRAMES_MAX,
		      "a chain fits the result");
	struct chain_state chain;
	out->reason = SYMBOL_GAP;
	out->n_frames = 0;
	out->is_folded = false;
	if (!find_chain(file, svma, &chain) || !set_frames(file, &chain, out))
		return false;
	out->reason = SYMBOL_FOUND;
	out->n_frames = chain.depth + 1;
	return true;
}

/* ---- verify ---- */

static struct error *verify_function(struct symbol_file *file, uint32_t number)
{
	const struct function_slot *function = get_function(file, number);
	if (!function->name)
		return damaged("a function's record");
	for (uint32_t edge = 0; edge < function->n_edges; edge++) {
		uint64_t window = edge_window(file, function, edge);
		if (low_bits(window, function->site_bits) >= function->n_sites ||
		    edge_callee(file, function, edge) >= file->n_functions)
			return damaged("a call in a function's record");
	}
	return NULL;
}

static struct error *verify_segment(struct symbol_file *file, const struct chain_state *chain)
{
	uint32_t number = chain->root;
	for (uint32_t level = 0; level < chain->depth; level++) {
		if (number >= file->n_functions)
			break;
		const struct function_slot *function = get_function(file, number);
		uint32_t edge = chain->levels[level].edge;
		if (edge >= function->n_edges)
			return damaged("a segment says a call that is not there");
		number = edge_callee(file, function, edge);
	}
	if (number >= file->n_functions)
		return damaged("a segment says a function that is not there");
	uint32_t n_sites = get_function(file, number)->n_sites;
	/* Without any, site 0 says that nothing is known. */
	if (chain->levels[chain->depth].site >= (n_sites ? n_sites : 1))
		return damaged("a segment says a site that is not there");
	return NULL;
}

/* limit: the length that the block may have, 0 = any. */
static struct error *verify_block(struct symbol_file *file, uint32_t group, uint32_t block,
				  uint64_t limit, uint64_t *n_segments)
{
	struct chain_state chain;
	uint64_t at = 0, length;
	uint64_t pos = block_position(file, group, block);
	start_block(&chain, group_root(file, group));
	for (uint32_t i = 0; i < file->block_segments; i++) {
		enum step_kind kind = decode_step(file, &chain, &pos, &length);
		if (kind == STEP_END)
			break;
		if (kind == STEP_BAD || pos > file->segments.limit)
			return damaged("a block of segments");
		at += length;
		if (limit && at > limit)
			return damaged("a block runs into the next one");
		if (kind == STEP_GAP)
			continue;
		(*n_segments)++;
		struct error *err = verify_segment(file, &chain);
		if (err)
			return err;
	}
	return pos > file->segments.limit ? damaged("a block of segments") : NULL;
}

static uint64_t block_address(const struct symbol_file *file, uint32_t group, uint32_t block)
{
	uint64_t delta = block_delta(file, block);
	return group_address(file, group) + (delta << file->address_shift);
}

struct error *symbol_file_verify(struct symbol_file *file)
{
	struct error *err = NULL;
	uint64_t n_segments = 0;
	for (uint32_t i = 0; i < file->n_functions && !err; i++)
		err = verify_function(file, i);
	if (err)
		return err;
	for (uint32_t i = 1; i <= file->n_paths; i++)
		if (!get_path(file, i))
			return damaged("a path");
	for (uint32_t group = 0; group < file->n_groups && !err; group++) {
		uint32_t end = group_block(file, group + 1);
		for (uint32_t block = group_block(file, group); block < end && !err; block++) {
			uint64_t limit = 0;
			if (block + 1 < file->n_blocks)
				limit = block_address(file, block + 1 < end ? group : group + 1,
						      block + 1) -
					block_address(file, group, block);
			err = verify_block(file, group, block, limit >> file->address_shift,
					   &n_segments);
		}
	}
	if (!err && n_segments != file->n_segments)
		return damaged("the number of segments");
	size_t n;
	const uint8_t *unwind = symbol_file_unwind(file, &n);
	struct unwind_table table;
	if (err || !unwind)
		return err;
	err = unwind_table_open(unwind, n, &table);
	if (!err)
		unwind_table_close(&table);
	return err;
}
