/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names of one binary out of .symtab, .dynsym and the PLT into the symbol model, cut into
 * ranges that do not overlap.
 *
 * Rules. Only functions count: FUNC, GNU_IFUNC, and NOTYPE in executable sections, without the
 * mapping symbols of arm and RISC-V. A symbol covers its size and no more, so a gap is a gap; of
 * symbols that cover the same address the one with the highest start wins. A .symtab symbol of size
 * zero runs to the next symbol or its section's end, where no sized symbol stands; a .dynsym symbol
 * of size zero covers one byte only: the symbols between were stripped. Of several at one start the
 * first of this order is shown: sized before unsized, global, weak, local, PLT, the shortest name,
 * the lowest bytes. Symbol versions ("@@GLIBC_2.14") are not part of a name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symcache/elf_image.h"
#include "symcache/symbol_model.h"

enum {
	SYMTAB_SOURCE_MAX_SYMBOLS = 1 << 22,	  /* functions; more are left out */
	SYMTAB_SOURCE_MAX_STRING_BYTES = 1 << 29, /* of one string table */
	SYMTAB_SOURCE_MAX_NAME_BYTES = 1 << 16,	  /* longer names are cut */
};

/*
 * Appends to model. binary is the running file, debug its separate debug file or NULL. The .symtab
 * of binary, else that of debug, is joined with binary's .dynsym and PLT.
 */
void symtab_source_read(const struct elf_image *binary, const struct elf_image *debug,
			struct symbol_model *model);
/* The value of the .symtab symbol of that name, whatever its type; false when there is none. */
bool symtab_source_value(const struct elf_image *image, const char *name, uint64_t *out);
