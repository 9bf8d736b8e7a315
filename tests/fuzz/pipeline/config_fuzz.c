/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration. What is taken is printed and taken again, and its tests are run;
 * what is wrong is said, into nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/config.h"
#include "pipeline/config_print.h"
#include "pipeline/relabel_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *get_environment(void *context, const char *name)
{
	(void)context;
	if (strcmp(name, "SET") == 0)
		return "value";
	return strcmp(name, "CREDENTIALS_DIRECTORY") == 0 ? "/run/credentials" : NULL;
}

static const struct config_options options = {.get_environment = get_environment};

static void say(struct config_problems *problems)
{
	static FILE *nothing;
	if (!nothing)
		nothing = fopen("/dev/null", "w");
	FILE *saved = stderr;
	stderr = nothing;
	const struct message message = {0};
	config_problems_print(problems, &message);
	stderr = saved;
}

/* Only what was redacted may keep a printed configuration from being read. */
static void read_printed(const struct config *config)
{
	char *printed;
	size_t n;
	FILE *out = open_memstream(&printed, &n);
	config_print(config, out);
	fclose(out);
	struct config_problems problems;
	config_problems_init(&problems);
	struct config *again;
	bool is_good = config_load_text("printed", printed, n, &options, &problems, &again);
	if (!is_good && !strstr(printed, "<redacted>") && !strstr(printed, "${")) {
		config_problems_print(&problems, &(struct message){0});
		abort();
	}
	config_free(again);
	config_problems_fini(&problems);
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_problems problems;
	config_problems_init(&problems);
	struct config *config;
	bool is_good =
		config_load_text("f.yaml", (const char *)data, size, &options, &problems, &config);
	if (is_good != (config != NULL) || is_good != (problems.n_errors == 0))
		abort();
	if (is_good) {
		relabel_case_run_all(config, &problems);
		read_printed(config);
	}
	say(&problems);
	config_free(config);
	config_problems_fini(&problems);
	return 0;
}
