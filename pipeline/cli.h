/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: each command describes its options in one table, from which parsing, --help and
 * suggestions for mistyped names are made. Options of all commands (-h, -q, -v, --color, --format,
 * --no-progress) are handled here.
 *
 * A command: declare a struct cli_spec; call cli_read first of all; go on when it says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/message.h"

struct cli_option {
	int id;		      /* the command's own number, from 1 */
	const char *name;     /* long, without dashes */
	const char *argument; /* as shown in the help; NULL = takes none; "[=X]" = may have one, in
				 the same word only */
	const char *what;
	char letter;	/* 0 = none */
	bool is_common; /* stands in the first list of the help */
};

/* Ids beside the command's own. */
enum { CLI_POSITIONAL = 0 };

enum cli_format { CLI_FORMAT_TEXT = 1 << 0, CLI_FORMAT_JSON = 1 << 1, CLI_FORMAT_CSV = 1 << 2 };

/*
 * Called for each option and each positional argument, in order. value is NULL for an option
 * without one; it is a word of argv, so it may be kept.
 */
typedef struct error *(*cli_set_fn)(void *context, int id, const char *value);

struct cli_spec {
	const char *program;  /* NULL = perfpipe; else it has no commands and is named instead */
	const char *command;  /* "record" */
	const char *usage;    /* behind "perfpipe record" */
	const char *summary;  /* one sentence */
	const char *examples; /* lines, each ending in \n */
	const char *notes;    /* printed last; NULL = none */
	const struct cli_option *options;
	size_t n_options;
	/* Tables that commands share, each ended by a row without name. */
	const struct cli_option *shared[3];
	cli_set_fn set;
	int formats;	    /* set of enum cli_format that --format accepts here */
	bool takes_command; /* what follows -- or the first positional is a command */
};

struct cli {
	struct message message;
	enum cli_format format;
	bool has_progress;
	enum message_color color;
	char **command; /* takes_command: words up to argv's NULL; NULL when there are none */
};

/*
 * argv[0] is the command's name. False: done already (help was printed, or an error said), return
 * *exit_code_out.
 */
bool cli_read(const struct cli_spec *spec, int argc, char **argv, void *context, struct cli *out,
	      int *exit_code_out) MUST_USE;
/* The same without printing; is_help_out tells that -h was met. */
struct error *cli_parse(const struct cli_spec *spec, int argc, char **argv, void *context,
			struct cli *out, bool *is_help_out) MUST_USE;
void cli_print_help(const struct cli_spec *spec, FILE *out);
/* Whether word is an option of all commands, and whether its value is the next word. */
bool cli_is_global(const char *word, bool *takes_next_out);

/* Values; option is the name for the message, "--duration". All errors are ERROR_USAGE. */
struct error *cli_parse_number(const char *option, const char *text, uint64_t min, uint64_t max,
			       uint64_t *out) MUST_USE;
/* "10", "0.5", "10s", "2m", "1h". */
struct error *cli_parse_duration(const char *option, const char *text, uint64_t *ns_out) MUST_USE;
/* "65536", "512K", "4M", "1G"; has_unit_out tells them apart. */
struct error *cli_parse_size(const char *option, const char *text, uint64_t *bytes_out,
			     bool *has_unit_out) MUST_USE;
/* Index of text among n names. */
struct error *cli_parse_choice(const char *option, const char *text, const char *const *names,
			       size_t n, size_t *index_out) MUST_USE;
/* The nearest of n names, NULL when none is near. */
const char *cli_nearest(const char *text, const char *const *names, size_t n);
struct error *cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2) MUST_USE;
/*
 * The next word of a list with commas: copies it into out (size bytes) and moves *list behind it.
 * False at the end of the list; a word too long for out is cut.
 */
bool cli_next_word(const char **list, char *out, size_t size);
