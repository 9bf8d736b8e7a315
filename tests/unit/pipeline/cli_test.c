/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "pipeline/cli.h"

enum { FLAG = 1, VALUE, SHARED = 100 };

struct seen {
	int ids[16];
	const char *values[16];
	size_t n;
};

static struct error *set(void *context, int id, const char *value)
{
	struct seen *seen = context;
	assert_true(seen->n < ARRAY_LEN(seen->ids));
	seen->ids[seen->n] = id;
	seen->values[seen->n++] = value;
	return NULL;
}

static const struct cli_option options[] = {
	{FLAG, "flag", NULL, "a flag", 'f', true},
	{VALUE, "value", "N", "a value", 'n', true},
};
static const struct cli_option shared[] = {
	{SHARED, "shared", "TEXT", "of all", 0, false},
	{0},
};
static const struct cli_spec spec = {
	.command = "test",
	.usage = "[OPTIONS]",
	.summary = "Tests.",
	.examples = "  perfpipe test\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {shared},
	.set = set,
	.formats = CLI_FORMAT_TEXT | CLI_FORMAT_JSON,
};

/* argv is a NULL-terminated list whose first word is the command's name. */
static struct error *parse(const struct cli_spec *how, char **argv, struct seen *seen,
			   struct cli *cli)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	bool is_help;
	*seen = (struct seen){0};
	return cli_parse(how, argc, argv, seen, cli, &is_help);
}

static void assert_usage(struct error *err, const char *part)
{
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	assert_int_equal(error_get_number(err), 1);
	if (!strstr(error_text(err), part))
		fail_msg("\"%s\" does not say \"%s\"", error_text(err), part);
	error_free(err);
}

static void cli_takes_values_in_every_form(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	char *argv[] = {"test",	     "-n1",  "-n",	 "2",	     "--value",	  "3",
			"--value=4", "-fn5", "--shared", "--value=", "--shared=", NULL};
	assert_null(parse(&spec, argv, &seen, &cli));
	const char *const want[] = {"1", "2", "3", "4", NULL, "5", "--value=", ""};
	assert_int_equal(seen.n, ARRAY_LEN(want));
	for (size_t i = 0; i < seen.n; i++) {
		if (want[i])
			assert_string_equal(seen.values[i], want[i]);
		else
			assert_null(seen.values[i]);
	}
	assert_int_equal(seen.ids[6], SHARED);
}

static void cli_takes_a_lone_dash_and_words_behind_two_as_positional(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	char *argv[] = {"test", "-", "--", "-f", NULL};
	assert_null(parse(&spec, argv, &seen, &cli));
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.ids[0], CLI_POSITIONAL);
	assert_string_equal(seen.values[0], "-");
	assert_string_equal(seen.values[1], "-f");
}

static void cli_leaves_a_command_and_its_options_alone(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	struct cli_spec how = spec;
	how.takes_command = true;
	char *with_dashes[] = {"test", "-f", "--", "-x", "-n", NULL};
	assert_null(parse(&how, with_dashes, &seen, &cli));
	assert_int_equal(seen.n, 1);
	assert_ptr_equal(cli.command, with_dashes + 3);
	char *without[] = {"test", "-f", "ls", "-l", NULL};
	assert_null(parse(&how, without, &seen, &cli));
	assert_ptr_equal(cli.command, without + 2);
	char *nothing[] = {"test", "--", NULL};
	assert_usage(parse(&how, nothing, &seen, &cli), "missing");
}

static void cli_suggests_the_nearest_option(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	char *swapped[] = {"test", "--vlaue", "1", NULL};
	assert_usage(parse(&spec, swapped, &seen, &cli), "did you mean \"--value\"?");
	char *global[] = {"test", "--colour", NULL};
	assert_usage(parse(&spec, global, &seen, &cli), "did you mean \"--color\"?");
	char *far[] = {"test", "--zzzzzzzz", NULL};
	assert_usage(parse(&spec, far, &seen, &cli), "unknown option \"--zzzzzzzz\"");
	char *letter[] = {"test", "-z", NULL};
	assert_usage(parse(&spec, letter, &seen, &cli), "unknown option \"-z\"");
	char endless[5000] = "--";
	memset(endless + 2, 'a', sizeof(endless) - 3);
	char *huge[] = {"test", endless, NULL};
	assert_usage(parse(&spec, huge, &seen, &cli), "unknown option");
}

static void cli_refuses_missing_and_superfluous_values(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	char *missing[] = {"test", "-n", NULL};
	assert_usage(parse(&spec, missing, &seen, &cli), "-n needs a value");
	char *superfluous[] = {"test", "--flag=1", NULL};
	assert_usage(parse(&spec, superfluous, &seen, &cli), "takes no value");
}

static void cli_reads_the_options_of_all_commands(void **state)
{
	(void)state;
	struct seen seen;
	struct cli cli;
	char *argv[] = {"test", "-q", "--color", "always", "--format=json", NULL};
	assert_null(parse(&spec, argv, &seen, &cli));
	assert_true(cli.message.is_quiet);
	assert_true(cli.message.is_json);
	assert_true(cli.message.has_color);
	assert_int_equal(cli.format, CLI_FORMAT_JSON);
	char *csv[] = {"test", "--format", "csv", NULL};
	assert_usage(parse(&spec, csv, &seen, &cli), "has no --format csv");
	char *when[] = {"test", "--color", "sometimes", NULL};
	assert_usage(parse(&spec, when, &seen, &cli), "--color");
}

static void cli_knows_which_words_are_options_of_all_commands(void **state)
{
	(void)state;
	bool takes_next;
	assert_true(cli_is_global("-q", &takes_next));
	assert_false(takes_next);
	assert_true(cli_is_global("--color", &takes_next));
	assert_true(takes_next);
	assert_true(cli_is_global("--color=never", &takes_next));
	assert_false(takes_next);
	assert_false(cli_is_global("--frequency", &takes_next));
	assert_false(cli_is_global("record", &takes_next));
	assert_false(cli_is_global("-", &takes_next));
}

static void cli_parses_numbers_strictly(void **state)
{
	(void)state;
	uint64_t n;
	assert_null(cli_parse_number("--n", "42", 1, 100, &n));
	assert_int_equal(n, 42);
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1x", "0x10", "101", "0", "99999999999999999999"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_usage(cli_parse_number("--n", bad[i], 1, 100, &n), "--n");
}

static void cli_parses_durations_with_units(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"10", 10000000000u},
		    {"0.5", 500000000u},
		    {"90s", 90000000000u},
		    {"2m", 120000000000u},
		    {"1h", 3600000000000u}};
	uint64_t ns;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_null(cli_parse_duration("-d", good[i].text, &ns));
		assert_int_equal(ns, good[i].ns);
	}
	static const char *const bad[] = {"", "0", "-1", "inf", "nan", "1e99", "10x", "s", "10ss"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_usage(cli_parse_duration("-d", bad[i], &ns), "-d");
}

static void cli_parses_sizes_without_overflow(void **state)
{
	(void)state;
	uint64_t bytes;
	bool has_unit;
	assert_null(cli_parse_size("-m", "512K", &bytes, &has_unit));
	assert_int_equal(bytes, 512 << 10);
	assert_true(has_unit);
	assert_null(cli_parse_size("-m", "128", &bytes, &has_unit));
	assert_false(has_unit);
	static const char *const bad[] = {"",	 "0", "-1",	      "4X",
					  "4MM", "M", "99999999999G", "18446744073709551615"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_usage(cli_parse_size("-m", bad[i], &bytes, &has_unit), "-m");
}

static void cli_splits_lists_at_commas(void **state)
{
	(void)state;
	const char *list = "one,,three";
	char word[4];
	assert_true(cli_next_word(&list, word, sizeof(word)));
	assert_string_equal(word, "one");
	assert_true(cli_next_word(&list, word, sizeof(word)));
	assert_string_equal(word, "");
	assert_true(cli_next_word(&list, word, sizeof(word)));
	assert_string_equal(word, "thr");
	assert_false(cli_next_word(&list, word, sizeof(word)));
}

static void cli_help_shows_examples_before_options(void **state)
{
	(void)state;
	char text[4096] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	cli_print_help(&spec, out);
	fclose(out);
	const char *examples = strstr(text, "Examples:");
	const char *common = strstr(text, "--value N");
	const char *rare = strstr(text, "--shared TEXT");
	assert_non_null(examples);
	assert_true(examples < common && common < rare);
	assert_non_null(strstr(text, "text (default), json\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cli_takes_values_in_every_form),
		cmocka_unit_test(cli_takes_a_lone_dash_and_words_behind_two_as_positional),
		cmocka_unit_test(cli_leaves_a_command_and_its_options_alone),
		cmocka_unit_test(cli_suggests_the_nearest_option),
		cmocka_unit_test(cli_refuses_missing_and_superfluous_values),
		cmocka_unit_test(cli_reads_the_options_of_all_commands),
		cmocka_unit_test(cli_knows_which_words_are_options_of_all_commands),
		cmocka_unit_test(cli_parses_numbers_strictly),
		cmocka_unit_test(cli_parses_durations_with_units),
		cmocka_unit_test(cli_parses_sizes_without_overflow),
		cmocka_unit_test(cli_splits_lists_at_commas),
		cmocka_unit_test(cli_help_shows_examples_before_options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
