/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/profile_merge.h"

#include <string.h>

#include "base/cleanup.h"

void profile_merge_init(struct profile_merge *merge)
{
	*merge = (struct profile_merge){0};
	hash_map_init(&merge->index.mappings);
	hash_map_init(&merge->index.locations);
}

void profile_merge_fini(struct profile_merge *merge)
{
	profile_free(merge->sum);
	hash_map_fini(&merge->index.mappings);
	hash_map_fini(&merge->index.locations);
	*merge = (struct profile_merge){0};
}

static bool has_same_columns(const struct profile *a, const struct profile *b)
{
	if (a->sample_types.n != b->sample_types.n || a->row_width != b->row_width)
		return false;
	for (uint32_t i = 0; i < a->sample_types.n; i++) {
		const struct profile_value_type *x = &a->sample_types.items[i];
		const struct profile_value_type *y = &b->sample_types.items[i];
		if (strcmp(profile_text(a, x->type), profile_text(b, y->type)) != 0 ||
		    strcmp(profile_text(a, x->unit), profile_text(b, y->unit)) != 0)
			return false;
	}
	return true;
}

struct error *profile_merge_add(struct profile_merge *merge, const struct profile *profile)
{
	if (merge->sum && !has_same_columns(merge->sum, profile))
		return error_new(ERROR_USAGE, "profiles of different columns");
	CLEANUP(profile_copy_fini) struct profile_copy copy;
	profile_copy_init(&copy, profile);
	copy.index = &merge->index;
	if (merge->sum) {
		merge->sum->duration_nanos += profile->duration_nanos;
		profile_copy_continue(&copy, TAKE(merge->sum));
	} else {
		profile_copy_begin(&copy);
	}
	for (uint32_t i = 0; i < profile->samples.n; i++)
		profile_copy_sample(&copy, i, NULL, 0);
	merge->sum = profile_copy_end(&copy);
	return NULL;
}

struct profile *profile_merge_take(struct profile_merge *merge)
{
	hash_map_clear(&merge->index.mappings);
	hash_map_clear(&merge->index.locations);
	return TAKE(merge->sum);
}
