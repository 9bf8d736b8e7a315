/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/address_space.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

struct address_space *address_space_new(struct address_space_pool *pool)
{
	struct address_space *space = mem_zalloc(1, sizeof(*space));
	space->n_refs = 1;
	space->generation = ++pool->next_generation;
	return space;
}

struct address_space *address_space_ref(struct address_space *space)
{
	space->n_refs++;
	return space;
}

void address_space_unref(struct address_space *space, struct address_space_pool *pool)
{
	if (!space || --space->n_refs)
		return;
	jit_scope_unref(space->jit);
	pool->n_maps -= space->n;
	mem_free(space->maps);
	mem_free(space);
}

/* Index of the first mapping that ends behind vaddr. */
static uint32_t lower_bound(const struct address_space *space, uint64_t vaddr)
{
	uint32_t low = 0, n = space->n;
	while (n) {
		uint32_t half = n / 2;
		if (space->maps[low + half].end <= vaddr) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

const struct space_map *address_space_find(const struct address_space *space, uint64_t vaddr)
{
	uint32_t i = lower_bound(space, vaddr);
	return i < space->n && space->maps[i].start <= vaddr ? &space->maps[i] : NULL;
}

/* Without its names. */
static struct address_space *copy_space(const struct address_space *space,
					struct address_space_pool *pool)
{
	struct address_space *copy = address_space_new(pool);
	copy->n = copy->capacity = space->n;
	copy->next_sequence = space->next_sequence;
	copy->maps = mem_copy(space->maps, space->n * sizeof(*copy->maps));
	copy->has_injected = space->has_injected;
	pool->n_maps += copy->n;
	return copy;
}

static void make_own(struct address_space **space, struct address_space_pool *pool)
{
	struct address_space *shared = *space;
	if (shared->n_refs == 1)
		return;
	struct address_space *own = copy_space(shared, pool);
	own->jit = shared->jit ? jit_scope_ref(shared->jit) : NULL;
	own->jit_moment_ns = shared->jit_moment_ns;
	shared->n_refs--;
	*space = own;
}

struct address_space *address_space_fork(struct address_space *space,
					 struct address_space_pool *pool, uint32_t pid,
					 uint64_t now_ns)
{
	if (!space->jit)
		return address_space_ref(space);
	struct address_space *copy = copy_space(space, pool);
	copy->jit = jit_scope_fork(space->jit, pid, now_ns);
	return copy;
}

static void insert_at(struct address_space *space, struct address_space_pool *pool, uint32_t i,
		      const struct space_map *map)
{
	if (space->n == space->capacity) {
		space->capacity = space->capacity ? space->capacity * 2 : 8;
		space->maps = mem_realloc(space->maps, space->capacity, sizeof(*space->maps));
	}
	memmove(&space->maps[i + 1], &space->maps[i], (space->n - i) * sizeof(*space->maps));
	space->maps[i] = *map;
	space->n++;
	pool->n_maps++;
}

static void remove_range(struct address_space *space, struct address_space_pool *pool,
			 uint32_t first, uint32_t n)
{
	memmove(&space->maps[first], &space->maps[first + n],
		(space->n - first - n) * sizeof(*space->maps));
	space->n -= n;
	pool->n_maps -= n;
}

/* Cuts [start, end) out of what is there; gives the index where a mapping of that range belongs. */
static uint32_t cut(struct address_space *space, struct address_space_pool *pool, uint64_t start,
		    uint64_t end)
{
	uint32_t i = lower_bound(space, start);
	if (i < space->n && space->maps[i].start < start) {
		struct space_map *left = &space->maps[i];
		if (left->end > end) {
			struct space_map right = *left;
			right.page_offset += end - right.start;
			right.start = end;
			left->end = start;
			insert_at(space, pool, i + 1, &right);
			return i + 1;
		}
		left->end = start;
		i++;
	}
	uint32_t covered = 0;
	while (i + covered < space->n && space->maps[i + covered].end <= end)
		covered++;
	if (covered)
		remove_range(space, pool, i, covered);
	if (i < space->n && space->maps[i].start < end) {
		space->maps[i].page_offset += end - space->maps[i].start;
		space->maps[i].start = end;
	}
	return i;
}

/*
 * Tools that put a program's text on huge pages copy a part of it to anonymous memory (or a memfd,
 * or hugetlbfs) and map that over the middle of the file's mapping:
 *
 *     before   | app offset 0 ......................................... |
 *     after    | app offset 0 | //anon             | app offset 0x600000 |
 *
 * When both neighbours touch and are the same file at offsets that fit, the middle is that file's.
 */
static void stitch(struct address_space *space, const struct image_table *images, uint32_t middle)
{
	if (middle == 0 || middle + 1 >= space->n)
		return;
	struct space_map *m = &space->maps[middle];
	const struct space_map *left = m - 1, *right = m + 1;
	if (left->image != right->image || left->end != m->start || right->start != m->end ||
	    left->page_offset - left->start != right->page_offset - right->start ||
	    !image_is_anonymous(image_table_get(images, m->image)) ||
	    image_is_anonymous(image_table_get(images, left->image)))
		return;
	m->image = left->image;
	m->page_offset = left->page_offset + (m->start - left->start);
}

static int compare_sequence(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/*
 * Forgets the oldest quarter, so that a full space costs O(1) a mapping all the same. Pieces of one
 * mapping are of one age: of those at the limit only as many go as the quarter needs.
 */
static void evict(struct address_space *space, struct address_space_pool *pool)
{
	uint32_t *sequences = mem_alloc(space->n * sizeof(*sequences));
	for (uint32_t i = 0; i < space->n; i++)
		sequences[i] = space->maps[i].sequence;
	qsort(sequences, space->n, sizeof(*sequences), compare_sequence);
	uint32_t n_gone = space->n / 4, limit = sequences[n_gone], n_at_limit = 0;
	while (n_at_limit < n_gone && sequences[n_gone - n_at_limit - 1] == limit)
		n_at_limit++;
	mem_free(sequences);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < space->n; i++) {
		uint32_t sequence = space->maps[i].sequence;
		if (sequence < limit || (sequence == limit && n_at_limit && n_at_limit--))
			continue;
		space->maps[kept++] = space->maps[i];
	}
	stats_add(STAT_MAPS_EVICTED, space->n - kept);
	pool->n_maps -= space->n - kept;
	space->n = kept;
}

static bool is_there(const struct address_space *space, const struct space_map *map)
{
	const struct space_map *old = address_space_find(space, map->start);
	return old && old->image == map->image && old->end >= map->end &&
	       old->page_offset + (map->start - old->start) == map->page_offset;
}

static void put(struct address_space *space, struct address_space_pool *pool,
		const struct image_table *images, const struct space_map *map)
{
	uint32_t i = cut(space, pool, map->start, map->end);
	insert_at(space, pool, i, map);
	stitch(space, images, i);
	if (i > 0)
		stitch(space, images, i - 1);
	if (i + 1 < space->n)
		stitch(space, images, i + 1);
}

/* Puts only those parts of map that nothing covers. */
static void put_gaps(struct address_space *space, struct address_space_pool *pool,
		     const struct image_table *images, const struct space_map *map)
{
	uint64_t at = map->start;
	while (at < map->end) {
		uint32_t i = lower_bound(space, at);
		const struct space_map *next = i < space->n ? &space->maps[i] : NULL;
		if (next && next->start <= at) {
			at = next->end;
			continue;
		}
		struct space_map piece = *map;
		piece.start = at;
		piece.end = next && next->start < map->end ? next->start : map->end;
		piece.page_offset += at - map->start;
		at = piece.end;
		put(space, pool, images, &piece);
	}
}

/* Puts pieces of perf inject --jit back that map covers: they say more than anonymous memory. */
static void put_over(struct address_space *space, struct address_space_pool *pool,
		     const struct image_table *images, const struct space_map *map)
{
	uint32_t first = lower_bound(space, map->start), end = first, n = 0;
	while (end < space->n && space->maps[end].start < map->end)
		end++;
	struct space_map *kept = mem_copy(space->maps + first, (end - first) * sizeof(*kept));
	for (uint32_t i = 0; i < end - first; i++) {
		if (image_is_injected(image_table_get(images, kept[i].image)))
			kept[n++] = kept[i];
	}
	put(space, pool, images, map);
	for (uint32_t i = 0; i < n; i++)
		put(space, pool, images, &kept[i]);
	mem_free(kept);
}

void address_space_insert(struct address_space **space, struct address_space_pool *pool,
			  const struct image_table *images, const struct space_map *map,
			  bool only_gaps)
{
	if (map->start >= map->end || is_there(*space, map))
		return;
	make_own(space, pool);
	struct address_space *own = *space;
	if (own->n >= ADDRESS_SPACE_MAX_MAPS)
		evict(own, pool);
	struct space_map numbered = *map;
	numbered.sequence = own->next_sequence++;
	own->generation = ++pool->next_generation;
	const struct image *image = image_table_get(images, map->image);
	own->has_injected |= image_is_injected(image);
	if (only_gaps)
		put_gaps(own, pool, images, &numbered);
	else if (own->has_injected && image->may_hold_jit)
		put_over(own, pool, images, &numbered);
	else
		put(own, pool, images, &numbered);
}
