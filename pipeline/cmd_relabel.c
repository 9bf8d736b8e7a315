/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the relabel rules of a configuration: what each one makes of some labels. */
#include <stdio.h>
#include <string.h>

#include "pipeline/command.h"
#include "pipeline/config.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"

enum option_id { OPTION_CONFIG = 1, OPTION_EXPLAIN, OPTION_INPUT, OPTION_PIPELINE };

static const struct cli_option options[] = {
	{OPTION_EXPLAIN, "explain", NULL, "show each rule, and the labels before → after", 0, true},
	{OPTION_INPUT, "input", "NAME=VALUE", "a label to start with; can be given again", 0, true},
	{OPTION_CONFIG, "config", "FILE", "default /etc/perfpipe/perfpipe.yaml", 'c', true},
	{OPTION_PIPELINE, "pipeline", "NAME", "whose rules, when there are several pipelines", 0,
	 false},
};

struct relabel_options {
	const char *path, *pipeline;
	bool wants_explanation;
	struct label_set labels;
};

static struct error *set(void *context, int id, const char *value)
{
	struct relabel_options *relabel = context;
	const char *equals;
	switch (id) {
	case OPTION_CONFIG:
		relabel->path = value;
		return NULL;
	case OPTION_EXPLAIN:
		relabel->wants_explanation = true;
		return NULL;
	case OPTION_PIPELINE:
		relabel->pipeline = value;
		return NULL;
	default:
		/* NAME=VALUE may stand without --input too: one --input can be followed by many. */
		equals = strchr(value, '=');
		if (!equals || !label_name_is_valid(value, (size_t)(equals - value)))
			return cli_usage("\"%s\" is not NAME=VALUE of a label", value);
		label_set_put(&relabel->labels, value, (size_t)(equals - value), equals + 1,
			      strlen(equals + 1));
		return relabel->labels.is_full ? cli_usage("more labels than fit") : NULL;
	}
}

const struct cli_spec cmd_relabel_spec = {
	.command = "relabel",
	.usage = "[OPTIONS] [--explain] --input NAME=VALUE...",
	.summary = "Applies the relabel rules of a configuration to some labels.",
	.examples =
		"  perfpipe relabel --explain --input comm=git __meta_gitaly_cgroup=repos-17\n"
		"  perfpipe relabel -c my.yaml --input comm=swapper    prints nothing: dropped\n",
	.notes = "Labels that begin with __ are for rules only; they are left out at the end.\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

/* --- text --- */

static void print_label(const char *mark, const struct label *label)
{
	printf("    %s%s=", mark, label->name);
	json_text_write(stdout, label->value);
	fputc('\n', stdout);
}

static void print_labels(const char *title, const struct label_set *set)
{
	puts(title);
	for (uint32_t i = 0; i < set->n; i++)
		print_label("", &set->labels[i]);
	if (!set->n)
		puts("    (no labels)");
}

static void print_field(const char *name, const struct config_node *rule)
{
	const struct config_node *node = config_node_find(rule, name);
	if (!node)
		return;
	printf(" %s=", name);
	if (node->kind == CONFIG_SCALAR) {
		json_text_write(stdout, node->text);
		return;
	}
	fputc('[', stdout);
	for (const struct config_node *child = node->first; child; child = child->next)
		printf("%s%s", child == node->first ? "" : ", ", child->text);
	fputc(']', stdout);
}

static void print_rule(const struct config_relabel *relabel, size_t number)
{
	static const char *const fields[] = {"source_labels", "separator",    "regex",
					     "modulus",	      "target_label", "replacement"};
	const struct config_rule *rule = &relabel->rules[number];
	printf("%s rule %zu (%s:%u): %s", relabel->component.name, number + 1,
	       rule->node->place.file, rule->node->place.line,
	       relabel_action_name(rule->rule.action));
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		print_field(fields[i], rule->node);
	fputc('\n', stdout);
}

/* Both are sorted by name. */
static void print_changes(const struct label_set *before, const struct label_set *after)
{
	uint32_t b = 0;
	uint32_t a = 0;
	bool is_changed = false;
	for (;;) {
		const struct label *old = b < before->n ? &before->labels[b] : NULL;
		const struct label *new = a < after->n ? &after->labels[a] : NULL;
		if (!old && !new)
			break;
		int order = !old ? 1 : !new ? -1 : strcmp(old->name, new->name);
		b += order <= 0;
		a += order >= 0;
		if (order == 0 && strcmp(old->value, new->value) == 0)
			continue;
		is_changed = true;
		if (order < 0) {
			print_label("- ", old);
		} else if (order > 0) {
			print_label("+ ", new);
		} else {
			printf("    ~ %s=", old->name);
			json_text_write(stdout, old->value);
			fputs(" → ", stdout);
			json_text_write(stdout, new->value);
			fputc('\n', stdout);
		}
	}
	if (!is_changed)
		puts("    no change");
}

/* --- JSON --- */

static void print_json_labels(const struct label_set *set)
{
	fputc('{', stdout);
	for (uint32_t i = 0; i < set->n; i++) {
		fputs(i ? ", " : "", stdout);
		json_text_write(stdout, set->labels[i].name);
		fputs(": ", stdout);
		json_text_write(stdout, set->labels[i].value);
	}
	fputc('}', stdout);
}

static const char *const verdict_names[] = {
	[RELABEL_KEPT] = "kept",
	[RELABEL_DROPPED] = "dropped",
	[RELABEL_LIMIT] = "limit",
};

static void print_json_rule(const struct config_relabel *relabel, size_t number, bool is_first,
			    enum relabel_verdict verdict, const struct label_set *after)
{
	const struct config_rule *rule = &relabel->rules[number];
	printf("%s\n  {\"processor\": ", is_first ? "" : ",");
	json_text_write(stdout, relabel->component.name);
	printf(", \"rule\": %zu, \"file\": ", number + 1);
	json_text_write(stdout, rule->node->place.file);
	printf(", \"line\": %u, \"action\": \"%s\", \"verdict\": \"%s\", \"labels\": ",
	       rule->node->place.line, relabel_action_name(rule->rule.action),
	       verdict_names[verdict]);
	print_json_labels(after);
	fputc('}', stdout);
}

/* --- rules --- */

struct explanation {
	const struct relabel_options *wanted;
	bool is_json;
	struct label_set before, set;
	size_t n_rules;
};

static enum relabel_verdict explain_rule(struct explanation *explanation,
					 const struct config_relabel *relabel, size_t number)
{
	label_set_copy(&explanation->before, &explanation->set);
	enum relabel_verdict verdict =
		relabel_apply_rule(relabel->compiled, number, &explanation->set);
	bool is_first = explanation->n_rules++ == 0;
	if (!explanation->wanted->wants_explanation)
		return verdict;
	if (explanation->is_json) {
		print_json_rule(relabel, number, is_first, verdict, &explanation->set);
		return verdict;
	}
	print_rule(relabel, number);
	if (verdict == RELABEL_DROPPED)
		puts("    dropped");
	else if (verdict == RELABEL_LIMIT)
		puts("    given up: too costly, or more labels than fit");
	else
		print_changes(&explanation->before, &explanation->set);
	return verdict;
}

static enum relabel_verdict apply(struct explanation *explanation, const struct config *config,
				  const struct config_pipeline *pipeline)
{
	for (size_t i = 0; i < pipeline->n_processors; i++) {
		if (pipeline->processors[i].type != CONFIG_COMPONENT_RELABEL)
			continue;
		const struct config_relabel *relabel =
			&config->relabel[pipeline->processors[i].index];
		for (size_t rule = 0; rule < relabel->n_rules; rule++) {
			enum relabel_verdict verdict = explain_rule(explanation, relabel, rule);
			if (verdict != RELABEL_KEPT)
				return verdict;
		}
	}
	return RELABEL_KEPT;
}

static void explain(const struct relabel_options *wanted, const struct config *config,
		    const struct config_pipeline *pipeline, bool is_json)
{
	struct explanation explanation = {.wanted = wanted, .is_json = is_json};
	label_set_init(&explanation.before);
	label_set_init(&explanation.set);
	label_set_copy(&explanation.set, &wanted->labels);
	if (is_json)
		fputs("{\"schema_version\": 1, \"rules\": [", stdout);
	else if (wanted->wants_explanation)
		print_labels("input", &explanation.set);
	enum relabel_verdict verdict = apply(&explanation, config, pipeline);
	label_set_drop_meta(&explanation.set);
	if (verdict != RELABEL_KEPT)
		label_set_clear(&explanation.set);
	if (is_json) {
		printf("],\n  \"verdict\": \"%s\", \"labels\": ", verdict_names[verdict]);
		print_json_labels(&explanation.set);
		fputs("}\n", stdout);
	} else if (wanted->wants_explanation && verdict == RELABEL_KEPT) {
		print_labels("result", &explanation.set);
	} else if (wanted->wants_explanation) {
		printf("result\n    %s\n", verdict_names[verdict]);
	} else {
		for (uint32_t i = 0; i < explanation.set.n; i++) {
			printf("%s=", explanation.set.labels[i].name);
			json_text_write(stdout, explanation.set.labels[i].value);
			fputc('\n', stdout);
		}
	}
	label_set_fini(&explanation.before);
	label_set_fini(&explanation.set);
}

static struct error *find_pipeline(const struct relabel_options *wanted,
				   const struct config *config, const struct config_pipeline **out)
{
	*out = config_find_pipeline(config, wanted->pipeline);
	if (!*out)
		return cli_usage("there is no pipeline \"%s\"",
				 wanted->pipeline ? wanted->pipeline : "");
	if (!wanted->pipeline && config->n_pipelines > 1)
		return cli_usage("there are %zu pipelines: which one? --pipeline NAME",
				 config->n_pipelines);
	return NULL;
}

static int run(const struct relabel_options *wanted, const struct cli *cli)
{
	const char *path = wanted->path ? wanted->path : config_default_path();
	const struct config_options loading = {.may_lack_credentials = true};
	struct config_problems problems;
	config_problems_init(&problems);
	struct config *config;
	int exit_code = EXIT_CODE_DONE;
	if (config_load(path, &loading, &problems, &config)) {
		const struct config_pipeline *pipeline;
		struct error *err = find_pipeline(wanted, config, &pipeline);
		if (err)
			exit_code = message_error(&cli->message, err);
		else
			explain(wanted, config, pipeline, cli->format == CLI_FORMAT_JSON);
	} else {
		config_problems_print(&problems, &cli->message);
		exit_code = EXIT_CODE_CONFIG;
	}
	config_free(config);
	config_problems_fini(&problems);
	return exit_code;
}

int cmd_relabel(int argc, char **argv)
{
	struct relabel_options wanted = {0};
	label_set_init(&wanted.labels);
	struct cli cli;
	int exit_code;
	if (cli_read(&cmd_relabel_spec, argc, argv, &wanted, &cli, &exit_code))
		exit_code = run(&wanted, &cli);
	label_set_fini(&wanted.labels);
	return exit_code;
}
