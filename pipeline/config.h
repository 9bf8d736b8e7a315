/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: YAML files → typed values. config_load reads FILE and conf.d/ *.yaml beside
 * it, merges them, puts environment and command line over them, expands ${env:X}, ${file:/path} and
 * ${credential:x} in values, checks all against config_schema.h and each other, and fills the
 * structs below. All that is wrong is told at once in struct config_problems.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "forwarder/forwarder.h"
#include "pipeline/config_node.h"
#include "pipeline/config_problem.h"
#include "pipeline/relabel.h"

/* In each component first. */
struct config_component {
	const char *name;		/* "perf", "perf_files/drop" */
	const struct config_node *node; /* a map, for places */
};

/* --- receivers --- */

enum config_scope { CONFIG_SCOPE_SYSTEM, CONFIG_SCOPE_CGROUP, CONFIG_SCOPE_PIDS };
enum config_call_graph { CONFIG_CALL_GRAPH_FP, CONFIG_CALL_GRAPH_DWARF, CONFIG_CALL_GRAPH_LBR };

struct config_perf {
	struct config_component component;
	unsigned scope;		    /* enum config_scope */
	const char *const *cgroups; /* CONFIG_SCOPE_CGROUP */
	size_t n_cgroups;
	const uint32_t *pids; /* CONFIG_SCOPE_PIDS */
	size_t n_pids;
	uint32_t frequency_hz;
	const char *event;   /* "auto" = cycles, else cpu-clock */
	unsigned call_graph; /* enum config_call_graph */
	bool has_kernel;
	uint64_t window_ns;
};

enum config_after { CONFIG_AFTER_DELETE, CONFIG_AFTER_KEEP, CONFIG_AFTER_MOVE };

struct config_perf_files {
	struct config_component component;
	const char *const *include; /* glob patterns */
	size_t n_include;
	unsigned after;	     /* enum config_after */
	const char *move_to; /* CONFIG_AFTER_MOVE */
};

/* --- processors --- */

struct config_process {
	struct config_component component;
	bool read_cmdline;
	const char *const *read_environ;
	size_t n_read_environ;
	uint64_t remember_exited_ns;
};

struct config_gitaly {
	struct config_component component;
	const char *config;		    /* "auto" or a path */
	const char *const *subcommand_from; /* "cmdline", "stack", in order of preference */
	size_t n_subcommand_from;
};

enum config_capture { CONFIG_CAPTURE_EAGER, CONFIG_CAPTURE_LAZY };

struct config_symbols {
	struct config_component component;
	unsigned capture; /* enum config_capture */
	const char *cache_directory;
	uint64_t cache_max_bytes;
	const char *const *debuginfod_urls;
	size_t n_debuginfod_urls;
	uint64_t debuginfod_timeout_ns, debuginfod_negative_ttl_ns;
};

struct config_rule {
	const struct config_node *node;
	struct relabel_rule rule;
};

struct config_relabel {
	struct config_component component;
	const struct config_rule *rules;
	size_t n_rules;
	struct relabel *compiled; /* used by one thread at a time */
};

struct config_count {
	const char *key;
	uint32_t n;
};

struct config_limits {
	struct config_component component;
	uint32_t max_label_sets;
	const struct config_count *topk;
	size_t n_topk;
	const char *exemplar_label;
	uint32_t exemplar_min_samples, exemplars_per_window;
};

/* --- exporters --- */

enum config_compression { CONFIG_COMPRESSION_NONE, CONFIG_COMPRESSION_GZIP };

struct config_exporter {
	struct config_component component;
	struct exporter_config exporter;
	unsigned compression;  /* enum config_compression; in exporter.remote.gzip too */
	unsigned storage;      /* the spool, so far */
	bool upload_debuginfo; /* Parca */
};

/* --- storage, service --- */

/* One of both is 0. */
struct config_share {
	uint64_t bytes;
	double percent;
};

struct config_spool {
	const char *directory;
	uint64_t max_bytes;
	struct config_share min_free;
	unsigned when_full; /* enum spool_when_full */
};

enum config_log_level {
	CONFIG_LOG_DEBUG,
	CONFIG_LOG_INFO,
	CONFIG_LOG_WARN,
	CONFIG_LOG_ERROR,
};
enum config_log_format {
	CONFIG_LOG_AUTO,
	CONFIG_LOG_TEXT,
	CONFIG_LOG_LOGFMT,
	CONFIG_LOG_JSON,
};

struct config_service {
	const char *node; /* NULL = the host's name */
	const struct key_value *external_labels;
	size_t n_external_labels;
	uint64_t memory_limit_bytes;
	double cpu_limit_percent; /* of one CPU */
	bool shed_on_load;
	const char *http_address; /* "" = no server */
	bool enable_lifecycle;
	unsigned log_level;  /* enum config_log_level */
	unsigned log_format; /* enum config_log_format */
};

enum config_component_type {
	CONFIG_COMPONENT_PERF,
	CONFIG_COMPONENT_PERF_FILES,
	CONFIG_COMPONENT_PROCESS,
	CONFIG_COMPONENT_GITALY,
	CONFIG_COMPONENT_SYMBOLS,
	CONFIG_COMPONENT_RELABEL,
	CONFIG_COMPONENT_LIMITS,
	CONFIG_COMPONENT_EXPORTER,
};

/* An element of the array of its type in struct config. */
struct config_reference {
	enum config_component_type type;
	uint32_t index;
};

struct config_pipeline {
	struct config_component component;
	const char *const *receiver_names;
	size_t n_receivers;
	const char *const *processor_names;
	size_t n_processors;
	const char *const *exporter_names;
	size_t n_exporters;
	/* What the names stand for, in the same order. */
	struct config_reference *receivers, *processors, *exporters;
};

struct config_test {
	const struct config_node *node;
	const char *name;
	const char *pipeline; /* NULL = the only one */
	const struct key_value *input;
	size_t n_input;
	const struct key_value *expect; /* an empty value: no such label */
	size_t n_expect;
	bool is_dropped;
};

/* Each array of components is in the order of the files. */
struct config {
	struct arena arena; /* of all that is below */
	struct config_node *root;
	uint32_t schema_version;

	struct config_perf *perf;
	size_t n_perf;
	struct config_perf_files *perf_files;
	size_t n_perf_files;
	struct config_process *process;
	size_t n_process;
	struct config_gitaly *gitaly;
	size_t n_gitaly;
	struct config_symbols *symbols;
	size_t n_symbols;
	struct config_relabel *relabel;
	size_t n_relabel;
	struct config_limits *limits;
	size_t n_limits;
	struct config_exporter *exporters;
	size_t n_exporters;
	struct config_spool spool;
	struct config_service service;
	struct config_pipeline *pipelines;
	size_t n_pipelines;
	struct config_test *tests;
	size_t n_tests;

	/* By kind, before they are put together in exporters. */
	struct config_exporter_list {
		struct config_exporter *exporters;
		size_t n;
	} exporter_lists[EXPORTER_KIND_N];
};

/* A value that comes before all others, of the command line. */
struct config_override {
	const char *path; /* "service.telemetry.logs.level" */
	const char *value;
	const char *origin; /* "--log-level" */
};

struct config_options {
	/* NULL = getenv. */
	const char *(*get_environment)(void *context, const char *name);
	void *context;
	const struct config_override *overrides;
	size_t n_overrides;
	/* ${credential:x} without $CREDENTIALS_DIRECTORY, which only systemd sets, is a warning:
	 * for checks by hand. */
	bool may_lack_credentials;
};

/*
 * False, and *out NULL, when there are errors. problems may hold warnings in any case; it owns the
 * texts of the files, so it has to outlive the configuration. options may be NULL.
 */
bool config_load(const char *path, const struct config_options *options,
		 struct config_problems *problems, struct config **out) MUST_USE;
/* The same for one text; name stands in messages. */
bool config_load_text(const char *name, const char *text, size_t size,
		      const struct config_options *options, struct config_problems *problems,
		      struct config **out) MUST_USE;
void config_free(struct config *config);

/* For forwarder_config: contiguous, borrowed from config. */
struct exporter_config *config_list_exporters(struct config *config, size_t *n_out);
/* The relabel processors of a pipeline, applied in order; NULL names none. */
const struct config_pipeline *config_find_pipeline(const struct config *config, const char *name);
enum relabel_verdict config_relabel(const struct config *config,
				    const struct config_pipeline *pipeline, struct label_set *set);

/* PERFPIPE_CONFIG, else /etc/perfpipe/perfpipe.yaml. */
const char *config_default_path(void);
