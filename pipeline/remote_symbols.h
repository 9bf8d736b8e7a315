/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching symbols from debuginfod servers, for commands: the option and what is said of it. */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/message.h"
#include "symcache/symcache.h"

/* What --debuginfod and --debuginfod-wait take, for option tables. */
#define REMOTE_SYMBOLS_WHAT                                                                        \
	"fetch what this host lacks, by build-id, from these\nservers (default $DEBUGINFOD_URLS)"
#define REMOTE_SYMBOLS_WAIT_WHAT "how long all of that may take (default 3m)"

/* value: URLs, or NULL for those of DEBUGINFOD_URLS. Number 503. */
struct error *remote_symbols_set_urls(struct symcache_debuginfod *debuginfod,
				      const char *value) MUST_USE;
struct error *remote_symbols_set_wait(struct symcache_debuginfod *debuginfod,
				      const char *value) MUST_USE;

/* Says which servers failed, and what could not be had for another reason. */
void remote_symbols_state(const struct message *message, const struct symcache *cache);
