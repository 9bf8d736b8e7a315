/* SPDX-License-Identifier: Apache-2.0 */
/* `perfpipe symbols upload`: debug information of named binaries to a server that symbolizes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/cli.h"
#include "pipeline/remote_options.h"
#include "symcache/symcache.h"

struct symbols_upload {
	/* ELF files and build-ids. */
	const char *const *words;
	size_t n_words;
	const char *url; /* parca://… */
	const struct remote_options *remote;
	bool has_wait; /* try until the server has or refuses all of it */
	struct symcache_config config;
	const struct cli *cli;
};

/* Prints a verdict for each word. The worst one is the error: numbers 302, 306, 307 and those of
 * connections, 613 and 622 for files that cannot be read. */
struct error *symbols_upload_run(const struct symbols_upload *upload) MUST_USE;
