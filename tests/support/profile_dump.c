/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/profile_dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void must(struct error *err)
{
	if (err)
		abort();
}

static void dump_location(const struct profile *profile, uint32_t index, struct buf *out)
{
	const struct profile_location *location = &profile->locations.items[index];
	for (uint32_t i = location->n_lines; i > 0; i--) {
		const struct profile_line *line =
			&profile->lines.items[location->first_line + i - 1];
		const struct profile_function *function = &profile->functions.items[line->function];
		must(buf_printf(out, "%s%s", profile_text(profile, function->name),
				i > 1 ? ";" : ""));
	}
	if (location->n_lines)
		return;
	const char *file = "?";
	if (location->mapping < profile->mappings.n)
		file = profile_text(profile, profile->mappings.items[location->mapping].filename);
	must(buf_printf(out, "%s+0x%" PRIx64, file, location->address));
}

void profile_dump_stack(const struct profile *profile, uint32_t stack, struct buf *out)
{
	uint32_t n = 0;
	for (uint32_t node = stack; node; node = profile->stacks.items[node].parent)
		n++;
	uint32_t *locations = mem_alloc((n + 1) * sizeof(*locations));
	uint32_t i = n;
	for (uint32_t node = stack; node; node = profile->stacks.items[node].parent)
		locations[--i] = profile->stacks.items[node].location;
	for (i = 0; i < n; i++) {
		if (i)
			must(buf_append(out, ";", 1));
		dump_location(profile, locations[i], out);
	}
	mem_free(locations);
}

static void dump_labels(const struct profile *profile, uint32_t set, struct buf *out)
{
	struct profile_label_set labels = profile->label_sets.items[set];
	for (uint32_t i = 0; i < labels.n; i++) {
		const struct profile_label label = profile_label_at(profile, labels.first + i);
		const char *key = profile_text(profile, label.key);
		if (label.is_number)
			must(buf_printf(out, " %s=%" PRId64, key, label.num));
		else
			must(buf_printf(out, " %s=\"%s\"", key, profile_text(profile, label.str)));
	}
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the lines that lie in out from start on. */
static void sort_lines(struct buf *out, size_t start)
{
	char *copy = mem_copy_string(buf_string(out) + start);
	char **lines = NULL;
	size_t n = 0;
	for (char *next = copy; *next;) {
		lines = mem_realloc(lines, n + 1, sizeof(*lines));
		lines[n++] = next;
		next += strcspn(next, "\n");
		if (*next)
			*next++ = '\0';
	}
	if (n)
		qsort(lines, n, sizeof(*lines), compare_lines);
	out->size = start;
	for (size_t i = 0; i < n; i++)
		must(buf_printf(out, "%s\n", lines[i]));
	mem_free(lines);
	mem_free(copy);
}

static void dump_samples(const struct profile *profile, struct buf *out)
{
	size_t start = out->size;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		struct profile_sample sample = profile->samples.items[i];
		must(buf_printf(out, "sample"));
		for (uint32_t v = 0; v < profile->sample_types.n; v++)
			must(buf_printf(out, " %" PRId64, profile_value(profile, i, v)));
		dump_labels(profile, sample.label_set, out);
		must(buf_printf(out, " | "));
		profile_dump_stack(profile, sample.stack, out);
		must(buf_printf(out, "\n"));
	}
	sort_lines(out, start);
}

static void dump_mappings(const struct profile *profile, struct buf *out)
{
	if (profile->mappings.n)
		must(buf_printf(out, "main %s\n",
				profile_text(profile, profile->mappings.items[0].filename)));
	size_t start = out->size;
	for (uint32_t i = 0; i < profile->mappings.n; i++) {
		const struct profile_mapping *m = &profile->mappings.items[i];
		must(buf_printf(out, "mapping %s 0x%" PRIx64 "-0x%" PRIx64 " @0x%" PRIx64 " %s%s\n",
				profile_text(profile, m->filename), m->memory_start,
				m->memory_limit, m->file_offset, profile_text(profile, m->build_id),
				m->has_functions ? " functions" : ""));
	}
	sort_lines(out, start);
}

static void dump_locations(const struct profile *profile, struct buf *out)
{
	size_t start = out->size;
	for (uint32_t i = 0; i < profile->locations.n; i++) {
		const struct profile_location *location = &profile->locations.items[i];
		const char *file =
			location->mapping < profile->mappings.n
				? profile_text(profile,
					       profile->mappings.items[location->mapping].filename)
				: "?";
		must(buf_printf(out, "location %s 0x%" PRIx64 " ", file, location->address));
		dump_location(profile, i, out);
		must(buf_printf(out, "\n"));
	}
	sort_lines(out, start);
}

void profile_dump(const struct profile *profile, struct buf *out)
{
	for (uint32_t i = 0; i < profile->sample_types.n; i++)
		must(buf_printf(out, "type %s/%s\n",
				profile_text(profile, profile->sample_types.items[i].type),
				profile_text(profile, profile->sample_types.items[i].unit)));
	must(buf_printf(out, "default %s\n", profile_text(profile, profile->default_sample_type)));
	must(buf_printf(out, "period %s/%s %" PRId64 "\n",
			profile_text(profile, profile->period_type.type),
			profile_text(profile, profile->period_type.unit), profile->period));
	must(buf_printf(out, "time %" PRId64 " duration %" PRId64 "\n", profile->time_nanos,
			profile->duration_nanos));
	for (uint32_t i = 0; i < profile->comments.n; i++)
		must(buf_printf(out, "comment %s\n",
				profile_text(profile, profile->comments.items[i])));
	dump_mappings(profile, out);
	dump_locations(profile, out);
	dump_samples(profile, out);
}
