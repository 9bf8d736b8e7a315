/* SPDX-License-Identifier: Apache-2.0 */
/* A secret number for hash tables whose keys come from input, so that nobody can aim at a slot. */
#pragma once

#include <stdint.h>

uint64_t hash_seed_make(void);
