/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/relabel_case.h"

#include <string.h>

static struct config_place place_of(const struct config_test *test, const char *path)
{
	const struct config_node *node = config_node_find_path(test->node, path);
	return node ? node->place : test->node->place;
}

static bool check_verdict(const struct config_test *test, enum relabel_verdict verdict,
			  struct config_problems *problems)
{
	if (verdict == RELABEL_LIMIT) {
		config_error_numbered(problems, 209, test->node->place,
				      "test \"%s\": the rules are too costly, or make too much",
				      test->name);
		return false;
	}
	bool is_dropped = verdict == RELABEL_DROPPED;
	if (is_dropped == test->is_dropped)
		return true;
	config_error_numbered(problems, 209, place_of(test, is_dropped ? "expect" : "dropped"),
			      is_dropped ? "test \"%s\": the sample is dropped"
					 : "test \"%s\": the sample is kept, expected to be "
					   "dropped",
			      test->name);
	return false;
}

static bool run(const struct config *config, const struct config_test *test, struct label_set *set,
		struct config_problems *problems)
{
	label_set_clear(set);
	for (size_t i = 0; i < test->n_input; i++)
		label_set_put(set, test->input[i].key, strlen(test->input[i].key),
			      test->input[i].value, strlen(test->input[i].value));
	const struct config_pipeline *pipeline = config_find_pipeline(config, test->pipeline);
	bool is_passed = check_verdict(test, config_relabel(config, pipeline, set), problems);
	if (!is_passed || test->is_dropped)
		return is_passed;
	label_set_drop_meta(set);
	const struct config_node *node = config_node_find(test->node, "expect")->first;
	for (size_t i = 0; i < test->n_expect; i++, node = node->next) {
		const struct key_value *expect = &test->expect[i];
		const struct label *label = label_set_find(set, expect->key, strlen(expect->key));
		const char *value = label ? label->value : "";
		if (strcmp(value, expect->value) == 0)
			continue;
		is_passed = false;
		if (label)
			config_error_numbered(problems, 209, node->place,
					      "test \"%s\": %s is \"%s\", expected \"%s\"",
					      test->name, expect->key, value, expect->value);
		else
			config_error_numbered(problems, 209, node->place,
					      "test \"%s\": there is no label %s, expected \"%s\"",
					      test->name, expect->key, expect->value);
	}
	return is_passed;
}

size_t relabel_case_run_all(const struct config *config, struct config_problems *problems)
{
	struct label_set set;
	label_set_init(&set);
	size_t n_passed = 0;
	for (size_t i = 0; i < config->n_tests; i++)
		n_passed += run(config, &config->tests[i], &set, problems);
	label_set_fini(&set);
	return n_passed;
}
