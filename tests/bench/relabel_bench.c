/* SPDX-License-Identifier: Apache-2.0 */
/* Time of relabel rules on one label set of a git command: relabel_bench [SECONDS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/relabel.h"

static const struct relabel_rule rules[] = {
	{.action = RELABEL_DROP,
	 .source_labels = (const char *const[]){"comm"},
	 .n_source_labels = 1,
	 .regex = "swapper.*"},
	{.source_labels = (const char *const[]){"__meta_gitaly_role"},
	 .n_source_labels = 1,
	 .regex = "(.+)",
	 .target_label = "service_name"},
	{.source_labels = (const char *const[]){"__meta_gitaly_cgroup"},
	 .n_source_labels = 1,
	 .regex = "(repos-\\d+)",
	 .target_label = "cgroup"},
	{.source_labels = (const char *const[]){"__meta_git_subcommand", "comm"},
	 .n_source_labels = 2,
	 .target_label = "what"},
	{.action = RELABEL_LABELDROP, .regex = "tmp_.*"},
};

static void fill(struct label_set *set)
{
	static const char *const pairs[][2] = {
		{"__meta_gitaly_role", "gitaly-git"},
		{"__meta_gitaly_cgroup", "repos-889"},
		{"__meta_git_subcommand", "pack-objects"},
		{"__meta_process_pid", "41213"},
		{"__meta_process_executable_name", "git"},
		{"__meta_systemd_unit", "gitlab.service"},
		{"comm", "git"},
		{"storage", "default"},
		{"node", "gitaly-01"},
		{"execution_mode", "user"},
	};
	label_set_clear(set);
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		label_set_put(set, pairs[i][0], strlen(pairs[i][0]), pairs[i][1],
			      strlen(pairs[i][1]));
}

static double run(struct relabel *relabel, struct label_set *set, double seconds)
{
	uint64_t begin = clock_system.monotonic_ns(NULL);
	uint64_t end = begin;
	uint64_t n = 0;
	while ((double)(end - begin) < seconds * 1e9) {
		for (int i = 0; i < 1000; i++, n++) {
			fill(set);
			if (relabel && relabel_apply(relabel, set) != RELABEL_KEPT)
				abort();
		}
		end = clock_system.monotonic_ns(NULL);
	}
	return (double)(end - begin) / (double)n;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	struct relabel *relabel = relabel_new();
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		enum relabel_field field;
		struct error *err = relabel_add(relabel, &rules[i], &field);
		if (err) {
			fprintf(stderr, "%s\n", error_text(err));
			return 1;
		}
	}
	struct label_set set;
	label_set_init(&set);
	double fill_ns = run(NULL, &set, seconds);
	double all_ns = run(relabel, &set, seconds);
	printf("relabel: %zu rules on 10 labels: %.0f ns, and %.0f ns to set the labels\n",
	       relabel_n_rules(relabel), all_ns - fill_ns, fill_ns);
	label_set_fini(&set);
	relabel_free(relabel);
	return 0;
}
