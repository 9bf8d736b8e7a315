/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/module_fetch.h"

#include <unistd.h>

#include "base/mem.h"

struct module_fetch {
	struct module *module;
	const struct symcache_config *config;
	struct symbol_supply *supply;
	struct remote_supply *remote;
};

static void on_alternate(void *context, int fd, const char *path)
{
	const struct module_fetch *fetch = context;
	(void)path; /* the builder asks for it by its build-id */
	if (fd >= 0)
		close(fd);
	module_build(fetch->module, fetch->config, fetch->supply);
}

static void fetch_alternate(struct module_fetch *fetch)
{
	struct build_id id;
	if (module_lacks_alternate(fetch->module, fetch->config, &id))
		remote_supply_want(fetch->remote, &id, FETCHER_DEBUGINFO, on_alternate, fetch);
	else
		module_build(fetch->module, fetch->config, fetch->supply);
}

static void on_debug_file(void *context, int fd, const char *path)
{
	struct module_fetch *fetch = context;
	if (fd >= 0)
		module_offer_debug_file(fetch->module, fd, path);
	fetch_alternate(fetch);
}

static void fetch_debug_file(struct module_fetch *fetch)
{
	struct module *module = fetch->module;
	if (!module_seek(module, fetch->config, fetch->supply))
		return;
	if (module_quality(module) < SYMBOL_QUALITY_DWARF && !module->copy)
		remote_supply_want(fetch->remote, &module->image.build_id, FETCHER_DEBUGINFO,
				   on_debug_file, fetch);
	else
		fetch_alternate(fetch);
}

static void on_executable(void *context, int fd, const char *path)
{
	struct module_fetch *fetch = context;
	if (fd >= 0 && module_adopt_file(fetch->module, fd, path))
		fetch_debug_file(fetch);
}

/* Anonymous memory and the like have a build-id when the record says so, but no file. */
static bool may_have_file(const struct module *module)
{
	return module->state != MODULE_NO_FILE && module->state != MODULE_NO_DESCRIPTOR;
}

void module_fetch_symbols(struct module *module, const struct symcache_config *config,
			  struct symbol_supply *supply, struct remote_supply *remote)
{
	if (!module->fetch) {
		module->fetch = mem_zalloc(1, sizeof(*module->fetch));
		*module->fetch = (struct module_fetch){module, config, supply, remote};
	} else if (!module->has_image) {
		return; /* asked for already */
	}
	if (module->has_image)
		fetch_debug_file(module->fetch);
	else if (may_have_file(module))
		remote_supply_want(remote, &module->build_id, FETCHER_EXECUTABLE, on_executable,
				   module->fetch);
}
