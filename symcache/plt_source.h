/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the procedure linkage table (x86-64 and arm64). Each entry is read for the GOT slot
 * that it jumps through; the slot's relocation names the function. That holds for every linker's
 * layout (.plt, .plt.sec, .plt.got) without knowing any.
 */
#pragma once

#include <stdint.h>

#include "symcache/elf_image.h"

enum { PLT_SOURCE_MAX_SLOTS = 1 << 20 };

/* symbol_name is an offset in the string table of .dynsym, not yet checked. */
typedef void (*plt_source_entry_fn)(void *context, uint64_t start, uint64_t end,
				    uint32_t symbol_name);

void plt_source_read(const struct elf_image *image, plt_source_entry_fn fn, void *context);
