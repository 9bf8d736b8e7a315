/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/vmlinux_source.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symcache/path_open.h"

/* Takes path. */
static bool try_file(const struct vmlinux_query *query, const char *root, char *path,
		     struct vmlinux_source *out)
{
	CLEANUP(cleanup_mem) char *owned = path;
	CLEANUP(cleanup_fd) int fd = -1;
	if (path_open(root, owned, &fd))
		return false;
	struct file_map map;
	struct error *err = file_map_fd(fd, VMLINUX_MAX_BYTES, &map);
	if (err) {
		error_free(err);
		return false;
	}
	struct elf_image image;
	err = elf_image_init(&image, map.data, map.size);
	if (err) {
		error_free(err);
		file_map_close(&map);
		return false;
	}
	if (build_id_equal(&image.build_id, &query->build_id) &&
	    elf_image_find_type(&image, SHT_SYMTAB)) {
		*out = (struct vmlinux_source){
			.map = map, .image = image, .fd = fd, .path = TAKE(owned)};
		fd = -1;
		return true;
	}
	elf_image_fini(&image);
	file_map_close(&map);
	return false;
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
	if (query->build_id.size < 2)
		return false;
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(&query->build_id, hex);
	for (const char *const *root = query->roots; *root; root++) {
		if (try_file(query, query->sysroot,
			     mem_format("%s/.build-id/%.2s/%s.debug", *root, hex, hex + 2), out) ||
		    try_file(query, query->sysroot,
			     mem_format("%s/%.2s/%s/debuginfo", *root, hex, hex + 2), out))
			return true;
	}
	return false;
}

bool vmlinux_source_open(const struct vmlinux_query *query, struct vmlinux_source *out)
{
	if (!build_id_is_set(&query->build_id))
		return false;
	if (query->path)
		return try_file(query, NULL, mem_copy_string(query->path), out);
	return try_release(query, out) || try_build_id(query, out);
}

void vmlinux_source_close(struct vmlinux_source *source)
{
	close(source->fd);
	mem_free(source->path);
	elf_image_fini(&source->image);
	file_map_close(&source->map);
	*source = (struct vmlinux_source){0};
}
