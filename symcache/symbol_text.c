/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/symbol_text.h"

#include <string.h>

#include "symcache/demangle.h"

void symbol_texts_init(struct symbol_texts *texts, struct arena *arena,
		       enum symcache_demangle demangle)
{
	*texts = (struct symbol_texts){.arena = arena, .demangle = demangle};
	hash_map_init(&texts->by_key);
}

void symbol_texts_fini(struct symbol_texts *texts)
{
	hash_map_fini(&texts->by_key);
	*texts = (struct symbol_texts){0};
}

static char *join(struct arena *arena, const char *name, size_t n, const char *suffix)
{
	size_t suffix_bytes = strlen(suffix);
	char *out = arena_alloc(arena, n + suffix_bytes + 1);
	memcpy(out, name, n);
	memcpy(out + n, suffix, suffix_bytes + 1);
	return out;
}

static const struct symbol_text *make_text(struct symbol_texts *texts, const char *name, size_t n,
					   const char *suffix)
{
	struct symbol_text *text = arena_alloc(texts->arena, sizeof(*text));
	const char *plain = join(texts->arena, name, n, "");
	struct demangled demangled;
	text->linkage_name = *suffix ? join(texts->arena, name, n, suffix) : plain;
	text->name = text->linkage_name;
	if (demangle_name(plain, texts->demangle, &demangled))
		text->name = join(texts->arena, demangled.text, strlen(demangled.text), suffix);
	return text;
}

const struct symbol_text *symbol_texts_find(const struct symbol_texts *texts, uint64_t key)
{
	const uint64_t *value = hash_map_get(&texts->by_key, key);
	return value ? (const struct symbol_text *)(uintptr_t)*value : NULL;
}

const struct symbol_text *symbol_texts_add(struct symbol_texts *texts, uint64_t key,
					   const char *name, size_t name_bytes, const char *suffix)
{
	const struct symbol_text *text = make_text(texts, name, name_bytes, suffix);
	*hash_map_put(&texts->by_key, key, NULL) = (uint64_t)(uintptr_t)text;
	return text;
}

void symbol_text_set(struct symbol_result *out, const struct symbol_text *text, bool is_folded)
{
	out->reason = SYMBOL_FOUND;
	out->n_frames = 1;
	out->frames[0] =
		(struct symbol_frame){.name = text->name, .linkage_name = text->linkage_name};
	out->is_folded = is_folded;
}
