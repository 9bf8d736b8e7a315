/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration as `run` does, runs its tests, and says what is wrong or in effect. */
#include <stdio.h>
#include <stdlib.h>

#include "pipeline/command.h"
#include "pipeline/config.h"
#include "pipeline/config_print.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"
#include "pipeline/relabel_case.h"

enum option_id { OPTION_CONFIG = 1, OPTION_PRINT, OPTION_SCHEMA };

static const struct cli_option options[] = {
	{OPTION_CONFIG, "config", "FILE", "the same as FILE", 'c', false},
	{OPTION_PRINT, "print", NULL,
	 "print what is in effect, with the origin of each\nvalue; secrets are left out", 0, true},
	{OPTION_SCHEMA, "schema", NULL, "print the JSON Schema of such files, and nothing else", 0,
	 true},
};

struct check_options {
	const char *path;
	bool wants_print, wants_schema;
};

static struct error *set(void *context, int id, const char *value)
{
	struct check_options *check = context;
	switch (id) {
	case CLI_POSITIONAL:
	case OPTION_CONFIG:
		if (check->path)
			return cli_usage("check-config takes one file");
		check->path = value;
		return NULL;
	case OPTION_PRINT:
		check->wants_print = true;
		return NULL;
	default:
		check->wants_schema = true;
		return NULL;
	}
}

const struct cli_spec cmd_check_config_spec = {
	.command = "check-config",
	.usage = "[OPTIONS] [FILE]",
	.summary = "Checks a configuration and runs the tests in it.",
	.examples = "  perfpipe check-config                       /etc/perfpipe/perfpipe.yaml\n"
		    "  perfpipe check-config perfpipe.yaml         all errors, with their lines\n"
		    "  perfpipe check-config --print my.yaml       what is in effect, and why\n"
		    "  perfpipe check-config --schema >perfpipe.schema.json\n",
	.notes = "conf.d/*.yaml beside FILE is read too. Exit 78 when there are errors.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_result(const struct config *config, const char *path, const struct cli *cli)
{
	if (cli->format == CLI_FORMAT_JSON) {
		fputs("{\"schema_version\": 1, \"file\": ", stdout);
		json_text_write(stdout, path);
		printf(", \"pipelines\": %zu, \"exporters\": %zu, \"tests_passed\": %zu}\n",
		       config->n_pipelines, config->n_exporters, config->n_tests);
	} else if (!cli->message.is_quiet) {
		printf("%s: good: %zu pipeline%s, %zu exporter%s, %zu test%s passed\n", path,
		       config->n_pipelines, plural(config->n_pipelines), config->n_exporters,
		       plural(config->n_exporters), config->n_tests, plural(config->n_tests));
	}
}

static int check(const struct check_options *wanted, const struct cli *cli)
{
	const char *path = wanted->path ? wanted->path : config_default_path();
	const struct config_options loading = {.may_lack_credentials = true};
	struct config_problems problems;
	config_problems_init(&problems);
	struct config *config;
	bool is_good = config_load(path, &loading, &problems, &config);
	if (is_good && relabel_case_run_all(config, &problems) != config->n_tests)
		is_good = false;
	config_problems_print(&problems, &cli->message);
	if (is_good && wanted->wants_print)
		config_print(config, stdout);
	else if (is_good)
		print_result(config, path, cli);
	config_free(config);
	config_problems_fini(&problems);
	return is_good ? EXIT_CODE_DONE : EXIT_CODE_CONFIG;
}

int cmd_check_config(int argc, char **argv)
{
	struct check_options wanted = {0};
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_check_config_spec, argc, argv, &wanted, &cli, &exit_code))
		return exit_code;
	if (!wanted.wants_schema)
		return check(&wanted, &cli);
	config_print_json_schema(stdout);
	return EXIT_CODE_DONE;
}
