/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the command that is asked for and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/command.h"
#include "pipeline/explain.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Options of all commands may stand before the command's name. Returns the index of that name. */
static int find_name(int argc, char **argv)
{
	int i = 1;
	while (i < argc && argv[i][0] == '-') {
		bool takes_next;
		if (!cli_is_global(argv[i], &takes_next))
			break;
		i += takes_next ? 2 : 1;
	}
	return i < argc ? i : argc;
}

static bool has_word(int n, char **words, const char *a, const char *b)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(words[i], a) == 0 || strcmp(words[i], b) == 0)
			return true;
	}
	return false;
}

static int run_without_command(int argc, char **argv)
{
	if (has_word(argc - 1, argv + 1, "-h", "--help")) {
		command_print_overview(stdout);
		return EXIT_CODE_DONE;
	}
	command_print_overview(stderr);
	return EXIT_CODE_USAGE;
}

static int refuse_name(const char *name)
{
	struct message message = {.has_color = message_wants_color(MESSAGE_COLOR_AUTO, 2)};
	if (name[0] == '-')
		return message_error(&message, cli_usage("unknown option \"%s\"", name));
	return message_error(&message, command_unknown(name));
}

/* "perfpipe -q record -a" runs as "record -q -a". */
static int run_command(const struct command *command, int name, int argc, char **argv)
{
	char **words = mem_zalloc((size_t)argc, sizeof(*words));
	int n = 0;
	words[n++] = argv[name];
	for (int i = 1; i < argc; i++) {
		if (i != name)
			words[n++] = argv[i];
	}
	int exit_code = command->run(n, words);
	mem_free(words);
	return exit_code;
}

static int run(int argc, char **argv)
{
	if (argc > 0 && strcmp(base_name(argv[0]), "perf_to_profile") == 0)
		return cmd_convert_as_perf_to_profile(argc, argv);
	int name = find_name(argc, argv);
	if (name >= argc)
		return run_without_command(argc, argv);
	if (strcmp(argv[name], "--version") == 0 || strcmp(argv[name], "-V") == 0)
		return run_command(command_find("version"), name, argc, argv);
	const struct command *command = command_find(argv[name]);
	if (!command)
		return refuse_name(argv[name]);
	return run_command(command, name, argc, argv);
}

/* A full disk or a reader that left shows when the last of standard output is written. */
static int close_output(int exit_code)
{
	errno = 0;
	bool is_written = fflush(stdout) == 0;
	int errno_value = errno;
	if ((is_written && !ferror(stdout)) || exit_code != EXIT_CODE_DONE)
		return exit_code;
	static const char text[] = "cannot write to standard output";
	struct error *err = errno_value ? error_errno(errno_value, "%s", text)
					: error_new(ERROR_IO, "%s", text);
	struct message message = {0};
	return message_error(&message, error_number(err, 702));
}

/*
 * Whoever started us may have closed them; then the first files that we open would get their
 * numbers, and messages would go into the profile. What stands there now refuses to be used the
 * way that counts: reading standard input and writing standard output fail as before.
 */
static void occupy_standard_descriptors(void)
{
	static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is taken, which is this one. */
		if (open("/dev/null", modes[fd]) < 0 && open("/", O_PATH) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	occupy_standard_descriptors();
	/* Commands that are started get the default back. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of write(2) */
	return close_output(run(argc, argv));
}
