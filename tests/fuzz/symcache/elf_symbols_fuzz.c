/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file from elsewhere: headers, notes, symbol tables, PLT, and names out of them. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/content_id.h"
#include "symcache/elf_image.h"
#include "symcache/symtab_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct symtab_source *table, uint64_t svma)
{
	struct symtab_hit hit;
	if (!symtab_source_find(table, svma, &hit))
		return;
	size_t n;
	const char *name = symtab_source_name(table, hit.key, &n);
	assert(n > 0 && name[n - 1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_image image;
	(void)content_id_of_file(data, size);
	struct error *err = elf_image_init(&image, data, size);
	if (err) {
		error_free(err);
		return 0;
	}
	struct symtab_source table;
	symtab_source_init(&table, &image, &image);
	for (uint32_t i = 0; i < table.ranges.n; i++) {
		uint64_t start = table.ranges.wide ? table.ranges.wide[i]
						   : table.ranges.base + table.ranges.narrow[i];
		look_up(&table, start - 1);
		look_up(&table, start);
	}
	look_up(&table, 0);
	look_up(&table, UINT64_MAX);
	uint64_t value;
	(void)symtab_source_value(&image, "_text", &value);
	symtab_source_fini(&table);
	elf_image_fini(&image);
	return 0;
}
