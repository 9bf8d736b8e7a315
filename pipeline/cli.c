/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/explain.h"

enum { MAX_NAMES = 64, MAX_NAME_BYTES = 40 };

enum global_id {
	GLOBAL_HELP = 1000,
	GLOBAL_QUIET,
	GLOBAL_VERBOSE,
	GLOBAL_COLOR,
	GLOBAL_FORMAT,
	GLOBAL_NO_PROGRESS,
};

static const struct cli_option global_options[] = {
	{GLOBAL_HELP, "help", NULL, "show this help", 'h', true},
	{GLOBAL_QUIET, "quiet", NULL, "errors and warnings only", 'q', false},
	{GLOBAL_VERBOSE, "verbose", NULL, "say more about what was done", 'v', false},
	{GLOBAL_COLOR, "color", "WHEN", "auto (default), always or never; NO_COLOR is obeyed", 0,
	 false},
	{GLOBAL_FORMAT, "format", "FORMAT", "", 0, false}, /* text: print_global_options */
	{GLOBAL_NO_PROGRESS, "no-progress", NULL, "no progress line on a terminal", 0, false},
};

static const char *const format_names[] = {"text", "json", "csv"};

struct error *cli_usage(const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_number(error_new(ERROR_USAGE, "%s", text), 1);
}

/* --- nearest name --- */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein distance with swaps of neighbours; both shorter than MAX_NAME_BYTES. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][MAX_NAME_BYTES + 1];
	size_t n_a = strlen(a);
	size_t n_b = strlen(b);
	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = smaller(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

const char *cli_nearest(const char *text, const char *const *names, size_t n)
{
	size_t length = strlen(text);
	if (length < 2 || length >= MAX_NAME_BYTES)
		return NULL;
	size_t best = length < 6 ? 1 : length / 3; /* edits that still look like a slip */
	const char *nearest = NULL;
	for (size_t i = 0; i < n; i++) {
		if (strlen(names[i]) >= MAX_NAME_BYTES)
			continue;
		/* The beginning of a longer name is what somebody meant to shorten. */
		size_t d = strncmp(text, names[i], length) == 0 ? 0 : distance(text, names[i]);
		if (d < best || (d == best && !nearest)) {
			best = d;
			nearest = names[i];
		}
	}
	return nearest;
}

/* --- values --- */

struct error *cli_parse_number(const char *option, const char *text, uint64_t min, uint64_t max,
			       uint64_t *out)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end)
		return cli_usage("%s takes a number, not \"%s\"", option, text);
	if (errno || value < min || value > max)
		return cli_usage("%s takes a number from %llu to %llu, not %s", option,
				 (unsigned long long)min, (unsigned long long)max, text);
	*out = value;
	return NULL;
}

struct error *cli_parse_duration(const char *option, const char *text, uint64_t *ns_out)
{
	char *end;
	double value = strtod(text, &end);
	double unit = *end == 'm' ? 60 : *end == 'h' ? 3600 : 1;
	if (*end == 's' || *end == 'm' || *end == 'h')
		end++;
	/* A year; also keeps nanoseconds far from the end of 64 bits. */
	double max_s = 366.0 * 24 * 3600;
	if (!isdigit((unsigned char)text[0]) || *end || !(value > 0) || value * unit > max_s)
		return cli_usage("%s takes a duration like 10, 0.5, 90s or 5m, not \"%s\"", option,
				 text);
	*ns_out = (uint64_t)(value * unit * 1e9);
	return NULL;
}

struct error *cli_parse_size(const char *option, const char *text, uint64_t *bytes_out,
			     bool *has_unit_out)
{
	static const char units[] = "KMG";
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	if (unit)
		end++;
	if (!isdigit((unsigned char)text[0]) || *end || errno || value == 0 ||
	    value > (UINT64_MAX >> 8) >> shift)
		return cli_usage("%s takes a size like 512K, 4M or 1G, not \"%s\"", option, text);
	*bytes_out = (uint64_t)value << shift;
	*has_unit_out = unit != NULL;
	return NULL;
}

struct error *cli_parse_choice(const char *option, const char *text, const char *const *names,
			       size_t n, size_t *index_out)
{
	char list[256] = "";
	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0) {
			*index_out = i;
			return NULL;
		}
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
	}
	const char *nearest = cli_nearest(text, names, n);
	if (nearest)
		return cli_usage("%s does not know \"%s\"; did you mean \"%s\"?", option, text,
				 nearest);
	return cli_usage("%s does not know \"%s\"; it knows %s", option, text, list);
}

bool cli_next_word(const char **list, char *out, size_t size)
{
	if (**list == '\0')
		return false;
	size_t n = strcspn(*list, ",");
	snprintf(out, size, "%.*s", (int)smaller(n, size), *list);
	*list += n;
	if (**list == ',')
		(*list)++;
	return true;
}

/* --- options --- */

/* The i-th option of a command, NULL behind the last one. */
static const struct cli_option *option_at(const struct cli_spec *spec, size_t i)
{
	if (i < spec->n_options)
		return &spec->options[i];
	i -= spec->n_options;
	for (size_t group = 0; group < ARRAY_LEN(spec->shared); group++) {
		const struct cli_option *option = spec->shared[group];
		for (; option && option->name; option++) {
			if (i-- == 0)
				return option;
		}
	}
	return NULL;
}

/* By long name of that length, or by letter. */
static bool is_named(const struct cli_option *option, const char *name, size_t length, char letter)
{
	if (letter)
		return option->letter == letter;
	return strncmp(option->name, name, length) == 0 && option->name[length] == '\0';
}

static const struct cli_option *find_global(const char *name, size_t length, char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(global_options); i++) {
		if (is_named(&global_options[i], name, length, letter))
			return &global_options[i];
	}
	return NULL;
}

static const struct cli_option *find_option(const struct cli_spec *spec, const char *name,
					    size_t length, char letter)
{
	const struct cli_option *option;
	for (size_t i = 0; (option = option_at(spec, i)); i++) {
		if (is_named(option, name, length, letter))
			return option;
	}
	return find_global(name, length, letter);
}

bool cli_is_global(const char *word, bool *takes_next_out)
{
	const struct cli_option *option = NULL;
	const char *equals = NULL;
	if (strncmp(word, "--", 2) == 0) {
		equals = strchr(word, '=');
		size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
		option = find_global(word + 2, length, 0);
	} else if (word[0] == '-' && word[1] && !word[2]) {
		option = find_global(NULL, 0, word[1]);
	}
	*takes_next_out = option && option->argument && !equals;
	return option != NULL;
}

static struct error *unknown_option(const struct cli_spec *spec, const char *name)
{
	const char *names[MAX_NAMES];
	size_t n = 0;
	const struct cli_option *option;
	for (size_t i = 0; (option = option_at(spec, i)) && n < MAX_NAMES; i++)
		names[n++] = option->name;
	for (size_t i = 0; i < ARRAY_LEN(global_options) && n < MAX_NAMES; i++)
		names[n++] = global_options[i].name;
	const char *nearest = cli_nearest(name, names, n);
	if (nearest)
		return cli_usage("unknown option \"--%s\"; did you mean \"--%s\"?", name, nearest);
	return cli_usage("unknown option \"--%s\"", name);
}

static struct error *set_format(const struct cli_spec *spec, struct cli *cli, const char *value)
{
	size_t index = 0;
	struct error *err =
		cli_parse_choice("--format", value, format_names, ARRAY_LEN(format_names), &index);
	if (err)
		return err;
	enum cli_format format = (enum cli_format)(1u << index);
	/* Every command can at least state its errors as JSON. */
	if (!((unsigned)spec->formats & format) && format == CLI_FORMAT_CSV)
		return cli_usage("%s has no --format %s", spec->command, value);
	cli->format = format;
	cli->message.is_json = format == CLI_FORMAT_JSON;
	return NULL;
}

static struct error *set_global(const struct cli_spec *spec, struct cli *cli, int id,
				const char *value)
{
	static const char *const colors[] = {"auto", "always", "never"};
	size_t index = 0;
	struct error *err;
	switch (id) {
	case GLOBAL_QUIET:
		cli->message.is_quiet = true;
		cli->message.is_verbose = false;
		break;
	case GLOBAL_VERBOSE:
		cli->message.is_verbose = true;
		cli->message.is_quiet = false;
		break;
	case GLOBAL_COLOR:
		err = cli_parse_choice("--color", value, colors, ARRAY_LEN(colors), &index);
		if (err)
			return err;
		cli->color = (enum message_color)index;
		break;
	case GLOBAL_FORMAT:
		return set_format(spec, cli, value);
	case GLOBAL_NO_PROGRESS:
		cli->has_progress = false;
		break;
	default:
		break;
	}
	return NULL;
}

struct parser {
	const struct cli_spec *spec;
	char **argv;
	int argc;
	int next;
	void *context;
	struct cli *cli;
	bool is_help;
};

static bool has_optional_value(const struct cli_option *option)
{
	return option->argument && option->argument[0] == '[';
}

/* attached: a value in the same word, NULL if there is none. */
static struct error *apply(struct parser *parser, const struct cli_option *option,
			   const char *shown, const char *attached)
{
	const char *value = attached;
	if (option->argument && !value && !has_optional_value(option)) {
		if (parser->next >= parser->argc)
			return cli_usage("%s needs a value: %s %s", shown, shown, option->argument);
		value = parser->argv[parser->next++];
	}
	if (!option->argument && attached)
		return cli_usage("%s takes no value", shown);
	if (option->id == GLOBAL_HELP) {
		parser->is_help = true;
		return NULL;
	}
	if (option->id > GLOBAL_HELP)
		return set_global(parser->spec, parser->cli, option->id, value);
	return parser->spec->set(parser->context, option->id, value);
}

static struct error *parse_long(struct parser *parser, const char *word)
{
	const char *name = word + 2;
	const char *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	char shown[MAX_NAME_BYTES];
	snprintf(shown, sizeof(shown), "--%.*s", (int)smaller(length, MAX_NAME_BYTES), name);
	const struct cli_option *option = find_option(parser->spec, name, length, 0);
	if (!option)
		return unknown_option(parser->spec, shown + 2);
	return apply(parser, option, shown, equals ? equals + 1 : NULL);
}

/* "-av", "-F99", "-F 99". */
static struct error *parse_letters(struct parser *parser, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const char shown[] = {'-', *p, '\0'};
		const struct cli_option *option = find_option(parser->spec, NULL, 0, *p);
		if (!option)
			return cli_usage("unknown option \"%s\"", shown);
		bool has_attached = option->argument && p[1];
		struct error *err = apply(parser, option, shown, has_attached ? p + 1 : NULL);
		if (err || has_attached || parser->is_help)
			return err;
	}
	return NULL;
}

static struct error *parse_words(struct parser *parser)
{
	bool is_literal = false;
	while (parser->next < parser->argc && !parser->is_help) {
		char *word = parser->argv[parser->next++];
		struct error *err;
		bool is_positional = is_literal || word[0] != '-' || word[1] == '\0';
		if (!is_positional && strcmp(word, "--") == 0) {
			is_literal = true;
			if (!parser->spec->takes_command)
				continue;
			if (parser->next == parser->argc)
				return cli_usage("a command is missing behind --");
			parser->cli->command = parser->argv + parser->next;
			return NULL;
		}
		if (is_positional && parser->spec->takes_command) {
			parser->cli->command = parser->argv + parser->next - 1;
			return NULL;
		}
		if (is_positional)
			err = parser->spec->set(parser->context, CLI_POSITIONAL, word);
		else if (word[1] == '-')
			err = parse_long(parser, word);
		else
			err = parse_letters(parser, word);
		if (err)
			return err;
	}
	return NULL;
}

struct error *cli_parse(const struct cli_spec *spec, int argc, char **argv, void *context,
			struct cli *out, bool *is_help_out)
{
	*out = (struct cli){
		.message = {.program = spec->program,
			    .command = spec->program ? NULL : spec->command},
		.format = CLI_FORMAT_TEXT,
		.has_progress = true,
		.color = MESSAGE_COLOR_AUTO,
	};
	struct parser parser = {.spec = spec,
				.argv = argv,
				.argc = argc,
				.next = 1,
				.context = context,
				.cli = out};
	struct error *err = parse_words(&parser);
	*is_help_out = parser.is_help;
	out->message.has_color = message_wants_color(out->color, STDERR_FILENO);
	out->has_progress = out->has_progress && !out->message.is_quiet && !out->message.is_json &&
			    isatty(STDERR_FILENO);
	return err;
}

bool cli_read(const struct cli_spec *spec, int argc, char **argv, void *context, struct cli *out,
	      int *exit_code_out)
{
	bool is_help;
	struct error *err = cli_parse(spec, argc, argv, context, out, &is_help);
	if (err) {
		*exit_code_out = message_error(&out->message, err);
		return false;
	}
	if (is_help) {
		cli_print_help(spec, stdout);
		*exit_code_out = EXIT_CODE_DONE;
		return false;
	}
	return true;
}

/* --- help --- */

static void print_option(const struct cli_option *option, const char *what, FILE *out)
{
	char left[64];
	char letter[8] = "    ";
	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name,
		 option->argument && !has_optional_value(option) ? " " : "",
		 option->argument ? option->argument : "");
	fprintf(out, "  %-26s ", left);
	if (strlen(left) > 26)
		fprintf(out, "\n%29s", "");
	/* A line break in the text is indented to the column of texts. */
	for (const char *p = what; *p; p++) {
		fputc(*p, out);
		if (*p == '\n')
			fprintf(out, "%29s", "");
	}
	fputc('\n', out);
}

static void print_options(const struct cli_spec *spec, bool is_common, const char *title, FILE *out)
{
	bool has_title = false;
	const struct cli_option *option;
	for (size_t i = 0; (option = option_at(spec, i)); i++) {
		if (option->is_common != is_common)
			continue;
		if (!has_title)
			fprintf(out, "\n%s:\n", title);
		has_title = true;
		print_option(option, option->what, out);
	}
}

static void print_global_options(const struct cli_spec *spec, FILE *out)
{
	char formats[64] = "text (default)";
	for (size_t i = 1; i < ARRAY_LEN(format_names); i++) {
		size_t used = strlen(formats);
		if ((unsigned)spec->formats & (1u << i))
			snprintf(formats + used, sizeof(formats) - used, ", %s", format_names[i]);
	}
	if (!((unsigned)spec->formats & CLI_FORMAT_JSON))
		snprintf(formats, sizeof(formats), "text (default); json: messages as JSON");
	fprintf(out, "\nOptions of all commands:\n");
	for (size_t i = 0; i < ARRAY_LEN(global_options); i++) {
		const struct cli_option *option = &global_options[i];
		print_option(option, option->id == GLOBAL_FORMAT ? formats : option->what, out);
	}
}

void cli_print_help(const struct cli_spec *spec, FILE *out)
{
	fprintf(out, "%s\n\nExamples:\n%s", spec->summary, spec->examples);
	fprintf(out, "\nUsage: %s%s%s%s\n", spec->program ? spec->program : "perfpipe ",
		spec->program ? "" : spec->command, spec->usage[0] ? " " : "", spec->usage);
	print_options(spec, true, "Options", out);
	print_options(spec, false, "More options", out);
	print_global_options(spec, out);
	if (spec->notes)
		fprintf(out, "\n%s", spec->notes);
}
