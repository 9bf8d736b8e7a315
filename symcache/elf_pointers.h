/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointers in the data of an ELF file as they are once it is loaded at address 0: what lies there,
 * or what a relocation will put there (R_*_RELATIVE of x86-64 and arm64; other machines and other
 * relocations leave what lies there).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symcache/elf_image.h"

enum { ELF_POINTERS_MAX = 1 << 22 }; /* relocations; more are left out */

struct elf_pointer {
	uint64_t svma, value;
};

struct elf_pointers {
	const struct elf_image *image; /* borrowed */
	struct elf_pointer *items;     /* relocated ones, by svma */
	size_t n;
};

void elf_pointers_init(struct elf_pointers *pointers, const struct elf_image *image);
void elf_pointers_fini(struct elf_pointers *pointers);
/* False when no bytes of the file are loaded there. */
bool elf_pointers_read(const struct elf_pointers *pointers, uint64_t svma, uint64_t *out);
