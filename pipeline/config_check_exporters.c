/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles go: that addresses can be read and that credentials and trust fit together. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "pipeline/config_check.h"
#include "pipeline/config_schema.h"

#define PYROSCOPE_MAX_AGE_NS (UINT64_C(3600) * 1000000000)

struct exporter_check {
	struct config_problems *problems;
	const struct config_exporter *exporter;
	const struct config_node *node;
	const char *name;
};

/* Places of a value of the exporter, of its key, or of the exporter itself. */
static struct config_place value_place(const struct exporter_check *check, const char *path)
{
	const struct config_node *node = config_node_find_path(check->node, path);
	return node ? node->place : check->node->key_place;
}

static struct config_place key_place(const struct exporter_check *check, const char *path)
{
	const struct config_node *node = config_node_find_path(check->node, path);
	return node ? node->key_place : check->node->key_place;
}

static bool has(const struct exporter_check *check, const char *path)
{
	return config_node_find_path(check->node, path) != NULL;
}

static void check_both(const struct exporter_check *check, const char *a, const char *b)
{
	if (has(check, a) && has(check, b))
		config_error_numbered(check->problems, 207, key_place(check, b),
				      "exporters.%s has %s and %s, of which it can use one",
				      check->name, a, b);
}

static void check_needs(const struct exporter_check *check, const char *a, const char *b)
{
	if (has(check, a) && !has(check, b))
		config_error_numbered(check->problems, 207, key_place(check, a),
				      "exporters.%s.%s needs %s", check->name, a, b);
}

static void check_credentials(const struct exporter_check *check)
{
	check_both(check, "bearer_token", "bearer_token_file");
	check_both(check, "bearer_token", "basic_auth");
	check_both(check, "bearer_token_file", "basic_auth");
	const struct config_node *basic = config_node_find(check->node, "basic_auth");
	if (basic && config_problems_has_between(check->problems, basic->place, basic->end))
		return;
	check_both(check, "basic_auth.password", "basic_auth.password_file");
	check_needs(check, "basic_auth.password", "basic_auth.username");
	check_needs(check, "basic_auth.password_file", "basic_auth.username");
	if (has(check, "basic_auth.username") && !has(check, "basic_auth.password") &&
	    !has(check, "basic_auth.password_file"))
		config_error_numbered(check->problems, 207, key_place(check, "basic_auth.username"),
				      "exporters.%s.basic_auth needs a password or password_file",
				      check->name);
}

static bool is_header_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
	return name[0] && name[strspn(name, letters)] == '\0';
}

static void check_headers(const struct exporter_check *check)
{
	const struct config_node *headers = config_node_find(check->node, "headers");
	const struct remote_config *remote = &check->exporter->exporter.remote;
	bool has_credentials = has(check, "bearer_token") || has(check, "bearer_token_file") ||
			       has(check, "basic_auth");
	size_t n = 0;
	for (const struct config_node *header = headers ? headers->first : NULL;
	     header && n < remote->n_headers; header = header->next, n++) {
		if (!is_header_name(remote->headers[n].key))
			config_error_numbered(check->problems, 202, header->key_place,
					      "\"%s\" is no name of a header", header->key);
		if (has_credentials && strcasecmp(header->key, "authorization") == 0)
			config_error_numbered(check->problems, 207, header->key_place,
					      "exporters.%s has an authorization header beside "
					      "token or password",
					      check->name);
	}
}

/* A setting of TLS other than insecure that differs from its default. */
static const char *tls_setting(const struct exporter_check *check)
{
	static const char *const paths[] = {
		"tls.ca_file",
		"tls.ca_path",
		"tls.cert_file",
		"tls.key_file",
		"tls.server_name",
		"tls.min_version",
		"tls.insecure_skip_verify",
	};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const struct config_node *node = config_node_find_path(check->node, paths[i]);
		const struct config_key *keys =
			config_schema_find_path("exporters.parca.tls")->keys;
		const char *fallback =
			config_schema_find(keys, paths[i] + strlen("tls."))->fallback;
		bool is_default = node && fallback && node->kind == CONFIG_SCALAR &&
				  strcmp(node->text, fallback) == 0;
		if (node && !is_default)
			return paths[i];
	}
	return NULL;
}

static void check_endpoint(const struct exporter_check *check)
{
	const struct exporter_config *exporter = &check->exporter->exporter;
	const struct remote_config *remote = &exporter->remote;
	if (!remote->endpoint)
		return;
	struct endpoint endpoint;
	struct error *err =
		endpoint_parse(remote->endpoint, remote->default_port, remote->insecure, &endpoint);
	if (err) {
		config_error_numbered(check->problems, 202, value_place(check, "endpoint"),
				      "exporters.%s: %s", check->name, error_text(err));
		error_free(err);
		return;
	}
	const char *setting = tls_setting(check);
	if (endpoint.is_plaintext && setting)
		config_error_numbered(check->problems, 207, key_place(check, setting),
				      "exporters.%s.%s has no effect: %s is reached in plaintext",
				      check->name, setting, endpoint.shown);
	bool has_secret = remote->bearer_token || remote->bearer_token_file || remote->username;
	if (endpoint.is_plaintext && has_secret && !remote->allow_token_in_clear &&
	    !endpoint_is_loopback(&endpoint))
		config_error_numbered(check->problems, 207, value_place(check, "endpoint"),
				      "exporters.%s would send its token or password to %s in "
				      "plaintext; use TLS, or allow_token_in_clear: true",
				      check->name, endpoint.shown);
	endpoint_fini(&endpoint);
}

static void check_remote(const struct exporter_check *check)
{
	const struct exporter_config *exporter = &check->exporter->exporter;
	check_endpoint(check);
	check_credentials(check);
	check_headers(check);
	check_needs(check, "tls.cert_file", "tls.key_file");
	check_needs(check, "tls.key_file", "tls.cert_file");
	const struct retry_config *retry = &exporter->retry;
	if (retry->initial_interval_ns > retry->max_interval_ns)
		config_error_numbered(check->problems, 207,
				      key_place(check, "retry_on_failure.initial_interval"),
				      "exporters.%s.retry_on_failure: initial_interval is longer "
				      "than max_interval",
				      check->name);
	if (exporter->kind == EXPORTER_PYROSCOPE && exporter->max_age_ns > PYROSCOPE_MAX_AGE_NS)
		config_warn(check->problems, 223, key_place(check, "sending_queue.max_age"),
			    "exporters.%s: Pyroscope refuses profiles older than 1h unless it is "
			    "told otherwise",
			    check->name);
	const struct config_node *labels = config_node_find(check->node, "drop_labels");
	for (const struct config_node *label = labels ? labels->first : NULL; label;
	     label = label->next) {
		if (label->kind == CONFIG_SCALAR &&
		    !label_name_is_valid(label->text, strlen(label->text)))
			config_error_numbered(check->problems, 202, label->place,
					      "\"%s\" is no name of a label", label->text);
	}
}

static void check_directory(const struct exporter_check *check, const struct config *config)
{
	const char *directory = check->exporter->exporter.directory;
	for (size_t i = 0; directory && i < config->n_exporters; i++) {
		const struct config_exporter *other = &config->exporters[i];
		if (other == check->exporter)
			return;
		if (other->exporter.directory && strcmp(other->exporter.directory, directory) == 0)
			config_error_numbered(check->problems, 207, value_place(check, "directory"),
					      "exporters.%s writes into the folder of exporters.%s",
					      check->name, other->component.name);
	}
}

/* From the lists by kind into the order of the files. */
static void gather(struct config *config, const struct config_node *section)
{
	static const enum exporter_kind kinds[] = {EXPORTER_PARCA, EXPORTER_PYROSCOPE,
						   EXPORTER_OTLP, EXPORTER_FILE};
	const struct config_key *keys = config_schema_find(config_schema, "exporters")->keys;
	size_t taken[EXPORTER_KIND_N] = {0};
	size_t n = 0;
	for (size_t i = 0; i < EXPORTER_KIND_N; i++)
		n += config->exporter_lists[i].n;
	config->exporters = arena_alloc(&config->arena, n * sizeof(*config->exporters) + 1);
	for (const struct config_node *node = section ? section->first : NULL; node;
	     node = node->next) {
		const struct config_key *type = config_schema_find_component(keys, node->key);
		if (!type)
			continue;
		enum exporter_kind kind = kinds[type - keys];
		struct config_exporter *exporter = &config->exporters[config->n_exporters++];
		*exporter = config->exporter_lists[kind].exporters[taken[kind]++];
		exporter->exporter.kind = kind;
		exporter->exporter.name = exporter->component.name;
		exporter->exporter.remote.gzip = exporter->compression == CONFIG_COMPRESSION_GZIP;
		if (kind != EXPORTER_FILE)
			exporter->exporter.remote.default_port =
				backend_of_kind(kind)->default_port;
	}
}

void config_check_exporters(struct config *config, struct config_problems *problems)
{
	const struct config_node *section = config_node_find(config->root, "exporters");
	if (section && section->kind == CONFIG_MAP)
		gather(config, section);
	for (size_t i = 0; i < config->n_exporters; i++) {
		const struct config_exporter *exporter = &config->exporters[i];
		struct exporter_check check = {problems, exporter, exporter->component.node,
					       exporter->component.name};
		if (exporter->exporter.kind == EXPORTER_FILE)
			check_directory(&check, config);
		else
			check_remote(&check);
	}
}
