/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_check.h"

#include <string.h>

#include "base/cleanup.h"
#include "pipeline/cli.h"
#include "pipeline/config_default.h"
#include "pipeline/config_schema.h"

enum { RECEIVERS, PROCESSORS, EXPORTERS, SECTION_N };

struct checker {
	struct config *config;
	struct config_problems *problems;
};

/* Where a setting stands, else its component. */
static struct config_place place_of(const struct config_node *node, const char *path)
{
	const struct config_node *inner = path ? config_node_find_path(node, path) : NULL;
	if (inner)
		return inner->key_place;
	return node->key ? node->key_place : node->place;
}

/* --- references --- */

static const enum config_component_type section_types[SECTION_N][5] = {
	[RECEIVERS] = {CONFIG_COMPONENT_PERF, CONFIG_COMPONENT_PERF_FILES},
	[PROCESSORS] = {CONFIG_COMPONENT_PROCESS, CONFIG_COMPONENT_GITALY, CONFIG_COMPONENT_SYMBOLS,
			CONFIG_COMPONENT_RELABEL, CONFIG_COMPONENT_LIMITS},
	[EXPORTERS] = {CONFIG_COMPONENT_EXPORTER, CONFIG_COMPONENT_EXPORTER,
		       CONFIG_COMPONENT_EXPORTER, CONFIG_COMPONENT_EXPORTER},
};

/* How many components before this one in the section have the same type of array. */
static bool resolve(const struct config_node *section, size_t number, const char *name,
		    struct config_reference *out)
{
	const struct config_key *keys =
		config_schema_find(config_schema, config_default_sections[number])->keys;
	const struct config_key *type = config_schema_find_component(keys, name);
	if (!type)
		return false;
	out->type = section_types[number][type - keys];
	out->index = 0;
	for (const struct config_node *node = section->first; node; node = node->next) {
		const struct config_key *other = config_schema_find_component(keys, node->key);
		if (strcmp(node->key, name) == 0)
			return true;
		out->index += other && section_types[number][other - keys] == out->type;
	}
	return false;
}

static void undefined(struct checker *checker, const struct config_pipeline *pipeline,
		      size_t number, const struct config_node *section,
		      const struct config_node *name)
{
	static const char *const singular[] = {"receiver", "processor", "exporter"};
	for (size_t i = 0; i < SECTION_N; i++) {
		const struct config_node *other =
			config_node_find(checker->config->root, config_default_sections[i]);
		if (i == number || !config_node_find(other, name->text))
			continue;
		config_error_numbered(checker->problems, 204, name->place,
				      "\"%s\" in %s of pipeline %s stands among the %s", name->text,
				      config_default_sections[number], pipeline->component.name,
				      config_default_sections[i]);
		return;
	}
	const char *names[64];
	size_t n = 0;
	for (const struct config_node *node = section ? section->first : NULL;
	     node && n < ARRAY_LEN(names); node = node->next)
		names[n++] = node->key;
	const char *nearest = cli_nearest(name->text, names, n);
	config_error_numbered(checker->problems, 204, name->place,
			      "%s \"%s\" of pipeline %s is not defined%s%s%s", singular[number],
			      name->text, pipeline->component.name,
			      nearest ? "; did you mean \"" : "", nearest ? nearest : "",
			      nearest ? "\"?" : "");
}

static struct config_reference *resolve_list(struct checker *checker,
					     const struct config_pipeline *pipeline, size_t number)
{
	const char *key = config_default_sections[number];
	const struct config_node *list = config_node_find(pipeline->component.node, key);
	const struct config_node *section = config_node_find(checker->config->root, key);
	if (!list || list->kind != CONFIG_LIST)
		return NULL;
	struct config_reference *references =
		arena_alloc(&checker->config->arena, list->n * sizeof(struct config_reference) + 1);
	memset(references, 0, list->n * sizeof(*references));
	size_t n = 0;
	for (const struct config_node *name = list->first; name; name = name->next, n++) {
		if (name->kind != CONFIG_SCALAR)
			continue;
		/* What is there under an unknown type was told already. */
		if (!config_node_find(section, name->text))
			undefined(checker, pipeline, number, section, name);
		else
			resolve(section, number, name->text, &references[n]);
		for (const struct config_node *twin = list->first; twin != name;
		     twin = twin->next) {
			if (twin->kind != CONFIG_SCALAR || strcmp(twin->text, name->text) != 0)
				continue;
			config_error_numbered(checker->problems, 203, name->place,
					      "\"%s\" stands twice in %s of pipeline %s",
					      name->text, key, pipeline->component.name);
			break;
		}
	}
	return references;
}

/* --- the order of processors --- */

static bool is_type(const char *name, const char *type)
{
	size_t n = strlen(type);
	return strncmp(name, type, n) == 0 && (name[n] == '\0' || name[n] == '/');
}

/* Index of the first processor of a type, n_processors if there is none. */
static size_t find_processor(const struct config_pipeline *pipeline, const char *type)
{
	size_t i = 0;
	while (i < pipeline->n_processors && !is_type(pipeline->processor_names[i], type))
		i++;
	return i;
}

static void check_order(struct checker *checker, const struct config_pipeline *pipeline)
{
	static const struct {
		const char *before, *type, *why;
		bool is_needed;
	} orders[] = {
		{"process", "gitaly", "it works on what process reads", true},
		{"process", "relabel", "rules see what process reads", false},
		{"gitaly", "relabel", "rules see what gitaly finds", false},
		{"relabel", "limits", "limits count labels as they are sent", false},
	};
	const struct config_node *list = config_node_find(pipeline->component.node, "processors");
	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		size_t first = find_processor(pipeline, orders[i].before);
		size_t place = find_processor(pipeline, orders[i].type);
		bool is_missing = first == pipeline->n_processors;
		if (place == pipeline->n_processors || first < place ||
		    (is_missing && !orders[i].is_needed))
			continue;
		const struct config_node *node = list->first;
		for (size_t skipped = 0; skipped < place; skipped++)
			node = node->next;
		config_error_numbered(checker->problems, 207, node->place,
				      "processor %s of pipeline %s needs %s before it: %s",
				      pipeline->processor_names[place], pipeline->component.name,
				      orders[i].before, orders[i].why);
	}
}

/* relabel may stand several times, the others once. */
static void check_repeated(struct checker *checker, const struct config_pipeline *pipeline)
{
	static const char *const once[] = {"process", "gitaly", "symbols", "limits"};
	const struct config_node *list = config_node_find(pipeline->component.node, "processors");
	for (size_t i = 0; i < ARRAY_LEN(once) && list; i++) {
		const char *first = NULL;
		for (const struct config_node *node = list->first; node; node = node->next) {
			if (node->kind != CONFIG_SCALAR || !is_type(node->text, once[i]))
				continue;
			if (first && strcmp(first, node->text) != 0)
				config_error_numbered(
					checker->problems, 207, node->place,
					"processors %s and %s: pipeline %s can have one %s", first,
					node->text, pipeline->component.name, once[i]);
			else
				first = node->text;
		}
	}
}

static void check_pipelines(struct checker *checker)
{
	struct config *config = checker->config;
	for (size_t i = 0; i < config->n_pipelines; i++) {
		struct config_pipeline *pipeline = &config->pipelines[i];
		pipeline->receivers = resolve_list(checker, pipeline, RECEIVERS);
		pipeline->processors = resolve_list(checker, pipeline, PROCESSORS);
		pipeline->exporters = resolve_list(checker, pipeline, EXPORTERS);
		check_order(checker, pipeline);
		check_repeated(checker, pipeline);
	}
}

static bool is_used(const struct config *config, size_t number, const char *name)
{
	for (size_t i = 0; i < config->n_pipelines; i++) {
		const struct config_node *list = config_node_find(
			config->pipelines[i].component.node, config_default_sections[number]);
		for (const struct config_node *node = list ? list->first : NULL; node;
		     node = node->next) {
			if (node->kind == CONFIG_SCALAR && strcmp(node->text, name) == 0)
				return true;
		}
	}
	return false;
}

static void check_unused(struct checker *checker)
{
	for (size_t number = 0; number < SECTION_N; number++) {
		const struct config_node *section =
			config_node_find(checker->config->root, config_default_sections[number]);
		for (const struct config_node *node = section ? section->first : NULL; node;
		     node = node->next) {
			if (!is_used(checker->config, number, node->key))
				config_warn(checker->problems, 225, node->key_place,
					    "%s.%s is in no pipeline: it has no effect",
					    config_default_sections[number], node->key);
		}
	}
}

/* --- receivers and processors --- */

static void check_receivers(struct checker *checker)
{
	const struct config *config = checker->config;
	for (size_t i = 0; i < config->n_perf_files; i++) {
		const struct config_perf_files *files = &config->perf_files[i];
		const struct config_node *node = files->component.node;
		const struct config_node *list = config_node_find(node, "include");
		for (const struct config_node *path = list ? list->first : NULL; path;
		     path = path->next) {
			if (path->kind == CONFIG_SCALAR && path->text[0] != '/')
				config_error_numbered(checker->problems, 202, path->place,
						      "\"%s\" is no whole path, from / on",
						      path->text);
		}
		bool is_move = files->after == CONFIG_AFTER_MOVE;
		if (is_move && !config_node_find(node, "move_to"))
			config_error_numbered(checker->problems, 207, place_of(node, "after"),
					      "after: move needs move_to, the folder");
		if (!is_move && files->move_to)
			config_error_numbered(checker->problems, 207, place_of(node, "move_to"),
					      "move_to has an effect with after: move only");
	}
}

static void check_process(struct checker *checker, const struct config_process *process)
{
	const struct config_node *list = config_node_find(process->component.node, "read_environ");
	for (const struct config_node *name = list ? list->first : NULL; name; name = name->next) {
		if (name->kind != CONFIG_SCALAR)
			continue;
		if (strcmp(name->text, "GITALY_HOOKS_PAYLOAD") == 0)
			config_error_numbered(checker->problems, 207, name->place,
					      "GITALY_HOOKS_PAYLOAD holds data of users and is "
					      "never read");
		else if (!label_name_is_valid(name->text, strlen(name->text)))
			config_error_numbered(checker->problems, 202, name->place,
					      "\"%s\" is no name of an environment variable",
					      name->text);
	}
}

static void check_processors(struct checker *checker)
{
	const struct config *config = checker->config;
	for (size_t i = 0; i < config->n_process; i++)
		check_process(checker, &config->process[i]);
	for (size_t i = 0; i < config->n_gitaly; i++) {
		const struct config_gitaly *gitaly = &config->gitaly[i];
		if (strcmp(gitaly->config, "auto") != 0 && gitaly->config[0] != '/')
			config_error_numbered(
				checker->problems, 202, place_of(gitaly->component.node, "config"),
				"config is \"%s\", expected auto or a whole path", gitaly->config);
	}
	for (size_t i = 0; i < config->n_symbols; i++) {
		const struct config_node *urls =
			config_node_find_path(config->symbols[i].component.node, "debuginfod.urls");
		for (const struct config_node *url = urls ? urls->first : NULL; url;
		     url = url->next) {
			if (url->kind == CONFIG_SCALAR && strncmp(url->text, "https://", 8) != 0 &&
			    strncmp(url->text, "http://", 7) != 0)
				config_error_numbered(checker->problems, 202, url->place,
						      "\"%s\" is no http:// or https:// URL",
						      url->text);
		}
	}
	for (size_t i = 0; i < config->n_limits; i++) {
		const char *label = config->limits[i].exemplar_label;
		if (!label_name_is_valid(label, strlen(label)))
			config_error_numbered(
				checker->problems, 202,
				place_of(config->limits[i].component.node, "exemplars.label"),
				"\"%s\" is no name of a label", label);
	}
}

/* --- rules --- */

static struct config_place place_of_field(const struct config_rule *rule, enum relabel_field field)
{
	const char *key = field == RELABEL_FIELD_RULE ? "action" : relabel_field_name(field);
	const struct config_node *node = config_node_find(rule->node, key);
	return node ? node->place : rule->node->place;
}

static void compile_rules(struct checker *checker)
{
	for (size_t i = 0; i < checker->config->n_relabel; i++) {
		struct config_relabel *relabel = &checker->config->relabel[i];
		relabel->compiled = relabel_new();
		for (size_t r = 0; r < relabel->n_rules; r++) {
			enum relabel_field field = RELABEL_FIELD_RULE;
			const struct config_node *node = relabel->rules[r].node;
			if (config_problems_has_between(checker->problems, node->place, node->end))
				continue;
			struct error *err =
				relabel_add(relabel->compiled, &relabel->rules[r].rule, &field);
			if (err)
				config_error_numbered(checker->problems, 208,
						      place_of_field(&relabel->rules[r], field),
						      "rule %zu of %s: %s", r + 1,
						      relabel->component.name, error_text(err));
			error_free(err);
		}
	}
}

/* --- service --- */

static void check_labels(struct checker *checker)
{
	struct config_service *service = &checker->config->service;
	if (service->node && !service->node[0])
		service->node = NULL;
	static const char *const never[] = {"pid", "tid", "cmdline", "correlation_id"};
	const struct config_node *labels =
		config_node_find_path(checker->config->root, "service.external_labels");
	for (const struct config_node *label = labels ? labels->first : NULL; label;
	     label = label->next) {
		if (strncmp(label->key, "__", 2) == 0)
			config_error_numbered(checker->problems, 207, label->key_place,
					      "label %s: names that begin with __ exist for rules "
					      "only and are not sent",
					      label->key);
		for (size_t i = 0; i < ARRAY_LEN(never); i++) {
			if (strcmp(label->key, never[i]) == 0)
				config_error_numbered(checker->problems, 207, label->key_place,
						      "label %s is never a label of a series",
						      label->key);
		}
	}
}

static void check_http(struct checker *checker)
{
	const struct config_service *service = &checker->config->service;
	const struct config_node *node =
		config_node_find_path(checker->config->root, "service.telemetry.http.address");
	struct config_place place = node ? node->place : (struct config_place){0};
	if (!service->http_address[0])
		return;
	struct endpoint endpoint;
	struct error *err = endpoint_parse(service->http_address, 0, true, &endpoint);
	bool has_scheme = strstr(service->http_address, "//") ||
			  strncmp(service->http_address, "unix:", 5) == 0;
	if (err || has_scheme || endpoint.port == 0)
		config_error_numbered(checker->problems, 202, place,
				      "service.telemetry.http.address is \"%s\", expected "
				      "ADDRESS:PORT",
				      service->http_address);
	else if (service->enable_lifecycle && !endpoint_is_loopback(&endpoint))
		config_warn(checker->problems, 224, place,
			    "with enable_lifecycle, whoever reaches %s can stop perfpipe",
			    service->http_address);
	if (!err)
		endpoint_fini(&endpoint);
	error_free(err);
}

static void check_purpose(struct checker *checker)
{
	const struct config *config = checker->config;
	const struct config_node *exporters = config_node_find(config->root, "exporters");
	if (exporters && exporters->n)
		return;
	struct config_place place = {config->root->place.file, 0, 0};
	if (config->service.http_address[0])
		config_warn(checker->problems, 222, place,
			    "no exporters: profiles can only be fetched from http://%s/debug/pprof",
			    config->service.http_address);
	else
		config_error_numbered(checker->problems, 207, place,
				      "neither exporters nor service.telemetry.http.address: "
				      "profiles would go nowhere");
}

/* --- tests --- */

static void check_tests(struct checker *checker)
{
	const struct config *config = checker->config;
	for (size_t i = 0; i < config->n_tests; i++) {
		const struct config_test *test = &config->tests[i];
		if (config_problems_has_between(checker->problems, test->node->place,
						test->node->end))
			continue;
		if (!test->is_dropped && !config_node_find(test->node, "expect"))
			config_error_numbered(checker->problems, 207, test->node->place,
					      "the test expects nothing: add expect, or dropped: "
					      "true");
		if (test->is_dropped && test->n_expect)
			config_error_numbered(checker->problems, 207,
					      place_of(test->node, "expect"),
					      "a sample that is dropped has no labels to expect");
		if (test->pipeline && !config_find_pipeline(config, test->pipeline))
			config_error_numbered(checker->problems, 204,
					      config_node_find(test->node, "pipeline")->place,
					      "pipeline \"%s\" is not defined", test->pipeline);
		if (!test->pipeline && config->n_pipelines > 1)
			config_error_numbered(checker->problems, 207, test->node->place,
					      "the test has to name its pipeline: there are %zu",
					      config->n_pipelines);
	}
}

void config_check(struct config *config, struct config_problems *problems)
{
	struct checker checker = {config, problems};
	check_receivers(&checker);
	check_processors(&checker);
	compile_rules(&checker);
	config_check_exporters(config, problems);
	check_pipelines(&checker);
	check_labels(&checker);
	check_http(&checker);
	check_purpose(&checker);
	check_tests(&checker);
	/* With errors, what is unused may just be misspelt. */
	if (!problems->n_errors)
		check_unused(&checker);
}
