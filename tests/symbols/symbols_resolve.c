/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols_resolve FILE [DEBUG_ROOT [STORE]]: reads addresses of the ELF file (hexadecimal, one a
 * line) from standard input and prints what symcache says of each, through its door and so through
 * builder and symbol file, as llvm-symbolizer prints it: NAME, FILE:LINE:COLUMN for each frame, the
 * innermost first, and an empty line. Names are as linkers have them. DEBUG_ROOT "" = none but the
 * file. STORE: where symbol files are kept; without it they are not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symcache/symcache.h"

static void print(const struct symbol_result *result)
{
	for (uint32_t i = 0; i < result->n_frames; i++) {
		const struct symbol_frame *frame = &result->frames[i];
		printf("%s\n%s:%u:%u\n", *frame->name ? frame->linkage_name : "??",
		       frame->file ? frame->file : "??", frame->line, frame->column);
	}
	if (!result->n_frames)
		printf("??\n??:0:0\n");
	printf("\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE [DEBUG_ROOT [STORE]] < ADDRESSES\n", argv[0]);
		return 2;
	}
	char *path = realpath(argv[1], NULL);
	if (!path) {
		perror(argv[1]);
		return 1;
	}
	const char *roots[] = {argc > 2 && *argv[2] ? argv[2] : NULL, NULL};
	struct symcache *cache = symcache_new(&(struct symcache_config){
		.trust_paths = true,
		.no_cache = argc<4, .cache_path = argc> 3 ? argv[3] : NULL,
		.debug_roots = argc > 2 ? roots : NULL,
		.demangle = SYMCACHE_DEMANGLE_NONE});
	struct module *module = symcache_module(cache, &(struct module_query){.path = path});
	if (module_get_state(module) != MODULE_OK_TRUSTED) {
		fprintf(stderr, "%s: %s\n", argv[1], module_state_text(module_get_state(module)));
		return 1;
	}
	char line[64];
	static struct symbol_result result;
	while (fgets(line, sizeof(line), stdin)) {
		symcache_resolve(cache, module, strtoull(line, NULL, 16), &result);
		print(&result);
	}
	if (module_failure(module))
		fprintf(stderr, "%s: %s\n", argv[1], module_failure(module));
	symcache_free(cache);
	free(path);
	return 0;
}
