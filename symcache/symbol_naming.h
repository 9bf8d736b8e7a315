/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF gives C functions and those of anonymous namespaces a plain name only; the symbol table
 * knows what they are linked as: "(anonymous namespace)::work" is more than "work", and malloc is
 * what people know __libc_malloc by. So a function without linkage name takes that of the symbol
 * that covers it; and where it is one name for all its copies, inlined ones take it too. A clone's
 * name (foo.part.0) stays with the clone. A linkage name that is no mangled one, as __GI_abort,
 * gives way to the symbol that begins where the function does.
 */
#pragma once

#include <stddef.h>

#include "symcache/symbol_model.h"

/*
 * Before symbol_model_finish. Ranges [0, n_dwarf) are DWARF's, those behind are the symbol tables',
 * sorted and without overlap.
 */
void symbol_naming_apply(struct symbol_model *model, size_t n_dwarf);
