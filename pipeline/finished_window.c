/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/finished_window.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "proto/profile_split.h"

#define UNKNOWN_SERVICE "unknown"
#define COUNT_SUFFIX	"_samples"

/* --- services --- */

/* A string of the profile: what a process of that name is counted to. */
static uint32_t service_of(struct profile *profile, uint32_t name)
{
	const char *text = profile_text(profile, name);
	size_t n = strcspn(text, "/");
	return n && text[n] ? profile_string_n(profile, text, n) : name;
}

static uint64_t samples_in(const struct profile *profile, uint32_t sample)
{
	/* Rows of one event: its count comes first. */
	return (uint64_t)profile_values(profile, sample)[0];
}

static uint64_t set_samples(const struct profile *profile)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++)
		n += samples_in(profile, i);
	return n;
}

/* Index of the label that names the process, PROFILE_NONE when the set has none. */
static uint32_t find_label(const struct profile *profile, uint32_t set, uint32_t key)
{
	const struct profile_label_set *labels = &profile->label_sets.items[set];
	for (uint32_t i = 0; i < labels->n; i++) {
		if (profile_label_at(profile, labels->first + i).key == key)
			return labels->first + i;
	}
	return PROFILE_NONE;
}

struct weight {
	uint64_t n_samples;
	uint32_t service;
};

static int compare_weights(const void *left, const void *right)
{
	const struct weight *a = left, *b = right;
	if (a->n_samples != b->n_samples)
		return a->n_samples > b->n_samples ? -1 : 1;
	return a->service < b->service ? -1 : a->service > b->service;
}

/* service → samples */
static void weigh(const struct profile *profile, uint32_t key, struct hash_map *weights)
{
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		uint32_t label = find_label(profile, profile->samples.items[i].label_set, key);
		if (label == PROFILE_NONE)
			continue;
		uint32_t service = profile_label_at(profile, label).str;
		*hash_map_put(weights, service, NULL) += samples_in(profile, i);
	}
}

static void rename_services(struct profile *profile, uint32_t key,
			    uint32_t (*choose)(struct profile *, uint32_t, void *), void *context)
{
	for (uint32_t i = 0; i < profile->labels.n; i++) {
		struct profile_label label = profile_label_at(profile, i);
		if (label.key != key || label.is_number)
			continue;
		label.str = choose(profile, label.str, context);
		profile_set_label(profile, i, &label);
	}
}

static uint32_t choose_service(struct profile *profile, uint32_t name, void *context)
{
	(void)context;
	return service_of(profile, name);
}

static uint32_t choose_kept(struct profile *profile, uint32_t service, void *context)
{
	return hash_map_get(context, service) ? service
					      : profile_string(profile, FINISHED_WINDOW_OTHER);
}

static void fold_services(struct profile *profile, uint32_t key, size_t max_services)
{
	struct hash_map weights CLEANUP(hash_map_fini);
	hash_map_init(&weights);
	weigh(profile, key, &weights);
	if (weights.n <= max_services)
		return;
	struct weight *list CLEANUP(cleanup_mem) = mem_zalloc(weights.n, sizeof(*list));
	size_t n = 0, iterator = 0;
	uint64_t service, *n_samples;
	while (hash_map_next(&weights, &iterator, &service, &n_samples))
		list[n++] = (struct weight){*n_samples, (uint32_t)service};
	qsort(list, n, sizeof(*list), compare_weights);
	struct hash_map kept CLEANUP(hash_map_fini);
	hash_map_init(&kept);
	for (size_t i = 0; i + 1 < max_services; i++)
		*hash_map_put(&kept, list[i].service, NULL) = 1;
	rename_services(profile, key, choose_kept, &kept);
}

/* --- events --- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);
	return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* The columns of an event among several, called as when it is the only one. */
static struct profile *take_event(const struct profile *whole, uint32_t first)
{
	struct profile *event = profile_split_take_columns(whole, first, 2);
	struct profile_value_type *types = event->sample_types.items;
	bool is_time = strcmp(profile_text(event, types[1].unit), "nanoseconds") == 0;
	types[0].type = profile_string(event, "samples");
	if (is_time)
		types[1].type = profile_string(event, "cpu");
	if (first)
		event->period = 0; /* the whole's is that of the first event */
	event->period_type = types[1];
	event->default_sample_type = types[1].type;
	return event;
}

/* A profile_split_fn. */
static struct error *add_series(void *context, struct profile *part, const char *const *values)
{
	struct finished_window *window = context;
	const char *service = values[0] && *values[0] ? values[0] : UNKNOWN_SERVICE;
	window->series = mem_realloc(window->series, window->n_series + 1, sizeof(*window->series));
	window->series[window->n_series++] =
		(struct window_series){.profile = part, .service = mem_copy_string(service)};
	window->n_samples += set_samples(part);
	return NULL;
}

static void add_event(struct finished_window *window, const struct profile *event)
{
	static const char *const keys[] = {FINISHED_WINDOW_LABEL};
	/* Fails by add_series and by too many keys only. */
	error_free(profile_split_by_labels(event, keys, 1, add_series, window));
}

struct finished_window *finished_window_new(struct profile *whole, size_t max_services)
{
	struct finished_window *window = mem_zalloc(1, sizeof(*window));
	window->begin_wall_ns = (uint64_t)whole->time_nanos;
	window->duration_ns = (uint64_t)whole->duration_nanos;
	uint32_t key = profile_string(whole, FINISHED_WINDOW_LABEL);
	rename_services(whole, key, choose_service, NULL);
	bool is_several =
		ends_with(profile_text(whole, whole->sample_types.items[0].type), COUNT_SUFFIX);
	for (uint32_t i = 0; is_several && i + 1 < whole->sample_types.n; i += 2) {
		struct profile *event = take_event(whole, i);
		fold_services(event, profile_string(event, FINISHED_WINDOW_LABEL), max_services);
		add_event(window, event);
		profile_free(event);
	}
	if (!is_several) {
		fold_services(whole, key, max_services);
		add_event(window, whole);
	}
	profile_free(whole);
	return window;
}

void finished_window_free(struct finished_window *window)
{
	if (!window)
		return;
	for (size_t i = 0; i < window->n_series; i++) {
		profile_free(window->series[i].profile);
		mem_free(window->series[i].service);
	}
	mem_free(window->series);
	mem_free(window);
}
