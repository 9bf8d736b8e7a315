/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of perfpipe: one file cmd_NAME.c each, all in the table of command.c. */
#pragma once

#include <stddef.h>

#include "pipeline/cli.h"

struct command {
	const char *name;
	/* argv[0] is the command's name, the rest its options and arguments; returns the exit
	 * code. */
	int (*run)(int argc, char **argv);
	const char *summary;
	const struct cli_spec *help;
};

const struct command *command_find(const char *name);
const struct command *command_list(size_t *n_out);
/* What perfpipe prints without a command, and `perfpipe help`. */
void command_print_overview(FILE *out);
/* ERROR_USAGE: no such command, with the nearest one. */
struct error *command_unknown(const char *name) MUST_USE;

int cmd_record(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_convert(int argc, char **argv);
/* The calling form of the program of this name, which pprof starts for a perf.data file. */
int cmd_convert_as_perf_to_profile(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_symbols(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_spool(int argc, char **argv);
int cmd_check_config(int argc, char **argv);
int cmd_relabel(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_explain(int argc, char **argv);

extern const struct cli_spec cmd_record_spec;
extern const struct cli_spec cmd_run_spec;
extern const struct cli_spec cmd_status_spec;
extern const struct cli_spec cmd_convert_spec;
extern const struct cli_spec cmd_report_spec;
extern const struct cli_spec cmd_inspect_spec;
extern const struct cli_spec cmd_symbols_spec;
extern const struct cli_spec cmd_push_spec;
extern const struct cli_spec cmd_spool_spec;
extern const struct cli_spec cmd_check_config_spec;
extern const struct cli_spec cmd_relabel_spec;
extern const struct cli_spec cmd_doctor_spec;
extern const struct cli_spec cmd_version_spec;
extern const struct cli_spec cmd_help_spec;
extern const struct cli_spec cmd_explain_spec;
