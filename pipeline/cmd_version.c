/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pipeline/command.h"
#include "pipeline/explain.h"

enum option_id { OPTION_JSON = 1 };

static const struct cli_option options[] = {
	{OPTION_JSON, "json", NULL, "the same as --format json", 0, true},
};

static struct error *set(void *context, int id, const char *value)
{
	bool *is_json = context;
	if (id != OPTION_JSON)
		return cli_usage("version takes no argument, not \"%s\"", value);
	*is_json = true;
	return NULL;
}

const struct cli_spec cmd_version_spec = {
	.command = "version",
	.usage = "[--json]",
	.summary = "Prints the version of perfpipe.",
	.examples = "  perfpipe version --json\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

int cmd_version(int argc, char **argv)
{
	bool is_json = false;
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_version_spec, argc, argv, &is_json, &cli, &exit_code))
		return exit_code;
	if (is_json || cli.format == CLI_FORMAT_JSON)
		printf("{\"schema_version\":1,\"name\":\"perfpipe\",\"version\":\"%s\","
		       "\"compiler\":\"%s\"}\n",
		       PERFPIPE_VERSION, __VERSION__);
	else
		printf("perfpipe %s\n", PERFPIPE_VERSION);
	return EXIT_CODE_DONE;
}
