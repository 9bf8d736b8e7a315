/* SPDX-License-Identifier: Apache-2.0 */
/* A file as a server sent it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symcache/elf_image.h"
#include "symcache/fetched_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct file_map map = {.data = size ? data : NULL, .size = size};
	const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct build_id id = build_id_make(bytes, sizeof(bytes));
	struct elf_image image;
	struct error *err = elf_image_init(&image, map.data, map.size);
	if (!err) {
		/* Its own id: what else is wrong with it? */
		if (image.build_id.kind == BUILD_ID_GNU)
			id = image.build_id;
		elf_image_fini(&image);
	}
	for (int kind = 0; kind < FETCHER_KIND_N; kind++) {
		const char *fault = fetched_file_fault(&map, &id, (enum fetcher_kind)kind, 0);
		/* Nothing that is no ELF file gets in. */
		assert(fault || !err);
	}
	error_free(err);
	return 0;
}
