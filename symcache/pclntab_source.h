/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, lines and inlined calls of a Go program out of its run time's own tables (pclntab.h)
 * into the symbol model; for programs linked with -w or stripped, which have nothing better. They
 * tell no columns, and no type arguments of generic functions. Programs of Go 1.15 and older: no
 * inlined calls; an address in one has its line, and the name of the function around it.
 */
#pragma once

#include <stdint.h>

#include "symcache/elf_image.h"
#include "symcache/symbol_model.h"

enum {
	PCLNTAB_SOURCE_MAX_CALLS = 1 << 16, /* inlined into one function */
	PCLNTAB_SOURCE_MAX_DEPTH = 64,	    /* of inlined calls */
};

/* Appends to model; nothing when the file is not Go's. What is damaged is left out. */
void pclntab_source_read(const struct elf_image *image, struct symbol_model *model);
