/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executable mappings of one process, sorted and without overlap, as they are at the record
 * being processed: records come in time order, so the newest mapping at or before a sample is the
 * one that stands. fork shares a space; whoever changes a shared one gets its own copy first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "converter/image.h"
#include "converter/jit_table.h"

struct space_map {
	uint64_t start, end;
	uint64_t page_offset; /* file offset of start */
	uint32_t image;
	uint32_t sequence; /* order of insertion, for eviction */
};

struct address_space {
	struct space_map *maps;
	uint32_t n, capacity;
	uint32_t n_refs;
	uint32_t next_sequence;
	/* Never the same for two states of two spaces: a key for caches of addresses and chains. */
	uint64_t generation;
	/* Names of code without a file, NULL as long as there is none; and the moment that the
	 * generation stands for. */
	struct jit_scope *jit;
	uint64_t jit_moment_ns;
	bool has_injected; /* some image is one of perf inject --jit */
};

/* vm.max_map_count is 65530 by default and counts all mappings, we keep executable ones. */
enum { ADDRESS_SPACE_MAX_MAPS = 1 << 15 };

/* Counts and numbers all spaces of one process table. */
struct address_space_pool {
	uint64_t next_generation;
	uint64_t n_maps; /* in all spaces */
};

struct address_space *address_space_new(struct address_space_pool *pool);
struct address_space *address_space_ref(struct address_space *space);
/* The space of a child process: the same one, but for code that either may make from now on. */
struct address_space *address_space_fork(struct address_space *space,
					 struct address_space_pool *pool, uint32_t pid,
					 uint64_t now_ns);
void address_space_unref(struct address_space *space, struct address_space_pool *pool);
/*
 * Puts a mapping in, cutting what it overlaps; a piece of a file between two anonymous or file
 * neighbours is stitched (see the .c file). *space may be replaced by a copy. An equal mapping that
 * is there already changes nothing. only_gaps: the new mapping yields where others are.
 */
void address_space_insert(struct address_space **space, struct address_space_pool *pool,
			  const struct image_table *images, const struct space_map *map,
			  bool only_gaps);
/* NULL when nothing covers vaddr. */
const struct space_map *address_space_find(const struct address_space *space, uint64_t vaddr);
