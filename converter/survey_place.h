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
#include "converter/kernel_space.h"
#include "converter/survey.h"

struct survey_place {
	const struct image *image; /* NULL where nothing is mapped; valid until one is added */
	uint64_t address;
	enum survey_kind kind;
};

/* misc: of the sample, tells whose address it is. */
struct survey_place survey_place_find(const struct kernel_space *kernel,
				      const struct address_space *space, uint16_t misc,
				      uint64_t vaddr);
