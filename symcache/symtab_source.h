/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names of one binary out of .symtab, .dynsym and the PLT, cut into ranges that do not
 * overlap: a look-up is one binary search, all rules are applied when the table is made.
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
#include <stddef.h>
#include <stdint.h>

#include "symcache/address_index.h"
#include "symcache/elf_image.h"

enum {
	SYMTAB_SOURCE_MAX_SYMBOLS = 1 << 22,	  /* functions; more are left out */
	SYMTAB_SOURCE_MAX_STRING_BYTES = 1 << 29, /* of one string table */
	SYMTAB_SOURCE_MAX_NAME_BYTES = 1 << 16,	  /* longer names are cut */
};

/* String tables that names point into. */
enum symtab_strings {
	SYMTAB_STRINGS_STATIC,	/* .strtab */
	SYMTAB_STRINGS_DYNAMIC, /* .dynstr */
	SYMTAB_STRINGS_PLT,	/* .dynstr, shown with "@plt" behind */
	SYMTAB_STRINGS_N,
};

struct symtab_source {
	struct address_index ranges;
	uint32_t *names; /* per range: place of the name and flags, or a gap */
	struct {
		const char *bytes;
		size_t size; /* up to and with its last 0 */
	} strings[SYMTAB_STRINGS_N];
};

struct symtab_hit {
	uint32_t key;	/* the same for the same name of this table */
	bool is_plt;	/* to be shown as name@plt */
	bool is_folded; /* other functions start here too */
};

/*
 * binary is the running file, debug its separate debug file or NULL; both outlive the table. The
 * .symtab of binary, else that of debug, is joined with binary's .dynsym and PLT.
 */
void symtab_source_init(struct symtab_source *table, const struct elf_image *binary,
			const struct elf_image *debug);
void symtab_source_fini(struct symtab_source *table);
/* Whether there is any symbol in it. */
bool symtab_source_has_symbols(const struct symtab_source *table);
/* False when no symbol covers svma. */
bool symtab_source_find(const struct symtab_source *table, uint64_t svma, struct symtab_hit *out);
/* The name of a hit: n_out bytes, borrowed from the image, not 0-terminated. */
const char *symtab_source_name(const struct symtab_source *table, uint32_t key, size_t *n_out);
/* The value of the .symtab symbol of that name, whatever its type; false when there is none. */
bool symtab_source_value(const struct elf_image *image, const char *name, uint64_t *out);
