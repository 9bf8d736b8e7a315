/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a .dwp package (GNU's version 2 and DWARF 5): which part of each section is one
 * unit's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symcache/dwarf_info.h"

/* The parts of the unit with that id; false when the package has no such unit. */
bool dwarf_package_find(struct dwarf_info *info, uint64_t id, struct dwarf_parts *out);
