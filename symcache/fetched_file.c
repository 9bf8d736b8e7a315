/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetched_file.h"

#include <elf.h>
#include <string.h>
#include <strings.h>

#include "symcache/elf_image.h"

static const char half[] = "it sent half a file";

/* An answer for browsers, or any other text. */
static bool is_markup(const struct file_map *map)
{
	size_t i = 0;
	while (i < map->size && strchr(" \t\r\n", map->data[i]) && map->data[i])
		i++;
	return i < map->size && map->data[i] == '<';
}

static bool is_inside(const struct file_map *map, uint64_t offset, uint64_t size)
{
	return offset <= map->size && size <= map->size - offset;
}

/*
 * Where the program headers (e_phoff) or section headers (e_shoff) are. elf_image drops a section
 * table that is cut, so whether there should be one is read here.
 */
static uint64_t table_offset(const struct file_map *map, const struct elf_image *image,
			     bool is_sections)
{
	size_t word = image->is_64 ? 8 : 4;
	size_t at = EI_NIDENT + 8 + word + (is_sections ? word : 0);
	struct cursor c = cursor_make(map->data, map->size, image->is_swapped);
	cursor_seek(&c, at);
	return elf_image_word(image, &c);
}

static bool has_all_sections(const struct file_map *map, const struct elf_image *image)
{
	if (!image->n_sections)
		return table_offset(map, image, true) == 0;
	for (uint32_t i = 0; i < image->n_sections; i++) {
		const struct elf_section *section = &image->sections[i];
		if (section->type != SHT_NOBITS && section->type != SHT_NULL &&
		    !is_inside(map, section->file_offset, section->size))
			return false;
	}
	return true;
}

/* Those of a debug file stand for what the binary has and the file has not. */
static bool has_all_segments(const struct file_map *map, const struct elf_image *image)
{
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (!is_inside(map, segment->file_offset, segment->file_bytes))
			return false;
	}
	return true;
}

static const char *fault_of_image(const struct file_map *map, const struct elf_image *image,
				  const struct build_id *id, enum fetcher_kind kind)
{
	if (!has_all_sections(map, image))
		return half;
	if (kind == FETCHER_EXECUTABLE && !has_all_segments(map, image))
		return half;
	if (image->build_id.kind != BUILD_ID_GNU || !build_id_equal(&image->build_id, id))
		return "it sent a file of another build-id";
	if (kind == FETCHER_EXECUTABLE && !image->n_segments)
		return "it sent no program";
	if (kind == FETCHER_DEBUGINFO && !image->n_sections)
		return "it sent a file without sections";
	return NULL;
}

const char *fetched_file_fault(const struct file_map *map, const struct build_id *id,
			       enum fetcher_kind kind, uint64_t stated_bytes)
{
	if (!map->size)
		return "it sent an empty file";
	if (is_markup(map))
		return "it sent a web page instead of the file; is there a proxy or a login?";
	if (stated_bytes && stated_bytes != map->size)
		return half;
	struct elf_image image;
	struct error *err = elf_image_init(&image, map->data, map->size);
	if (err) {
		error_free(err);
		return map->size >= SELFMAG && memcmp(map->data, ELFMAG, SELFMAG) == 0
			       ? "it sent a damaged ELF file, or half of one"
			       : "it sent no ELF file";
	}
	const char *fault = fault_of_image(map, &image, id, kind);
	elf_image_fini(&image);
	return fault;
}
