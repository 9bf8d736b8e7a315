/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/push_profile.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/compiler.h"

#define NS_PER_S ((int64_t)1000000000)

void push_profile_complete(struct profile *profile, const char *path)
{
	if (profile->time_nanos)
		return;
	struct stat st;
	if (strcmp(path, "-") != 0 && stat(path, &st) == 0)
		profile->time_nanos = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	else
		profile->time_nanos = (int64_t)clock_system.wall_ns(clock_system.context);
}

const char *push_profile_name(const struct profile *profile)
{
	/* In order: a profile of several columns is named by the most telling one. */
	static const struct {
		const char *type, *name;
	} names[] = {
		{"cpu", "process_cpu"},
		{"cycles", "process_cpu"},
		{"cpu_clock", "process_cpu"},
		{"task_clock", "process_cpu"},
		{"offcpu", "off_cpu"},
		{"alloc_space", "memory"},
		{"inuse_space", "memory"},
		{"space", "memory"},
		{"contentions", "mutex"},
		{"delay", "mutex"},
		{"goroutine", "goroutine"},
		{"goroutines", "goroutine"},
		{"threadcreate", "threadcreate"},
		{"wall", "wall"},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (uint32_t column = 0; column < profile->sample_types.n; column++) {
			uint32_t type = profile->sample_types.items[column].type;
			if (strcmp(profile_text(profile, type), names[i].type) == 0)
				return names[i].name;
		}
	}
	return "profile";
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

void push_profile_service(const struct profile *profile, char out[PUSH_PROFILE_SERVICE_BYTES])
{
	const char *best = "";
	if (profile->mappings.n)
		best = base_name(profile_text(profile, profile->mappings.items[0].filename));
	/* "[kernel.kallsyms]", "[vdso]", "//anon" are nobody's name. */
	bool is_name = *best && *best != '[' && strcmp(best, "anon") != 0;
	snprintf(out, PUSH_PROFILE_SERVICE_BYTES, "%s", is_name ? best : "perfpipe");
}
