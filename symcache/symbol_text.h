/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as they are handed out: copied once out of tables that may go, demangled once, kept in the
 * cache's arena. One table per module, keyed by the module's own number for a name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash_map.h"
#include "symcache/symcache.h"

struct symbol_text {
	const char *name, *linkage_name;
};

struct symbol_texts {
	struct arena *arena;
	struct hash_map by_key;
	enum symcache_demangle demangle;
};

/* arena outlives the table and holds the texts. */
void symbol_texts_init(struct symbol_texts *texts, struct arena *arena,
		       enum symcache_demangle demangle);
void symbol_texts_fini(struct symbol_texts *texts);
/* NULL when that key was not added yet. */
const struct symbol_text *symbol_texts_find(const struct symbol_texts *texts, uint64_t key);
/* name is name_bytes long; suffix ("" or "@plt") goes behind both forms. */
const struct symbol_text *symbol_texts_add(struct symbol_texts *texts, uint64_t key,
					   const char *name, size_t name_bytes, const char *suffix);
/* One frame of that name. */
void symbol_text_set(struct symbol_result *out, const struct symbol_text *text, bool is_folded);
