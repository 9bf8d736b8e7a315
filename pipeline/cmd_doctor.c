/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/command.h"
#include "pipeline/doctor.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"

enum option_id { OPTION_JSON = 1, OPTION_FIX_HINTS };

static const struct cli_option options[] = {
	{OPTION_FIX_HINTS, "fix-hints", NULL, "only the commands that mend what was found", 0,
	 true},
	{OPTION_JSON, "json", NULL, "the same as --format json", 0, true},
};

struct doctor_options {
	bool is_json, has_fix_hints;
};

static struct error *set(void *context, int id, const char *value)
{
	struct doctor_options *doctor = context;
	if (id == CLI_POSITIONAL)
		return cli_usage("doctor takes no argument, not \"%s\"", value);
	if (id == OPTION_JSON)
		doctor->is_json = true;
	else
		doctor->has_fix_hints = true;
	return NULL;
}

const struct cli_spec cmd_doctor_spec = {
	.command = "doctor",
	.usage = "[--json] [--fix-hints]",
	.summary = "Checks what this host allows perfpipe, run by this user, and how to get more.",
	.examples = "  perfpipe doctor\n"
		    "  perfpipe doctor --json | jq '.checks[] | select(.status != \"ok\")'\n",
	.notes = "Exit status 1 when a check fails, that is, when nothing can be sampled.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static void print_json(const struct doctor_result *result)
{
	printf("{\"schema_version\":1,\"status\":\"%s\",\"checks\":[",
	       doctor_status_name(result->worst));
	for (size_t i = 0; i < result->n; i++) {
		const struct doctor_check *check = &result->checks[i];
		printf("%s{\"name\":\"%s\",\"status\":\"%s\",\"text\":", i ? "," : "", check->name,
		       doctor_status_name(check->status));
		json_text_write(stdout, check->text);
		fputs(",\"fix\":", stdout);
		json_text_write(stdout, check->fix);
		putchar('}');
	}
	puts("]}");
}

static void print_text(const struct doctor_result *result, bool has_color)
{
	static const char *const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
	for (size_t i = 0; i < result->n; i++) {
		const struct doctor_check *check = &result->checks[i];
		printf("%s%-4s%s  %-13s %s\n", has_color ? colors[check->status] : "",
		       doctor_status_name(check->status), has_color ? "\033[0m" : "", check->name,
		       check->text);
		if (check->fix)
			printf("      %-13s fix: %s\n", "", check->fix);
	}
}

/* Several checks can have the same remedy. */
static void print_fixes(const struct doctor_result *result)
{
	for (size_t i = 0; i < result->n; i++) {
		const char *fix = result->checks[i].fix;
		bool is_new = fix != NULL;
		for (size_t j = 0; j < i && is_new; j++)
			is_new = !result->checks[j].fix || strcmp(result->checks[j].fix, fix) != 0;
		if (is_new)
			puts(fix);
	}
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_options doctor = {0};
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_doctor_spec, argc, argv, &doctor, &cli, &exit_code))
		return exit_code;
	struct doctor_result result;
	doctor_examine(&result);
	if (doctor.is_json || cli.format == CLI_FORMAT_JSON)
		print_json(&result);
	else if (doctor.has_fix_hints)
		print_fixes(&result);
	else
		print_text(&result, message_wants_color(cli.color, STDOUT_FILENO));
	return result.worst == DOCTOR_FAIL ? EXIT_CODE_FAILED : EXIT_CODE_DONE;
}
