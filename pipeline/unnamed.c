/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/unnamed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LINES_MAX = 5, NAMES_MAX = 3, NAMES_BYTES = 1024 };
static const double worth_a_line = 0.01; /* of all samples */

struct unnamed {
	uint32_t filename, build_id; /* strings of the profile */
	int64_t n_samples;
};

static int by_binary(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;
	if (x->filename != y->filename)
		return x->filename < y->filename ? -1 : 1;
	return x->build_id < y->build_id ? -1 : x->build_id > y->build_id;
}

static int by_samples(const void *a, const void *b)
{
	const struct unnamed *x = a, *y = b;
	if (x->n_samples != y->n_samples)
		return x->n_samples < y->n_samples ? 1 : -1;
	return by_binary(a, b);
}

/* A sample counts once for each mapping that leaves a frame of it without a name. */
static int64_t count(const struct profile *profile, int64_t *counts)
{
	uint32_t *marks = mem_zalloc((size_t)profile->mappings.n + 1, sizeof(*marks));
	int64_t n_all = 0;
	for (uint32_t i = 0; i < profile->samples.n; i++) {
		int64_t n = profile_values(profile, i)[0];
		n_all += n;
		uint32_t stack = profile->samples.items[i].stack;
		for (; stack; stack = profile->stacks.items[stack].parent) {
			uint32_t l = profile->stacks.items[stack].location;
			const struct profile_location *location = &profile->locations.items[l];
			uint32_t m = location->mapping;
			if (location->n_lines || m == PROFILE_NONE || marks[m] == i + 1)
				continue;
			marks[m] = i + 1;
			counts[m] += n;
		}
	}
	mem_free(marks);
	return n_all;
}

/* The mappings of one binary become one entry; the most touched first. Returns how many. */
static size_t rank(const struct profile *profile, const int64_t *counts, struct unnamed *list)
{
	size_t n = 0;
	for (uint32_t m = 0; m < profile->mappings.n; m++) {
		const struct profile_mapping *mapping = &profile->mappings.items[m];
		if (counts[m])
			list[n++] = (struct unnamed){.filename = mapping->filename,
						     .build_id = mapping->build_id,
						     .n_samples = counts[m]};
	}
	qsort(list, n, sizeof(*list), by_binary);
	size_t n_merged = 0;
	for (size_t i = 0; i < n; i++) {
		if (n_merged && by_binary(&list[n_merged - 1], &list[i]) == 0)
			list[n_merged - 1].n_samples += list[i].n_samples;
		else
			list[n_merged++] = list[i];
	}
	qsort(list, n_merged, sizeof(*list), by_samples);
	return n_merged;
}

static const char *next_step(enum module_state state)
{
	switch (state) {
	case MODULE_OK:
	case MODULE_OK_TRUSTED:
		return "install its debug symbols, name their folder with --debug-root, or fetch "
		       "them with --debuginfod";
	case MODULE_NOT_FOUND:
		return "put the file back, or name a tree that has it with --sysroot";
	case MODULE_DENIED:
		return "run as a user who may read it";
	case MODULE_OTHER_FILE:
		return "put back the build that was recorded, or name the root that it ran in "
		       "(container, chroot) with --sysroot";
	case MODULE_NOT_CONFIRMED:
		return "--trust-paths, if the file is still the same";
	case MODULE_NO_DESCRIPTOR:
		return "ulimit -n 65536";
	case MODULE_NOT_ELF:
	case MODULE_NO_FILE:
		break;
	}
	return "none";
}

/* What the user can do about several binaries at once. */
struct group {
	const char *why, *step;
	size_t n_binaries;
	char names[NAMES_BYTES];
};

static void explain(const struct profile *profile, const struct unnamed *unnamed,
		    const struct symcache *cache, bool is_other_kernel, struct group *out)
{
	const char *path = profile_text(profile, unnamed->filename);
	struct build_id id = {0};
	if (!build_id_parse(profile_text(profile, unnamed->build_id), &id))
		id = (struct build_id){0};
	const struct module *module = symcache_find_module(cache, path, &id);
	if (module) {
		enum module_state state = module_get_state(module);
		bool is_open = state == MODULE_OK || state == MODULE_OK_TRUSTED;
		const char *failure = is_open ? module_failure(module) : NULL;
		out->why = failure   ? failure
			   : is_open ? "no symbols there"
				     : module_state_text(state);
		out->step = failure ? "perfpipe explain E623" : next_step(state);
	} else if (path[0] == '[' && is_other_kernel) {
		out->why = "no names of that kernel at hand";
		out->step = "--vmlinux or --kallsyms of the kernel that was recorded";
	} else {
		out->why = "nothing is known of what lies there";
		out->step = "none";
	}
}

/* "/usr/bin/dash be6397ddffc3 17.2 %", the first few of a group. */
static void add_name(struct group *group, const struct profile *profile,
		     const struct unnamed *unnamed, double share)
{
	size_t used = strlen(group->names);
	if (group->n_binaries++ >= NAMES_MAX)
		return;
	const char *build_id = profile_text(profile, unnamed->build_id);
	snprintf(group->names + used, sizeof(group->names) - used, "%s%s%s%.12s %.1f %%",
		 used ? ", " : "", profile_text(profile, unnamed->filename), build_id[0] ? " " : "",
		 build_id, 100 * share);
}

static struct group *find_group(struct group *groups, size_t *n, const struct group *wanted)
{
	for (size_t i = 0; i < *n; i++) {
		if (strcmp(groups[i].why, wanted->why) == 0 &&
		    strcmp(groups[i].step, wanted->step) == 0)
			return &groups[i];
	}
	if (*n == LINES_MAX)
		return NULL;
	groups[*n] = *wanted;
	return &groups[(*n)++];
}

static void state_list(const struct message *message, const struct profile *profile,
		       const struct symcache *cache, bool is_other_kernel,
		       const struct unnamed *list, size_t n, double n_all)
{
	struct group groups[LINES_MAX];
	size_t n_groups = 0;
	for (size_t i = 0; i < n; i++) {
		double share = (double)list[i].n_samples / n_all;
		if (share < worth_a_line)
			break;
		struct group wanted = {0};
		explain(profile, &list[i], cache, is_other_kernel, &wanted);
		struct group *group = find_group(groups, &n_groups, &wanted);
		if (group)
			add_name(group, profile, &list[i], share);
	}
	for (size_t i = 0; i < n_groups; i++) {
		char more[32] = "";
		if (groups[i].n_binaries > NAMES_MAX)
			snprintf(more, sizeof(more), ", %zu more",
				 groups[i].n_binaries - NAMES_MAX);
		message_note(message, "samples with unnamed frames: %s%s (%s); next: %s",
			     groups[i].names, more, groups[i].why, groups[i].step);
	}
}

void unnamed_state(const struct message *message, const struct profile *profile,
		   const struct symcache *cache, bool is_other_kernel)
{
	size_t n_mappings = (size_t)profile->mappings.n + 1;
	int64_t *counts = mem_zalloc(n_mappings, sizeof(*counts));
	struct unnamed *list = mem_zalloc(n_mappings, sizeof(*list));
	double n_all = (double)count(profile, counts);
	size_t n = rank(profile, counts, list);
	state_list(message, profile, cache, is_other_kernel, list, n, n_all);
	mem_free(list);
	mem_free(counts);
}
