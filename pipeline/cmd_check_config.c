/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration as `run` does, runs its tests, and says what is wrong or in effect. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pipeline/command.h"
#include "pipeline/config.h"
#include "pipeline/config_print.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"
#include "pipeline/relabel_case.h"

enum option_id { OPTION_CONFIG = 1, OPTION_PRINT, OPTION_SCHEMA, OPTION_CONNECT };

#define CONNECT_TIMEOUT_NS (UINT64_C(10) * 1000000000)

static const struct cli_option options[] = {
	{OPTION_CONFIG, "config", "FILE", "the same as FILE", 'c', false},
	{OPTION_PRINT, "print", NULL,
	 "print what is in effect, with the origin of each\nvalue; secrets are left out", 0, true},
	{OPTION_CONNECT, "connect", NULL,
	 "also reach each exporter: name, TLS, credentials,\nhealth; nothing is sent", 0, true},
	{OPTION_SCHEMA, "schema", NULL, "print the JSON Schema of such files, and nothing else", 0,
	 true},
};

struct check_options {
	const char *path;
	bool wants_print, wants_schema, wants_connection;
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
	case OPTION_CONNECT:
		check->wants_connection = true;
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
		    "  perfpipe check-config --connect             are the servers there?\n"
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

/* --- connections --- */

/* pprof files are written there later: the folder, or else the one that it will be made in. */
static struct error *check_folder(const char *directory)
{
	if (access(directory, W_OK | X_OK) == 0)
		return NULL;
	struct error *err = error_errno(errno, "%s", directory);
	const char *slash = strrchr(directory, '/');
	bool is_missing = errno == ENOENT && slash > directory;
	CLEANUP(cleanup_mem)
	char *parent = mem_format("%.*s", is_missing ? (int)(slash - directory) : 0, directory);
	if (is_missing && access(parent, W_OK | X_OK) == 0) {
		error_free(err);
		return NULL;
	}
	return error_number(err, 701);
}

/* Says what was found; the exit code of what went wrong. */
static int connect_exporter(const struct config_exporter *exporter, const struct cli *cli)
{
	static const char *const texts[] = {
		[CONNECTION_SERVING] = "reached, and serving",
		[CONNECTION_NOT_SERVING] = "reached, but says that it is not serving",
		[CONNECTION_HEALTH_UNKNOWN] = "reached",
	};
	const struct exporter_config *config = &exporter->exporter;
	bool is_file = config->kind == EXPORTER_FILE;
	enum connection_health health = CONNECTION_HEALTH_UNKNOWN;
	uint64_t timeout_ns = config->remote.timeout_ns < CONNECT_TIMEOUT_NS
				      ? config->remote.timeout_ns
				      : CONNECT_TIMEOUT_NS;
	struct error *err = is_file ? check_folder(config->directory)
				    : connection_check(&config->remote, timeout_ns, &health);
	if (err)
		return message_error(&cli->message, error_wrap(err, "%s", config->name));
	if (cli->format == CLI_FORMAT_TEXT && !cli->message.is_quiet)
		printf("%s: %s: %s\n", config->name,
		       is_file ? config->directory : config->remote.endpoint,
		       is_file ? "can be written" : texts[health]);
	return EXIT_CODE_DONE;
}

/* The first exit code that is not 0. */
static int connect_all(const struct config *config, const struct cli *cli)
{
	int exit_code = EXIT_CODE_DONE;
	for (size_t i = 0; i < config->n_exporters; i++) {
		int one = connect_exporter(&config->exporters[i], cli);
		if (exit_code == EXIT_CODE_DONE)
			exit_code = one;
	}
	return exit_code;
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
	int exit_code = is_good ? EXIT_CODE_DONE : EXIT_CODE_CONFIG;
	if (is_good && wanted->wants_connection)
		exit_code = connect_all(config, cli);
	config_free(config);
	config_problems_fini(&problems);
	return exit_code;
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
