/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/file_places.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"

static const char *absolute(const char *variable)
{
	const char *value = getenv(variable);
	return value && value[0] == '/' ? value : NULL;
}

void file_places_init(struct file_places *places)
{
	const char *home = absolute("HOME"), *cache = absolute("XDG_CACHE_HOME");
	const char *perf = absolute("PERF_BUILDID_DIR"),
		   *client = absolute("DEBUGINFOD_CACHE_PATH");
	*places = (struct file_places){0};
	if (perf)
		places->perf = mem_copy_string(perf);
	else if (home)
		places->perf = mem_format("%s/.debug", home);
	size_t n = 0;
	if (client)
		places->clients[n++] = mem_copy_string(client);
	if (home)
		places->clients[n++] = mem_format("%s/.debuginfod_client_cache", home);
	if (cache)
		places->clients[n++] = mem_format("%s/debuginfod_client", cache);
	if (home)
		places->clients[n++] = mem_format("%s/.cache/debuginfod_client", home);
}

void file_places_fini(struct file_places *places)
{
	mem_free(places->perf);
	for (size_t i = 0; i < ARRAY_LEN(places->clients); i++)
		mem_free(places->clients[i]);
	*places = (struct file_places){0};
}

/* Takes path. */
static void add(struct file_place_list *list, char *path, bool is_of_cache)
{
	if (list->n == FILE_PLACES_MAX) {
		mem_free(path);
		return;
	}
	list->items[list->n++] = (struct file_place){.path = path, .is_of_cache = is_of_cache};
}

static void add_root(struct file_place_list *list, const char *root, const char *hex,
		     bool is_executable)
{
	add(list,
	    mem_format("%s/.build-id/%.2s/%s%s", root, hex, hex + 2, is_executable ? "" : ".debug"),
	    false);
	add(list,
	    mem_format("%s/%.2s/%s/%s", root, hex, hex + 2,
		       is_executable ? "executable" : "debuginfo"),
	    false);
}

void file_places_list(const struct file_places *places, const char *const *roots,
		      const struct build_id *id, bool is_executable, struct file_place_list *out)
{
	char hex[BUILD_ID_HEX_BYTES];
	*out = (struct file_place_list){0};
	/* ab/ and at least one more byte. */
	if (id->kind != BUILD_ID_GNU || id->size < 2)
		return;
	build_id_format(id, hex);
	for (const char *const *root = roots; *root; root++)
		add_root(out, *root, hex, is_executable);
	if (!places)
		return;
	if (places->perf) {
		const char *const names[] = {is_executable ? NULL : "/debug", "/elf", ""};
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (names[i])
				add(out,
				    mem_format("%s/.build-id/%.2s/%s%s", places->perf, hex, hex + 2,
					       names[i]),
				    true);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(places->clients) && places->clients[i]; i++)
		add(out,
		    mem_format("%s/%s/%s", places->clients[i], hex,
			       is_executable ? "executable" : "debuginfo"),
		    true);
}

void file_place_list_fini(struct file_place_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		mem_free(list->items[i].path);
	*list = (struct file_place_list){0};
}

bool file_places_may_use(const struct file_place *place, int fd)
{
	struct stat st;
	if (!place->is_of_cache)
		return true;
	return fstat(fd, &st) == 0 && (st.st_uid == 0 || st.st_uid == geteuid());
}
