/* SPDX-License-Identifier: Apache-2.0 */
/* The part of symbol_model_finish that sorts ranges and line rows and cuts what overlaps. */
#pragma once

#include "symcache/symbol_model.h"

void symbol_overlap_cut_ranges(struct symbol_model *model);
void symbol_overlap_cut_lines(struct symbol_model *model);
