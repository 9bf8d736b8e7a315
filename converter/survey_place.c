/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/survey_place.h"

static struct survey_place find_kernel(const struct kernel_space *kernel, uint64_t vaddr)
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

struct survey_place survey_place_find(const struct kernel_space *kernel,
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
