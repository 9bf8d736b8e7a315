/* SPDX-License-Identifier: Apache-2.0 */
/* Table of functions of any pprof profile or perf.data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/profile_input.h"
#include "pipeline/report_print.h"
#include "pipeline/report_table.h"

enum {
	DEFAULT_ROWS = 40, /* on text; json and csv give all */
	MAX_ROWS = 1 << 30,
	MAX_KEYS = 16,
	MAX_FILTERS = 16,
	KEY_BYTES = 64,
};

enum option_id {
	OPTION_CUM = 1,
	OPTION_FOCUS,
	OPTION_IGNORE,
	OPTION_HIDE,
	OPTION_TAGFOCUS,
	OPTION_SORT,
	OPTION_NODECOUNT,
	OPTION_COLUMN,
};

static const struct cli_option options[] = {
	{OPTION_CUM, "cum", NULL, "order by time in a function and all it calls", 0, true},
	{OPTION_FOCUS, "focus", "REGEX", "only stacks with a frame that matches", 0, true},
	{OPTION_IGNORE, "ignore", "REGEX", "without stacks that have such a frame", 0, true},
	{OPTION_HIDE, "hide", "REGEX", "without the frames that match", 0, true},
	{OPTION_TAGFOCUS, "tagfocus", "KEY=VALUE",
	 "only samples with that label: a regex, a number or\na range N:M; may be repeated", 0,
	 true},
	{OPTION_SORT, "sort", "LABEL,...",
	 "a row for each value of these labels; \"function\"\namong them for each function too", 0,
	 true},
	{OPTION_NODECOUNT, "nodecount", "N",
	 "so many rows, 0 for all (default 40 on text, else\nall)", 0, true},
	{OPTION_COLUMN, "column", "NAME", "which value to show (default the profile's own)", 0,
	 false},
};

struct report_options {
	struct conversion_options conversion;
	struct report_table_options table;
	const char *tagfocus[MAX_FILTERS];
	char keys[MAX_KEYS][KEY_BYTES];
	const char *sort[MAX_KEYS];
	const char *path;
	bool has_nodecount;
};

/* A recording gets the labels that are asked for. */
static void want_label(struct report_options *report, const char *key)
{
	report->conversion.labels |= conversion_label_of(key);
}

static struct error *add_tagfocus(struct report_options *report, const char *value)
{
	const char *equals = strchr(value, '=');
	if (!equals || equals == value)
		return cli_usage("--tagfocus takes KEY=VALUE, not \"%s\"", value);
	if (report->table.n_tagfocus == MAX_FILTERS)
		return cli_usage("--tagfocus can be given %d times", MAX_FILTERS);
	char key[KEY_BYTES];
	snprintf(key, sizeof(key), "%.*s", (int)(equals - value), value);
	want_label(report, key);
	report->tagfocus[report->table.n_tagfocus++] = value;
	report->table.tagfocus = report->tagfocus;
	return NULL;
}

static struct error *set_sort(struct report_options *report, const char *list)
{
	uint32_t n = 0;
	char word[KEY_BYTES];
	while (cli_next_word(&list, word, sizeof(word))) {
		if (n == MAX_KEYS)
			return cli_usage("--sort takes at most %d labels", MAX_KEYS);
		if (word[0] == '\0')
			return cli_usage("--sort has an empty label");
		memcpy(report->keys[n], word, sizeof(word));
		report->sort[n] = report->keys[n];
		want_label(report, word);
		n++;
	}
	report->table.sort = report->sort;
	report->table.n_sort = n;
	return NULL;
}

static struct error *set_nodecount(struct report_options *report, const char *value)
{
	uint64_t n = 0;
	struct error *err = cli_parse_number("--nodecount", value, 0, MAX_ROWS, &n);
	report->table.node_count = (uint32_t)n;
	report->has_nodecount = true;
	return err;
}

static struct error *set(void *context, int id, const char *value)
{
	struct report_options *report = context;
	switch (id) {
	case CLI_POSITIONAL:
		if (report->path)
			return cli_usage("report takes one file, not also \"%s\"", value);
		report->path = value;
		break;
	case OPTION_CUM:
		report->table.is_by_cum = true;
		break;
	case OPTION_FOCUS:
		report->table.focus = value;
		break;
	case OPTION_IGNORE:
		report->table.ignore = value;
		break;
	case OPTION_HIDE:
		report->table.hide = value;
		break;
	case OPTION_TAGFOCUS:
		return add_tagfocus(report, value);
	case OPTION_SORT:
		return set_sort(report, value);
	case OPTION_NODECOUNT:
		return set_nodecount(report, value);
	case OPTION_COLUMN:
		report->table.column = value;
		break;
	default:
		return conversion_options_set(&report->conversion, id, value);
	}
	return NULL;
}

const struct cli_spec cmd_report_spec = {
	.command = "report",
	.usage = "[OPTIONS] FILE",
	.summary = "Prints where the time went: a table of any pprof profile or perf.data.",
	.examples = "  perfpipe report perfpipe.pb.gz\n"
		    "  perfpipe report --cum --focus 'pack_objects' p.pb.gz\n"
		    "  perfpipe report --sort comm,pid perf.data       who used the CPU\n"
		    "  perfpipe report --tagfocus comm=git --format csv p.pb.gz\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {conversion_file_options, conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON | CLI_FORMAT_CSV,
};

/* --- the table --- */

static enum report_print_format print_format(enum cli_format format)
{
	switch (format) {
	case CLI_FORMAT_JSON:
		return REPORT_PRINT_JSON;
	case CLI_FORMAT_CSV:
		return REPORT_PRINT_CSV;
	case CLI_FORMAT_TEXT:
		break;
	}
	return REPORT_PRINT_TEXT;
}

static bool has_label(const struct profile *profile, const char *key, size_t size)
{
	for (uint32_t i = 0; i < profile->labels.n; i++) {
		const char *text = profile_text(profile, profile->labels.items[i].key);
		if (strncmp(text, key, size) == 0 && text[size] == '\0')
			return true;
	}
	return false;
}

/* Names of labels, each once, as far as they fit. */
static void list_labels(const struct profile *profile, char *out, size_t size)
{
	uint32_t keys[MAX_KEYS];
	size_t n = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < profile->labels.n && n < MAX_KEYS; i++) {
		uint32_t key = profile->labels.items[i].key;
		size_t known = 0;
		while (known < n && keys[known] != key)
			known++;
		if (known < n)
			continue;
		size_t used = strlen(out);
		snprintf(out + used, size - used, "%s%s", n ? ", " : "",
			 profile_text(profile, key));
		keys[n++] = key;
	}
}

static struct error *check_label(const struct profile *profile, const char *option, const char *key,
				 size_t size)
{
	char names[512];
	if (profile->samples.n == 0 || has_label(profile, key, size))
		return NULL;
	list_labels(profile, names, sizeof(names));
	return cli_usage("%s: no sample has a label \"%.*s\"; there are: %s", option, (int)size,
			 key, names[0] ? names : "none");
}

/* A label that no sample has would give one row of everything, or nothing. */
static struct error *check_labels(const struct report_options *report,
				  const struct profile *profile)
{
	struct error *err = NULL;
	for (uint32_t i = 0; i < report->table.n_sort && !err; i++) {
		const char *key = report->table.sort[i];
		if (strcmp(key, "function") != 0)
			err = check_label(profile, "--sort", key, strlen(key));
	}
	for (uint32_t i = 0; i < report->table.n_tagfocus && !err; i++) {
		const char *focus = report->tagfocus[i];
		err = check_label(profile, "--tagfocus", focus, strcspn(focus, "="));
	}
	return err;
}

static struct error *print_table(const struct report_options *report, const struct cli *cli,
				 const struct profile *profile)
{
	struct report_table *table;
	struct error *err = check_labels(report, profile);
	if (err)
		return err;
	err = report_table_make(profile, &report->table, &table);
	if (err)
		return error_get_code(err) == ERROR_USAGE ? error_number(err, 1) : err;
	errno = 0;
	err = report_print(table, print_format(cli->format), stdout);
	if (err && errno) {
		int errno_value = errno;
		error_free(err);
		err = error_errno(errno_value, "cannot write the table to standard output");
	}
	report_table_free(table);
	return err ? error_number(err, 702) : NULL;
}

int cmd_report(int argc, char **argv)
{
	struct report_options report = {0};
	conversion_options_init(&report.conversion);
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_report_spec, argc, argv, &report, &cli, &exit_code))
		return exit_code;
	if (!report.path)
		return message_error(&cli.message,
				     cli_usage("no file: name a profile or perf.data, "
					       "or - for standard input"));
	if (!report.has_nodecount && cli.format == CLI_FORMAT_TEXT)
		report.table.node_count = DEFAULT_ROWS;
	struct profile *profile = NULL;
	struct error *err = profile_input_read(&report.conversion, report.path, &cli, &profile);
	if (!err)
		err = print_table(&report, &cli, profile);
	profile_free(profile);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
