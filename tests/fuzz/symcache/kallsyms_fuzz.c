/* SPDX-License-Identifier: Apache-2.0 */
/* A kallsyms text from elsewhere. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symcache/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kallsyms table;
	kallsyms_parse(&table, (const char *)data, size);
	for (uint32_t i = 0; i < table.ranges.n; i++) {
		uint64_t start = table.ranges.wide ? table.ranges.wide[i]
						   : table.ranges.base + table.ranges.narrow[i];
		struct kallsyms_hit hit;
		if (kallsyms_find(&table, start, &hit))
			assert(strlen(hit.name) + strlen(hit.module) < KALLSYMS_MAX_LINE_BYTES);
	}
	kallsyms_fini(&table);
	return 0;
}
