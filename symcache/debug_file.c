/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/debug_file.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/host_file.h"
#include "symcache/path_open.h"
#include "symcache/symbol_supply.h"

enum { CRC_STEP_BYTES = 256 << 10 };

struct debug_link {
	const char *name;
	uint32_t crc;
};

struct search {
	const struct debug_file_query *query;
	struct debug_file *out;
	struct debug_link link; /* name NULL = none */
	bool is_by_build_id;
	enum symbol_quality best; /* of the file that is open; a better one replaces it */
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

/* False when the file cannot be read to its end. */
static bool read_crc(const struct elf_image *image, uint32_t *out)
{
	uint8_t *room = mem_alloc(CRC_STEP_BYTES);
	uLong crc = crc32(0, NULL, 0);
	size_t left = image->size;
	while (left) {
		size_t got, step = left < CRC_STEP_BYTES ? left : CRC_STEP_BYTES;
		struct error *err = file_read_at(image->fd, image->size - left, room, step, &got);
		if (err || got < step) {
			error_free(err);
			break;
		}
		crc = crc32_z(crc, room, step);
		left -= step;
	}
	mem_free(room);
	*out = (uint32_t)crc;
	return !left;
}

static const char *judge(const struct search *search, const struct elf_image *image)
{
	const struct build_id *wanted = &search->query->image->build_id;
	if (build_id_is_set(wanted) && build_id_is_set(&image->build_id))
		return build_id_equal(wanted, &image->build_id) ? NULL : "other build-id";
	if (search->is_by_build_id)
		return "no build-id";
	if (image->size > DEBUG_FILE_MAX_CRC_BYTES)
		return "too large for its CRC";
	uint32_t crc;
	if (!read_crc(image, &crc))
		return "damaged";
	return crc == search->link.crc ? NULL : "other CRC";
}

/*
 * NULL when the file is the one and better than what there is, which it replaces then; else why
 * not. Takes *fd in the first case.
 */
static const char *consider(struct search *search, int *fd, const char *path, bool is_foreign)
{
	struct debug_file *out = search->out;
	struct elf_image image;
	struct error *err = elf_image_open(&image, *fd);
	if (err) {
		error_free(err);
		return "not an ELF file";
	}
	const char *why_not = judge(search, &image);
	enum symbol_quality quality = symbol_supply_quality_of(&image);
	if (!why_not && quality < SYMBOL_QUALITY_SYMTAB)
		why_not = "no symbol table";
	if (!why_not && quality <= search->best)
		why_not = "no better";
	if (why_not) {
		elf_image_fini(&image);
		return why_not;
	}
	debug_file_release(out);
	out->image = image;
	out->fd = *fd;
	*fd = -1;
	out->path = mem_copy_string(path);
	out->is_open = true;
	out->is_foreign = is_foreign;
	search->best = quality;
	return NULL;
}

static bool is_foreign(const struct debug_file_query *query, const char *root, const char *path,
		       int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || !host_file_is_trusted_owner(st.st_uid))
		return true;
	return root && query->is_target_elsewhere && !host_file_is_at(fd, path);
}

static const char *try_file(struct search *search, const char *root, const struct file_place *place)
{
	CLEANUP(cleanup_fd) int fd = -1;
	int errno_value = path_open(root, place->path, &fd);
	if (errno_value)
		return strerror(errno_value);
	if (!file_places_may_use(place, fd))
		return "another user's";
	return consider(search, &fd, place->path, is_foreign(search->query, root, place->path, fd));
}

static bool is_over(const struct search *search)
{
	return search->best >= SYMBOL_QUALITY_DWARF;
}

/* A file without DWARF does not end the search. */
static void try_place(struct search *search, const struct file_place *place)
{
	const char *target_root = search->query->target_root;
	const char *const roots[] = {target_root, NULL};
	struct debug_file *out = search->out;
	bool is_on_host = !target_root || !*target_root || place->is_of_cache;
	for (size_t i = is_on_host ? 1 : 0; i < ARRAY_LEN(roots) && !is_over(search); i++) {
		if (out->n_places == DEBUG_FILE_MAX_PLACES)
			return;
		const char *why_not = try_file(search, roots[i], place);
		const char *outcome = why_not ? why_not : "found";
		if (!why_not && !is_over(search))
			outcome = "found, without DWARF";
		out->places[out->n_places++] =
			mem_format("%s%s: %s", roots[i] ? roots[i] : "", place->path, outcome);
	}
}

/* Takes path. */
static void try_path(struct search *search, char *path)
{
	CLEANUP(cleanup_mem) char *owned = path;
	if (!is_over(search))
		try_place(search, &(struct file_place){.path = owned});
}

static void search_by_build_id(struct search *search)
{
	const struct debug_file_query *query = search->query;
	struct file_place_list list;
	search->is_by_build_id = true;
	file_places_list(query->places, query->roots, &query->image->build_id, false, &list);
	for (size_t i = 0; i < list.n && !is_over(search); i++)
		try_place(search, &list.items[i]);
	file_place_list_fini(&list);
}

static void search_by_link(struct search *search)
{
	const char *path = search->query->path;
	if (!path || *path != '/' || !read_link(search->query->image, &search->link))
		return;
	search->is_by_build_id = false;
	const char *name = search->link.name;
	int folder_bytes = (int)(strrchr(path, '/') - path);
	try_path(search, mem_format("%.*s/%s", folder_bytes, path, name));
	try_path(search, mem_format("%.*s/.debug/%s", folder_bytes, path, name));
	for (const char *const *root = search->query->roots; *root; root++)
		try_path(search, mem_format("%s%.*s/%s", *root, folder_bytes, path, name));
}

bool debug_file_open(const struct debug_file_query *query, struct debug_file *out)
{
	*out = (struct debug_file){0};
	struct search search = {.query = query, .out = out, .best = SYMBOL_QUALITY_DYNSYM};
	search_by_build_id(&search);
	if (!is_over(&search))
		search_by_link(&search);
	return out->is_open;
}

bool debug_file_offer(struct debug_file *file, const struct elf_image *binary, int fd,
		      const char *path)
{
	const struct debug_file_query query = {.image = binary};
	struct search search = {
		.query = &query,
		.out = file,
		.is_by_build_id = true,
		.best = file->is_open ? symbol_supply_quality_of(&file->image)
				      : SYMBOL_QUALITY_DYNSYM,
	};
	const char *why_not = consider(&search, &fd, path, false);
	if (fd >= 0)
		close(fd);
	if (file->n_places < DEBUG_FILE_MAX_PLACES)
		file->places[file->n_places++] =
			mem_format("%s: %s", path, why_not ? why_not : "found");
	return !why_not;
}

/* Path, 0, build-id. */
bool debug_file_alternate(const struct elf_image *image, struct debug_alternate *out)
{
	const struct elf_section *section = elf_image_find(image, ".gnu_debugaltlink");
	if (!section)
		return false;
	struct cursor c = elf_image_section(image, section);
	out->path = cursor_string(&c, PATH_MAX);
	size_t n = cursor_left(&c);
	const uint8_t *bytes = n <= BUILD_ID_MAX_BYTES ? cursor_bytes(&c, n) : NULL;
	if (!cursor_is_ok(&c) || !bytes)
		return false;
	out->id = build_id_make(bytes, n);
	return build_id_is_set(&out->id);
}

void debug_file_release(struct debug_file *file)
{
	if (!file->is_open)
		return;
	elf_image_fini(&file->image);
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
