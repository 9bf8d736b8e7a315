/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At the end of a window: every distinct location gets its mapping, its final address and its
 * names, once, through symcache's door. Address forms: docs/architecture.md, "Addresses".
 */
#pragma once

#include <stdint.h>

#include "base/hash_map.h"
#include "converter/image.h"
#include "converter/jit_table.h"
#include "converter/kernel_space.h"
#include "proto/profile.h"
#include "symcache/symcache.h"

struct symbolize_input {
	struct profile *profile; /* with the locations as location_table_move leaves them */
	struct image_table *images;
	struct jit_table *jit;
	const struct kernel_space *kernel;
	const struct perf_source_info *source;
	struct symcache *cache;
	const char *main_path;						/* see converter_config */
	void (*progress)(void *context, uint64_t done, uint64_t total); /* may be NULL */
	void *progress_context;
};

/* Adds to frames_out, one a distinct location by outcome. */
void symbolize(const struct symbolize_input *input, uint64_t frames_out[SYMBOL_REASON_N]);
