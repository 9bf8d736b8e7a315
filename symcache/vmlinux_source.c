/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/vmlinux_source.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "symcache/host_file.h"
#include "symcache/path_open.h"

static bool try_place(const struct vmlinux_query *query, const char *root,
		      const struct file_place *place, struct vmlinux_source *out)
{
	CLEANUP(cleanup_fd) int fd = -1;
	if (path_open(root, place->path, &fd) || !file_places_may_use(place, fd))
		return false;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return false;
	struct elf_image image;
	struct error *err = elf_image_open(&image, fd);
	if (err) {
		error_free(err);
		return false;
	}
	if (build_id_equal(&image.build_id, &query->build_id) &&
	    elf_image_find_type(&image, SHT_SYMTAB)) {
		*out = (struct vmlinux_source){.image = image,
					       .fd = fd,
					       .path = mem_copy_string(place->path),
					       .is_foreign =
						       !host_file_is_trusted_owner(st.st_uid)};
		fd = -1;
		return true;
	}
	elf_image_fini(&image);
	return false;
}

/* Takes path. */
static bool try_file(const struct vmlinux_query *query, const char *root, char *path,
		     struct vmlinux_source *out)
{
	CLEANUP(cleanup_mem) char *owned = path;
	return try_place(query, root, &(struct file_place){.path = owned}, out);
}

static bool try_release(const struct vmlinux_query *query, struct vmlinux_source *out)
{
	const char *release = query->os_release;
	/* It comes from a recording and becomes part of a path. */
	if (!release || !*release || strchr(release, '/'))
		return false;
	const char *sysroot = query->sysroot;
	for (const char *const *root = query->roots; *root; root++) {
		if (try_file(query, sysroot, mem_format("%s/boot/vmlinux-%s", *root, release), out))
			return true;
	}
	if (try_file(query, sysroot, mem_format("/boot/vmlinux-%s", release), out))
		return true;
	for (const char *const *root = query->roots; *root; root++) {
		if (try_file(query, sysroot,
			     mem_format("%s/lib/modules/%s/vmlinux", *root, release), out))
			return true;
	}
	return try_file(query, sysroot, mem_format("/lib/modules/%s/build/vmlinux", release), out);
}

static bool try_build_id(const struct vmlinux_query *query, struct vmlinux_source *out)
{
	struct file_place_list list;
	bool is_found = false;
	file_places_list(query->places, query->roots, &query->build_id, false, &list);
	for (size_t i = 0; i < list.n && !is_found; i++) {
		const struct file_place *place = &list.items[i];
		is_found = try_place(query, place->is_of_cache ? NULL : query->sysroot, place, out);
	}
	file_place_list_fini(&list);
	return is_found;
}

bool vmlinux_source_open(const struct vmlinux_query *query, struct vmlinux_source *out)
{
	if (!build_id_is_set(&query->build_id))
		return false;
	if (query->path)
		return try_file(query, NULL, mem_copy_string(query->path), out);
	return try_release(query, out) || try_build_id(query, out) ||
	       (query->fetched && try_file(query, NULL, mem_copy_string(query->fetched), out));
}

void vmlinux_source_close(struct vmlinux_source *source)
{
	close(source->fd);
	mem_free(source->path);
	elf_image_fini(&source->image);
	*source = (struct vmlinux_source){0};
}
