/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/unnamed.h"

static char said[4096];

static uint32_t add_mapping(struct profile *profile, const char *path, const char *build_id)
{
	const struct profile_mapping mapping = {.filename = profile_string(profile, path),
						.build_id = profile_string(profile, build_id)};
	return profile_add_mapping(profile, &mapping);
}

static uint32_t add_location(struct profile *profile, uint32_t mapping, const char *name)
{
	static uint64_t address;
	uint32_t location = profile_add_location(profile, mapping, ++address);
	if (name) {
		const struct profile_function function = {.name = profile_string(profile, name)};
		const struct profile_line line = {.function = profile_function(profile, &function)};
		profile_set_lines(profile, location, &line, 1);
	}
	return location;
}

static void add_samples(struct profile *profile, const uint32_t *locations, uint32_t n_locations,
			int64_t n)
{
	profile_add_sample(profile, profile_stack(profile, locations, n_locations), 0, &n);
}

enum what { UNNAMED, UNNAMED_IN_OTHER_KERNEL, CUT };

static void listen_to_what(const struct profile *profile, struct symcache *cache, enum what what)
{
	const struct message message = {0};
	fflush(stderr);
	int saved_fd = dup(STDERR_FILENO);
	FILE *capture = tmpfile();
	assert_non_null(capture);
	dup2(fileno(capture), STDERR_FILENO);
	if (what == CUT)
		unnamed_state_cut(&message, profile, cache);
	else
		unnamed_state(&message, profile, cache, what == UNNAMED_IN_OTHER_KERNEL);
	fflush(stderr);
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	rewind(capture);
	said[fread(said, 1, sizeof(said) - 1, capture)] = '\0';
	fclose(capture);
}

static void listen_to(const struct profile *profile, struct symcache *cache, bool is_other_kernel)
{
	listen_to_what(profile, cache, is_other_kernel ? UNNAMED_IN_OTHER_KERNEL : UNNAMED);
}

static struct profile *new_profile(void)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	return profile;
}

static void unnamed_groups_binaries_by_what_helps(void **state)
{
	(void)state;
	const struct symcache_config config = {0};
	struct symcache *cache = symcache_new(&config);
	const struct module_query gone = {.path = "/nonexistent/gone"};
	const struct module_query lost = {.path = "/nonexistent/lost (deleted)"};
	symcache_module(cache, &gone);
	symcache_module(cache, &lost);
	struct profile *profile = new_profile();
	uint32_t in_gone = add_mapping(profile, "/nonexistent/gone", "");
	uint32_t in_lost = add_mapping(profile, "/nonexistent/lost", "");
	uint32_t in_kernel = add_mapping(profile, "[kernel.kallsyms]", "");
	uint32_t named = add_location(profile, in_gone, "main");
	uint32_t gone_leaf = add_location(profile, in_gone, NULL);
	uint32_t lost_leaf = add_location(profile, in_lost, NULL);
	uint32_t kernel_leaf = add_location(profile, in_kernel, NULL);
	/* One sample counts once for a binary, however many of its frames have no name. */
	add_samples(profile, (uint32_t[]){gone_leaf, named, gone_leaf}, 3, 30);
	add_samples(profile, (uint32_t[]){lost_leaf, named}, 2, 20);
	add_samples(profile, (uint32_t[]){kernel_leaf, named}, 2, 10);
	add_samples(profile, &named, 1, 40);
	listen_to(profile, cache, true);
	assert_string_equal(
		said,
		"perfpipe: samples with unnamed frames: /nonexistent/gone 30.0 %, "
		"/nonexistent/lost 20.0 % (no such file); next: put the file back, or name a "
		"tree that has it with --sysroot\n"
		"perfpipe: samples with unnamed frames: [kernel.kallsyms] 10.0 % (no names of "
		"that kernel at hand); next: --vmlinux or --kallsyms of the kernel that was "
		"recorded\n");
	profile_free(profile);
	symcache_free(cache);
}

static void stacks_cut_for_want_of_rules_name_the_binary_that_they_end_in(void **state)
{
	(void)state;
	const struct symcache_config config = {0};
	struct symcache *cache = symcache_new(&config);
	const struct module_query gone = {.path = "/nonexistent/gone"};
	symcache_module(cache, &gone);
	struct profile *profile = new_profile();
	uint32_t in_gone = add_mapping(profile, "/nonexistent/gone", "");
	uint32_t in_other = add_mapping(profile, "/nonexistent/other", "");
	uint32_t in_none = add_mapping(profile, "[stack cut]", "");
	uint32_t gone_frame = add_location(profile, in_gone, NULL);
	uint32_t other_frame = add_location(profile, in_other, NULL);
	uint32_t no_table = add_location(profile, in_none, "[stack cut: no unwind table]");
	uint32_t no_rule = add_location(profile, in_none, "[stack cut: no unwind rule]");
	uint32_t too_short = add_location(profile, in_none, "[stack cut: copied stack too short]");
	/* The last frame that was reached counts, not those below it, and each sample once. */
	add_samples(profile, (uint32_t[]){other_frame, gone_frame, no_table}, 3, 20);
	add_samples(profile, (uint32_t[]){gone_frame, no_rule}, 2, 5);
	add_samples(profile, (uint32_t[]){other_frame, too_short}, 2, 50);
	add_samples(profile, &gone_frame, 1, 25);
	listen_to_what(profile, cache, CUT);
	assert_string_equal(
		said, "perfpipe: samples with stacks that end in code that cannot be unwound: "
		      "/nonexistent/gone 25.0 % (no such file); next: put the file back, or name a "
		      "tree that has it with --sysroot\n");
	profile_free(profile);
	symcache_free(cache);
}

static void unnamed_names_the_build_and_keeps_the_rest_short(void **state)
{
	(void)state;
	struct profile *profile = new_profile();
	for (int i = 0; i < 5; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/b%d", i);
		/* Two mappings of one binary are one. */
		uint32_t first = add_mapping(profile, path, "0123456789abcdef");
		uint32_t second = add_mapping(profile, path, "0123456789abcdef");
		uint32_t leaf = add_location(profile, first, NULL);
		uint32_t other = add_location(profile, second, NULL);
		add_samples(profile, &leaf, 1, 10 - i);
		add_samples(profile, &other, 1, 10 - i);
	}
	uint32_t rare = add_location(profile, add_mapping(profile, "/rare", ""), NULL);
	uint32_t named = add_location(profile, PROFILE_NONE, "f");
	add_samples(profile, &rare, 1, 1);
	add_samples(profile, &named, 1, 119);
	const struct symcache_config config = {0};
	struct symcache *cache = symcache_new(&config);
	listen_to(profile, cache, false);
	assert_string_equal(said, "perfpipe: samples with unnamed frames: /b0 0123456789ab 10.0 %, "
				  "/b1 0123456789ab 9.0 %, /b2 0123456789ab 8.0 %, 2 more (nothing "
				  "is known of what lies there); next: none\n");
	symcache_free(cache);
	profile_free(profile);
}

static void unnamed_is_silent_when_all_is_named_or_empty(void **state)
{
	(void)state;
	const struct symcache_config config = {0};
	struct symcache *cache = symcache_new(&config);
	struct profile *profile = new_profile();
	listen_to(profile, cache, false);
	assert_string_equal(said, "");
	uint32_t named = add_location(profile, add_mapping(profile, "/x", ""), "f");
	add_samples(profile, &named, 1, 1);
	listen_to(profile, cache, false);
	assert_string_equal(said, "");
	profile_free(profile);
	symcache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unnamed_groups_binaries_by_what_helps),
		cmocka_unit_test(stacks_cut_for_want_of_rules_name_the_binary_that_they_end_in),
		cmocka_unit_test(unnamed_names_the_build_and_keeps_the_rest_short),
		cmocka_unit_test(unnamed_is_silent_when_all_is_named_or_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
