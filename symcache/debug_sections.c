/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/debug_sections.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "symcache/inflate_stream.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* younger than the C library of Debian 12 */
#endif

enum {
	UNPACK_STEP_BYTES = 512 << 10,
	FORGET_STEP_BYTES = 2 << 20,
	ZLIB_HEADER_BYTES = 2,
	ZLIB_DEFLATE = 8,
	ZLIB_DICTIONARY = 0x20
};

static const char *const section_names[DEBUG_SECTION_KINDS] = {
	[DEBUG_SECTION_INFO] = "info",	       [DEBUG_SECTION_ABBREV] = "abbrev",
	[DEBUG_SECTION_LINE] = "line",	       [DEBUG_SECTION_STR] = "str",
	[DEBUG_SECTION_LINE_STR] = "line_str", [DEBUG_SECTION_STR_OFFSETS] = "str_offsets",
	[DEBUG_SECTION_ADDR] = "addr",	       [DEBUG_SECTION_RANGES] = "ranges",
	[DEBUG_SECTION_RNGLISTS] = "rnglists", [DEBUG_SECTION_CU_INDEX] = "cu_index",
	[DEBUG_SECTION_FRAME] = "frame",
};

struct debug_unpack {
	const uint8_t *packed;
	size_t packed_bytes;
	size_t packed_forgotten;
	uint8_t *out; /* anonymous mapping; pages appear as they are written */
	size_t out_bytes;
	bool is_zstd;
	struct inflate_stream *inflate; /* of zlib's */
	ZSTD_DStream *zstd;
	ZSTD_inBuffer zstd_in;
	bool is_ended;
	bool is_rewound; /* read out of order: nothing is given back any more */
};

static bool unpack_start(struct debug_unpack *unpack)
{
	unpack->packed_forgotten = 0;
	unpack->is_ended = false;
	if (unpack->is_zstd) {
		unpack->zstd_in = (ZSTD_inBuffer){unpack->packed, unpack->packed_bytes, 0};
		if (!unpack->zstd)
			unpack->zstd = ZSTD_createDStream();
		return unpack->zstd && !ZSTD_isError(ZSTD_initDStream(unpack->zstd));
	}
	/* Without its check sum, which would come after everything was used. */
	const uint8_t *header = unpack->packed;
	if (unpack->packed_bytes < ZLIB_HEADER_BYTES || (header[0] & 0xf) != ZLIB_DEFLATE ||
	    header[1] & ZLIB_DICTIONARY)
		return false;
	if (!unpack->inflate)
		unpack->inflate = mem_alloc(sizeof(*unpack->inflate));
	inflate_stream_init(unpack->inflate, unpack->packed + ZLIB_HEADER_BYTES,
			    unpack->packed_bytes - ZLIB_HEADER_BYTES, unpack->out,
			    unpack->out_bytes - INFLATE_STREAM_SLACK_BYTES);
	return true;
}

static void unpack_end(struct debug_unpack *unpack)
{
	ZSTD_freeDStream(unpack->zstd);
	mem_free(unpack->inflate);
	unpack->zstd = NULL;
	unpack->inflate = NULL;
}

/* Bytes written at out, 0 when there are no more. */
static size_t unpack_zlib(struct debug_unpack *unpack, uint8_t *out, size_t n)
{
	inflate_stream_run(unpack->inflate, out + n);
	unpack->is_ended = unpack->inflate->is_ended;
	return (size_t)(unpack->inflate->out - out);
}

static size_t unpack_zstd(struct debug_unpack *unpack, uint8_t *out, size_t n)
{
	ZSTD_outBuffer to = {out, n, 0};
	size_t before = unpack->zstd_in.pos;
	size_t result = ZSTD_decompressStream(unpack->zstd, &to, &unpack->zstd_in);
	if (ZSTD_isError(result) || result == 0 || (to.pos == 0 && unpack->zstd_in.pos == before))
		unpack->is_ended = true;
	return to.pos;
}

/* Gives back the whole pages of [begin, end). */
static void forget_pages(const uint8_t *begin, const uint8_t *end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)begin + page - 1) & ~(page - 1);
	uintptr_t last = (uintptr_t)end & ~(page - 1);
	if (first < last)
		(void)madvise((void *)first, last - first, MADV_DONTNEED);
}

static void forget_packed(const struct debug_sections *sections, struct debug_unpack *unpack)
{
	size_t position = unpack->is_zstd ? unpack->zstd_in.pos
					  : (size_t)(unpack->inflate->next - unpack->packed);
	if (!sections->is_file_mapping || position - unpack->packed_forgotten < FORGET_STEP_BYTES)
		return;
	forget_pages(unpack->packed + unpack->packed_forgotten, unpack->packed + position);
	unpack->packed_forgotten = position;
}

static void unpack_until(struct debug_sections *sections, struct debug_section *section, size_t end)
{
	struct debug_unpack *unpack = section->unpack;
	while (section->ready < end && !unpack->is_ended) {
		size_t n = section->size - section->ready;
		if (n > UNPACK_STEP_BYTES)
			n = UNPACK_STEP_BYTES;
		uint8_t *out = unpack->out + section->ready;
		section->ready +=
			unpack->is_zstd ? unpack_zstd(unpack, out, n) : unpack_zlib(unpack, out, n);
		forget_packed(sections, unpack);
	}
	if (section->ready < end && section->size > section->ready) {
		section->size = section->ready;
		sections->n_damaged++;
	}
}

static bool unpack_open(struct debug_section *section, struct cursor packed, bool is_zstd,
			uint64_t size)
{
	size_t left = cursor_left(&packed);
	if (!size)
		return true;
	if (size > DEBUG_SECTION_MAX_BYTES || size / DEBUG_SECTION_MAX_RATIO > left)
		return false;
	size_t out_bytes = (size_t)size + INFLATE_STREAM_SLACK_BYTES;
	void *out = mmap(NULL, out_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (out == MAP_FAILED)
		return false;
	struct debug_unpack *unpack = mem_zalloc(1, sizeof(*unpack));
	*unpack = (struct debug_unpack){.packed = packed.next,
					.packed_bytes = left,
					.out = out,
					.out_bytes = out_bytes,
					.is_zstd = is_zstd};
	section->data = out;
	section->size = size;
	section->unpack = unpack;
	return unpack_start(unpack);
}

/* ".zdebug_": "ZLIB" and the size, most significant byte first whatever the machine. */
static bool open_old_packed(struct debug_section *section, struct cursor c)
{
	const uint8_t *magic = cursor_bytes(&c, 4);
	const uint8_t *bytes = cursor_bytes(&c, 8);
	if (!bytes || memcmp(magic, "ZLIB", 4) != 0)
		return false;
	uint64_t size = 0;
	for (int i = 0; i < 8; i++)
		size = size << 8 | bytes[i];
	return unpack_open(section, c, false, size);
}

static bool open_packed(const struct elf_image *image, struct debug_section *section,
			struct cursor c)
{
	uint32_t type = cursor_u32(&c);
	if (image->is_64)
		cursor_skip(&c, 4);
	uint64_t size = elf_image_word(image, &c);
	(void)elf_image_word(image, &c);
	if (!cursor_is_ok(&c) || (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD))
		return false;
	return unpack_open(section, c, type == ELFCOMPRESS_ZSTD, size);
}

static void open_section(struct debug_sections *sections, const struct elf_image *image,
			 enum debug_section_kind kind, const struct elf_section *header,
			 bool is_old_packed)
{
	struct debug_section *section = &sections->items[kind];
	struct cursor c = elf_image_section(image, header);
	if (section->data || !cursor_left(&c))
		return;
	bool is_ok = true;
	if (is_old_packed) {
		is_ok = open_old_packed(section, c);
	} else if (header->flags & SHF_COMPRESSED) {
		is_ok = open_packed(image, section, c);
	} else {
		section->data = c.next;
		section->size = section->ready = cursor_left(&c);
	}
	if (!is_ok) {
		sections->n_damaged++;
		section->size = 0;
	}
}

/* The part of a section's name behind ".debug_", NULL when it is another section. */
static const char *debug_name(const struct elf_image *image, const struct elf_section *section,
			      bool *is_old_packed_out)
{
	struct cursor names = elf_image_section(image, &image->sections[image->name_section]);
	cursor_seek(&names, section->name);
	const char *name = cursor_string(&names, 64);
	if (!name || name[0] != '.')
		return NULL;
	*is_old_packed_out = name[1] == 'z';
	name += 1 + *is_old_packed_out;
	return strncmp(name, "debug_", 6) == 0 ? name + 6 : NULL;
}

void debug_sections_init(struct debug_sections *sections, const struct elf_image *image,
			 bool is_dwo, bool is_file_mapping)
{
	*sections = (struct debug_sections){.is_swapped = image->is_swapped,
					    .is_file_mapping = is_file_mapping};
	if (!image->name_section)
		return;
	for (uint32_t i = 1; i < image->n_sections; i++) {
		bool is_old_packed;
		const char *name = debug_name(image, &image->sections[i], &is_old_packed);
		if (!name)
			continue;
		for (int kind = 0; kind < DEBUG_SECTION_KINDS; kind++) {
			size_t n = strlen(section_names[kind]);
			if (strncmp(name, section_names[kind], n) != 0)
				continue;
			/* The index of a package has no suffix. */
			bool has_suffix = is_dwo && kind != DEBUG_SECTION_CU_INDEX;
			if (strcmp(name + n, has_suffix ? ".dwo" : "") == 0)
				open_section(sections, image, (enum debug_section_kind)kind,
					     &image->sections[i], is_old_packed);
		}
	}
}

void debug_sections_fini(struct debug_sections *sections)
{
	for (int kind = 0; kind < DEBUG_SECTION_KINDS; kind++) {
		struct debug_unpack *unpack = sections->items[kind].unpack;
		if (!unpack)
			continue;
		unpack_end(unpack);
		munmap(unpack->out, unpack->out_bytes);
		mem_free(unpack);
	}
	*sections = (struct debug_sections){0};
}

bool debug_sections_need(struct debug_sections *sections, enum debug_section_kind kind,
			 uint64_t begin, uint64_t end)
{
	struct debug_section *section = &sections->items[kind];
	if (begin > end || end > section->size)
		return false;
	struct debug_unpack *unpack = section->unpack;
	if (unpack && begin < section->forgotten) {
		unpack_end(unpack);
		unpack->is_rewound = true;
		section->forgotten = 0;
		section->ready = 0;
		if (!unpack_start(unpack))
			unpack->is_ended = true;
	}
	if (unpack && section->ready < end)
		unpack_until(sections, section, (size_t)end);
	return section->ready >= end;
}

void debug_sections_forget(struct debug_sections *sections, enum debug_section_kind kind,
			   uint64_t below)
{
	struct debug_section *section = &sections->items[kind];
	if (below > section->ready)
		below = section->ready;
	/* Matches still to come reach back. */
	if (section->unpack && below + INFLATE_STREAM_WINDOW_BYTES > section->ready)
		below = section->ready < INFLATE_STREAM_WINDOW_BYTES
				? 0
				: section->ready - INFLATE_STREAM_WINDOW_BYTES;
	if (below < section->forgotten + FORGET_STEP_BYTES)
		return;
	if (section->unpack ? section->unpack->is_rewound : !sections->is_file_mapping)
		return;
	forget_pages(section->data + section->forgotten, section->data + below);
	section->forgotten = (size_t)below;
}
