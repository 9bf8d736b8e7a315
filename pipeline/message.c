/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/message.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/explain.h"
#include "pipeline/json_text.h"
#include "proto/utf8.h"

enum {
	BAD_USAGE = 1, /* its own text and the help say all */
	NOTE_BYTES = 8192,
};

bool message_wants_color(enum message_color choice, int fd)
{
	if (choice != MESSAGE_COLOR_AUTO)
		return choice == MESSAGE_COLOR_ALWAYS;
	const char *no_color = getenv("NO_COLOR");
	if (no_color && no_color[0])
		return false;
	const char *force = getenv("CLICOLOR_FORCE");
	if (force && force[0] && strcmp(force, "0") != 0)
		return true;
	const char *term = getenv("TERM");
	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static int exit_code_of(enum error_code code)
{
	switch (code) {
	case ERROR_NO_ENTRY:
		return EXIT_CODE_NO_INPUT;
	case ERROR_BAD_DATA:
	case ERROR_LIMIT:
		return EXIT_CODE_BAD_INPUT;
	case ERROR_UNAVAILABLE:
		return EXIT_CODE_UNAVAILABLE;
	case ERROR_IO:
		return EXIT_CODE_IO;
	case ERROR_DENIED:
		return EXIT_CODE_DENIED;
	case ERROR_USAGE:
		return EXIT_CODE_USAGE;
	case ERROR_AGAIN:
	case ERROR_UNSUPPORTED:
	case ERROR_CANCELLED:
		break;
	}
	return EXIT_CODE_FAILED;
}

int message_exit_code(const struct error *err)
{
	enum error_code code = error_get_code(err);
	const struct explain_entry *entry = explain_find(EXPLAIN_ERROR, error_get_number(err));
	if (!entry || entry->severity != EXPLAIN_ERROR)
		return exit_code_of(code);
	if (entry->exit_code == EXIT_CODE_NOT_FOUND && code != ERROR_NO_ENTRY)
		return EXIT_CODE_NOT_EXECUTABLE;
	return entry->exit_code;
}

/* One message, whatever its severity; absent parts are NULL. */
struct statement {
	const char *severity, *color;
	char code[16]; /* "E601", "" when it has no number */
	const char *text, *why, *fix;
	int exit_code;
};

static void print_json(const struct statement *statement)
{
	fputs("{\"code\":", stderr);
	json_text_write(stderr, statement->code[0] ? statement->code : NULL);
	fputs(",\"message\":", stderr);
	json_text_write(stderr, statement->text);
	fputs(",\"why\":", stderr);
	json_text_write(stderr, statement->why);
	fputs(",\"fix\":", stderr);
	json_text_write(stderr, statement->fix);
	fputs("}\n", stderr);
}

/* A control character at p of valid UTF-8: its length, else 0. */
static size_t control_length(const unsigned char *p)
{
	if (p[0] < 0x20 || p[0] == 0x7f)
		return 1;
	return p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
}

void message_print_escaped(const char *text)
{
	bool is_utf8 = utf8_is_valid(text, strlen(text));
	for (const unsigned char *p = (const unsigned char *)text; *p;) {
		size_t n = control_length(p);
		if (n == 0 && *p >= 0x80 && !is_utf8)
			n = 1;
		if (n == 0)
			fputc(*p++, stderr);
		for (; n > 0; n--)
			fprintf(stderr, "\\x%02x", *p++);
	}
}

static void print_text(const struct message *message, const struct statement *statement)
{
	const char *on = message->has_color ? statement->color : "";
	const char *off = message->has_color ? "\033[0m" : "";
	fprintf(stderr, "perfpipe: %s%s:%s ", on, statement->severity, off);
	message_print_escaped(statement->text);
	if (statement->code[0] && statement->exit_code)
		fprintf(stderr, " [%s, exit %d]", statement->code, statement->exit_code);
	else if (statement->code[0])
		fprintf(stderr, " [%s]", statement->code);
	fputc('\n', stderr);
	if (statement->why) {
		fputs("  why: ", stderr);
		message_print_escaped(statement->why);
		fputc('\n', stderr);
	}
	if (statement->fix)
		fprintf(stderr, "  fix: %s\n", statement->fix);
	if (statement->exit_code == EXIT_CODE_USAGE && !statement->why)
		fprintf(stderr, "  see: %s %s%s--help\n",
			message->program ? message->program : "perfpipe",
			message->command ? message->command : "", message->command ? " " : "");
	else if (statement->code[0])
		fprintf(stderr, "  see: perfpipe explain %s\n", statement->code);
}

static void print_statement(const struct message *message, const struct statement *statement)
{
	fflush(stdout);
	if (message->is_json)
		print_json(statement);
	else
		print_text(message, statement);
}

enum { OUTPUT_FAILED = 702 };

/* `perfpipe … | head` is no failure: whoever reads our output has what he wanted. */
static bool has_reader_left(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};
	return poll(&out, 1, 0) == 1 && out.revents & POLLERR;
}

int message_error(const struct message *message, struct error *err)
{
	int number = error_get_number(err);
	if (number == OUTPUT_FAILED && has_reader_left()) {
		error_free(err);
		return EXIT_CODE_DONE;
	}
	struct statement statement = {
		.severity = "error",
		.color = "\033[1;31m",
		.text = error_text(err),
		.exit_code = message_exit_code(err),
	};
	const struct explain_entry *entry = explain_find(EXPLAIN_ERROR, number);
	if (entry && number != BAD_USAGE) {
		statement.why = entry->why;
		statement.fix = entry->fix;
	}
	if (number)
		snprintf(statement.code, sizeof(statement.code), "E%03d", number);
	print_statement(message, &statement);
	int exit_code = statement.exit_code;
	error_free(err);
	return exit_code;
}

void message_warning(const struct message *message, int number, const char *text, const char *why)
{
	message_warning_with_fix(message, number, text, why, NULL);
}

void message_warning_with_fix(const struct message *message, int number, const char *text,
			      const char *why, const char *fix)
{
	const struct explain_entry *entry = explain_find(EXPLAIN_WARNING, number);
	struct statement statement = {
		.severity = "warning",
		.color = "\033[1;33m",
		.text = text,
		.why = why ? why : (entry ? entry->why : NULL),
		.fix = fix ? fix : (entry ? entry->fix : NULL),
	};
	if (number)
		snprintf(statement.code, sizeof(statement.code), "W%03d", number);
	print_statement(message, &statement);
}

static void print_note(const char *fmt, va_list args)
{
	fflush(stdout);
	fputs("perfpipe: ", stderr);
	char text[NOTE_BYTES];
	vsnprintf(text, sizeof(text), fmt, args);
	message_print_escaped(text);
	fputc('\n', stderr);
}

void message_note(const struct message *message, const char *fmt, ...)
{
	if (message->is_quiet || message->is_json)
		return;
	va_list args;
	va_start(args, fmt);
	print_note(fmt, args);
	va_end(args);
}

void message_detail(const struct message *message, const char *fmt, ...)
{
	if (!message->is_verbose || message->is_json)
		return;
	va_list args;
	va_start(args, fmt);
	print_note(fmt, args);
	va_end(args);
}
