/* SPDX-License-Identifier: Apache-2.0 */
/* The file that says most of a binary, for those who look names up elsewhere. */
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/file_places.h"
#include "symcache/module.h"
#include "symcache/symbol_supply.h"

/* A debug file with DWARF; false when there is none. */
static bool open_debug_file(const struct module *module, const struct symcache_config *config,
			    int *fd_out, char **path_out)
{
	const struct debug_file_query query = {
		.image = &module->image,
		.path = module->path,
		.target_root = config->sysroot,
		.roots = config->debug_roots,
		.places = config->places,
	};
	struct debug_file file = {0};
	bool is_found =
		debug_file_open(&query, &file) &&
		symbol_supply_quality_of(&file.image) > symbol_supply_quality_of(&module->image);
	int fd = is_found ? fcntl(file.fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd >= 0) {
		*fd_out = fd;
		*path_out = mem_copy_string(file.path);
	}
	debug_file_close(&file);
	return fd >= 0;
}

/* No binary: a debug file that lies where its build-id says. Whoever reads it compares that. */
static struct error *open_by_build_id(const struct module *module,
				      const struct symcache_config *config, int *fd_out,
				      char **path_out)
{
	struct file_place_list list = {0};
	file_places_list(config->places, config->debug_roots, &module->build_id, false, &list);
	struct error *err = error_no_entry;
	for (size_t i = 0; err && i < list.n; i++) {
		CLEANUP(cleanup_fd) int fd = -1;
		struct error *open_error = file_open_regular(list.items[i].path, &fd);
		error_free(open_error);
		if (open_error || !file_places_may_use(&list.items[i], fd))
			continue;
		*fd_out = fd;
		*path_out = mem_copy_string(list.items[i].path);
		fd = -1;
		err = NULL;
	}
	file_place_list_fini(&list);
	return err;
}

struct error *module_open_source(const struct module *module, const struct symcache_config *config,
				 int *fd_out, char **path_out)
{
	if (!module->has_image)
		return open_by_build_id(module, config, fd_out, path_out);
	if (symbol_supply_quality_of(&module->image) < SYMBOL_QUALITY_DWARF &&
	    open_debug_file(module, config, fd_out, path_out))
		return NULL;
	if (!module->opened_path)
		return error_no_entry; /* [vdso] */
	struct error *err = file_open_regular(module->opened_path, fd_out);
	if (!err)
		*path_out = mem_copy_string(module->opened_path);
	return err;
}
