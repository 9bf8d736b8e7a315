/* SPDX-License-Identifier: Apache-2.0 */
/* What a perf.data holds, without converting it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/inspect.h"

enum option_id { OPTION_INPUT = 1, OPTION_STRICT };

static const struct cli_option options[] = {
	{OPTION_INPUT, "input", "FILE", "perf.data, a folder of perf record --threads, or -", 'i',
	 true},
	{OPTION_STRICT, "strict", NULL, "damaged input is an error (exit 65)", 0, true},
};

struct inspect_options {
	const char *input;
	bool is_strict;
};

static struct error *set(void *context, int id, const char *value)
{
	struct inspect_options *inspect = context;
	if (id == OPTION_STRICT) {
		inspect->is_strict = true;
		return NULL;
	}
	if (inspect->input)
		return cli_usage("inspect takes one input, not also \"%s\"", value);
	inspect->input = value;
	return NULL;
}

const struct cli_spec cmd_inspect_spec = {
	.command = "inspect",
	.usage = "[OPTIONS] FILE",
	.summary = "Shows what a perf.data holds: events, records, losses, where samples lie.",
	.examples =
		"  perfpipe inspect perf.data\n"
		"  perfpipe inspect perf.data --format json | jq '.events[] | {name, samples}'\n"
		"  perf record -a -g -o - -- sleep 5 | perfpipe inspect -\n",
	.notes = "Nothing is looked up on this host: names and paths are those of the file.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

static void warn_of_samples(const struct cli *cli, const struct survey_report *report)
{
	char text[160];
	if (report->n_malformed) {
		snprintf(text, sizeof(text), "%" PRIu64 " malformed samples were not counted",
			 report->n_malformed);
		message_warning(&cli->message, 607, text, NULL);
	}
	if (report->n_no_event) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " samples belong to no known event and were not counted",
			 report->n_no_event);
		message_warning(&cli->message, 609, text, NULL);
	}
	if (!report->n_samples)
		message_warning(&cli->message, 114, "the input has no samples",
				"No event was sampled while it was written.");
}

static struct error *read_records(struct record_source *source, const char *path,
				  struct survey *survey)
{
	struct error *err = record_source_drain(source, survey_feed, survey);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		return NULL;
	}
	return error_wrap(err, "%s", conversion_input_shown(path));
}

static struct error *inspect_source(const struct inspect_options *inspect,
				    struct record_source *source, struct progress *progress,
				    const struct cli *cli)
{
	struct survey *survey = survey_new(record_source_info(source));
	struct error *err = read_records(source, inspect->input, survey);
	progress_end(progress);
	if (!err)
		err = conversion_state_warnings(source, inspect->input, inspect->is_strict, cli);
	if (!err) {
		struct inspect_subject subject = {
			.path = inspect->input,
			.info = record_source_info(source),
			.format = collector_file_format(source),
			.report = survey_finish(survey),
		};
		subject.warnings = collector_file_warnings(source, &subject.n_warnings);
		warn_of_samples(cli, subject.report);
		if (cli->format == CLI_FORMAT_JSON)
			inspect_write_json(stdout, &subject);
		else
			inspect_write_text(stdout, &subject);
	}
	survey_free(survey);
	return err;
}

static struct error *run(const struct inspect_options *inspect, const struct cli *cli)
{
	if (strcmp(inspect->input, "-") == 0 && isatty(STDIN_FILENO))
		return cli_usage("standard input is a terminal; pipe perf record -o - into it, or "
				 "name a file");
	struct progress progress;
	progress_begin(&progress, cli->has_progress, PROGRESS_BYTES, "reading");
	struct record_source *source;
	struct error *err = conversion_open_file(inspect->input, &progress, &source);
	if (!err) {
		err = inspect_source(inspect, source, &progress, cli);
		record_source_close(source);
	}
	progress_end(&progress);
	return err;
}

int cmd_inspect(int argc, char **argv)
{
	struct inspect_options inspect = {0};
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_inspect_spec, argc, argv, &inspect, &cli, &exit_code))
		return exit_code;
	if (!inspect.input)
		return message_error(&cli.message,
				     cli_usage("no input: name a perf.data file, or - for standard "
					       "input"));
	struct error *err = run(&inspect, &cli);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
