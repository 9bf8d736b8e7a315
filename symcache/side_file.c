/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/side_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "symcache/elf_image.h"
#include "symcache/host_file.h"
#include "symcache/path_open.h"

static bool is_his_to_read(const struct side_file_places *places, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return false;
	if (st.st_uid == places->owner)
		return true;
	return (st.st_uid == 0 || st.st_uid == geteuid()) && (st.st_mode & S_IROTH);
}

static bool is_wanted(const struct builder_wish *wish, const struct elf_image *image)
{
	switch (wish->kind) {
	case BUILDER_WISH_ALTERNATE:
		return build_id_equal(&image->build_id, &wish->id);
	case BUILDER_WISH_DWO:
		return elf_image_find(image, ".debug_info.dwo");
	case BUILDER_WISH_PACKAGE:
		return elf_image_find(image, ".debug_cu_index");
	}
	return false;
}

static int try_root(const struct side_file_places *places, const struct builder_wish *wish,
		    const char *root, const char *path)
{
	CLEANUP(cleanup_fd) int fd = -1;
	if (path_open(root, path, &fd) || !is_his_to_read(places, fd))
		return -1;
	struct elf_image image;
	struct error *err = elf_image_open(&image, fd);
	bool is_right = !err && is_wanted(wish, &image);
	if (!err)
		elf_image_fini(&image);
	error_free(err);
	int found = is_right ? fd : -1;
	if (is_right)
		fd = -1;
	return found;
}

/* Takes path. */
static int try_path(const struct side_file_places *places, const struct builder_wish *wish,
		    char *path)
{
	CLEANUP(cleanup_mem) char *owned = path;
	int fd = -1;
	if (places->target_root && *places->target_root)
		fd = try_root(places, wish, places->target_root, owned);
	return fd >= 0 ? fd : try_root(places, wish, NULL, owned);
}

static int try_cache(const struct side_file_places *places, const struct builder_wish *wish,
		     const struct file_place *place)
{
	int fd = try_root(places, wish, NULL, place->path);
	if (fd >= 0 && !file_places_may_use(place, fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* "/a/b" → 2, the length of its folder. */
static int folder_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) : 0;
}

static const char *dwarf_path(const struct side_file_places *places)
{
	return places->debug_path ? places->debug_path : places->binary_path;
}

static int find_alternate(const struct side_file_places *places, const struct builder_wish *wish)
{
	int fd = -1;
	struct build_id id = wish->id;
	struct file_place_list list;
	id.kind = BUILD_ID_GNU;
	file_places_list(places->caches, places->roots, &id, false, &list);
	for (size_t i = 0; i < list.n && fd < 0; i++) {
		const struct file_place *place = &list.items[i];
		fd = place->is_of_cache ? try_cache(places, wish, place)
					: try_path(places, wish, mem_copy_string(place->path));
	}
	file_place_list_fini(&list);
	if (fd >= 0 || !*wish->name)
		return fd;
	if (*wish->name == '/')
		return try_path(places, wish, mem_copy_string(wish->name));
	const char *from = dwarf_path(places);
	if (!from)
		return -1;
	return try_path(places, wish, mem_format("%.*s/%s", folder_bytes(from), from, wish->name));
}

static int find_dwo(const struct side_file_places *places, const struct builder_wish *wish)
{
	if (!*wish->name)
		return -1;
	int fd = -1;
	if (*wish->name == '/')
		fd = try_path(places, wish, mem_copy_string(wish->name));
	else if (*wish->folder == '/')
		fd = try_path(places, wish, mem_format("%s/%s", wish->folder, wish->name));
	if (fd >= 0 || !places->binary_path)
		return fd;
	const char *last = strrchr(wish->name, '/');
	return try_path(places, wish,
			mem_format("%.*s/%s", folder_bytes(places->binary_path),
				   places->binary_path, last ? last + 1 : wish->name));
}

static int find_package(const struct side_file_places *places, const struct builder_wish *wish)
{
	static const char ending[] = ".debug";
	int fd = -1;
	if (places->binary_path)
		fd = try_path(places, wish, mem_format("%s.dwp", places->binary_path));
	if (fd >= 0 || !places->debug_path)
		return fd;
	fd = try_path(places, wish, mem_format("%s.dwp", places->debug_path));
	size_t n = strlen(places->debug_path), n_ending = sizeof(ending) - 1;
	if (fd < 0 && n > n_ending && strcmp(places->debug_path + n - n_ending, ending) == 0)
		fd = try_path(places, wish,
			      mem_format("%.*s.dwp", (int)(n - n_ending), places->debug_path));
	return fd;
}

static int find(const struct side_file_places *places, const struct builder_wish *wish)
{
	switch (wish->kind) {
	case BUILDER_WISH_ALTERNATE:
		return find_alternate(places, wish);
	case BUILDER_WISH_DWO:
		return find_dwo(places, wish);
	case BUILDER_WISH_PACKAGE:
		return find_package(places, wish);
	}
	return -1;
}

/*
 * Symbols of a binary are kept by its owner and content, so what he put beside it may be among
 * them; but in another root, everything may be anybody's.
 */
static bool is_foreign(const struct side_file_places *places, int fd)
{
	struct stat st;
	if (places->is_target_elsewhere || fstat(fd, &st) < 0)
		return true;
	return st.st_uid != places->owner && !host_file_is_trusted_owner(st.st_uid);
}

int side_file_open(const struct side_file_places *places, const struct builder_wish *wish,
		   bool *is_foreign_out)
{
	int fd = find(places, wish);
	*is_foreign_out = fd >= 0 && is_foreign(places, fd);
	return fd;
}
