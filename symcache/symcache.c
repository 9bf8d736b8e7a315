/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration, the table of modules, and the way to the kernel's names. */
#include "symcache/symcache.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "symcache/fetch_folder.h"
#include "symcache/file_places.h"
#include "symcache/kernel_names.h"
#include "symcache/module_fetch.h"
#include "symcache/server_list.h"

#define LOG_AREA "symcache"
#include "base/log.h"

enum {
	/* Files that stay open, and at most a quarter of what this process may open. */
	SYMCACHE_MAX_OPEN_FILES = 16384,
	/* Later processes at which a file that was not found is looked for again. */
	SYMCACHE_MAX_TRIES = 16,
};

/*
 * One identity of a module: its build-id, or else path, device and inode. Several may lead to the
 * same module. The collector of modules is bounded by its caller's table of images.
 */
struct identity {
	struct identity *next; /* with the same hash */
	struct module *module;
	struct build_id build_id; /* empty: path and inode count */
	char *path;
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t n_tries;
	int32_t last_pid;
};

struct symcache {
	struct symcache_config config; /* with debug_roots set */
	struct arena arena;	       /* names, identities */
	struct symbol_supply *supply;  /* NULL with no_symbols alone */
	struct remote_supply *remote;  /* NULL when nothing is to be fetched */
	struct file_places places;
	struct module **modules;
	size_t n_modules, capacity;
	size_t n_open, max_open;    /* files */
	struct hash_map identities; /* hash → struct identity */
	struct kernel_names kernel;
	struct kernel_query kernel_query; /* the last one */
	bool is_fetch_cancelled;
};

static const char *const default_debug_roots[] = {"/usr/lib/debug", NULL};

const char *module_state_text(enum module_state state)
{
	switch (state) {
	case MODULE_OK:
		return "found";
	case MODULE_OK_TRUSTED:
		return "found by its path alone";
	case MODULE_NOT_FOUND:
		return "no such file";
	case MODULE_DENIED:
		return "may not be read";
	case MODULE_OTHER_FILE:
		return "the file at that path is another one: replaced since, or recorded in "
		       "another root";
	case MODULE_NOT_CONFIRMED:
		return "nothing in the recording confirms the file there";
	case MODULE_NOT_ELF:
		return "not an ELF file, or a damaged one";
	case MODULE_NO_FILE:
		return "not a file";
	case MODULE_NO_DESCRIPTOR:
		return "no file descriptor was left to open it";
	}
	return "unknown";
}

const char *symbol_reason_text(enum symbol_reason reason)
{
	switch (reason) {
	case SYMBOL_FOUND:
		return "named";
	case SYMBOL_NO_FILE:
		return "file not at hand";
	case SYMBOL_NO_TABLE:
		return "no symbol table and no debug file";
	case SYMBOL_FAILED:
		return "symbols could not be read";
	case SYMBOL_GAP:
		return "no symbol covers the address";
	case SYMBOL_HIDDEN:
		return "kernel addresses hidden";
	case SYMBOL_OTHER_KERNEL:
		return "recorded under another kernel";
	case SYMBOL_DISABLED:
		return "names not asked for";
	case SYMBOL_REASON_N:
		break;
	}
	return "unknown";
}

const char *unwind_state_text(enum unwind_state state)
{
	switch (state) {
	case UNWIND_READY:
		return "ready";
	case UNWIND_NOT_ASKED:
		return "not asked for";
	case UNWIND_PENDING:
		return "being made";
	case UNWIND_NO_FILE:
		return "file not at hand";
	case UNWIND_FAILED:
		return "unwind table could not be made";
	case UNWIND_NO_TABLE:
		return "no call frame information that can be used";
	}
	return "unknown";
}

static size_t max_open_files(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur / 4 > (rlim_t)SYMCACHE_MAX_OPEN_FILES)
		return SYMCACHE_MAX_OPEN_FILES;
	return (size_t)limit.rlim_cur / 4;
}

static void open_remote(struct symcache *cache)
{
	const struct symcache_config *config = &cache->config;
	const struct remote_supply_config remote = {
		.debuginfod = config->debuginfod,
		.store_path = symbol_supply_store_path(cache->supply),
		.max_kept_bytes =
			(config->cache_bytes ? config->cache_bytes : SYMCACHE_DEFAULT_CACHE_BYTES) /
			2,
		.retry_failures = config->retry_failures,
	};
	struct error *err = remote_supply_new(&remote, &cache->remote);
	if (err)
		log_warn("nothing will be fetched reason=\"%s\"", error_text(err));
	error_free(err);
	symbol_supply_set_remote(cache->supply, cache->remote);
}

struct symcache *symcache_new(const struct symcache_config *config)
{
	struct symcache *cache = mem_zalloc(1, sizeof(*cache));
	cache->config = *config;
	if (!cache->config.debug_roots)
		cache->config.debug_roots = default_debug_roots;
	cache->max_open = max_open_files();
	arena_init(&cache->arena, 0);
	hash_map_init(&cache->identities);
	file_places_init(&cache->places);
	cache->config.places = &cache->places;
	if (!config->no_symbols || config->wants_unwind)
		cache->supply = symbol_supply_new(&cache->config);
	if (!config->no_symbols && config->debuginfod)
		open_remote(cache);
	kernel_names_init(&cache->kernel, &cache->config, cache->supply, &cache->arena);
	return cache;
}

void symcache_free(struct symcache *cache)
{
	if (!cache)
		return;
	symbol_supply_free(cache->supply);
	remote_supply_free(cache->remote);
	for (size_t i = 0; i < cache->n_modules; i++)
		module_free(cache->modules[i]);
	mem_free(cache->modules);
	hash_map_fini(&cache->identities);
	kernel_names_fini(&cache->kernel);
	file_places_fini(&cache->places);
	arena_fini(&cache->arena);
	mem_free(cache);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash_mix(hash);
}

static size_t unpadded_size(const struct build_id *id)
{
	size_t n = id->size;
	while (n && !id->bytes[n - 1])
		n--;
	return n;
}

static uint64_t hash_build_id(const struct build_id *id)
{
	return hash_bytes(1, id->bytes, unpadded_size(id));
}

static uint64_t hash_query(const struct module_query *query)
{
	if (unpadded_size(&query->build_id))
		return hash_build_id(&query->build_id);
	uint64_t hash = hash_bytes(2, query->path, module_path_length(query->path));
	if (query->has_inode)
		hash = hash_mix(hash ^ query->inode ^
				((uint64_t)query->device_major << 32 | query->device_minor));
	return hash;
}

static bool is_query_of(const struct identity *identity, const struct module_query *query)
{
	if (unpadded_size(&query->build_id))
		return build_id_equal(&identity->build_id, &query->build_id);
	size_t n = module_path_length(query->path);
	if (unpadded_size(&identity->build_id) || strlen(identity->path) != n ||
	    memcmp(identity->path, query->path, n) != 0)
		return false;
	return !query->has_inode ? identity->inode == 0
				 : identity->inode == query->inode &&
					   identity->device_major == query->device_major &&
					   identity->device_minor == query->device_minor;
}

static struct identity *find_identity(const struct symcache *cache,
				      const struct module_query *query)
{
	const uint64_t *first = hash_map_get(&cache->identities, hash_query(query));
	struct identity *identity = first ? (struct identity *)(uintptr_t)*first : NULL;
	while (identity && !is_query_of(identity, query))
		identity = identity->next;
	return identity;
}

static void add_identity(struct symcache *cache, const struct module_query *query,
			 struct module *module)
{
	struct identity *identity = arena_alloc(&cache->arena, sizeof(*identity));
	size_t n = module_path_length(query->path);
	*identity = (struct identity){
		.module = module,
		.build_id = query->build_id,
		.path = arena_copy_string(&cache->arena, query->path, n),
		.last_pid = query->pid,
	};
	if (query->has_inode) {
		identity->inode = query->inode;
		identity->device_major = query->device_major;
		identity->device_minor = query->device_minor;
	}
	uint64_t *first = hash_map_put(&cache->identities, hash_query(query), NULL);
	identity->next = (struct identity *)(uintptr_t)*first;
	*first = (uint64_t)(uintptr_t)identity;
}

static bool is_open(const struct module *module)
{
	return module->state == MODULE_OK || module->state == MODULE_OK_TRUSTED;
}

static void keep_module(struct symcache *cache, struct module *module)
{
	if (cache->n_modules == cache->capacity) {
		cache->capacity = cache->capacity ? 2 * cache->capacity : 64;
		cache->modules =
			mem_realloc(cache->modules, cache->capacity, sizeof(struct module *));
	}
	cache->modules[cache->n_modules++] = module;
	if (is_open(module) && cache->n_open++ >= cache->max_open)
		module_close_file(module);
}

/* A file that the record gave no build-id for may be known by the one that it has. */
static struct module *join_by_build_id(struct symcache *cache, const struct module_query *query,
				       struct module *module)
{
	if (unpadded_size(&query->build_id) || !is_open(module)) {
		keep_module(cache, module);
		return module;
	}
	struct module_query by_id = *query;
	by_id.build_id = module->build_id;
	struct identity *known = find_identity(cache, &by_id);
	bool is_known = known && is_open(known->module);
	if (is_known && module_is_same_binary(known->module, module)) {
		module_free(module);
		return known->module;
	}
	keep_module(cache, module);
	/* Who is first with a build-id that is not his does not keep it. */
	if (known && (!is_known || module_is_foreign(known->module)))
		known->module = module;
	else if (known)
		return module;
	else
		add_identity(cache, &by_id, module);
	return module;
}

/*
 * Whether another process of the same binary is a new chance to find its file. What was handed out
 * stays as it is: its addresses were written in the form for unknown files.
 */
static bool may_try_again(const struct symcache *cache, struct identity *identity,
			  const struct module_query *query)
{
	enum module_state state = identity->module->state;
	if (!cache->config.is_live || is_open(identity->module) || state == MODULE_NO_FILE ||
	    query->pid == identity->last_pid || identity->n_tries == SYMCACHE_MAX_TRIES)
		return false;
	identity->last_pid = query->pid;
	identity->n_tries++;
	return true;
}

struct module *symcache_module(struct symcache *cache, const struct module_query *query)
{
	struct identity *identity = find_identity(cache, query);
	if (identity && !may_try_again(cache, identity, query))
		return identity->module;
	struct module *module = module_new(&cache->config, query);
	if (!identity) {
		module = join_by_build_id(cache, query, module);
		add_identity(cache, query, module);
	} else if (is_open(module)) {
		module = join_by_build_id(cache, query, module);
		identity->module = module;
	} else {
		module_free(module);
		module = identity->module;
	}
	return module;
}

const struct module *symcache_find_module(const struct symcache *cache, const char *path,
					  const struct build_id *build_id)
{
	size_t n = module_path_length(path);
	for (size_t i = 0; i < cache->n_modules; i++) {
		const struct module *module = cache->modules[i];
		bool is_same_build = build_id_is_set(build_id)
					     ? build_id_equal(&module->build_id, build_id)
					     : !build_id_is_set(&module->build_id);
		if (is_same_build && strlen(module->path) == n &&
		    memcmp(module->path, path, n) == 0)
			return module;
	}
	return NULL;
}

enum module_state module_get_state(const struct module *module)
{
	return module->state;
}

const struct build_id *module_get_build_id(const struct module *module)
{
	return &module->build_id;
}

const struct load_segment *module_segments(const struct module *module, size_t *n_out)
{
	*n_out = module->image.n_segments;
	return module->image.segments;
}

const char *module_get_path(const struct module *module)
{
	return module->path;
}

struct error *symcache_open_source(const struct symcache *cache, const struct module *module,
				   int *fd_out, char **path_out)
{
	return module_open_source(module, &cache->config, fd_out, path_out);
}

const char *const *module_debug_places(const struct module *module, size_t *n_out)
{
	*n_out = module->debug ? module->debug->n_places : 0;
	return module->debug ? (const char *const *)module->debug->places : NULL;
}

void symcache_resolve(struct symcache *cache, struct module *module, uint64_t svma,
		      struct symbol_result *out)
{
	module_resolve(module, &cache->config, cache->supply, svma, out);
}

/* Builds go on meanwhile, and ask for files of theirs. */
static void wait_for_fetches(struct symcache *cache, void (*progress)(void *, uint64_t, uint64_t),
			     void *progress_context)
{
	enum { BUSY_STEP_MS = 10, STEP_MS = 200 };
	while (!remote_supply_is_idle(cache->remote)) {
		bool is_building = symbol_supply_poll(cache->supply);
		remote_supply_step(cache->remote, is_building ? BUSY_STEP_MS : STEP_MS);
		uint64_t done, all;
		remote_supply_progress(cache->remote, &done, &all);
		if (progress)
			progress(progress_context, done, all);
		if (cache->is_fetch_cancelled)
			remote_supply_cancel(cache->remote);
	}
}

void symcache_cancel_fetches(struct symcache *cache)
{
	cache->is_fetch_cancelled = true;
}

static void on_kernel(void *context, int fd, const char *path)
{
	struct symcache *cache = context;
	if (fd < 0)
		return;
	close(fd);
	kernel_names_set_fetched(&cache->kernel, path);
	kernel_names_select(&cache->kernel, &cache->config, &cache->kernel_query);
}

static void fetch_kernel(struct symcache *cache)
{
	const struct build_id *id = &cache->kernel.lacking;
	if (cache->kernel_query.has_addresses && build_id_is_set(id))
		remote_supply_want(cache->remote, id, FETCHER_DEBUGINFO, on_kernel, cache);
}

void symcache_prepare(struct symcache *cache, struct module *const *modules, size_t n,
		      void (*progress)(void *, uint64_t, uint64_t), void *progress_context)
{
	if (!cache->supply)
		return;
	for (size_t i = 0; i < n; i++) {
		if (cache->remote)
			module_fetch_symbols(modules[i], &cache->config, cache->supply,
					     cache->remote);
		else
			module_ask(modules[i], &cache->config, cache->supply);
		if (progress)
			progress(progress_context, i, n);
	}
	if (cache->remote) {
		cache->is_fetch_cancelled = false;
		fetch_kernel(cache);
		wait_for_fetches(cache, progress, progress_context);
	}
	symbol_supply_wait(cache->supply);
}

void symcache_get_fetch_report(const struct symcache *cache, struct symcache_fetch_report *out)
{
	*out = (struct symcache_fetch_report){0};
	if (cache->remote)
		remote_supply_get_report(cache->remote, out);
}

struct error *symcache_tend_fetched(const char *store_path, uint64_t max_bytes,
				    const struct store_listener *listener,
				    struct store_summary *summary)
{
	return fetch_folder_tend(store_path, max_bytes / 2, listener, summary);
}

struct error *symcache_check_urls(const char *urls)
{
	struct server_list list;
	return server_list_init(&list, urls, NULL);
}

const struct build_id *module_get_symbols_id(const struct module *module)
{
	return &module->symbols_id;
}

struct symbol_file *module_get_symbols(const struct module *module)
{
	return module->symbols.file;
}

const char *module_failure(const struct module *module)
{
	return module->symbols.failure;
}

void symcache_kernel(struct symcache *cache, const struct kernel_query *query)
{
	cache->kernel_query = *query;
	kernel_names_select(&cache->kernel, &cache->config, query);
}

void symcache_resolve_kernel(struct symcache *cache, uint64_t vaddr, struct symbol_result *out,
			     const char **module_name_out)
{
	kernel_names_resolve(&cache->kernel, vaddr, out, module_name_out);
}

struct build_id symcache_host_kernel_build_id(void)
{
	return kernel_names_host_build_id();
}

bool symcache_gives_names(const struct symcache *cache)
{
	return !cache->config.no_symbols;
}

void symcache_open_jit_place(const struct symcache *cache, const struct jit_process *process,
			     struct jit_place *out)
{
	jit_place_open(out, &cache->config, process);
}
