/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's address ranges by time: its text, modules, and BPF programs that come and go with
 * KSYMBOL records. Same rule as for processes: the newest range at or before a sample wins.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "converter/address_space.h"
#include "converter/image.h"

struct kernel_space {
	struct image_table *images;
	struct address_space_pool *pool;
	struct address_space *ranges;
	bool has_text; /* a record told where the kernel's text is */
	uint64_t text_start, text_end, text_page_offset;
	char *relocation_symbol;  /* "_text", "_stext"; NULL when no record named one */
	struct build_id build_id; /* of the kernel, empty when no record told it */
};

void kernel_space_init(struct kernel_space *space, struct image_table *images,
		       struct address_space_pool *pool);
void kernel_space_fini(struct kernel_space *space);
/* An MMAP of pid -1: the kernel ("[kernel.kallsyms]_text", "[guest.kernel.kallsyms]") or a module.
 */
void kernel_space_map(struct kernel_space *space, uint64_t start, uint64_t length,
		      uint64_t page_offset, const char *filename);
/* The build-id in such a record (perf record --buildid-mmap); a module's is passed over. */
void kernel_space_identify(struct kernel_space *space, const char *filename,
			   const struct build_id *build_id);
/* KSYMBOL. */
void kernel_space_ksymbol(struct kernel_space *space, uint64_t start, uint32_t length,
			  const char *name, bool is_unregister);
/* Image of a kernel address: IMAGE_INDEX_KERNEL unless a BPF program has it. */
uint32_t kernel_space_find(const struct kernel_space *space, uint64_t vaddr);
static inline uint64_t kernel_space_generation(const struct kernel_space *space)
{
	return space->ranges->generation;
}
