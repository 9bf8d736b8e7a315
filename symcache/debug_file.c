/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/debug_file.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "symcache/path_open.h"
#include "symcache/symbol_supply.h"

struct debug_link {
	const char *name;
	uint32_t crc;
};

struct search {
	const struct debug_file_query *query;
	struct debug_file *out;
	struct debug_link link; /* name NULL = none */
	bool is_by_build_id;
};

/* File name, 0, padding to 4, CRC-32. Links that leave their folder upwards are not followed. */
static bool read_link(const struct elf_image *image, struct debug_link *out)
{
	const struct elf_section *section = elf_image_find(image, ".gnu_debuglink");
	if (!section)
		return false;
	struct cursor c = elf_image_section(image, section);
	out->name = cursor_string(&c, PATH_MAX);
	cursor_skip(&c, (4 - (size_t)(c.next - c.begin) % 4) % 4);
	out->crc = cursor_u32(&c);
	return cursor_is_ok(&c) && *out->name && *out->name != '/' && !strstr(out->name, "..");
}

static uint32_t crc_of(const struct file_map *map)
{
	uLong crc = crc32(0, NULL, 0);
	return (uint32_t)crc32_z(crc, map->data, map->size);
}

static const char *judge(const struct search *search, const struct file_map *map,
			 const struct elf_image *image)
{
	const struct build_id *wanted = &search->query->image->build_id;
	if (build_id_is_set(wanted) && build_id_is_set(&image->build_id))
		return build_id_equal(wanted, &image->build_id) ? NULL : "other build-id";
	if (search->is_by_build_id)
		return "no build-id";
	if (map->size > DEBUG_FILE_MAX_CRC_BYTES)
		return "too large for its CRC";
	return crc_of(map) == search->link.crc ? NULL : "other CRC";
}

/* NULL when the file at path is the one, else why not. */
static const char *try_file(struct search *search, const char *root, const char *path)
{
	struct debug_file *out = search->out;
	CLEANUP(cleanup_fd) int fd = -1;
	int errno_value = path_open(root, path, &fd);
	if (errno_value)
		return strerror(errno_value);
	struct error *err = file_map_fd(fd, DEBUG_FILE_MAX_BYTES, &out->map);
	if (err) {
		error_free(err);
		return "cannot be mapped";
	}
	err = elf_image_init(&out->image, out->map.data, out->map.size);
	if (err) {
		error_free(err);
		file_map_close(&out->map);
		return "not an ELF file";
	}
	const char *why_not = judge(search, &out->map, &out->image);
	if (!why_not && symbol_supply_quality_of(&out->image) < SYMBOL_QUALITY_SYMTAB)
		why_not = "no symbol table";
	if (!why_not) {
		out->is_open = true;
		out->fd = fd;
		fd = -1;
		out->path = mem_copy_string(path);
		return NULL;
	}
	elf_image_fini(&out->image);
	file_map_close(&out->map);
	return why_not;
}

/* Takes path. */
static bool try_place(struct search *search, char *path)
{
	CLEANUP(cleanup_mem) char *owned = path;
	const char *const roots[] = {search->query->target_root, NULL};
	struct debug_file *out = search->out;
	for (size_t i = roots[0] && *roots[0] ? 0 : 1; i < ARRAY_LEN(roots); i++) {
		if (out->n_places == DEBUG_FILE_MAX_PLACES)
			return false;
		const char *why_not = try_file(search, roots[i], owned);
		out->places[out->n_places++] = mem_format("%s%s: %s", roots[i] ? roots[i] : "",
							  owned, why_not ? why_not : "found");
		if (!why_not)
			return true;
	}
	return false;
}

static bool search_by_build_id(struct search *search)
{
	const struct build_id *id = &search->query->image->build_id;
	/* ab/ and at least one more byte. */
	if (id->kind != BUILD_ID_GNU || id->size < 2)
		return false;
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	search->is_by_build_id = true;
	for (const char *const *root = search->query->roots; *root; root++) {
		if (try_place(search,
			      mem_format("%s/.build-id/%.2s/%s.debug", *root, hex, hex + 2)) ||
		    try_place(search, mem_format("%s/%.2s/%s/debuginfo", *root, hex, hex + 2)))
			return true;
	}
	return false;
}

static bool search_by_link(struct search *search)
{
	const char *path = search->query->path;
	if (!path || *path != '/' || !read_link(search->query->image, &search->link))
		return false;
	search->is_by_build_id = false;
	const char *name = search->link.name;
	int folder_bytes = (int)(strrchr(path, '/') - path);
	if (try_place(search, mem_format("%.*s/%s", folder_bytes, path, name)) ||
	    try_place(search, mem_format("%.*s/.debug/%s", folder_bytes, path, name)))
		return true;
	for (const char *const *root = search->query->roots; *root; root++) {
		if (try_place(search, mem_format("%s%.*s/%s", *root, folder_bytes, path, name)))
			return true;
	}
	return false;
}

bool debug_file_open(const struct debug_file_query *query, struct debug_file *out)
{
	*out = (struct debug_file){0};
	struct search search = {.query = query, .out = out};
	return search_by_build_id(&search) || search_by_link(&search);
}

void debug_file_release(struct debug_file *file)
{
	if (!file->is_open)
		return;
	elf_image_fini(&file->image);
	file_map_close(&file->map);
	close(file->fd);
	mem_free(TAKE(file->path));
	file->is_open = false;
}

void debug_file_close(struct debug_file *file)
{
	debug_file_release(file);
	for (size_t i = 0; i < file->n_places; i++)
		mem_free(file->places[i]);
	*file = (struct debug_file){0};
}
