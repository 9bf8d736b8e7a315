/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_schema.h"

#include <assert.h>
#include <string.h>

#include "pipeline/cli.h"
#include "pipeline/config.h"

#define S  UINT64_C(1000000000)
#define H  (3600 * S)
#define KB (UINT64_C(1) << 10)
#define MB (UINT64_C(1) << 20)
#define GB (UINT64_C(1) << 30)
#define TB (UINT64_C(1) << 40)

#define INTO(type, field) .offset = offsetof(type, field), .bytes = sizeof(((type *)0)->field)
/* A list and, right behind it, its count. */
#define INTO_LIST(type, field, n_field)                                                            \
	.offset = offsetof(type, field) +                                                          \
		  0 * sizeof(struct {                                                              \
			  static_assert(offsetof(type, n_field) ==                                 \
						offsetof(type, field) + sizeof(void *),            \
					"the count follows its list");                             \
			  char unused;                                                             \
		  }),                                                                              \
	.bytes = sizeof(*((type *)0)->field)
#define CHOICES(...)                                                                               \
	.choices = (const char *const[])                                                           \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* --- receivers --- */

static const struct config_key scope_keys[] = {
	{"cgroup", CONFIG_TYPE_TEXTS, INTO_LIST(struct config_perf, cgroups, n_cgroups),
	 .what = "Only processes in these cgroups, paths below the cgroup mount."},
	{"pids", CONFIG_TYPE_INTEGERS, INTO_LIST(struct config_perf, pids, n_pids), .min = 1,
	 .max = 1 << 22, .what = "Only these processes, with their threads and children."},
	END,
};

static const struct config_key perf_keys[] = {
	{"scope", CONFIG_TYPE_VARIANT, INTO(struct config_perf, scope), .fallback = "system",
	 CHOICES("system"), .keys = scope_keys, .what = "What is sampled."},
	{"frequency", CONFIG_TYPE_INTEGER, INTO(struct config_perf, frequency_hz), .fallback = "99",
	 .min = 1, .max = 10000,
	 .what = "Samples per second and CPU; 19 is enough for a large fleet."},
	{"event", CONFIG_TYPE_TEXT, INTO(struct config_perf, event), .fallback = "auto",
	 .what = "Event as for record -e; auto is cycles, or cpu-clock where there is no counter."},
	{"call_graph", CONFIG_TYPE_CHOICE, INTO(struct config_perf, call_graph), .fallback = "fp",
	 CHOICES("fp", "dwarf", "lbr"), .what = "How callers are found."},
	{"kernel", CONFIG_TYPE_BOOL, INTO(struct config_perf, has_kernel), .fallback = "true",
	 .what = "Kernel frames too; their names need CAP_SYSLOG."},
	{"window", CONFIG_TYPE_DURATION, INTO(struct config_perf, window_ns), .fallback = "10s",
	 .min = S, .max = H, .what = "Time that one profile covers."},
	END,
};

static const struct config_key perf_files_keys[] = {
	{"include", CONFIG_TYPE_TEXTS, INTO_LIST(struct config_perf_files, include, n_include),
	 .flags = CONFIG_REQUIRED, .what = "Whole paths of perf.data files, with * and ?."},
	{"after", CONFIG_TYPE_CHOICE, INTO(struct config_perf_files, after), .fallback = "delete",
	 CHOICES("delete", "keep", "move"), .what = "What becomes of a file that was taken in."},
	{"move_to", CONFIG_TYPE_PATH, INTO(struct config_perf_files, move_to),
	 .what = "Folder for after: move, on the same file system."},
	END,
};

static const struct config_key receiver_keys[] = {
	{"perf", CONFIG_TYPE_MAP, INTO_LIST(struct config, perf, n_perf), .keys = perf_keys,
	 .what = "Live sampling through perf_event_open."},
	{"perf_files", CONFIG_TYPE_MAP, INTO_LIST(struct config, perf_files, n_perf_files),
	 .keys = perf_files_keys, .what = "Files of perf record that people or cron leave."},
	END,
};

/* --- processors --- */

static const struct config_key process_keys[] = {
	{"read_cmdline", CONFIG_TYPE_BOOL, INTO(struct config_process, read_cmdline),
	 .fallback = "true", .what = "Read command lines, for labels; they are not sent."},
	{"read_environ", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_process, read_environ, n_read_environ),
	 .what = "Environment variables that may be read; all others stay unread."},
	{"remember_exited", CONFIG_TYPE_DURATION, INTO(struct config_process, remember_exited_ns),
	 .fallback = "30s", .min = 0, .max = H,
	 .what = "How long late samples still find a process that ended."},
	END,
};

static const struct config_key gitaly_keys[] = {
	{"config", CONFIG_TYPE_TEXT, INTO(struct config_gitaly, config), .fallback = "auto",
	 .what = "Path of Gitaly's config.toml; auto takes it from the running Gitaly."},
	{"subcommand_from", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_gitaly, subcommand_from, n_subcommand_from),
	 .fallback = "cmdline, stack", CHOICES("cmdline", "stack"),
	 .what = "Where the git subcommand is taken from, first come first served."},
	END,
};

static const struct config_key debuginfod_keys[] = {
	{"urls", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_symbols, debuginfod_urls, n_debuginfod_urls),
	 .what = "Servers that are asked for missing debug information; none: nobody is asked."},
	{"timeout", CONFIG_TYPE_DURATION, INTO(struct config_symbols, debuginfod_timeout_ns),
	 .fallback = "5s", .min = S / 10, .max = 600 * S, .what = "For one file of a server."},
	{"negative_ttl", CONFIG_TYPE_DURATION,
	 INTO(struct config_symbols, debuginfod_negative_ttl_ns), .fallback = "24h", .min = 60 * S,
	 .max = 366 * 24 * H,
	 .what = "How long a server that has no such file is not asked again."},
	END,
};

static const struct config_key symbols_keys[] = {
	{"capture", CONFIG_TYPE_CHOICE, INTO(struct config_symbols, capture), .fallback = "eager",
	 CHOICES("eager", "lazy"),
	 .what = "Keep the names of a binary when it is first mapped, or when it is first "
		 "sampled."},
	{"cache_directory", CONFIG_TYPE_PATH, INTO(struct config_symbols, cache_directory),
	 .fallback = "/var/cache/perfpipe/symbols", .what = "Where names are kept, by build-id."},
	{"cache_max_size", CONFIG_TYPE_SIZE, INTO(struct config_symbols, cache_max_bytes),
	 .fallback = "2GiB", .min = MB, .max = TB, .what = "Most that is kept there."},
	{"debuginfod", CONFIG_TYPE_MAP, .keys = debuginfod_keys,
	 .what = "Debug information from servers."},
	END,
};

static const struct config_key rule_keys[] = {
	{"source_labels", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_rule, rule.source_labels, rule.n_source_labels),
	 .what = "Labels whose values are joined."},
	{"separator", CONFIG_TYPE_TEXT, INTO(struct config_rule, rule.separator), .fallback = ";",
	 .flags = CONFIG_TEMPLATE, .what = "What stands between joined values."},
	{"regex", CONFIG_TYPE_TEXT, INTO(struct config_rule, rule.regex), .fallback = "(.*)",
	 .flags = CONFIG_TEMPLATE, .what = "RE2 expression that the whole value has to match."},
	{"modulus", CONFIG_TYPE_INTEGER, INTO(struct config_rule, rule.modulus), .min = 1,
	 .max = UINT64_MAX, .what = "Of hashmod: the hash of the value is taken modulo this."},
	{"target_label", CONFIG_TYPE_TEXT, INTO(struct config_rule, rule.target_label),
	 .flags = CONFIG_TEMPLATE, .what = "Label that is set or compared."},
	{"replacement", CONFIG_TYPE_TEXT, INTO(struct config_rule, rule.replacement),
	 .fallback = "$1", .flags = CONFIG_TEMPLATE,
	 .what = "New value; $1 or ${1} is what the first group matched."},
	{"action", CONFIG_TYPE_CHOICE, INTO(struct config_rule, rule.action), .fallback = "replace",
	 CHOICES("replace", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap",
		 "labeldrop", "labelkeep", "lowercase", "uppercase"),
	 .flags = CONFIG_ANY_CASE, .what = "What the rule does."},
	END,
};

static const struct config_key relabel_keys[] = {
	{"relabel_configs", CONFIG_TYPE_MAPS, INTO_LIST(struct config_relabel, rules, n_rules),
	 .keys = rule_keys, .what = "Prometheus relabel rules, applied in order."},
	END,
};

static const struct config_key exemplars_keys[] = {
	{"label", CONFIG_TYPE_TEXT, INTO(struct config_limits, exemplar_label),
	 .fallback = "correlation_id", .what = "Label that only heavy processes keep."},
	{"min_samples", CONFIG_TYPE_INTEGER, INTO(struct config_limits, exemplar_min_samples),
	 .fallback = "20", .min = 1, .max = 1000000, .what = "Samples that make a process heavy."},
	{"per_window", CONFIG_TYPE_INTEGER, INTO(struct config_limits, exemplars_per_window),
	 .fallback = "10", .min = 0, .max = 1000, .what = "Most that are kept in a window."},
	END,
};

static const struct config_key limits_keys[] = {
	{"max_label_sets", CONFIG_TYPE_INTEGER, INTO(struct config_limits, max_label_sets),
	 .fallback = "400", .min = 1, .max = 1000000,
	 .what = "Label sets of a window; the rest is added up as \"other\"."},
	{"topk", CONFIG_TYPE_INTEGER_MAP, INTO_LIST(struct config_limits, topk, n_topk), .min = 1,
	 .max = 1000000, .flags = CONFIG_LABELS,
	 .what = "Values of a label that are kept, heaviest first; the rest is \"other\"."},
	{"exemplars", CONFIG_TYPE_MAP, .keys = exemplars_keys,
	 .what = "Heavy processes that can be found again in logs."},
	END,
};

static const struct config_key processor_keys[] = {
	{"process", CONFIG_TYPE_MAP, INTO_LIST(struct config, process, n_process),
	 .keys = process_keys, .what = "Facts about processes, from /proc."},
	{"gitaly", CONFIG_TYPE_MAP, INTO_LIST(struct config, gitaly, n_gitaly), .keys = gitaly_keys,
	 .what = "Labels of git commands and Gitaly; idle where there is no Gitaly."},
	{"symbols", CONFIG_TYPE_MAP, INTO_LIST(struct config, symbols, n_symbols),
	 .keys = symbols_keys, .what = "Names for addresses."},
	{"relabel", CONFIG_TYPE_MAP, INTO_LIST(struct config, relabel, n_relabel),
	 .keys = relabel_keys, .what = "Rules that change labels and drop samples."},
	{"limits", CONFIG_TYPE_MAP, INTO_LIST(struct config, limits, n_limits), .keys = limits_keys,
	 .what = "Bounds on label sets."},
	END,
};

/* --- exporters --- */

#define REMOTE(field) INTO(struct config_exporter, exporter.remote.field)

static const struct config_key tls_keys[] = {
	{"insecure", CONFIG_TYPE_BOOL, REMOTE(insecure), .fallback = "false",
	 .what = "Plaintext, no TLS."},
	{"ca_file", CONFIG_TYPE_PATH, REMOTE(tls.ca_file),
	 .what = "Certificates that are trusted, instead of the system's."},
	{"ca_path", CONFIG_TYPE_PATH, REMOTE(tls.ca_path),
	 .what = "Folder of trusted certificates, hashed by openssl rehash."},
	{"cert_file", CONFIG_TYPE_PATH, REMOTE(tls.cert_file),
	 .what = "Our certificate, for servers that ask for one."},
	{"key_file", CONFIG_TYPE_PATH, REMOTE(tls.key_file), .what = "The key of cert_file."},
	{"server_name", CONFIG_TYPE_TEXT, REMOTE(tls.server_name),
	 .what = "Name that the server's certificate has to have, instead of the endpoint's host."},
	{"min_version", CONFIG_TYPE_TEXT, REMOTE(tls.min_version), .fallback = "1.2",
	 CHOICES("1.2", "1.3"), .what = "Lowest version of TLS."},
	{"insecure_skip_verify", CONFIG_TYPE_BOOL, REMOTE(tls.skip_verify), .fallback = "false",
	 .what = "Take any certificate: encrypts without knowing to whom."},
	END,
};

static const struct config_key basic_auth_keys[] = {
	{"username", CONFIG_TYPE_TEXT, REMOTE(username), .what = "Name of the user."},
	{"password", CONFIG_TYPE_SECRET, REMOTE(password), .what = "Better in a password_file."},
	{"password_file", CONFIG_TYPE_PATH, REMOTE(password_file),
	 .what = "File with the password, read again when it is refused."},
	END,
};

static const struct config_key retry_keys[] = {
	{"initial_interval", CONFIG_TYPE_DURATION,
	 INTO(struct config_exporter, exporter.retry.initial_interval_ns), .fallback = "5s",
	 .min = S / 10, .max = H,
	 .what = "Wait before the second attempt, doubled for each later."},
	{"max_interval", CONFIG_TYPE_DURATION,
	 INTO(struct config_exporter, exporter.retry.max_interval_ns), .fallback = "30s",
	 .min = S / 10, .max = 24 * H, .what = "Longest wait between attempts."},
	{"max_elapsed_time", CONFIG_TYPE_DURATION,
	 INTO(struct config_exporter, exporter.retry.max_elapsed_ns), .fallback = "0", .min = 0,
	 .max = 366 * 24 * H, .what = "When attempts end; 0: at the max_age of the queue."},
	END,
};

#define QUEUE_KEYS(age)                                                                            \
	{"storage",	      CONFIG_TYPE_CHOICE, INTO(struct config_exporter, storage),           \
	 .fallback = "spool", CHOICES("spool"),	  .what = "Where profiles wait."},                 \
		{"max_age",                                                                        \
		 CONFIG_TYPE_DURATION,                                                             \
		 INTO(struct config_exporter, exporter.max_age_ns),                                \
		 .fallback = age,                                                                  \
		 .min = 60 * S,                                                                    \
		 .max = 366 * 24 * H,                                                              \
		 .what = "What waits longer is dropped; 55m by default for Pyroscope."},           \
		{"num_consumers",                                                                  \
		 CONFIG_TYPE_INTEGER,                                                              \
		 INTO(struct config_exporter, exporter.max_concurrent),                            \
		 .fallback = "4",                                                                  \
		 .min = 1,                                                                         \
		 .max = 64,                                                                        \
		 .what = "Requests under way at a time."},                                         \
		END

static const struct config_key queue_keys[] = {QUEUE_KEYS("24h")};
static const struct config_key pyroscope_queue_keys[] = {QUEUE_KEYS("55m")};

#define REMOTE_KEYS(queue)                                                                         \
	{"endpoint", CONFIG_TYPE_TEXT, REMOTE(endpoint), .flags = CONFIG_REQUIRED,                 \
	 .what = "HOST:PORT, https://HOST:PORT, http://HOST:PORT (plaintext) or unix:/PATH."},     \
		{"headers", CONFIG_TYPE_SECRET_MAP,                                                \
		 INTO_LIST(struct config_exporter, exporter.remote.headers,                        \
			   exporter.remote.n_headers),                                             \
		 .flags = CONFIG_LOWER, .what = "Sent with each request."},                        \
		{"bearer_token", CONFIG_TYPE_SECRET, REMOTE(bearer_token),                         \
		 .what = "Better in a bearer_token_file."},                                        \
		{"bearer_token_file", CONFIG_TYPE_PATH, REMOTE(bearer_token_file),                 \
		 .what = "File with the token, read again at each connection."},                   \
		{"basic_auth", CONFIG_TYPE_MAP, .keys = basic_auth_keys,                           \
		 .what = "Name and password instead of a token."},                                 \
		{"allow_token_in_clear", CONFIG_TYPE_BOOL, REMOTE(allow_token_in_clear),           \
		 .fallback = "false",                                                              \
		 .what = "Send token or password over plaintext to other hosts too."},             \
		{"tenant_id", CONFIG_TYPE_TEXT, REMOTE(tenant_id),                                 \
		 .what = "Sent as X-Scope-OrgID."},                                                \
		{"compression",                                                                    \
		 CONFIG_TYPE_CHOICE,                                                               \
		 INTO(struct config_exporter, compression),                                        \
		 .fallback = "gzip",                                                               \
		 CHOICES("none", "gzip"),                                                          \
		 .what = "Of requests."},                                                          \
		{"timeout",	CONFIG_TYPE_DURATION, REMOTE(timeout_ns),     .fallback = "10s",   \
		 .min = S / 10, .max = 600 * S,	      .what = "Of a request."},                    \
		{"keepalive",                                                                      \
		 CONFIG_TYPE_DURATION,                                                             \
		 REMOTE(keepalive_ns),                                                             \
		 .fallback = "0",                                                                  \
		 .min = 10 * S,                                                                    \
		 .max = H,                                                                         \
		 .what = "Time between pings on an idle connection; 0: none."},                    \
		{"proxy", CONFIG_TYPE_SECRET, REMOTE(proxy),                                       \
		 .what = "http://[USER:PASSWORD@]HOST:PORT; without it https_proxy and no_proxy "  \
			 "of the environment, \"\" for none."},                                    \
		{"tls", CONFIG_TYPE_MAP, .keys = tls_keys, .what = "Trust."},                      \
		{"sending_queue", CONFIG_TYPE_MAP, .keys = queue,                                  \
		 .what = "What waits for delivery."},                                              \
		{"retry_on_failure", CONFIG_TYPE_MAP, .keys = retry_keys,                          \
		 .what = "Waits between attempts."},                                               \
		{"max_message_size",                                                               \
		 CONFIG_TYPE_SIZE,                                                                 \
		 INTO(struct config_exporter, exporter.limits.max_message_bytes),                  \
		 .min = 64 * KB,                                                                   \
		 .max = GB,                                                                        \
		 .what = "Larger requests are split; the default is what such servers take."},     \
		{"max_samples",                                                                    \
		 CONFIG_TYPE_INTEGER,                                                              \
		 INTO(struct config_exporter, exporter.limits.max_samples),                        \
		 .min = 1,                                                                         \
		 .max = 100000000,                                                                 \
		 .what = "Profiles with more are split; the default is what such servers take."},  \
	{                                                                                          \
		"drop_labels", CONFIG_TYPE_TEXTS,                                                  \
			INTO_LIST(struct config_exporter, exporter.drop_labels,                    \
				  exporter.n_drop_labels),                                         \
			.what = "Labels of samples that are not sent here; without it Pyroscope "  \
				"gets no cgroup."                                                  \
	}

static const struct config_key parca_keys[] = {
	REMOTE_KEYS(queue_keys),
	{"upload_debuginfo", CONFIG_TYPE_BOOL, INTO(struct config_exporter, upload_debuginfo),
	 .fallback = "true", .what = "Upload debug information that the server asks for."},
	END,
};
static const struct config_key pyroscope_keys[] = {REMOTE_KEYS(pyroscope_queue_keys), END};
static const struct config_key otlp_keys[] = {REMOTE_KEYS(queue_keys), END};

static const struct config_key file_keys[] = {
	{"directory", CONFIG_TYPE_PATH, INTO(struct config_exporter, exporter.directory),
	 .flags = CONFIG_REQUIRED, .what = "Where profiles are written as pprof."},
	{"max_size", CONFIG_TYPE_SIZE, INTO(struct config_exporter, exporter.max_directory_bytes),
	 .min = MB, .max = 1024 * TB, .what = "The oldest files go when there is more."},
	END,
};

#define INTO_EXPORTERS(kind)                                                                       \
	INTO_LIST(struct config, exporter_lists[kind].exporters, exporter_lists[kind].n)

static const struct config_key exporter_keys[] = {
	{"parca", CONFIG_TYPE_MAP, INTO_EXPORTERS(EXPORTER_PARCA), .keys = parca_keys,
	 .what = "Parca or Polar Signals."},
	{"pyroscope", CONFIG_TYPE_MAP, INTO_EXPORTERS(EXPORTER_PYROSCOPE), .keys = pyroscope_keys,
	 .what = "Grafana Pyroscope or Grafana Cloud."},
	{"otlp", CONFIG_TYPE_MAP, INTO_EXPORTERS(EXPORTER_OTLP), .keys = otlp_keys,
	 .what = "OTLP profiles over gRPC (experimental, as the signal itself)."},
	{"file", CONFIG_TYPE_MAP, INTO_EXPORTERS(EXPORTER_FILE), .keys = file_keys,
	 .what = "A folder of pprof files."},
	END,
};

/* --- storage, service, tests --- */

#define SPOOL(field)   INTO(struct config, spool.field)
#define SERVICE(field) INTO(struct config, service.field)

static const struct config_key spool_keys[] = {
	{"directory", CONFIG_TYPE_PATH, SPOOL(directory), .fallback = "/var/lib/perfpipe/spool",
	 .environment = "PERFPIPE_SPOOL", .what = "Where profiles wait for delivery."},
	{"max_size", CONFIG_TYPE_SIZE, SPOOL(max_bytes), .fallback = "1GiB", .min = MB,
	 .max = 1024 * TB, .what = "Most that waits, for each exporter."},
	{"min_free", CONFIG_TYPE_SHARE, SPOOL(min_free), .fallback = "5%", .min = 0, .max = 100,
	 .what = "Space of the file system that stays free, as a share or a size."},
	{"when_full", CONFIG_TYPE_CHOICE, SPOOL(when_full), .fallback = "drop_oldest",
	 CHOICES("drop_oldest", "drop_newest", "block"),
	 .what = "What goes when there is no room."},
	END,
};

static const struct config_key storage_keys[] = {
	{"spool", CONFIG_TYPE_MAP, .keys = spool_keys, .what = "The queue on disk."},
	END,
};

static const struct config_key pipeline_keys[] = {
	{"receivers", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_pipeline, receiver_names, n_receivers), .flags = CONFIG_REQUIRED,
	 .what = "Where samples come from."},
	{"processors", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_pipeline, processor_names, n_processors),
	 .what = "What happens to them, in this order."},
	{"exporters", CONFIG_TYPE_TEXTS,
	 INTO_LIST(struct config_pipeline, exporter_names, n_exporters), .flags = CONFIG_REQUIRED,
	 .what = "Where profiles go."},
	END,
};

static const struct config_key pipelines_keys[] = {
	{"profiles", CONFIG_TYPE_MAP, INTO_LIST(struct config, pipelines, n_pipelines),
	 .keys = pipeline_keys, .what = "One way from receivers to exporters."},
	END,
};

static const struct config_key resources_keys[] = {
	{"memory_limit", CONFIG_TYPE_SIZE, SERVICE(memory_limit_bytes), .fallback = "256MiB",
	 .min = 32 * MB, .max = TB, .environment = "PERFPIPE_MEMORY_LIMIT",
	 .what = "Windows are closed early rather than going past it."},
	{"cpu_limit", CONFIG_TYPE_PERCENT, SERVICE(cpu_limit_percent), .fallback = "5%", .min = 0,
	 .max = 10000, .environment = "PERFPIPE_CPU_LIMIT", .what = "Of one CPU; 0%: none."},
	{"shed_on_load", CONFIG_TYPE_BOOL, SERVICE(shed_on_load), .fallback = "true",
	 .what = "Lower the frequency when a limit is reached."},
	END,
};

static const struct config_key http_keys[] = {
	{"address", CONFIG_TYPE_TEXT, SERVICE(http_address), .fallback = "127.0.0.1:9917",
	 .environment = "PERFPIPE_HTTP_ADDRESS",
	 .what = "ADDRESS:PORT of metrics, health and /debug/pprof; \"\": no server."},
	{"enable_lifecycle", CONFIG_TYPE_BOOL, SERVICE(enable_lifecycle), .fallback = "false",
	 .what = "POST /-/reload and /-/quit."},
	END,
};

static const struct config_key logs_keys[] = {
	{"level", CONFIG_TYPE_CHOICE, SERVICE(log_level), .fallback = "info",
	 CHOICES("debug", "info", "warn", "error"), .environment = "PERFPIPE_LOG_LEVEL",
	 .what = "Least that is logged."},
	{"format", CONFIG_TYPE_CHOICE, SERVICE(log_format), .fallback = "auto",
	 CHOICES("auto", "text", "logfmt", "json"), .environment = "PERFPIPE_LOG_FORMAT",
	 .what = "auto is text on a terminal, else logfmt."},
	END,
};

static const struct config_key telemetry_keys[] = {
	{"http", CONFIG_TYPE_MAP, .keys = http_keys, .what = "The local server."},
	{"logs", CONFIG_TYPE_MAP, .keys = logs_keys, .what = "To standard error."},
	END,
};

static const struct config_key service_keys[] = {
	{"node", CONFIG_TYPE_TEXT, SERVICE(node), .environment = "PERFPIPE_NODE",
	 .what = "Value of the label node, instead of the host's name."},
	{"external_labels", CONFIG_TYPE_TEXT_MAP,
	 INTO_LIST(struct config, service.external_labels, service.n_external_labels),
	 .flags = CONFIG_LABELS, .what = "Labels of all that is sent."},
	{"pipelines", CONFIG_TYPE_COMPONENTS, .keys = pipelines_keys,
	 .what = "What is connected; without it all receivers with all exporters."},
	{"resources", CONFIG_TYPE_MAP, .keys = resources_keys, .what = "What perfpipe may use."},
	{"telemetry", CONFIG_TYPE_MAP, .keys = telemetry_keys, .what = "About perfpipe itself."},
	END,
};

static const struct config_key test_keys[] = {
	{"name", CONFIG_TYPE_TEXT, INTO(struct config_test, name), .flags = CONFIG_REQUIRED,
	 .what = "What is tested."},
	{"pipeline", CONFIG_TYPE_TEXT, INTO(struct config_test, pipeline),
	 .what = "Whose relabel rules are tested, when there are several pipelines."},
	{"input", CONFIG_TYPE_TEXT_MAP, INTO_LIST(struct config_test, input, n_input),
	 .flags = CONFIG_REQUIRED | CONFIG_LABELS | CONFIG_TEMPLATE, .what = "Labels before."},
	{"expect", CONFIG_TYPE_TEXT_MAP, INTO_LIST(struct config_test, expect, n_expect),
	 .flags = CONFIG_LABELS | CONFIG_TEMPLATE,
	 .what = "Labels after, others are ignored; \"\": there is no such label."},
	{"dropped", CONFIG_TYPE_BOOL, INTO(struct config_test, is_dropped), .fallback = "false",
	 .what = "A rule drops the sample."},
	END,
};

const struct config_key config_schema[] = {
	{"schema_version", CONFIG_TYPE_INTEGER, INTO(struct config, schema_version),
	 .fallback = "1", .min = 1, .max = CONFIG_SCHEMA_VERSION,
	 .what = "Of this file; newer ones than the program knows are refused."},
	{"receivers", CONFIG_TYPE_COMPONENTS, .keys = receiver_keys,
	 .what = "Where samples come from."},
	{"processors", CONFIG_TYPE_COMPONENTS, .keys = processor_keys,
	 .what = "What is found out about samples and done to them."},
	{"exporters", CONFIG_TYPE_COMPONENTS, .keys = exporter_keys, .what = "Where profiles go."},
	{"storage", CONFIG_TYPE_MAP, .keys = storage_keys, .what = "What is kept on disk."},
	{"service", CONFIG_TYPE_MAP, .keys = service_keys,
	 .what = "Labels, pipelines, limits and telemetry of the whole program."},
	{"tests", CONFIG_TYPE_MAPS, INTO_LIST(struct config, tests, n_tests), .keys = test_keys,
	 .what = "Cases for the relabel rules, run by perfpipe check-config."},
	END,
};

/* --- look-up --- */

static const struct config_key *find(const struct config_key *keys, const char *name, size_t n)
{
	for (; keys && keys->name; keys++) {
		if (strncmp(keys->name, name, n) == 0 && keys->name[n] == '\0')
			return keys;
	}
	return NULL;
}

const struct config_key *config_schema_find(const struct config_key *keys, const char *name)
{
	return find(keys, name, strlen(name));
}

const struct config_key *config_schema_find_path(const char *path)
{
	const struct config_key *keys = config_schema;
	for (;;) {
		size_t n = strcspn(path, ".");
		const struct config_key *key = find(keys, path, n);
		if (!key || path[n] == '\0')
			return key;
		keys = key->keys;
		path += n + 1;
	}
}

enum { MAX_INSTANCE_BYTES = 64 };

static bool is_instance_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";
	size_t n = strspn(name, letters);
	return n > 0 && n <= MAX_INSTANCE_BYTES && name[n] == '\0';
}

const struct config_key *config_schema_find_component(const struct config_key *keys,
						      const char *name)
{
	size_t n = strcspn(name, "/");
	if (name[n] == '/' && !is_instance_name(name + n + 1))
		return NULL;
	return find(keys, name, n);
}

const char *config_schema_nearest(const struct config_key *keys, const char *name)
{
	const char *names[64];
	size_t n = 0;
	for (; keys && keys->name && n < ARRAY_LEN(names); keys++)
		names[n++] = keys->name;
	return cli_nearest(name, names, n);
}
