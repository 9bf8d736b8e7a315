/* SPDX-License-Identifier: Apache-2.0 */
/* `perfpipe symbols fetch`: symbols for binaries that are named, or that a profile or recording
 * has. */
#pragma once

#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/cli.h"
#include "pipeline/symbols_print.h"
#include "symcache/symcache.h"

struct symbols_fetch {
	/* ELF files, build-ids, pprof profiles, perf.data files. */
	const char *const *words;
	size_t n_words;
	struct symcache_config config; /* with debuginfod */
	struct store *store;	       /* the one of config */
	struct symbols_print *print;
	const struct cli *cli;
};

/*
 * Prints what the store has of them afterwards. The first one that was named and is not to be had
 * is the error, numbers 507 and as of symbols_fetch_check; those of a profile are counted.
 */
struct error *symbols_fetch_run(const struct symbols_fetch *fetch) MUST_USE;

/* Whether the module of a word has symbols; numbers 613, 622, 623. */
struct error *symbols_fetch_check(const struct module *module, const char *word) MUST_USE;
/* Whether a word can be a build-id. */
bool symbols_fetch_is_id(const char *word);
/* The module of a file of this host. */
struct module *symbols_fetch_open_file(struct symcache *cache, const char *path);
