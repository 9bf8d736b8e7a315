/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile's store. Interned arrays each have an index_table; stacks and samples are the
 * converter's hot path: a lookup is one bucket and, when a tag of it matches, one element.
 */
#include "proto/profile.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "base/compiler.h"
#include "base/hash_map.h"
#include "base/hash_seed.h"
#include "base/index_table.h"
#include "base/mem.h"
#include "proto/utf8.h"

enum { FIRST_CAPACITY = 16, PATH_BATCH = 64, LARGE_FROM_BYTES = 1 << 20, RECENT_LINES = 1 << 10 };

/* The chain that profile_stack_path saw last, root first. */
struct last_path {
	uint32_t *locations;
	uint32_t *nodes;
	uint32_t n;
	uint32_t capacity;
};

struct profile_index {
	struct index_table stacks;
	struct index_table samples;
	struct index_table label_sets;
	struct index_table functions;
	uint32_t *stack_hashes; /* per node: hash of the path from the root; NULL after a trim */
	uint32_t stack_hashes_capacity;
	uint32_t recent_lines[RECENT_LINES]; /* first + 1 of runs of lines, by hash */
	struct last_path last;
	char *repaired; /* scratch of profile_string_n */
	size_t repaired_capacity;
	uint64_t seed; /* order never depends on it */
};

/*
 * By doubling, and by a quarter once an array is large: the system moves its pages then instead of
 * copying them, and what is not needed yet is not held.
 */
static uint64_t next_capacity(uint64_t capacity, size_t element_bytes)
{
	if (!capacity)
		return FIRST_CAPACITY;
	bool is_large = capacity * element_bytes >= LARGE_FROM_BYTES;
	return is_large ? capacity + capacity / 4 : capacity * 2;
}

static void grow(void **items, uint32_t *capacity, uint64_t want, size_t element_bytes)
{
	uint64_t grown = next_capacity(*capacity, element_bytes);
	if (grown < want)
		grown = want;
	if (grown > UINT32_MAX)
		grown = UINT32_MAX;
	/* What 32 bits cannot count counts as no memory left. */
	*items = mem_realloc(*items, want > UINT32_MAX ? SIZE_MAX : (size_t)grown, element_bytes);
	*capacity = (uint32_t)grown;
}

/* Room for extra more elements. */
#define RESERVE(array, extra)                                                                      \
	do {                                                                                       \
		if ((array)->capacity - (array)->n < (extra))                                      \
			grow((void **)&(array)->items, &(array)->capacity,                         \
			     (uint64_t)(array)->n + (extra), sizeof(*(array)->items));             \
	} while (0)

static uint32_t hash_pair(uint64_t seed, uint32_t a, uint32_t b)
{
	uint64_t x = (((uint64_t)a << 32) | b) ^ seed;
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	x *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(x >> 32);
}

static uint32_t hash_bytes(const struct profile *profile, const void *p, size_t n)
{
	return (uint32_t)(XXH3_64bits_withSeed(p, n, profile->index->seed) >> 32);
}

static uint32_t hash_of_node(const void *context, uint32_t node)
{
	const struct profile *profile = context;
	return profile->index->stack_hashes[node];
}

/* A parent comes before its children. */
static void rehash_paths(struct profile *profile)
{
	struct profile_index *index = profile->index;
	const struct profile_stack_node *nodes = profile->stacks.items;
	for (uint32_t i = 0; i < profile->stacks.n; i++) {
		uint32_t above = i ? index->stack_hashes[nodes[i].parent] : 0;
		index->stack_hashes[i] = hash_pair(index->seed, above, nodes[i].location);
	}
}

static void reserve_nodes(struct profile *profile, uint32_t extra)
{
	struct profile_index *index = profile->index;
	RESERVE(&profile->stacks, extra);
	if (UNLIKELY(index->stack_hashes_capacity < profile->stacks.capacity)) {
		bool was_trimmed = !index->stack_hashes;
		grow((void **)&index->stack_hashes, &index->stack_hashes_capacity,
		     profile->stacks.capacity, sizeof(*index->stack_hashes));
		if (was_trimmed)
			rehash_paths(profile);
	}
	index_table_reserve(&index->stacks, extra, hash_of_node, profile);
}

/* Room was reserved, the node is new. */
static inline uint32_t put_node(struct profile *profile, uint32_t hash, uint32_t parent,
				uint32_t location)
{
	uint32_t node = profile->stacks.n++;
	profile->stacks.items[node] =
		(struct profile_stack_node){.parent = parent, .location = location};
	profile->index->stack_hashes[node] = hash;
	return index_table_add(&profile->index->stacks, hash);
}

static uint32_t hash_row(const struct profile_index *index, uint32_t stack, uint32_t label_set,
			 uint32_t first_column)
{
	return hash_pair(index->seed ^ first_column, stack, label_set);
}

static uint32_t hash_of_row(const void *context, uint32_t i)
{
	const struct profile *profile = context;
	const struct profile_sample *sample = &profile->samples.items[i];
	return hash_row(profile->index, sample->stack, sample->label_set,
			profile_first_column(profile, i));
}

static void reserve_rows(struct profile *profile, uint32_t extra)
{
	index_table_reserve(&profile->index->samples, extra, hash_of_row, profile);
}

struct profile *profile_new(void)
{
	struct profile *profile = mem_zalloc(1, sizeof(*profile));
	arena_init(&profile->arena, 0);
	intern_init(&profile->strings, &profile->arena);
	struct profile_index *index = mem_zalloc(1, sizeof(*index));
	profile->index = index;
	index->seed = hash_seed_make();
	/* Arrays that are pointed into are never NULL, even for no elements. */
	RESERVE(&profile->labels, 1);
	RESERVE(&profile->lines, 1);
	RESERVE(&profile->values, 1);
	reserve_nodes(profile, 1);
	put_node(profile, hash_pair(index->seed, 0, PROFILE_NONE), 0, PROFILE_NONE);
	reserve_rows(profile, 1);
	(void)profile_label_set(profile, NULL, 0);
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	struct profile_index *index = profile->index;
	index_table_fini(&index->stacks);
	index_table_fini(&index->samples);
	index_table_fini(&index->label_sets);
	index_table_fini(&index->functions);
	mem_free(index->stack_hashes);
	mem_free(index->last.locations);
	mem_free(index->last.nodes);
	mem_free(index->repaired);
	mem_free(index);
	mem_free(profile->sample_types.items);
	mem_free(profile->mappings.items);
	mem_free(profile->functions.items);
	mem_free(profile->lines.items);
	mem_free(profile->locations.items);
	mem_free(profile->stacks.items);
	mem_free(profile->labels.items);
	mem_free(profile->label_sets.items);
	mem_free(profile->samples.items);
	mem_free(profile->values.items);
	mem_free(profile->first_columns.items);
	mem_free(profile->comments.items);
	intern_fini(&profile->strings);
	arena_fini(&profile->arena);
	mem_free(profile);
}

void profile_trim(struct profile *profile)
{
	struct profile_index *index = profile->index;
	index_table_trim(&index->stacks);
	index_table_trim(&index->samples);
	index_table_trim(&index->label_sets);
	mem_free(index->stack_hashes);
	index->stack_hashes = NULL;
	index->stack_hashes_capacity = 0;
}

#define USED_BYTES(array) ((size_t)(array)->n * sizeof(*(array)->items))

size_t profile_memory_bytes(const struct profile *profile)
{
	const struct profile_index *index = profile->index;
	size_t tables = index_table_bytes(&index->stacks) + index_table_bytes(&index->samples) +
			index_table_bytes(&index->label_sets) +
			index_table_bytes(&index->functions) +
			(index->stack_hashes ? profile->stacks.n * sizeof(uint32_t) : 0) +
			index->repaired_capacity;
	size_t last = 2 * sizeof(uint32_t) * (size_t)index->last.capacity;
	size_t strings = profile->arena.used_bytes +
			 profile->strings.n * sizeof(*profile->strings.entries) +
			 index_table_bytes(&profile->strings.table);
	return sizeof(*profile) + sizeof(*index) + tables + last + strings +
	       USED_BYTES(&profile->sample_types) + USED_BYTES(&profile->mappings) +
	       USED_BYTES(&profile->functions) + USED_BYTES(&profile->lines) +
	       USED_BYTES(&profile->locations) + USED_BYTES(&profile->stacks) +
	       USED_BYTES(&profile->labels) + USED_BYTES(&profile->label_sets) +
	       USED_BYTES(&profile->samples) + USED_BYTES(&profile->values) +
	       USED_BYTES(&profile->first_columns) + USED_BYTES(&profile->comments);
}

uint32_t profile_string_n(struct profile *profile, const char *text, size_t size)
{
	if (LIKELY(utf8_is_valid(text, size)))
		return intern_bytes(&profile->strings, text, size);
	struct profile_index *index = profile->index;
	if (index->repaired_capacity < size * UTF8_REPAIR_GROWTH) {
		index->repaired_capacity = size * UTF8_REPAIR_GROWTH;
		index->repaired = mem_realloc(index->repaired, size, UTF8_REPAIR_GROWTH);
	}
	size_t n = utf8_repair(text, size, index->repaired);
	return intern_bytes(&profile->strings, index->repaired, n);
}

uint32_t profile_string(struct profile *profile, const char *text)
{
	return text ? profile_string_n(profile, text, strlen(text)) : 0;
}

void profile_add_sample_type(struct profile *profile, const char *type, const char *unit)
{
	assert(profile->samples.n == 0 || profile->row_width);
	RESERVE(&profile->sample_types, 1);
	profile->sample_types.items[profile->sample_types.n++] = (struct profile_value_type){
		.type = profile_string(profile, type),
		.unit = profile_string(profile, unit),
	};
}

uint32_t profile_add_mapping(struct profile *profile, const struct profile_mapping *mapping)
{
	RESERVE(&profile->mappings, 1);
	profile->mappings.items[profile->mappings.n] = *mapping;
	return profile->mappings.n++;
}

static bool function_equal(const struct profile_function *a, const struct profile_function *b)
{
	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line;
}

static uint32_t hash_function(const struct profile *profile, const struct profile_function *key)
{
	return hash_bytes(profile, key, sizeof(*key));
}

static uint32_t hash_of_function(const void *context, uint32_t index)
{
	const struct profile *profile = context;
	return hash_function(profile, &profile->functions.items[index]);
}

uint32_t profile_function(struct profile *profile, const struct profile_function *function)
{
	struct index_table *table = &profile->index->functions;
	struct profile_function key = *function;
	key.reserved = 0;
	uint32_t hash = hash_function(profile, &key);
	index_table_reserve(table, 1, hash_of_function, profile);
	for (struct index_probe probe = index_table_probe(table, hash);
	     index_probe_next(table, &probe);) {
		if (function_equal(&profile->functions.items[probe.index], &key))
			return probe.index;
	}
	RESERVE(&profile->functions, 1);
	profile->functions.items[profile->functions.n++] = key;
	return index_table_add(table, hash);
}

uint32_t profile_add_location(struct profile *profile, uint32_t mapping, uint64_t address)
{
	RESERVE(&profile->locations, 1);
	profile->locations.items[profile->locations.n] =
		(struct profile_location){.address = address, .mapping = mapping};
	return profile->locations.n++;
}

void profile_adopt_locations(struct profile *profile, struct profile_location *items, uint32_t n)
{
	mem_free(profile->locations.items);
	profile->locations.items = items;
	profile->locations.n = profile->locations.capacity = n;
}

/* Equal runs of lines are stored once where they are recent enough to be remembered. */
static uint32_t put_lines(struct profile *profile, const struct profile_line *lines, uint32_t n)
{
	uint32_t hash = hash_bytes(profile, lines, n * sizeof(*lines));
	uint32_t *recent = &profile->index->recent_lines[hash % RECENT_LINES];
	if (*recent && profile->lines.n - (*recent - 1) >= n &&
	    memcmp(&profile->lines.items[*recent - 1], lines, n * sizeof(*lines)) == 0)
		return *recent - 1;
	RESERVE(&profile->lines, n);
	uint32_t first = profile->lines.n;
	memcpy(&profile->lines.items[first], lines, n * sizeof(*lines));
	profile->lines.n += n;
	*recent = first + 1;
	return first;
}

void profile_set_lines(struct profile *profile, uint32_t location, const struct profile_line *lines,
		       uint32_t n)
{
	struct profile_location *place = &profile->locations.items[location];
	place->first_line = n ? put_lines(profile, lines, n) : 0;
	place->n_lines = n;
}

static inline uint32_t find_or_put_node(struct profile *profile, uint32_t hash, uint32_t parent,
					uint32_t location)
{
	const struct index_table *stacks = &profile->index->stacks;
	for (struct index_probe probe = index_table_probe(stacks, hash);
	     index_probe_next(stacks, &probe);) {
		struct profile_stack_node node = profile->stacks.items[probe.index];
		if (node.parent == parent && node.location == location)
			return probe.index;
	}
	return put_node(profile, hash, parent, location);
}

uint32_t profile_stack_push(struct profile *profile, uint32_t parent, uint32_t location)
{
	struct profile_index *index = profile->index;
	reserve_nodes(profile, 1);
	uint32_t hash = hash_pair(index->seed, index->stack_hashes[parent], location);
	return find_or_put_node(profile, hash, parent, location);
}

/* Frames [from, n) of the last path below parent, at most PATH_BATCH of them. */
static uint32_t push_batch(struct profile *profile, uint32_t parent, uint32_t from, uint32_t n)
{
	struct profile_index *index = profile->index;
	const uint32_t *locations = index->last.locations + from;
	uint32_t *nodes = index->last.nodes + from;
	uint32_t hashes[PATH_BATCH];
	reserve_nodes(profile, n);
	uint32_t hash = index->stack_hashes[parent];
	for (uint32_t i = 0; i < n; i++) {
		hashes[i] = hash = hash_pair(index->seed, hash, locations[i]);
		index_table_prefetch(&index->stacks, hash);
	}
	/* The first match is right nearly always, so its node may travel too. */
	for (uint32_t i = 0; i < n; i++) {
		struct index_probe probe = index_table_probe(&index->stacks, hashes[i]);
		if (index_probe_next(&index->stacks, &probe))
			__builtin_prefetch(&profile->stacks.items[probe.index]);
	}
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = parent = find_or_put_node(profile, hashes[i], parent, locations[i]);
	return parent;
}

/* locations[0], locations[step] … from the root to the leaf. */
static uint32_t push_path(struct profile *profile, const uint32_t *locations, ptrdiff_t step,
			  uint32_t n)
{
	struct last_path *last = &profile->index->last;
	if (last->capacity < n) {
		uint32_t capacity = last->capacity;
		grow((void **)&last->locations, &capacity, n, sizeof(*last->locations));
		grow((void **)&last->nodes, &last->capacity, n, sizeof(*last->nodes));
	}
	uint32_t shared = 0;
	uint32_t limit = n < last->n ? n : last->n;
	while (shared < limit && last->locations[shared] == locations[(ptrdiff_t)shared * step])
		shared++;
	for (uint32_t i = shared; i < n; i++)
		last->locations[i] = locations[(ptrdiff_t)i * step];
	last->n = n;
	uint32_t node = shared ? last->nodes[shared - 1] : 0;
	for (uint32_t i = shared; i < n; i += PATH_BATCH)
		node = push_batch(profile, node, i, n - i < PATH_BATCH ? n - i : PATH_BATCH);
	return node;
}

void profile_prefetch_stack(const struct profile *profile, const uint32_t *locations, uint32_t n)
{
	const struct profile_index *index = profile->index;
	if (UNLIKELY(!index->stack_hashes))
		return; /* trimmed */
	uint32_t hash = index->stack_hashes[0];
	for (uint32_t i = n; i-- > 0;) {
		hash = hash_pair(index->seed, hash, locations[i]);
		index_table_prefetch(&index->stacks, hash);
	}
}

uint32_t profile_stack_path(struct profile *profile, const uint32_t *locations, uint32_t n)
{
	return push_path(profile, locations, 1, n);
}

uint32_t profile_stack(struct profile *profile, const uint32_t *locations, uint32_t n)
{
	return n ? push_path(profile, locations + n - 1, -1, n) : 0;
}

/* One form for each meaning, so that sets are compared as bytes. */
static struct profile_packed_label pack_label(struct profile *profile,
					      const struct profile_label *label)
{
	if (!label->is_number)
		return (struct profile_packed_label){.key = label->key, .str_or_unit = label->str};
	uint32_t unit = label->unit;
	if (!label->num && !unit) {
		const char *key = profile_text(profile, label->key);
		bool is_bytes = !strcmp(key, "alignment") || !strcmp(key, "request");
		unit = is_bytes ? profile_string(profile, "bytes") : label->key;
	}
	assert(profile->strings.n <= UINT32_MAX >> 1);
	return (struct profile_packed_label){
		.key = label->key,
		.str_or_unit = unit | ~(UINT32_MAX >> 1),
		.num = label->num,
	};
}

void profile_set_label(struct profile *profile, uint32_t i, const struct profile_label *label)
{
	profile->labels.items[i] = pack_label(profile, label);
}

static uint32_t hash_of_label_set(const void *context, uint32_t index)
{
	const struct profile *profile = context;
	struct profile_label_set set = profile->label_sets.items[index];
	return hash_bytes(profile, profile->labels.items + set.first,
			  set.n * sizeof(struct profile_packed_label));
}

uint32_t profile_label_set(struct profile *profile, const struct profile_label *labels, uint32_t n)
{
	struct index_table *table = &profile->index->label_sets;
	/* Written behind the array's end, and kept there if the set is new. */
	RESERVE(&profile->labels, n);
	struct profile_packed_label *packed = profile->labels.items + profile->labels.n;
	for (uint32_t i = 0; i < n; i++)
		packed[i] = pack_label(profile, &labels[i]);
	uint32_t hash = hash_bytes(profile, packed, n * sizeof(*packed));
	index_table_reserve(table, 1, hash_of_label_set, profile);
	for (struct index_probe probe = index_table_probe(table, hash);
	     index_probe_next(table, &probe);) {
		struct profile_label_set other = profile->label_sets.items[probe.index];
		if (other.n == n &&
		    memcmp(profile->labels.items + other.first, packed, n * sizeof(*packed)) == 0)
			return probe.index;
	}
	RESERVE(&profile->label_sets, 1);
	profile->label_sets.items[profile->label_sets.n++] =
		(struct profile_label_set){.first = profile->labels.n, .n = n};
	profile->labels.n += n;
	return index_table_add(table, hash);
}

void profile_set_row_width(struct profile *profile, uint32_t width)
{
	assert(profile->samples.n == 0);
	profile->row_width = width;
}

void profile_fix_row_width(struct profile *profile)
{
	if (profile->row_width)
		return;
	profile->row_width = profile->sample_types.n;
	RESERVE(&profile->first_columns, profile->samples.n);
	while (profile->first_columns.n < profile->samples.n)
		profile->first_columns.items[profile->first_columns.n++] = 0;
}

void profile_prefetch_row(const struct profile *profile, uint32_t stack, uint32_t label_set,
			  uint32_t first_column)
{
	const struct profile_index *index = profile->index;
	if (LIKELY(index->samples.buckets))
		index_table_prefetch(&index->samples,
				     hash_row(index, stack, label_set, first_column));
}

/* Room in the table was reserved, the sample is new. */
static void put_row(struct profile *profile, uint32_t hash, uint32_t stack, uint32_t label_set,
		    uint32_t first_column)
{
	uint32_t width = profile_row_width(profile);
	RESERVE(&profile->samples, 1);
	RESERVE(&profile->values, width);
	profile->samples.items[profile->samples.n++] =
		(struct profile_sample){.stack = stack, .label_set = label_set};
	for (uint32_t column = 0; column < width; column++)
		profile->values.items[profile->values.n++] = 0;
	if (profile->row_width) {
		RESERVE(&profile->first_columns, 1);
		profile->first_columns.items[profile->first_columns.n++] = first_column;
	}
	index_table_add(&profile->index->samples, hash);
}

uint32_t profile_add_row(struct profile *profile, uint32_t stack, uint32_t label_set,
			 uint32_t first_column)
{
	const struct index_table *table = &profile->index->samples;
	uint32_t hash = hash_row(profile->index, stack, label_set, first_column);
	reserve_rows(profile, 1);
	for (struct index_probe probe = index_table_probe(table, hash);
	     index_probe_next(table, &probe);) {
		struct profile_sample sample = profile->samples.items[probe.index];
		if (sample.stack == stack && sample.label_set == label_set &&
		    profile_first_column(profile, probe.index) == first_column)
			return probe.index;
	}
	put_row(profile, hash, stack, label_set, first_column);
	return profile->samples.n - 1;
}

uint32_t profile_add_sample(struct profile *profile, uint32_t stack, uint32_t label_set,
			    const int64_t *values)
{
	uint32_t index = profile_add_row(profile, stack, label_set, 0);
	profile_add_values(profile_values(profile, index), values, profile_row_width(profile));
	return index;
}

void profile_move_rows(struct profile *profile, uint32_t width, const uint32_t *new_column)
{
	uint32_t old_width = profile_row_width(profile), n_samples = profile->samples.n;
	uint32_t n_kept = old_width < width ? old_width : width;
	int64_t *old_values = profile->values.items;
	profile->values.items = NULL;
	profile->values.n = profile->values.capacity = 0;
	RESERVE(&profile->values, (uint64_t)n_samples * width + 1);
	RESERVE(&profile->first_columns, n_samples);
	index_table_trim(&profile->index->samples);
	for (uint32_t i = 0; i < n_samples; i++) {
		uint32_t column = new_column[profile_first_column(profile, i)];
		profile->first_columns.items[i] = column;
		for (uint32_t v = 0; v < width; v++)
			profile->values.items[profile->values.n++] =
				v < n_kept ? old_values[(size_t)i * old_width + v] : 0;
	}
	profile->first_columns.n = n_samples;
	profile->row_width = width;
	mem_free(old_values);
	reserve_rows(profile, 1);
}

void profile_join_rows(struct profile *profile)
{
	uint32_t width = profile_row_width(profile), n_samples = profile->samples.n;
	if (width == profile->sample_types.n)
		return;
	struct profile_sample *samples = profile->samples.items;
	int64_t *values = profile->values.items;
	uint32_t *columns = profile->first_columns.items;
	memset(&profile->samples, 0, sizeof(profile->samples));
	memset(&profile->values, 0, sizeof(profile->values));
	memset(&profile->first_columns, 0, sizeof(profile->first_columns));
	index_table_fini(&profile->index->samples);
	profile->row_width = 0;
	for (uint32_t i = 0; i < n_samples; i++) {
		uint32_t row = profile_add_row(profile, samples[i].stack, samples[i].label_set, 0);
		int64_t *to = profile_values(profile, row) + columns[i];
		profile_add_values(to, values + (size_t)i * width, width);
	}
	mem_free(samples);
	mem_free(values);
	mem_free(columns);
}

/* What remains of the locations moves together; where each is now. */
static uint32_t *move_locations(struct profile *profile, const uint32_t *to)
{
	struct profile_location *items = profile->locations.items;
	uint32_t n = profile->locations.n, n_kept = 0;
	uint32_t *moved = mem_alloc(n * sizeof(*moved));
	for (uint32_t i = 0; i < n; i++) {
		moved[i] = to[i] == i ? n_kept : moved[to[i]];
		if (to[i] == i)
			items[n_kept++] = items[i];
	}
	profile->locations.n = n_kept;
	return moved;
}

/*
 * Stacks over locations that were joined may be equal now; all others cannot, as no path of theirs
 * leads over such a location. is_joined: by location, those that went and those that they went to.
 */
struct stack_join {
	const uint32_t *locations; /* where each is now */
	const bool *is_joined;
	uint32_t *moved;  /* where each node is now */
	bool *is_touched; /* by node as it was: its path leads over a joined location */
};

/* What remains of the nodes moves together, parents first. */
static void join_stacks(struct profile *profile, struct stack_join *join)
{
	struct profile_stack_node *nodes = profile->stacks.items;
	uint32_t n = profile->stacks.n, n_kept = 1;
	struct hash_map kept; /* parent and location → node, of touched ones */
	hash_map_init(&kept);
	for (uint32_t i = 1; i < n; i++) {
		struct profile_stack_node node = nodes[i];
		join->is_touched[i] =
			join->is_touched[node.parent] || join->is_joined[node.location];
		node.parent = join->moved[node.parent];
		node.location = join->locations[node.location];
		if (join->is_touched[i]) {
			bool is_new;
			uint64_t key = (uint64_t)node.parent << 32 | node.location;
			uint64_t *same = hash_map_put(&kept, key, &is_new);
			if (!is_new) {
				join->moved[i] = (uint32_t)*same;
				continue;
			}
			*same = n_kept;
		}
		join->moved[i] = n_kept;
		nodes[n_kept++] = node;
	}
	hash_map_fini(&kept);
	profile->stacks.n = n_kept;
}

/* The row with this key among those kept of touched stacks; its place in the chain else. */
static uint32_t find_joined_row(const struct profile *profile, uint64_t newest,
				const uint32_t *older, uint32_t column)
{
	uint32_t row = (uint32_t)newest; /* + 1 */
	while (row && profile->row_width && profile->first_columns.items[row - 1] != column)
		row = older[row - 1];
	return row;
}

static void join_rows_of_stacks(struct profile *profile, const struct stack_join *join)
{
	uint32_t width = profile_row_width(profile), n = profile->samples.n, n_kept = 0;
	struct profile_sample *samples = profile->samples.items;
	uint32_t *columns = profile->first_columns.items;
	int64_t *values = profile->values.items;
	/* Rows of one stack and label set that differ by their first column. */
	uint32_t *older = profile->row_width ? mem_zalloc((size_t)n + 1, sizeof(*older)) : NULL;
	struct hash_map newest;
	hash_map_init(&newest);
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample sample = samples[i];
		bool is_touched = join->is_touched[sample.stack];
		sample.stack = join->moved[sample.stack];
		uint32_t column = profile_first_column(profile, i);
		if (is_touched) {
			uint64_t key = (uint64_t)sample.stack << 32 | sample.label_set;
			uint64_t *last = hash_map_put(&newest, key, NULL);
			uint32_t same = find_joined_row(profile, *last, older, column);
			if (same) {
				profile_add_values(values + (size_t)(same - 1) * width,
						   values + (size_t)i * width, width);
				continue;
			}
			if (older)
				older[n_kept] = (uint32_t)*last;
			*last = n_kept + 1;
		}
		samples[n_kept] = sample;
		if (profile->row_width)
			columns[n_kept] = column;
		memmove(values + (size_t)n_kept * width, values + (size_t)i * width,
			width * sizeof(*values));
		n_kept++;
	}
	hash_map_fini(&newest);
	mem_free(older);
	profile->samples.n = n_kept;
	profile->values.n = n_kept * width;
	if (profile->row_width)
		profile->first_columns.n = n_kept;
}

void profile_join_locations(struct profile *profile, const uint32_t *to)
{
	bool *is_joined = mem_zalloc((size_t)profile->locations.n + 1, sizeof(*is_joined));
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		if (to[i] != i)
			is_joined[i] = is_joined[to[i]] = true;
	}
	struct stack_join join = {
		.is_joined = is_joined,
		.moved = mem_zalloc((size_t)profile->stacks.n + 1, sizeof(uint32_t)),
		.is_touched = mem_zalloc((size_t)profile->stacks.n + 1, sizeof(bool)),
	};
	uint32_t *locations = move_locations(profile, to);
	join.locations = locations;
	join_stacks(profile, &join);
	join_rows_of_stacks(profile, &join);
	/* They know stacks and rows by where they were. */
	index_table_fini(&profile->index->stacks);
	index_table_fini(&profile->index->samples);
	profile->index->last.n = 0;
	mem_free(join.moved);
	mem_free(join.is_touched);
	mem_free(is_joined);
	mem_free(locations);
}

void profile_add_comment(struct profile *profile, const char *text)
{
	RESERVE(&profile->comments, 1);
	profile->comments.items[profile->comments.n++] = profile_string(profile, text);
}

void profile_set_main_mapping(struct profile *profile, uint32_t mapping)
{
	struct profile_mapping *mappings = profile->mappings.items;
	assert(mapping < profile->mappings.n);
	struct profile_mapping chosen = mappings[mapping];
	memmove(mappings + 1, mappings, mapping * sizeof(*mappings));
	mappings[0] = chosen;
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		uint32_t *reference = &profile->locations.items[i].mapping;
		if (*reference == mapping)
			*reference = 0;
		else if (*reference < mapping)
			(*reference)++;
	}
}

/* Takes from the mapping's flags what this location lacks. */
static void clear_missing(const struct profile *profile, const struct profile_location *location,
			  struct profile_mapping *mapping)
{
	if (!location->n_lines)
		mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = false;
	if (location->n_lines > 1)
		mapping->has_inline_frames = true;
	for (uint32_t i = 0; i < location->n_lines; i++) {
		const struct profile_line *line = &profile->lines.items[location->first_line + i];
		const struct profile_function *function = &profile->functions.items[line->function];
		if (!function->name)
			mapping->has_functions = false;
		if (!function->filename)
			mapping->has_filenames = false;
		if (!line->line)
			mapping->has_line_numbers = false;
	}
}

void profile_set_symbol_flags(struct profile *profile)
{
	for (uint32_t i = 0; i < profile->mappings.n; i++) {
		struct profile_mapping *mapping = &profile->mappings.items[i];
		mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = false;
		mapping->has_inline_frames = false;
	}
	/* First those that have locations at all, then what each location takes away. */
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		uint32_t mapping = profile->locations.items[i].mapping;
		if (mapping == PROFILE_NONE)
			continue;
		profile->mappings.items[mapping].has_functions = true;
		profile->mappings.items[mapping].has_filenames = true;
		profile->mappings.items[mapping].has_line_numbers = true;
	}
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		if (location->mapping != PROFILE_NONE)
			clear_missing(profile, location,
				      &profile->mappings.items[location->mapping]);
	}
	for (uint32_t i = 0; i < profile->mappings.n; i++) {
		struct profile_mapping *mapping = &profile->mappings.items[i];
		/* Any flag makes a reader leave the mapping alone, so none without names. */
		mapping->has_filenames &= mapping->has_functions;
		mapping->has_line_numbers &= mapping->has_functions;
		mapping->has_inline_frames &= mapping->has_functions;
	}
}
