/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is fetched for a module: the file itself when this host has none of its build-id, the debug
 * file when what is here has no DWARF, the file that dwz shared it with when that is missing. One
 * after the other, since each tells whether the next is needed; many modules at a time.
 */
#pragma once

#include "symcache/module.h"
#include "symcache/remote_supply.h"

/*
 * As module_ask, but what is missing is wanted from remote first: the rest follows from its steps.
 * All of them outlive the wait.
 */
void module_fetch_symbols(struct module *module, const struct symcache_config *config,
			  struct symbol_supply *supply, struct remote_supply *remote);
