/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Go's run time knows of its own program (runtime.moduledata), as far as its table of
 * functions needs it: where code begins and where the trees of inlined calls are. It is found by
 * its first word, the address of that table. (runtime/symtab.go of each version.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symcache/pclntab.h"

struct go_module {
	uint64_t text;	    /* entries count from here */
	uint64_t call_data; /* references to call trees count from here; 0 before Go 1.18 */
};

/* False when none is there. */
bool go_module_find(const struct elf_pointers *pointers, const struct pclntab *table,
		    struct go_module *out);
