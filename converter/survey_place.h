/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the address of a sample lies, in the words of the records: which file or kernel range, of
 * what kind, and the address there. Other than kernel_space, it keeps modules and BPF programs
 * apart.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "converter/address_space.h"
#include "converter/image.h"
#include "converter/survey.h"

struct survey_kernel {
	struct image_table *images;
	struct address_space_pool *pool;
	struct address_space *ranges;
};

struct survey_place {
	const struct image *image; /* NULL where nothing is mapped; valid until one is added */
	uint64_t address;
	enum survey_kind kind;
};

void survey_kernel_init(struct survey_kernel *kernel, struct image_table *images,
			struct address_space_pool *pool);
void survey_kernel_fini(struct survey_kernel *kernel);
/* An MMAP of pid -1. */
void survey_kernel_map(struct survey_kernel *kernel, uint64_t start, uint64_t length,
		       const char *filename);
/* KSYMBOL. */
void survey_kernel_add_symbol(struct survey_kernel *kernel, uint64_t start, uint32_t length,
			      const char *name, bool is_unregister);

/* misc: of the sample, tells whose address it is. */
struct survey_place survey_place_find(const struct survey_kernel *kernel,
				      const struct address_space *space, uint16_t misc,
				      uint64_t vaddr);
