/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/command.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"

static struct error *set(void *context, int id, const char *value)
{
	const char **code = context;
	(void)id; /* there are no options */
	if (*code)
		return cli_usage("explain takes one code, not also \"%s\"", value);
	*code = value;
	return NULL;
}

const struct cli_spec cmd_explain_spec = {
	.command = "explain",
	.usage = "[CODE]",
	.summary = "Says what an error code means and what to do; without a code, lists them all.",
	.examples = "  perfpipe explain E601\n"
		    "  perfpipe explain                 all codes\n",
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static void print_json(const struct explain_entry *entry)
{
	printf("{\"schema_version\":1,\"code\":\"%c%03d\",\"exit\":%d,\"title\":", entry->severity,
	       entry->number, entry->exit_code);
	json_text_write(stdout, entry->title);
	fputs(",\"why\":", stdout);
	json_text_write(stdout, entry->why);
	fputs(",\"fix\":", stdout);
	json_text_write(stdout, entry->fix);
	fputs("}\n", stdout);
}

static void print_text(const struct explain_entry *entry)
{
	printf("%c%03d %s: %s\n", entry->severity, entry->number,
	       entry->severity == EXPLAIN_ERROR ? "error" : "warning", entry->title);
	printf("  why: %s\n  fix: %s\n", entry->why, entry->fix);
	if (entry->severity == EXPLAIN_ERROR)
		printf("  exit code: %d\n", entry->exit_code);
}

static void print_all(enum cli_format format)
{
	size_t n;
	const struct explain_entry *entries = explain_list(&n);
	for (size_t i = 0; i < n; i++) {
		if (format == CLI_FORMAT_JSON)
			print_json(&entries[i]);
		else
			printf("%c%03d  %s\n", entries[i].severity, entries[i].number,
			       entries[i].title);
	}
}

/* "E601", "w601" or "601", which means both. */
static bool print_matching(const char *code, enum cli_format format)
{
	int letter = toupper((unsigned char)code[0]);
	bool has_letter = letter == EXPLAIN_ERROR || letter == EXPLAIN_WARNING;
	const char *digits = has_letter ? code + 1 : code;
	if (strlen(digits) != 3 || strspn(digits, "0123456789") != 3)
		return false;
	int number = (int)strtol(digits, NULL, 10);
	size_t n;
	bool is_found = false;
	const struct explain_entry *entries = explain_list(&n);
	for (size_t i = 0; i < n; i++) {
		if (entries[i].number != number || (has_letter && entries[i].severity != letter))
			continue;
		is_found = true;
		if (format == CLI_FORMAT_JSON)
			print_json(&entries[i]);
		else
			print_text(&entries[i]);
	}
	return is_found;
}

int cmd_explain(int argc, char **argv)
{
	const char *code = NULL;
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_explain_spec, argc, argv, &code, &cli, &exit_code))
		return exit_code;
	if (!code)
		print_all(cli.format);
	else if (!print_matching(code, cli.format))
		return message_error(
			&cli.message,
			cli_usage("no such code \"%s\"; perfpipe explain lists them", code));
	return EXIT_CODE_DONE;
}
