/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/label_set.h"

#include <string.h>

#include "base/mem.h"

void label_set_init(struct label_set *set)
{
	*set = (struct label_set){
		.labels = mem_zalloc(LABEL_SET_MAX, sizeof(struct label)),
		.text = mem_alloc(LABEL_SET_TEXT_BYTES),
	};
}

void label_set_fini(struct label_set *set)
{
	mem_free(set->labels);
	mem_free(set->text);
	*set = (struct label_set){0};
}

void label_set_clear(struct label_set *set)
{
	set->n = 0;
	set->n_text = 0;
	set->is_full = false;
}

/* The first label whose name is not less. */
static uint32_t find_place(const struct label_set *set, const char *name, size_t n, bool *is_there)
{
	uint32_t low = 0;
	uint32_t high = set->n;
	*is_there = false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct label *label = &set->labels[middle];
		size_t shorter = label->name_size < n ? label->name_size : n;
		int order = memcmp(label->name, name, shorter);
		if (order == 0)
			order = (label->name_size > n) - (label->name_size < n);
		if (order == 0) {
			*is_there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct label *label_set_find(const struct label_set *set, const char *name, size_t name_size)
{
	bool is_there;
	uint32_t place = find_place(set, name, name_size, &is_there);
	return is_there ? &set->labels[place] : NULL;
}

static void remove_at(struct label_set *set, uint32_t place)
{
	set->n--;
	memmove(&set->labels[place], &set->labels[place + 1],
		(set->n - place) * sizeof(struct label));
}

void label_set_delete(struct label_set *set, const char *name, size_t name_size)
{
	bool is_there;
	uint32_t place = find_place(set, name, name_size, &is_there);
	if (is_there)
		remove_at(set, place);
}

static const char *keep(struct label_set *set, const char *text, size_t n)
{
	char *kept = set->text + set->n_text;
	memcpy(kept, text, n);
	kept[n] = '\0';
	set->n_text += n + 1;
	return kept;
}

void label_set_put(struct label_set *set, const char *name, size_t name_size, const char *value,
		   size_t value_size)
{
	bool is_there;
	uint32_t place = find_place(set, name, name_size, &is_there);
	if (value_size == 0) {
		if (is_there)
			remove_at(set, place);
		return;
	}
	/* Sizes first, each by itself: their sum cannot wrap around then. */
	size_t room = LABEL_SET_TEXT_BYTES - set->n_text;
	bool has_room = name_size < room && value_size < room &&
			name_size + value_size + 2 <= room && (is_there || set->n < LABEL_SET_MAX);
	if (!has_room) {
		set->is_full = true;
		return;
	}
	struct label *label = &set->labels[place];
	if (!is_there) {
		memmove(label + 1, label, (set->n - place) * sizeof(*label));
		set->n++;
		label->name = keep(set, name, name_size);
		label->name_size = (uint32_t)name_size;
	}
	label->value = keep(set, value, value_size);
	label->value_size = (uint32_t)value_size;
}

void label_set_drop_meta(struct label_set *set)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < set->n; i++) {
		if (strncmp(set->labels[i].name, "__", 2) != 0)
			set->labels[n++] = set->labels[i];
	}
	set->n = n;
}

void label_set_copy(struct label_set *set, const struct label_set *from)
{
	label_set_clear(set);
	for (uint32_t i = 0; i < from->n; i++) {
		const struct label *label = &from->labels[i];
		label_set_put(set, label->name, label->name_size, label->value, label->value_size);
	}
}

static bool is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool label_name_is_valid(const char *name, size_t n)
{
	if (n == 0 || (name[0] >= '0' && name[0] <= '9'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_name_character(name[i]))
			return false;
	}
	return true;
}
