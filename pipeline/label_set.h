/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The labels of one sample or series while rules change them: sorted by name, each name once, no
 * empty values. Room is taken once, so that nothing is allocated per sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LABEL_SET_MAX = 128, LABEL_SET_TEXT_BYTES = 64 << 10 };

/* Both texts end in a 0 that does not count. */
struct label {
	const char *name, *value;
	uint32_t name_size, value_size;
};

struct label_set {
	struct label *labels;
	uint32_t n;
	char *text;
	size_t n_text;
	bool is_full; /* something did not fit and was left out */
};

void label_set_init(struct label_set *set);
void label_set_fini(struct label_set *set);
void label_set_clear(struct label_set *set);
/* Copies both; an empty value deletes. What is replaced keeps its text until the set is cleared. */
void label_set_put(struct label_set *set, const char *name, size_t name_size, const char *value,
		   size_t value_size);
/* NULL when there is none. */
const struct label *label_set_find(const struct label_set *set, const char *name, size_t name_size);
void label_set_delete(struct label_set *set, const char *name, size_t name_size);
/* Deletes those that exist only for rules: names that begin with "__". */
void label_set_drop_meta(struct label_set *set);
void label_set_copy(struct label_set *set, const struct label_set *from);

/* [a-zA-Z_][a-zA-Z0-9_]* */
bool label_name_is_valid(const char *name, size_t n);
