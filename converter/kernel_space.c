/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/kernel_space.h"

#include <string.h>

#include "base/mem.h"

static const char kernel_name[] = "[kernel.kallsyms]";

void kernel_space_init(struct kernel_space *space, struct image_table *images,
		       struct address_space_pool *pool)
{
	*space = (struct kernel_space){
		.images = images,
		.pool = pool,
		.ranges = address_space_new(pool),
	};
}

void kernel_space_fini(struct kernel_space *space)
{
	address_space_unref(space->ranges, space->pool);
	mem_free(space->relocation_symbol);
	*space = (struct kernel_space){0};
}

static void insert(struct kernel_space *space, uint64_t start, uint64_t length,
		   uint64_t page_offset, uint32_t image)
{
	const struct space_map map = {
		.start = start,
		.end = length > UINT64_MAX - start ? UINT64_MAX : start + length,
		.page_offset = page_offset,
		.image = image,
	};
	address_space_insert(&space->ranges, space->pool, space->images, &map, false);
}

static bool is_kernel_name(const char *filename)
{
	return strncmp(filename, kernel_name, sizeof(kernel_name) - 1) == 0;
}

void kernel_space_map(struct kernel_space *space, uint64_t start, uint64_t length,
		      uint64_t page_offset, const char *filename)
{
	const struct image_key key = {.path = filename, .is_module = true};
	bool is_new;
	if (!is_kernel_name(filename)) {
		/* Entry trampolines come as modules do; a guest's addresses are its own. */
		if (strncmp(filename, "[guest", 6) != 0)
			insert(space, start, length, page_offset,
			       image_table_intern(space->images, &key, &is_new));
		return;
	}
	const char *symbol = filename + sizeof(kernel_name) - 1;
	space->has_text = true;
	space->text_start = start;
	space->text_end = length > UINT64_MAX - start ? UINT64_MAX : start + length;
	space->text_page_offset = page_offset;
	mem_free(space->relocation_symbol);
	space->relocation_symbol = *symbol ? mem_copy_string(symbol) : NULL;
	insert(space, start, length, page_offset, IMAGE_INDEX_KERNEL);
}

void kernel_space_identify(struct kernel_space *space, const char *filename,
			   const struct build_id *build_id)
{
	if (is_kernel_name(filename) && build_id_is_set(build_id))
		space->build_id = *build_id;
}

void kernel_space_ksymbol(struct kernel_space *space, uint64_t start, uint32_t length,
			  const char *name, bool is_unregister)
{
	uint32_t image =
		is_unregister ? IMAGE_INDEX_KERNEL : image_table_add_ksymbol(space->images, name);
	insert(space, start, length, start, image);
}

uint32_t kernel_space_find(const struct kernel_space *space, uint64_t vaddr)
{
	const struct space_map *map = address_space_find(space->ranges, vaddr);
	return map ? image_table_get(space->images, map->image)->canonical : IMAGE_INDEX_KERNEL;
}
