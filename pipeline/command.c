/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/command.h"

#include <string.h>

static const struct command commands[] = {
	{"record", cmd_record, "sample this host, processes, a cgroup or a command",
	 &cmd_record_spec},
	{"run", cmd_run, "sample all the time and deliver profiles (daemon)", &cmd_run_spec},
	{"status", cmd_status, "how the daemon is", &cmd_status_spec},
	{"convert", cmd_convert, "perf.data to pprof", &cmd_convert_spec},
	{"report", cmd_report, "table of functions of a pprof or perf.data", &cmd_report_spec},
	{"inspect", cmd_inspect, "what a perf.data holds", &cmd_inspect_spec},
	{"symbols", cmd_symbols, "the symbols that are kept", &cmd_symbols_spec},
	{"push", cmd_push, "send profiles to Parca, Pyroscope or OTLP", &cmd_push_spec},
	{"spool", cmd_spool, "what waits for delivery or was refused", &cmd_spool_spec},
	{"check-config", cmd_check_config, "check a configuration and run its tests",
	 &cmd_check_config_spec},
	{"relabel", cmd_relabel, "try the relabel rules of a configuration", &cmd_relabel_spec},
	{"doctor", cmd_doctor, "what this host allows, and how to mend it", &cmd_doctor_spec},
	{"explain", cmd_explain, "what a code like E601 means", &cmd_explain_spec},
	{"version", cmd_version, "version of perfpipe", &cmd_version_spec},
	{"help", cmd_help, "help for a command", &cmd_help_spec},
};

const struct command *command_list(size_t *n_out)
{
	*n_out = ARRAY_LEN(commands);
	return commands;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

void command_print_overview(FILE *out)
{
	fputs("perfpipe samples a Linux host, or reads perf.data, and writes symbolized pprof.\n"
	      "\n"
	      "Examples:\n"
	      "  perfpipe record -- git gc              profile one command\n"
	      "  perfpipe record -a -d 10               profile the whole host for ten seconds\n"
	      "  perfpipe report perfpipe.pb.gz         where the time went\n"
	      "  perfpipe convert -i perf.data -o p.pb.gz\n"
	      "  perfpipe doctor                        what this host allows\n"
	      "\n"
	      "Usage: perfpipe COMMAND [OPTIONS]\n"
	      "\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
	fputs("\nperfpipe help COMMAND shows its options.\n", out);
}

struct error *command_unknown(const char *name)
{
	const char *names[ARRAY_LEN(commands)];
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		names[i] = commands[i].name;
	const char *nearest = cli_nearest(name, names, ARRAY_LEN(commands));
	if (nearest)
		return cli_usage("unknown command \"%s\"; did you mean \"%s\"?", name, nearest);
	return cli_usage("unknown command \"%s\"", name);
}
