/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/symbols_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "pipeline/conversion.h"
#include "pipeline/progress.h"
#include "pipeline/remote_symbols.h"
#include "proto/pprof_read.h"

enum { ID_MIN_DIGITS = 16 };
#define PROFILE_MAX_BYTES ((size_t)1 << 30)

/* A binary that is wanted. */
struct item {
	struct module *module;
	char *word;    /* as it was named */
	bool is_named; /* else one of many, out of a profile */
};

struct items {
	struct symcache *cache;
	struct item *items;
	size_t n, capacity;
};

/* ---- what words stand for ---- */

/* Takes word. */
static void add_item(struct items *items, struct module *module, char *word, bool is_named)
{
	for (size_t i = 0; i < items->n; i++) {
		if (items->items[i].module == module) {
			items->items[i].is_named |= is_named;
			mem_free(word);
			return;
		}
	}
	if (items->n == items->capacity) {
		items->capacity = items->capacity ? 2 * items->capacity : 64;
		items->items = mem_realloc(items->items, items->capacity, sizeof(*items->items));
	}
	items->items[items->n++] =
		(struct item){.module = module, .word = word, .is_named = is_named};
}

struct module *symbols_fetch_open_file(struct symcache *cache, const char *path)
{
	/* A relative path would be looked for as it stands in a recording: from the root. */
	char *whole = realpath(path, NULL);
	struct module *module =
		symcache_module(cache, &(struct module_query){.path = whole ? whole : path});
	free(whole);
	return module;
}

bool symbols_fetch_is_id(const char *word)
{
	return strlen(word) >= ID_MIN_DIGITS && strspn(word, "0123456789abcdef") == strlen(word);
}

static void add_id(struct items *items, const struct build_id *id, const char *path, bool is_named)
{
	/* A file of that id at that path will do; "[kernel.kallsyms]" and the like are none. */
	const struct module_query query = {.path = path && *path == '/' ? path : "",
					   .build_id = *id};
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	add_item(items, symcache_module(items->cache, &query),
		 path ? mem_copy_string(path) : mem_copy_string(hex), is_named);
}

/* Takes the profile. */
static void add_mappings(struct items *items, struct profile *profile)
{
	for (uint32_t i = 0; i < profile->mappings.n; i++) {
		const struct profile_mapping *mapping = &profile->mappings.items[i];
		const char *name = profile_text(profile, mapping->filename);
		struct build_id id;
		if (*name == '/' && build_id_parse(profile_text(profile, mapping->build_id), &id))
			add_id(items, &id, name, false);
	}
	profile_free(profile);
}

static struct error *add_profile(struct items *items, const char *path)
{
	struct file_map map;
	struct profile *profile;
	struct error *err = file_map_open(path, PROFILE_MAX_BYTES, &map);
	if (err)
		return error_number(err, 613);
	err = error_wrap(pprof_read(map.data, map.size, NULL, &profile, NULL), "%s", path);
	file_map_close(&map);
	if (!err)
		add_mappings(items, profile);
	return err;
}

/* The binaries that samples fell into. */
static struct error *add_recording(struct items *items, const char *path, const struct cli *cli)
{
	struct conversion_options options;
	struct profile *profile;
	conversion_options_init(&options);
	options.symbols.no_symbols = true;
	struct error *err = conversion_read_file(&options, path, cli, &profile);
	if (!err)
		add_mappings(items, profile);
	return err;
}

static struct error *add_word(struct items *items, const char *word, const struct cli *cli)
{
	struct build_id id;
	CLEANUP(cleanup_fd) int fd = -1;
	struct error *err = file_open_regular(word, &fd);
	if (err && symbols_fetch_is_id(word) && build_id_parse(word, &id)) {
		error_free(err);
		add_id(items, &id, NULL, true);
		return NULL;
	}
	char magic[8] = "";
	size_t n = 0;
	if (!err)
		err = file_read_at(fd, 0, magic, sizeof(magic), &n);
	if (err)
		return error_number(err, 613);
	if (memcmp(magic, "\177ELF", 4) == 0)
		add_item(items, symbols_fetch_open_file(items->cache, word), mem_copy_string(word),
			 true);
	else if (memcmp(magic, "PERFILE2", 8) == 0 || memcmp(magic, "2ELIFREP", 8) == 0)
		return add_recording(items, word, cli);
	else
		return add_profile(items, word);
	return NULL;
}

/* ---- what came of it ---- */

struct error *symbols_fetch_check(const struct module *module, const char *word)
{
	enum module_state state = module_get_state(module);
	const char *failure = module_failure(module);
	if (state == MODULE_NOT_FOUND || state == MODULE_DENIED)
		return error_number(
			error_new(ERROR_NO_ENTRY, "%s: %s", word, module_state_text(state)), 613);
	if (state != MODULE_OK && state != MODULE_OK_TRUSTED)
		return error_number(
			error_new(ERROR_BAD_DATA, "%s: %s", word, module_state_text(state)), 622);
	if (failure)
		return error_number(error_new(ERROR_UNAVAILABLE, "%s: %s", word, failure), 623);
	return NULL;
}

static struct error *print_item(const struct symbols_fetch *fetch, const struct item *item)
{
	struct store_entry entry;
	enum module_state state = module_get_state(item->module);
	if (state != MODULE_OK && state != MODULE_OK_TRUSTED)
		return error_number(
			error_new(ERROR_UNAVAILABLE, "%s: no server gave it", item->word), 507);
	struct error *err = symbols_fetch_check(item->module, item->word);
	if (!err)
		err = store_find(fetch->store, module_get_symbols_id(item->module), &entry);
	if (!err)
		symbols_print_entry(fetch->print, &entry);
	return err;
}

/* Whether nothing came because servers, or the way to them, failed. */
static struct error *check_servers(const struct items *items)
{
	struct symcache_fetch_report report;
	symcache_get_fetch_report(items->cache, &report);
	uint32_t n_failed = report.n_failed + report.n_paused + report.n_given_up;
	if (report.n_found || !n_failed)
		return NULL;
	return error_number(error_new(ERROR_UNAVAILABLE,
				      "nothing was fetched: %u file%s still lacking", n_failed,
				      n_failed == 1 ? " is" : "s are"),
			    507);
}

static struct error *print_items(const struct symbols_fetch *fetch, const struct items *items)
{
	struct error *first = NULL;
	size_t n_missing = 0;
	symbols_print_list_begin(fetch->print, store_get_path(fetch->store));
	for (size_t i = 0; i < items->n; i++) {
		const struct item *item = &items->items[i];
		struct error *err = print_item(fetch, item);
		n_missing += err && !item->is_named;
		if (!first && item->is_named)
			first = err;
		else
			error_free(err);
	}
	symbols_print_list_end(fetch->print);
	if (!first)
		first = check_servers(items);
	if (n_missing)
		message_note(&fetch->cli->message, "%zu of %zu binaries could not be had",
			     n_missing, items->n);
	return first;
}

static void fetch_items(const struct symbols_fetch *fetch, const struct items *items)
{
	struct module **modules = mem_zalloc(items->n, sizeof(struct module *));
	for (size_t i = 0; i < items->n; i++)
		modules[i] = items->items[i].module;
	struct progress progress;
	progress_begin(&progress, fetch->cli->has_progress, PROGRESS_COUNT, "fetching symbols");
	symcache_prepare(items->cache, modules, items->n, progress_update, &progress);
	progress_end(&progress);
	mem_free(modules);
}

struct error *symbols_fetch_run(const struct symbols_fetch *fetch)
{
	struct items items = {.cache = symcache_new(&fetch->config)};
	struct error *err = NULL;
	for (size_t i = 0; i < fetch->n_words && !err; i++)
		err = add_word(&items, fetch->words[i], fetch->cli);
	if (!err) {
		fetch_items(fetch, &items);
		remote_symbols_state(&fetch->cli->message, items.cache);
		err = print_items(fetch, &items);
	}
	for (size_t i = 0; i < items.n; i++)
		mem_free(items.items[i].word);
	mem_free(items.items);
	symcache_free(items.cache);
	return err;
}
