/* SPDX-License-Identifier: Apache-2.0 */
/* perf.data to pprof, and the same in the calling form of perf_to_profile. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/conversion.h"
#include "pipeline/explain.h"
#include "pipeline/interruption.h"
#include "pipeline/output.h"

enum option_id { OPTION_INPUT = 1, OPTION_OUTPUT, OPTION_FORCE, OPTION_JIT };

static const struct cli_option options[] = {
	{OPTION_INPUT, "input", "FILE", "perf.data, a folder of perf record --threads, or -", 'i',
	 true},
	{OPTION_OUTPUT, "output", "FILE",
	 "x.pb.gz, x.pb (uncompressed) or - (default: the\ninput's name with .pb.gz, in the "
	 "current "
	 "folder)",
	 'o', true},
};

struct convert_options {
	struct conversion_options conversion;
	const char *input, *output;
	bool is_forced;
	bool is_in_place; /* the output may be open elsewhere */
};

static struct error *set(void *context, int id, const char *value)
{
	struct convert_options *convert = context;
	switch (id) {
	case CLI_POSITIONAL:
		if (convert->input)
			return cli_usage("convert takes one input, not also \"%s\"", value);
		convert->input = value;
		break;
	case OPTION_INPUT:
		convert->input = value;
		break;
	case OPTION_OUTPUT:
		convert->output = value;
		break;
	case OPTION_FORCE:
		convert->is_forced = true;
		break;
	case OPTION_JIT:
		break;
	default:
		return conversion_options_set(&convert->conversion, id, value);
	}
	return NULL;
}

const struct cli_spec cmd_convert_spec = {
	.command = "convert",
	.usage = "[OPTIONS] [-i] FILE",
	.summary = "Converts perf.data to a symbolized pprof profile.",
	.examples = "  perfpipe convert -i perf.data -o p.pb.gz\n"
		    "  perf record -a -g -o - -- sleep 5 | perfpipe convert -i - -o p.pb.gz\n"
		    "  perfpipe convert perf.data -o p.pb.gz && go tool pprof -top p.pb.gz\n"
		    "  perfpipe convert other.data --sysroot /mnt/other   recorded elsewhere\n",
	.options = options,
	.n_options = ARRAY_LEN(options),
	.shared = {conversion_file_options, conversion_symbol_options},
	.set = set,
	.formats = CLI_FORMAT_TEXT,
};

/* "/x/perf.data" → "perf.pb.gz"; the name of "." is that of the folder. */
static char *derive_output(const char *input)
{
	char real[PATH_MAX];
	const char *last = strrchr(input, '/');
	last = last ? last + 1 : input;
	if ((strcmp(last, ".") == 0 || strcmp(last, "..") == 0) && realpath(input, real))
		input = real;
	size_t n = strlen(input);
	if (strcmp(input, "-") == 0 || strspn(input, "/") == n)
		return mem_copy_string("perf.pb.gz");
	while (n > 1 && input[n - 1] == '/')
		n--;
	size_t begin = n;
	while (begin > 0 && input[begin - 1] != '/')
		begin--;
	static const char ending[] = ".data";
	size_t n_ending = sizeof(ending) - 1;
	size_t length = n - begin;
	if (length > n_ending && memcmp(input + n - n_ending, ending, n_ending) == 0)
		length -= n_ending;
	return mem_format("%.*s.pb.gz", (int)length, input + begin);
}

static struct error *check_paths(const struct convert_options *convert)
{
	assert(convert->input && convert->output);
	struct stat input, output;
	if (stat(convert->input, &input) == 0 && stat(convert->output, &output) == 0 &&
	    input.st_dev == output.st_dev && input.st_ino == output.st_ino &&
	    S_ISREG(input.st_mode))
		return cli_usage("input and output are the same file: %s", convert->output);
	if (strcmp(convert->input, "-") == 0 && isatty(STDIN_FILENO))
		return cli_usage("standard input is a terminal; pipe perf record -o - into it, or "
				 "name a file");
	return NULL;
}

static struct error *write_profile(const struct convert_options *convert, const struct cli *cli,
				   struct output *output)
{
	struct profile *profile;
	struct error *err =
		conversion_read_file(&convert->conversion, convert->input, cli, &profile);
	if (err)
		return err;
	bool is_plain = output_form_of(convert->output) == OUTPUT_PPROF;
	if (convert->is_in_place)
		err = output_open_in_place(output, convert->output);
	if (!err)
		err = output_write_profile(output, profile, is_plain);
	if (!err)
		err = output_commit(output);
	if (!err && profile->samples.n == 0)
		message_warning(
			&cli->message, 114, "the input has no samples: the profile is empty",
			"The file is whole, but no event was sampled while it was written.");
	if (!err)
		message_note(&cli->message, "wrote %s: %" PRIu32 " distinct samples",
			     output_shown(convert->output), profile->samples.n);
	profile_free(profile);
	return err;
}

static struct error *run(const struct convert_options *convert, const struct cli *cli)
{
	struct error *err = check_paths(convert);
	if (!err)
		err = conversion_options_check(&convert->conversion);
	if (err)
		return err;
	interruption_discard_outputs();
	struct output output = {0};
	if (!convert->is_in_place)
		err = output_open(&output, convert->output, true);
	else if (access(convert->output, W_OK) < 0)
		err = error_number(error_errno(errno, "cannot write %s", convert->output), 701);
	if (!err)
		err = write_profile(convert, cli, &output);
	output_close(&output);
	return err;
}

int cmd_convert(int argc, char **argv)
{
	struct convert_options convert = {0};
	conversion_options_init(&convert.conversion);
	struct cli cli;
	int exit_code;
	if (!cli_read(&cmd_convert_spec, argc, argv, &convert, &cli, &exit_code))
		return exit_code;
	if (!convert.input)
		return message_error(&cli.message,
				     cli_usage("no input: name a perf.data file, or - "
					       "for standard input"));
	char *derived = convert.output ? NULL : derive_output(convert.input);
	if (derived)
		convert.output = derived;
	struct error *err = run(&convert, &cli);
	mem_free(derived);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}

/* --- perf_to_profile --- */

static const struct cli_option perf_to_profile_options[] = {
	{OPTION_INPUT, "input", "FILE", "perf.data", 'i', true},
	{OPTION_OUTPUT, "output", "FILE", "profile to write", 'o', true},
	{OPTION_FORCE, "force", NULL, "replace an existing output", 'f', true},
	{OPTION_JIT, "jit", NULL, "accepted, without effect", 'j', true},
};

static const struct cli_spec perf_to_profile_spec = {
	.program = "perf_to_profile",
	.command = "convert",
	.usage = "-i FILE -o FILE [-f] [-j]",
	.summary = "Converts perf.data to a symbolized pprof profile.",
	.examples = "  perf_to_profile -i perf.data -o perf.profile -f\n"
		    "  go tool pprof -top perf.data       starts it by itself\n",
	.options = perf_to_profile_options,
	.n_options = ARRAY_LEN(perf_to_profile_options),
	.set = set,
	.formats = CLI_FORMAT_TEXT,
};

int cmd_convert_as_perf_to_profile(int argc, char **argv)
{
	struct convert_options convert = {0};
	conversion_options_init(&convert.conversion);
	struct cli cli;
	int exit_code;
	if (!cli_read(&perf_to_profile_spec, argc, argv, &convert, &cli, &exit_code))
		return exit_code;
	if (!convert.input || !convert.output)
		return message_error(&cli.message, cli_usage("both -i and -o are needed"));
	struct stat st;
	struct error *err = NULL;
	convert.is_in_place = stat(convert.output, &st) == 0 && S_ISREG(st.st_mode);
	if (!convert.is_forced && convert.is_in_place)
		err = error_number(error_new(ERROR_IO, "%s exists; -f replaces it", convert.output),
				   701);
	if (!err)
		err = run(&convert, &cli);
	return err ? message_error(&cli.message, err) : EXIT_CODE_DONE;
}
