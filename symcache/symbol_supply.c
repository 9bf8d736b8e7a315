/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_supply.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/builder.h"
#include "symcache/mini_debug.h"
#include "symcache/pclntab.h"
#include "symcache/remote_supply.h"
#include "symcache/store.h"

#define LOG_AREA "symcache"
#include "base/log.h"

#define NS_PER_HOUR ((uint64_t)3600 * 1000000000)

enum {
	MAX_TRIES = 2,		    /* of a build that the builder process lost */
	FAILURE_HOURS = 24,	    /* the file's own fault */
	FAILURE_OF_LIMIT_HOURS = 1, /* may go better with less load */
	FAILURE_BESIDE_HOURS = 1, /* of a source that gave less: a file beside it may be missing */
};

/* A build under way. */
struct pending {
	struct pending *next;
	struct symbol_supply *supply;
	struct symbol_order order; /* with its own texts and descriptors */
	struct symbol_outcome *outcome;
	int out_fd;
	uint32_t n_tries;
	bool is_to_start; /* once more */
	bool no_dwarf;	  /* which failed before */
	bool is_done;
	bool is_private; /* of files that nobody else's symbols may be made of: not kept */
};

struct symbol_supply {
	struct store *store; /* NULL = none that can be used */
	struct builder *builder;
	enum symcache_demangle demangle;
	struct pending *pending;
	struct remote_supply *remote; /* NULL = none */
	bool is_store_busy;	      /* its lock was held too long: not waited for again */
	bool retries_failures;
};

static struct store *open_store(const struct symcache_config *config)
{
	if (config->no_cache)
		return NULL;
	const struct store_config store_config = {
		.path = config->cache_path,
		.max_bytes =
			config->cache_bytes ? config->cache_bytes : SYMCACHE_DEFAULT_CACHE_BYTES,
	};
	struct store *store;
	struct error *err = store_open(&store_config, &store);
	if (!err)
		return store;
	log_debug("no symbol cache reason=\"%s\"", error_text(err));
	error_free(err);
	return NULL;
}

struct symbol_supply *symbol_supply_new(const struct symcache_config *config)
{
	struct symbol_supply *supply = mem_zalloc(1, sizeof(*supply));
	supply->demangle = config->demangle;
	supply->builder = builder_new(&(struct builder_config){0});
	supply->store = open_store(config);
	supply->retries_failures = config->retry_failures;
	return supply;
}

static void free_pending(struct pending *pending)
{
	close(pending->order.binary_fd);
	if (pending->order.debug_fd >= 0)
		close(pending->order.debug_fd);
	if (pending->out_fd >= 0)
		close(pending->out_fd);
	mem_free((char *)pending->order.places.binary_path);
	mem_free((char *)pending->order.places.debug_path);
	mem_free((char *)pending->order.places.target_root);
	mem_free(pending);
}

void symbol_supply_free(struct symbol_supply *supply)
{
	if (!supply)
		return;
	builder_free(supply->builder);
	while (supply->pending) {
		struct pending *pending = supply->pending;
		supply->pending = pending->next;
		free_pending(pending);
	}
	store_close(supply->store);
	mem_free(supply);
}

void symbol_outcome_fini(struct symbol_outcome *outcome)
{
	symbol_file_close(outcome->file);
	mem_free(outcome->failure);
	*outcome = (struct symbol_outcome){0};
}

/* Takes err. */
static void set_failure(struct symbol_outcome *outcome, struct error *err)
{
	outcome->failure = mem_copy_string(error_text(err));
	error_free(err);
}

bool symbol_supply_find(struct symbol_supply *supply, const struct build_id *id,
			enum symbol_quality quality, struct symbol_outcome *out)
{
	if (!supply->store)
		return false;
	struct store_entry entry;
	struct error *err = store_find(supply->store, id, &entry);
	if (!err &&
	    (store_wants(&entry, quality) || (supply->retries_failures && entry.has_failure)))
		return false;
	if (!err && entry.has_file)
		err = store_load(supply->store, id, supply->demangle, &out->file);
	else if (!err && entry.has_failure)
		out->failure = mem_copy_string(entry.reason);
	error_free(err);
	return out->file || out->failure;
}

/* Takes err. */
static void note_busy(struct symbol_supply *supply, struct error *err)
{
	if (!err)
		return;
	log_debug("store not written reason=\"%s\"", error_text(err));
	supply->is_store_busy |= error_get_code(err) == ERROR_AGAIN;
	error_free(err);
}

/* Whether our caller's limits, which workers inherit, may have been what a build ran into. */
static bool has_own_limits(void)
{
	static const int which[] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_DATA};
	for (size_t i = 0; i < ARRAY_LEN(which); i++) {
		struct rlimit limit;
		if (getrlimit((__rlimit_resource_t)which[i], &limit) == 0 &&
		    limit.rlim_cur != RLIM_INFINITY)
			return true;
	}
	return false;
}

static void remember_failure(const struct pending *pending, uint64_t hours, const char *reason)
{
	struct symbol_supply *supply = pending->supply;
	const struct symbol_order *order = &pending->order;
	if (!supply->store || supply->is_store_busy || pending->is_private)
		return;
	/* Not remembered is tried again: nothing worse. */
	note_busy(supply, store_fail(supply->store, &order->id, order->quality, hours * NS_PER_HOUR,
				     reason));
}

/* Into the store, and opened from there. */
static struct error *publish(struct pending *pending)
{
	struct symbol_supply *supply = pending->supply;
	struct file_map map;
	struct error *err = file_map_fd(pending->out_fd, SYMBOL_FILE_MAX_BYTES, &map);
	if (err)
		return err;
	err = store_publish(supply->store, &pending->order.id, map.data, map.size);
	file_map_close(&map);
	if (!err)
		err = store_load(supply->store, &pending->order.id, supply->demangle,
				 &pending->outcome->file);
	return err;
}

static struct error *open_result(struct pending *pending)
{
	struct symbol_supply *supply = pending->supply;
	if (supply->store && !supply->is_store_busy && !pending->is_private) {
		struct error *err = publish(pending);
		if (!err)
			return NULL;
		note_busy(supply, err);
	}
	return symbol_file_open_fd(pending->out_fd, supply->demangle, &pending->outcome->file);
}

/* The worker is gone, so nobody writes any more; the seals make that hold for the mapping. */
static void seal(int fd)
{
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

/* Takes err. DWARF that cannot be had leaves the symbol tables. */
static void fail(struct pending *pending, struct error *err)
{
	const struct symbol_order *order = &pending->order;
	enum error_code code = error_get_code(err);
	log_debug("symbols not built path=%s reason=\"%s\"",
		  order->places.binary_path ? order->places.binary_path : "", error_text(err));
	/* What the disk, or a limit of our caller's, did to the build is nothing of the file's. */
	if (code != ERROR_UNAVAILABLE && code != ERROR_IO &&
	    !(code == ERROR_LIMIT && has_own_limits()))
		remember_failure(pending,
				 code == ERROR_LIMIT ? FAILURE_OF_LIMIT_HOURS : FAILURE_HOURS,
				 error_text(err));
	if (code != ERROR_UNAVAILABLE && order->quality == SYMBOL_QUALITY_DWARF &&
	    !pending->no_dwarf) {
		error_free(err);
		pending->no_dwarf = true;
		pending->is_to_start = true;
		return;
	}
	pending->outcome->is_pending = false;
	pending->is_done = true;
	set_failure(pending->outcome, err);
}

static void on_done(void *context, struct error *err)
{
	struct pending *pending = context;
	const struct symbol_order *order = &pending->order;
	if (err && error_get_code(err) == ERROR_UNAVAILABLE && pending->n_tries < MAX_TRIES) {
		error_free(err);
		pending->is_to_start = true;
		return;
	}
	if (!err) {
		seal(pending->out_fd);
		err = open_result(pending);
	}
	if (err) {
		fail(pending, err);
		return;
	}
	pending->outcome->is_pending = false;
	pending->is_done = true;
	if (symbol_file_get_info(pending->outcome->file).quality < order->quality &&
	    !pending->no_dwarf)
		remember_failure(pending, FAILURE_BESIDE_HOURS, "the better source gave nothing");
}

static int find_beside(void *context, const struct builder_wish *wish)
{
	struct pending *pending = context;
	struct remote_supply *remote = pending->supply->remote;
	bool is_foreign;
	int fd = side_file_open(&pending->order.places, wish, &is_foreign);
	pending->is_private |= is_foreign;
	if (fd < 0 && remote && wish->kind == BUILDER_WISH_ALTERNATE)
		fd = remote_supply_find(remote, &wish->id, FETCHER_DEBUGINFO, NULL);
	return fd;
}

static void start(struct pending *pending)
{
	pending->is_to_start = false;
	pending->n_tries++;
	if (pending->out_fd >= 0)
		close(pending->out_fd);
	pending->out_fd = memfd_create("perfpipe-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (pending->out_fd < 0) {
		pending->n_tries = MAX_TRIES;
		on_done(pending, error_errno(errno, "memfd_create"));
		return;
	}
	const struct builder_order order = {
		.id = pending->order.id,
		.binary_fd = pending->order.binary_fd,
		.debug_fd = pending->order.debug_fd,
		.out_fd = pending->out_fd,
		.no_dwarf = pending->no_dwarf,
		.find = find_beside,
		.done = on_done,
		.context = pending,
	};
	builder_start(pending->supply->builder, &order);
}

/* Frees what is done. */
static void sweep(struct symbol_supply *supply)
{
	struct pending **link = &supply->pending;
	while (*link) {
		struct pending *pending = *link;
		if (!pending->is_done) {
			link = &pending->next;
			continue;
		}
		*link = pending->next;
		free_pending(pending);
	}
}

static char *copy_text(const char *text)
{
	return text ? mem_copy_string(text) : NULL;
}

void symbol_supply_build(struct symbol_supply *supply, const struct symbol_order *order,
			 struct symbol_outcome *out)
{
	struct pending *pending = mem_zalloc(1, sizeof(*pending));
	*pending = (struct pending){.next = supply->pending,
				    .supply = supply,
				    .order = *order,
				    .outcome = out,
				    .out_fd = -1};
	pending->order.places.binary_path = copy_text(order->places.binary_path);
	pending->order.places.debug_path = copy_text(order->places.debug_path);
	pending->order.places.target_root = copy_text(order->places.target_root);
	supply->pending = pending;
	out->is_pending = true;
	start(pending);
	sweep(supply);
}

static struct pending *find_to_start(struct symbol_supply *supply)
{
	struct pending *pending = supply->pending;
	while (pending && !pending->is_to_start)
		pending = pending->next;
	return pending;
}

const char *symbol_supply_store_path(const struct symbol_supply *supply)
{
	return supply->store ? store_get_path(supply->store) : NULL;
}

void symbol_supply_set_remote(struct symbol_supply *supply, struct remote_supply *remote)
{
	supply->remote = remote;
}

bool symbol_supply_poll(struct symbol_supply *supply)
{
	bool is_busy = builder_poll(supply->builder);
	struct pending *again = find_to_start(supply);
	if (again)
		start(again);
	sweep(supply);
	return is_busy || supply->pending;
}

void symbol_supply_wait(struct symbol_supply *supply)
{
	struct pending *again;
	do {
		builder_wait(supply->builder);
		again = find_to_start(supply);
		if (again)
			start(again);
	} while (again);
	sweep(supply);
}

enum symbol_quality symbol_supply_quality_of(const struct elf_image *image)
{
	if (elf_image_find(image, ".debug_info") || elf_image_find(image, ".zdebug_info"))
		return SYMBOL_QUALITY_DWARF;
	if (elf_image_find_type(image, SHT_SYMTAB) || mini_debug_find(image) || pclntab_find(image))
		return SYMBOL_QUALITY_SYMTAB;
	return elf_image_find_type(image, SHT_DYNSYM) ? SYMBOL_QUALITY_DYNSYM : SYMBOL_QUALITY_NONE;
}
