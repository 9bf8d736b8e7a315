/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon: what its command line says becomes agent_options. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "converter/converter.h"
#include "pipeline/agent.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/live_options.h"
#include "pipeline/push_target.h"
#include "pipeline/remote_options.h"
#include "pipeline/spool_place.h"
#include "pipeline/status_server.h"

enum option_id {
	OPTION_TO = 1,
	OPTION_LABEL,
	OPTION_NODE,
	OPTION_WINDOW,
	OPTION_SPOOL,
	OPTION_SPOOL_SIZE,
	OPTION_HTTP,
	OPTION_LOG_LEVEL,
	OPTION_LOG_FORMAT,
};

enum { TARGETS_MAX = 8, LABELS_MAX = 16, HOST_BYTES = 256, MAX_SERVICES = 200 };
#define NS_PER_S		 ((uint64_t)1000000000)
#define DEFAULT_WINDOW_NS	 (10 * NS_PER_S)
#define MAX_WINDOW_NS		 (3600 * NS_PER_S)
#define DEFAULT_MAX_WINDOW_BYTES ((size_t)48 << 20)

static const struct cli_option options[] = {
	{OPTION_TO, "to", "URL",
	 "parca://HOST:PORT, pyroscope://… or otlp://… (TLS),\nparca+insecure://… (plaintext), "
	 "file:///DIR; may be\nrepeated",
	 0, true},
	{OPTION_LABEL, "label", "KEY=VALUE", "of all series; may be repeated", 'l', true},
	{OPTION_WINDOW, "window", "TIME", "how much a profile covers (default 10s)", 0, true},
	{OPTION_NODE, "node", "NAME", "label node of all series (default: the host's name)", 0,
	 false},
	{OPTION_SPOOL, "spool", "DIR",
	 "where undelivered profiles wait (default\n/var/lib/perfpipe/spool for root, else\n"
	 "~/.local/state/perfpipe/spool)",
	 0, false},
	{OPTION_SPOOL_SIZE, "spool-size", "SIZE",
	 "how much may wait for each target (default 1G);\nthe oldest is dropped first", 0, false},
	{OPTION_HTTP, "http", "HOST:PORT",
	 "where metrics, state and profiles are served\n(default 127.0.0.1:9917), or none", 0,
	 false},
	{OPTION_LOG_LEVEL, "log-level", "LEVEL", "error, warn, info (default) or debug", 0, false},
	{OPTION_LOG_FORMAT, "log-format", "FORM",
	 "auto (default: text on a terminal, else logfmt),\ntext, logfmt or json", 0, false},
};

struct run {
	struct conversion_options conversion;
	struct live_options target;
	struct exporter_config exporters[TARGETS_MAX];
	const char *urls[TARGETS_MAX];
	size_t n_exporters;
	struct remote_options remote; /* what all targets share */
	struct key_value labels[LABELS_MAX + 1];
	size_t n_labels;
	const char *node, *spool;
	const char *http_address; /* NULL = none */
	uint64_t window_ns, spool_bytes;
};

/* The spool of a target is not the one that `push` uses for the same place. */
static struct error *add_target(struct run *run, const char *url)
{
	if (run->n_exporters == TARGETS_MAX)
		return cli_usage("--to can be given %d times", TARGETS_MAX);
	struct exporter_config *exporter = &run->exporters[run->n_exporters];
	struct error *err = push_target_parse(url, exporter);
	if (err)
		return err;
	run->urls[run->n_exporters++] = url;
	char *name = mem_format("run/%s", strchr(exporter->name, '/') + 1);
	mem_free((void *)exporter->name);
	exporter->name = name;
	for (size_t i = 0; i + 1 < run->n_exporters; i++) {
		if (strcmp(run->exporters[i].name, name) == 0)
			return cli_usage("--to \"%s\" is given twice", url);
	}
	return NULL;
}

static struct error *set_window(struct run *run, const char *value)
{
	struct error *err = cli_parse_duration("--window", value, &run->window_ns);
	if (!err && (run->window_ns < NS_PER_S || run->window_ns > MAX_WINDOW_NS))
		return cli_usage("--window %s is not between 1s and 1h", value);
	return err;
}

static struct error *set_http(struct run *run, const char *value)
{
	run->http_address = strcmp(value, "none") == 0 ? NULL : value;
	if (!run->http_address || status_server_is_address(value))
		return NULL;
	return cli_usage("--http \"%s\" is no address like 127.0.0.1:9917 or [::1]:9917, nor none",
			 value);
}

static struct error *set_log_level(const char *value)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};
	size_t index;
	struct error *err = cli_parse_choice("--log-level", value, names, ARRAY_LEN(names), &index);
	if (!err)
		log_set_level((enum log_level)index);
	return err;
}

static struct error *set_log_format(const char *value)
{
	static const char *const names[] = {"auto", "text", "logfmt", "json"};
	size_t index;
	struct error *err =
		cli_parse_choice("--log-format", value, names, ARRAY_LEN(names), &index);
	if (!err)
		log_set_format((enum log_format)index);
	return err;
}

static struct error *set(void *context, int id, const char *value)
{
	struct run *run = context;
	bool has_unit;
	switch (id) {
	case CLI_POSITIONAL:
		return cli_usage("run takes no argument \"%s\"", value);
	case OPTION_TO:
		return add_target(run, value);
	case OPTION_LABEL:
		return remote_options_add_pair(run->labels, &run->n_labels, LABELS_MAX, "--label",
					       value);
	case OPTION_NODE:
		run->node = value;
		return NULL;
	case OPTION_WINDOW:
		return set_window(run, value);
	case OPTION_SPOOL:
		run->spool = value;
		return NULL;
	case OPTION_SPOOL_SIZE:
		return cli_parse_size("--spool-size", value, &run->spool_bytes, &has_unit);
	case OPTION_HTTP:
		return set_http(run, value);
	case OPTION_LOG_LEVEL:
		return set_log_level(value);
	case OPTION_LOG_FORMAT:
		return set_log_format(value);
	default:
		if (remote_options_has(id))
			return remote_options_set(&run->remote, id, value);
		return id >= LIVE_ALL ? live_options_set(&run->target, id, value)
				      : conversion_options_set(&run->conversion, id, value);
	}
}

const struct cli_spec cmd_run_spec = {
	.command = "run",
	.usage = "[OPTIONS] [-a | -p PID,... | -G CGROUP] --to URL",
	.summary = "Samples all the time, and delivers a profile after the other.",
	.examples =
		"  perfpipe run --to parca://parca.example:7070 --label env=prod\n"
		"  perfpipe run -G gitlab.slice/gitaly --to pyroscope+insecure://localhost:4040\n"
		"  perfpipe run -F 19 --to parca://grpc.polarsignals.com:443 \\\n"
		"      --token-file token --to file:///var/lib/perfpipe/profiles\n",
	.notes =
		"The whole host is sampled unless a target is named; one that is not there yet is\n"
		"waited for. What cannot be delivered waits in the spool. INT and TERM deliver\n"
		"what can be delivered within 20 s and end, a second one ends at once. HUP reads\n"
		"token and certificates again, USR2 tells the state to the log.\n"
		"PERFPIPE_BEARER_TOKEN is used when no --token-file is given.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {remote_options_table, live_options_table, conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT,
};

/* --- what the agent is told --- */

static void complete_exporters(struct run *run)
{
	for (size_t i = 0; i < run->n_exporters; i++) {
		remote_options_apply(&run->remote, &run->exporters[i].remote);
		run->exporters[i].shown = run->urls[i];
	}
}

static struct error *choose_target(struct run *run)
{
	if (!run->target.n_targets)
		return live_options_set(&run->target, LIVE_ALL, NULL);
	return NULL;
}

/* Everything in options is borrowed from run. */
static void fill_options(struct run *run, struct agent_options *out)
{
	complete_exporters(run);
	*out = (struct agent_options){
		.live = run->target.live,
		.symbols = run->conversion.symbols,
		.sampler =
			{
				.labels = run->conversion.labels | CONVERTER_LABEL_PROCESS,
				.max_window_bytes = DEFAULT_MAX_WINDOW_BYTES,
				.max_services = MAX_SERVICES,
			},
		.delivery =
			{
				.exporters = run->exporters,
				.n_exporters = run->n_exporters,
				.spool_directory = run->spool,
				.spool = {.max_bytes = run->spool_bytes},
				.labels = run->labels,
				.n_labels = run->n_labels,
			},
		.window_ns = run->window_ns,
		.http_address = run->http_address,
	};
	out->symbols.is_live = true;
}

static struct error *run_agent(struct run *run)
{
	if (!run->n_exporters)
		return cli_usage("--to URL says where profiles are sent");
	char *own_place CLEANUP(cleanup_mem) = NULL;
	char host[HOST_BYTES] = "";
	if (!run->spool)
		run->spool = own_place = spool_place_default();
	if (!run->node) {
		if (gethostname(host, sizeof(host) - 1) < 0)
			return error_errno(errno, "the host's name, which --node can give");
		run->node = host;
	}
	run->labels[run->n_labels++] =
		(struct key_value){.key = mem_copy_string("node"), .value = run->node};
	struct error *err = choose_target(run);
	if (!err)
		err = live_options_choose(&run->target, NULL);
	if (!err)
		err = conversion_options_check(&run->conversion);
	if (err)
		return err;
	struct agent_options agent;
	fill_options(run, &agent);
	return agent_run(&agent);
}

int cmd_run(int argc, char **argv)
{
	struct run run = {.window_ns = DEFAULT_WINDOW_NS,
			  .http_address = STATUS_SERVER_DEFAULT_ADDRESS};
	struct cli cli;
	int exit_code = EXIT_CODE_DONE;
	conversion_options_init(&run.conversion);
	run.conversion.labels = CONVERTER_LABEL_COMM;
	if (cli_read(&cmd_run_spec, argc, argv, &run, &cli, &exit_code)) {
		struct error *err = run_agent(&run);
		exit_code = err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
	}
	for (size_t i = 0; i < run.n_exporters; i++)
		push_target_fini(&run.exporters[i]);
	for (size_t i = 0; i < run.n_labels; i++)
		mem_free((void *)run.labels[i].key);
	remote_options_fini(&run.remote);
	live_options_fini(&run.target);
	return exit_code;
}
