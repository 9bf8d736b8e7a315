/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of messages to indices. */
#include "proto/id_map.h"

#include "base/mem.h"

enum { DENSE_SLACK = 64 };

void id_map_init(struct id_map *map, uint32_t n)
{
	uint64_t n_dense = (uint64_t)n * 2 + DENSE_SLACK;
	*map = (struct id_map){
		.dense = mem_zalloc(n_dense, sizeof(*map->dense)),
		.n_dense = n_dense,
	};
	hash_map_init(&map->sparse);
}

void id_map_fini(struct id_map *map)
{
	mem_free(map->dense);
	hash_map_fini(&map->sparse);
	*map = (struct id_map){0};
}

bool id_map_add(struct id_map *map, uint64_t id, uint32_t index)
{
	if (id < map->n_dense) {
		bool is_new = !map->dense[id];
		if (is_new)
			map->dense[id] = index + 1;
		return is_new;
	}
	bool is_new = false;
	uint64_t *value = hash_map_put(&map->sparse, id, &is_new);
	if (is_new)
		*value = index;
	return is_new;
}

bool id_map_find_sparse(const struct id_map *map, uint64_t id, uint32_t *index_out)
{
	const uint64_t *value = hash_map_get(&map->sparse, id);
	if (!value)
		return false;
	*index_out = (uint32_t)*value;
	return true;
}
