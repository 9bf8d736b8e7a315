/* SPDX-License-Identifier: Apache-2.0 */
/* Which sample goes into which part; profile_copy makes the parts, one at a time. */
#include "proto/profile_split.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "proto/pprof_encode.h"
#include "proto/profile_copy.h"

enum { NUMBER_TEXT_BYTES = 24 };

struct error *profile_split_by_limits(const struct profile *profile,
				      const struct profile_split_limits *limits,
				      profile_split_fn emit, void *context)
{
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, profile);
	profile_copy_begin(&copy);
	const uint64_t base_bytes = pprof_encode_count_bytes(copy.to);
	uint64_t bytes = base_bytes;
	uint32_t n_samples = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		uint64_t cost = limits->max_encoded_bytes ? profile_copy_cost(&copy, i) : 0;
		bool is_full = limits->max_samples && n_samples == limits->max_samples;
		/* Costs are upper bounds: when they fill the part, count what is really there. */
		if (limits->max_encoded_bytes && bytes + cost > limits->max_encoded_bytes) {
			bytes = pprof_encode_count_bytes(copy.to);
			is_full |= bytes + cost > limits->max_encoded_bytes;
		}
		if (is_full && n_samples) {
			struct error *err = emit(context, profile_copy_end(&copy), NULL);
			if (err)
				return err;
			profile_copy_begin(&copy);
			bytes = base_bytes;
			n_samples = 0;
			cost = limits->max_encoded_bytes ? profile_copy_cost(&copy, i) : 0;
		}
		profile_copy_sample(&copy, i, NULL, 0);
		bytes += cost;
		n_samples++;
	}
	return emit(context, profile_copy_end(&copy), NULL);
}

/* Which part each label set belongs to, and the values that name the parts. */
struct grouping {
	const struct profile *profile;
	uint32_t keys[PROFILE_SPLIT_MAX_KEYS]; /* strings; PROFILE_NONE = in no label */
	uint32_t n_keys;
	struct profile *names;	  /* its label sets are the parts' values, in order of keys */
	uint32_t *part_of_set;	  /* label set → label set of names; NULL = itself */
	uint32_t *next_of_sample; /* samples of a part, chained */
	uint32_t *first_of_part;
	uint32_t *last_of_part;
	uint32_t *parts; /* in order of first appearance */
	uint32_t n_parts;
};

static void grouping_fini(struct grouping *grouping)
{
	profile_free(grouping->names);
	mem_free(grouping->part_of_set);
	mem_free(grouping->next_of_sample);
	mem_free(grouping->first_of_part);
	mem_free(grouping->last_of_part);
	mem_free(grouping->parts);
}

static uint32_t find_key(const struct profile *profile, const char *key)
{
	for (uint32_t i = 0; i < profile->strings.n; i++) {
		if (!strcmp(profile_text(profile, i), key))
			return i;
	}
	return PROFILE_NONE;
}

/* The value of a key in a set as text in names; the first one counts. */
static uint32_t value_of(const struct grouping *grouping, struct profile_label_set set,
			 uint32_t key)
{
	const struct profile *profile = grouping->profile;
	for (uint32_t i = 0; i < set.n; i++) {
		const struct profile_label label = profile_label_at(profile, set.first + i);
		if (label.key != key)
			continue;
		if (!label.is_number)
			return profile_string(grouping->names, profile_text(profile, label.str));
		char text[NUMBER_TEXT_BYTES];
		snprintf(text, sizeof(text), "%lld", (long long)label.num);
		return profile_string(grouping->names, text);
	}
	return 0;
}

static void group_sets(struct grouping *grouping)
{
	const struct profile *profile = grouping->profile;
	grouping->part_of_set = mem_zalloc(profile->label_sets.n, sizeof(*grouping->part_of_set));
	for (uint32_t set = 0; set < profile->label_sets.n; set++) {
		struct profile_label values[PROFILE_SPLIT_MAX_KEYS] = {0};
		for (uint32_t i = 0; i < grouping->n_keys; i++)
			values[i].str = value_of(grouping, profile->label_sets.items[set],
						 grouping->keys[i]);
		grouping->part_of_set[set] =
			profile_label_set(grouping->names, values, grouping->n_keys);
	}
}

/* n_parts: how many there may be. */
static void group_samples(struct grouping *grouping, uint32_t n_parts)
{
	const struct profile *profile = grouping->profile;
	grouping->next_of_sample =
		mem_zalloc(profile->samples.n, sizeof(*grouping->next_of_sample));
	grouping->first_of_part = mem_zalloc(n_parts, sizeof(*grouping->first_of_part));
	grouping->last_of_part = mem_zalloc(n_parts, sizeof(*grouping->last_of_part));
	grouping->parts = mem_zalloc(n_parts, sizeof(*grouping->parts));
	for (uint32_t i = 0; i < n_parts; i++)
		grouping->first_of_part[i] = PROFILE_NONE;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		uint32_t set = profile->samples.items[i].label_set;
		uint32_t part = grouping->part_of_set ? grouping->part_of_set[set] : set;
		if (grouping->first_of_part[part] == PROFILE_NONE) {
			grouping->first_of_part[part] = i;
			grouping->parts[grouping->n_parts++] = part;
		} else {
			grouping->next_of_sample[grouping->last_of_part[part]] = i;
		}
		grouping->last_of_part[part] = i;
		grouping->next_of_sample[i] = PROFILE_NONE;
	}
}

/* The part's samples without the labels of these keys. */
static void copy_part(const struct grouping *grouping, struct profile_copy *copy, uint32_t part,
		      const uint32_t *keys, uint32_t n_keys)
{
	profile_copy_begin(copy);
	for (uint32_t sample = grouping->first_of_part[part]; sample != PROFILE_NONE;
	     sample = grouping->next_of_sample[sample])
		profile_copy_sample(copy, sample, keys, n_keys);
}

struct error *profile_split_by_labels(const struct profile *profile, const char *const *keys,
				      uint32_t n_keys, profile_split_fn emit, void *context)
{
	if (n_keys > PROFILE_SPLIT_MAX_KEYS)
		return error_new(ERROR_USAGE, "a profile splits by at most %d labels",
				 PROFILE_SPLIT_MAX_KEYS);
	CLEANUP(grouping_fini)
	struct grouping grouping = {.profile = profile, .n_keys = n_keys, .names = profile_new()};
	for (uint32_t i = 0; i < n_keys; i++)
		grouping.keys[i] = find_key(profile, keys[i]);
	group_sets(&grouping);
	group_samples(&grouping, grouping.names->label_sets.n);
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, profile);
	for (uint32_t i = 0; i < grouping.n_parts; i++) {
		uint32_t part = grouping.parts[i];
		copy_part(&grouping, &copy, part, grouping.keys, n_keys);
		struct profile_label_set set = grouping.names->label_sets.items[part];
		const char *values[PROFILE_SPLIT_MAX_KEYS] = {0};
		for (uint32_t key = 0; key < set.n; key++)
			values[key] =
				profile_text(grouping.names,
					     profile_label_at(grouping.names, set.first + key).str);
		struct error *err = emit(context, profile_copy_end(&copy), values);
		if (err)
			return err;
	}
	return NULL;
}

static uint32_t *list_keys(const struct profile *profile, struct profile_label_set set)
{
	uint32_t *keys = mem_zalloc(set.n, sizeof(*keys));
	for (uint32_t i = 0; i < set.n; i++)
		keys[i] = profile->labels.items[set.first + i].key;
	return keys;
}

struct error *profile_split_by_label_sets(const struct profile *profile, profile_split_set_fn emit,
					  void *context)
{
	CLEANUP(grouping_fini) struct grouping grouping = {.profile = profile};
	group_samples(&grouping, profile->label_sets.n);
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, profile);
	for (uint32_t i = 0; i < grouping.n_parts; i++) {
		uint32_t part = grouping.parts[i];
		struct profile_label_set set = profile->label_sets.items[part];
		CLEANUP(cleanup_mem) uint32_t *keys = list_keys(profile, set);
		copy_part(&grouping, &copy, part, keys, set.n);
		struct error *err = emit(context, profile_copy_end(&copy), part);
		if (err)
			return err;
	}
	return NULL;
}

static bool has_value(const struct profile *profile, uint32_t sample, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (profile_value(profile, sample, first + i))
			return true;
	}
	return false;
}

struct profile *profile_split_take_columns(const struct profile *profile, uint32_t first,
					   uint32_t n)
{
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, profile);
	copy.first_column = first;
	copy.n_columns = n;
	profile_copy_begin(&copy);
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		if (has_value(profile, i, first, n))
			profile_copy_sample(&copy, i, NULL, 0);
	}
	return profile_copy_end(&copy);
}
