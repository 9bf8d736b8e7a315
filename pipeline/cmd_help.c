/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pipeline/command.h"
#include "pipeline/explain.h"

static struct error *set(void *context, int id, const char *value)
{
	const char **name = context;
	(void)id; /* there are no options */
	if (*name)
		return cli_usage("help takes one command, not also \"%s\"", value);
	*name = value;
	return NULL;
}

const struct cli_spec cmd_help_spec = {
	.command = "help",
	.usage = "[COMMAND]",
	.summary = "Shows what perfpipe can do, or the options of one command.",
	.examples = "  perfpipe help record\n",
	.set = set,
	.formats = CLI_FORMAT_TEXT,
};

int cmd_help(int argc, char **argv)
{
	const char *name = NULL;
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_help_spec, argc, argv, &name, &cli, &exit_code))
		return exit_code;
	if (!name) {
		command_print_overview(stdout);
		return EXIT_CODE_DONE;
	}
	const struct command *command = command_find(name);
	if (!command)
		return message_error(&cli.message, command_unknown(name));
	cli_print_help(command->help, stdout);
	return EXIT_CODE_DONE;
}
