/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command says to a person, on standard error: errors and warnings with their number, reason
 * and remedy (product form: WHAT [E601, exit 65] / why / fix / see), and short notes. Data goes to
 * standard output and never through here. Names out of files may hold anything, so control
 * characters are shown as \x1b and never reach a terminal.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"

struct message {
	const char *program; /* NULL = perfpipe */
	const char *command; /* "record", for `see:` of usage errors; NULL outside a command */
	bool is_quiet;	     /* errors and warnings only */
	bool is_verbose;
	bool is_json;	/* one object {code, message, why, fix} a line */
	bool has_color; /* standard error takes escape sequences */
};

enum message_color { MESSAGE_COLOR_AUTO, MESSAGE_COLOR_ALWAYS, MESSAGE_COLOR_NEVER };

/* Whether fd shall get colours: the choice, else NO_COLOR, CLICOLOR_FORCE, TERM and the terminal.
 */
bool message_wants_color(enum message_color choice, int fd);

/* Prints err, frees it, and returns the exit code that it stands for. */
int message_error(const struct message *message, struct error *err) MUST_USE;
/* The exit code alone. */
int message_exit_code(const struct error *err);
/* why may be NULL: the table's own words are used. */
void message_warning(const struct message *message, int number, const char *text, const char *why);
/* As message_warning, with a remedy that fits better than that of explain.c; NULL if there is none.
 */
void message_warning_with_fix(const struct message *message, int number, const char *text,
			      const char *why, const char *fix);
/* To standard error, as all texts above are: control characters as \x1b. */
void message_print_escaped(const char *text);
/* "perfpipe: …"; silent with -q and in JSON. */
void message_note(const struct message *message, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The same, but only with -v. */
void message_detail(const struct message *message, const char *fmt, ...) PRINTF_LIKE(2, 3);
