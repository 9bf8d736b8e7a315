/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/survey_place.h"

#include <string.h>

void survey_kernel_init(struct survey_kernel *kernel, struct image_table *images,
			struct address_space_pool *pool)
{
	*kernel = (struct survey_kernel){
		.images = images, .pool = pool, .ranges = address_space_new(pool)};
}

void survey_kernel_fini(struct survey_kernel *kernel)
{
	if (kernel->ranges)
		address_space_unref(kernel->ranges, kernel->pool);
	*kernel = (struct survey_kernel){0};
}

static void insert(struct survey_kernel *kernel, uint64_t start, uint64_t length, uint32_t image)
{
	const struct space_map map = {
		.start = start,
		.end = length > UINT64_MAX - start ? UINT64_MAX : start + length,
		.page_offset = start,
		.image = image,
	};
	address_space_insert(&kernel->ranges, kernel->pool, kernel->images, &map, false);
}

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

void survey_kernel_map(struct survey_kernel *kernel, uint64_t start, uint64_t length,
		       const char *filename)
{
	if (starts_with(filename, "[guest"))
		return; /* the addresses of a guest are its own */
	uint32_t image = IMAGE_INDEX_KERNEL;
	if (!starts_with(filename, "[kernel.kallsyms]")) {
		bool is_new;
		image = image_table_intern(kernel->images, &(struct image_key){.path = filename},
					   &is_new);
	}
	insert(kernel, start, length, image);
}

void survey_kernel_add_symbol(struct survey_kernel *kernel, uint64_t start, uint32_t length,
			      const char *name, bool is_unregister)
{
	insert(kernel, start, length,
	       is_unregister ? IMAGE_INDEX_KERNEL : image_table_add_ksymbol(kernel->images, name));
}

static struct survey_place find_kernel(const struct survey_kernel *kernel, uint64_t vaddr)
{
	const struct space_map *map = address_space_find(kernel->ranges, vaddr);
	struct survey_place place = {.address = vaddr, .kind = SURVEY_KERNEL_UNMAPPED};
	if (!map)
		return place;
	place.image = image_table_get(kernel->images, map->image);
	if (map->image == IMAGE_INDEX_KERNEL)
		place.kind = SURVEY_KERNEL;
	else
		place.kind = place.image->kind == IMAGE_KSYMBOL ? SURVEY_BPF : SURVEY_MODULE;
	return place;
}

static struct survey_place find_user(const struct image_table *images,
				     const struct address_space *space, uint64_t vaddr)
{
	const struct space_map *map = address_space_find(space, vaddr);
	struct survey_place place = {.address = vaddr, .kind = SURVEY_UNKNOWN};
	if (!map)
		return place;
	place.image = image_table_get(images, map->image);
	switch (place.image->kind) {
	case IMAGE_FILE:
		place.kind = SURVEY_FILE;
		place.address = vaddr - map->start + map->page_offset;
		break;
	case IMAGE_VDSO:
		place.kind = SURVEY_VDSO;
		place.address = vaddr - map->start + map->page_offset;
		break;
	case IMAGE_ANON:
		place.kind = SURVEY_ANON;
		break;
	default:
		place.kind = SURVEY_SPECIAL;
		break;
	}
	return place;
}

struct survey_place survey_place_find(const struct survey_kernel *kernel,
				      const struct address_space *space, uint16_t misc,
				      uint64_t vaddr)
{
	const struct image_table *images = kernel->images;
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return find_kernel(kernel, vaddr);
	case PERF_RECORD_MISC_GUEST_KERNEL:
		return (struct survey_place){
			.image = image_table_get(images, IMAGE_INDEX_GUEST_KERNEL),
			.address = vaddr,
			.kind = SURVEY_GUEST_KERNEL};
	case PERF_RECORD_MISC_GUEST_USER:
		return (struct survey_place){
			.image = image_table_get(images, IMAGE_INDEX_GUEST_USER),
			.address = vaddr,
			.kind = SURVEY_GUEST_USER};
	case PERF_RECORD_MISC_HYPERVISOR:
		return (struct survey_place){
			.image = image_table_get(images, IMAGE_INDEX_HYPERVISOR),
			.address = vaddr,
			.kind = SURVEY_HYPERVISOR};
	default:
		return find_user(images, space, vaddr);
	}
}
