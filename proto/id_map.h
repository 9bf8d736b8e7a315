/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of a file's messages to our dense indices: an array while ids are about as small as
 * their number, a hash map for the others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"

struct id_map {
	uint32_t *dense; /* index + 1, 0 = unknown */
	uint64_t n_dense;
	struct hash_map sparse;
};

/* For about n ids. */
void id_map_init(struct id_map *map, uint32_t n);
void id_map_fini(struct id_map *map);
/* False if the id was there already. */
bool id_map_add(struct id_map *map, uint64_t id, uint32_t index);
bool id_map_find_sparse(const struct id_map *map, uint64_t id, uint32_t *index_out);

static inline bool id_map_find(const struct id_map *map, uint64_t id, uint32_t *index_out)
{
	if (id >= map->n_dense)
		return id_map_find_sparse(map, id, index_out);
	*index_out = map->dense[id] - 1;
	return map->dense[id] != 0;
}
