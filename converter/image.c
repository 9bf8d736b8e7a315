/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/image.h"

#include <string.h>

#include "base/hash_seed.h"
#include "base/mem.h"
#include "converter/jit_table.h"

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static enum image_kind classify(const char *path)
{
	if (starts_with(path, "[vdso") || starts_with(path, "linux-vdso") ||
	    starts_with(path, "linux-gate"))
		return IMAGE_VDSO;
	if (path[0] == '\0' || starts_with(path, "//anon") || starts_with(path, "/dev/zero") ||
	    starts_with(path, "/anon_hugepage") || starts_with(path, "[anon") ||
	    starts_with(path, "/SYSV"))
		return IMAGE_ANON;
	if (path[0] == '[')
		return IMAGE_SPECIAL;
	return IMAGE_FILE;
}

static bool may_hold_jit(enum image_kind kind, const char *path)
{
	return kind == IMAGE_ANON || (kind == IMAGE_FILE && (starts_with(path, "/memfd:") ||
							     jit_table_is_dump(path, NULL)));
}

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const uint8_t *bytes = p;
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
		h = hash_mix(h ^ word) + n;
	}
	return h;
}

static uint64_t hash_key(const struct image_table *table, const struct image_key *key)
{
	uint64_t h = hash_bytes(table->seed, key->path, strlen(key->path));
	h = hash_bytes(h, key->build_id.bytes, key->build_id.size);
	h = hash_mix(h ^ key->inode);
	h = hash_mix(h ^ key->inode_generation);
	h = hash_mix(h ^ key->is_module);
	return hash_mix(h ^ ((uint64_t)key->device_major << 32 | key->device_minor));
}

static bool is_key_of(const struct image *image, const struct image_key *key)
{
	return image->kind != IMAGE_KSYMBOL && image->inode == key->inode &&
	       image->inode_generation == key->inode_generation &&
	       image->device_major == key->device_major &&
	       image->device_minor == key->device_minor && image->has_inode == key->has_inode &&
	       image->build_id.size == key->build_id.size &&
	       memcmp(image->build_id.bytes, key->build_id.bytes, key->build_id.size) == 0 &&
	       strcmp(image->path, key->path) == 0;
}

static uint32_t add(struct image_table *table, enum image_kind kind, const char *path)
{
	if (table->n == table->capacity) {
		table->capacity = table->capacity ? table->capacity * 2 : 64;
		table->items = mem_realloc(table->items, table->capacity, sizeof(*table->items));
		table->next_in_bucket = mem_realloc(table->next_in_bucket, table->capacity,
						    sizeof(*table->next_in_bucket));
	}
	uint32_t index = table->n++;
	table->next_in_bucket[index] = 0;
	table->items[index] = (struct image){
		.path = mem_copy_string(path),
		.kind = (uint8_t)kind,
		.canonical = index,
		.offset_low = UINT64_MAX,
	};
	return index;
}

void image_table_init(struct image_table *table)
{
	*table = (struct image_table){.seed = hash_seed_make()};
	hash_map_init(&table->by_key);
	hash_map_init(&table->by_build_id);
	add(table, IMAGE_KERNEL, "[kernel.kallsyms]");
	add(table, IMAGE_GUEST_KERNEL, "[guest.kernel]");
	add(table, IMAGE_GUEST_USER, "[guest.user]");
	add(table, IMAGE_HYPERVISOR, "[hypervisor]");
	add(table, IMAGE_UNMAPPED, "[unmapped]");
	add(table, IMAGE_BROKEN, "[broken stack]");
	add(table, IMAGE_JIT, "[jit]");
	add(table, IMAGE_SPECIAL, "[more files]");
}

void image_table_fini(struct image_table *table)
{
	for (uint32_t i = 0; i < table->n; i++)
		mem_free(table->items[i].path);
	mem_free(table->items);
	mem_free(table->next_in_bucket);
	hash_map_fini(&table->by_key);
	hash_map_fini(&table->by_build_id);
	*table = (struct image_table){0};
}

/* Two files with one build-id are one binary: the first stands for both. */
static void find_canonical(struct image_table *table, uint32_t index)
{
	struct image *image = &table->items[index];
	if (!build_id_is_set(&image->build_id))
		return;
	uint64_t h = hash_bytes(table->seed + 1, image->build_id.bytes, image->build_id.size);
	bool is_new;
	uint64_t *first = hash_map_put(&table->by_build_id, h, &is_new);
	if (is_new)
		*first = index;
	else if (table->items[*first].kind == image->kind &&
		 build_id_equal(&table->items[*first].build_id, &image->build_id))
		image->canonical = (uint32_t)*first;
}

uint32_t image_table_intern(struct image_table *table, const struct image_key *key,
			    bool *is_new_out)
{
	uint64_t *bucket = hash_map_put(&table->by_key, hash_key(table, key), NULL);
	*is_new_out = false;
	for (uint32_t i = (uint32_t)*bucket; i; i = table->next_in_bucket[i - 1]) {
		if (is_key_of(&table->items[i - 1], key))
			return i - 1;
	}
	if (table->n >= IMAGE_MAX)
		return IMAGE_INDEX_OVERFLOW;
	uint32_t index = add(table, key->is_module ? IMAGE_MODULE : classify(key->path), key->path);
	struct image *image = &table->items[index];
	image->build_id = key->build_id;
	image->device_major = key->device_major;
	image->device_minor = key->device_minor;
	image->inode = key->inode;
	image->inode_generation = key->inode_generation;
	image->has_inode = key->has_inode;
	image->may_hold_jit = may_hold_jit((enum image_kind)image->kind, key->path);
	table->next_in_bucket[index] = (uint32_t)*bucket;
	*bucket = index + 1;
	if (key->is_module)
		image->canonical = IMAGE_INDEX_KERNEL;
	else
		find_canonical(table, index);
	*is_new_out = true;
	return index;
}

uint32_t image_table_add_ksymbol(struct image_table *table, const char *name)
{
	uint64_t h = hash_bytes(table->seed + 2, name, strlen(name));
	uint64_t *bucket = hash_map_put(&table->by_key, h, NULL);
	for (uint32_t i = (uint32_t)*bucket; i; i = table->next_in_bucket[i - 1]) {
		const struct image *image = &table->items[i - 1];
		if (image->kind == IMAGE_KSYMBOL && strcmp(image->path, name) == 0)
			return i - 1;
	}
	if (table->n >= IMAGE_MAX)
		return IMAGE_INDEX_OVERFLOW;
	uint32_t index = add(table, IMAGE_KSYMBOL, name);
	table->next_in_bucket[index] = (uint32_t)*bucket;
	*bucket = index + 1;
	return index;
}

void image_table_adopt_build_ids(struct image_table *table, const struct perf_source_info *source)
{
	struct hash_map by_path;
	hash_map_init(&by_path);
	for (uint32_t i = 0; i < source->n_build_ids; i++) {
		const char *path = source->build_ids[i].filename;
		bool is_new;
		uint64_t *first = hash_map_put(
			&by_path, hash_bytes(table->seed + 3, path, strlen(path)), &is_new);
		if (is_new)
			*first = i;
	}
	for (uint32_t i = 0; by_path.n && i < table->n; i++) {
		struct image *image = &table->items[i];
		if (image->module || build_id_is_set(&image->build_id))
			continue;
		const uint64_t *entry = hash_map_get(
			&by_path, hash_bytes(table->seed + 3, image->path, strlen(image->path)));
		if (entry && strcmp(source->build_ids[*entry].filename, image->path) == 0)
			image->build_id = source->build_ids[*entry].id;
	}
	hash_map_fini(&by_path);
}

bool image_is_missed(const struct image *image)
{
	if (!image->module)
		return false;
	enum module_state state = module_get_state(image->module);
	return state == MODULE_NOT_FOUND || state == MODULE_DENIED;
}

void image_open(struct image *image, const struct perf_source_info *source, struct symcache *cache)
{
	if (image->module || (image->kind != IMAGE_FILE && image->kind != IMAGE_VDSO))
		return;
	const struct module_query query = {
		.path = image->path,
		.pid = image->first_pid,
		.map_start = image->first_start,
		.map_end = image->first_end,
		.build_id = image->build_id,
		.device_major = image->device_major,
		.device_minor = image->device_minor,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
		.has_inode = image->has_inode,
		.recorded_at_ns = source->is_live ? 0 : source->recorded_at_ns,
	};
	image->module = symcache_module(cache, &query);
}

bool image_is_injected(const struct image *image)
{
	const char *name = strrchr(image->path, '/');
	return image->kind == IMAGE_FILE && name && starts_with(name, "/jitted-");
}

bool image_is_anonymous(const struct image *image)
{
	return image->kind == IMAGE_ANON || starts_with(image->path, "/memfd:") ||
	       strstr(image->path, "hugetlb") || strstr(image->path, "hugepages");
}
