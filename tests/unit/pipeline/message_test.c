/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/message.h"

static char said[4096];
static int saved_fd;
static FILE *capture;

/* Standard error goes into a file between these two. */
static void begin_listening(void)
{
	fflush(stderr);
	saved_fd = dup(STDERR_FILENO);
	capture = tmpfile();
	assert_non_null(capture);
	dup2(fileno(capture), STDERR_FILENO);
}

static void end_listening(void)
{
	fflush(stderr);
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	rewind(capture);
	said[fread(said, 1, sizeof(said) - 1, capture)] = '\0';
	fclose(capture);
}

static void message_states_what_why_fix_and_see(void **state)
{
	(void)state;
	struct message message = {.command = "convert"};
	begin_listening();
	int exit_code = message_error(
		&message, error_number(error_new(ERROR_BAD_DATA, "x.data: it is text"), 603));
	end_listening();
	assert_int_equal(exit_code, 65);
	const char *first = "perfpipe: error: x.data: it is text [E603, exit 65]\n  why: ";
	assert_memory_equal(said, first, strlen(first));
	assert_non_null(strstr(said, "\n  fix: "));
	assert_non_null(strstr(said, "\n  see: perfpipe explain E603\n"));
	size_t n_lines = 0;
	for (const char *p = said; *p; p++)
		n_lines += *p == '\n';
	assert_true(n_lines <= 5);
}

static void message_sends_bad_usage_to_the_help(void **state)
{
	(void)state;
	struct message message = {.command = "record"};
	begin_listening();
	int exit_code =
		message_error(&message, error_number(error_new(ERROR_USAGE, "no such thing"), 1));
	end_listening();
	assert_int_equal(exit_code, 2);
	assert_string_equal(said, "perfpipe: error: no such thing [E001, exit 2]\n"
				  "  see: perfpipe record --help\n");
}

static void message_gives_four_fields_as_json(void **state)
{
	(void)state;
	struct message message = {.is_json = true};
	begin_listening();
	message_warning(&message, 601, "say \"cut\"\n", "because");
	message_note(&message, "not in JSON");
	int exit_code = message_error(&message, error_new(ERROR_IO, "no number"));
	end_listening();
	assert_int_equal(exit_code, 74);
	const char *first = "{\"code\":\"W601\",\"message\":\"say \\\"cut\\\"\\u000a\",\"why\":"
			    "\"because\",\"fix\":\"";
	assert_memory_equal(said, first, strlen(first));
	assert_non_null(strstr(said, "\n{\"code\":null,\"message\":\"no number\",\"why\":null,"
				     "\"fix\":null}\n"));
	assert_null(strstr(said, "not in JSON"));
}

static void message_keeps_notes_from_the_quiet(void **state)
{
	(void)state;
	struct message message = {.is_quiet = true};
	begin_listening();
	message_note(&message, "note");
	message_detail(&message, "detail");
	message_warning(&message, 606, "lost", NULL);
	end_listening();
	assert_null(strstr(said, "note"));
	assert_null(strstr(said, "detail"));
	assert_non_null(strstr(said, "perfpipe: warning: lost [W606]\n"));
}

static void message_obeys_no_color_unless_told(void **state)
{
	(void)state;
	setenv("CLICOLOR_FORCE", "1", 1);
	unsetenv("NO_COLOR");
	assert_true(message_wants_color(MESSAGE_COLOR_AUTO, -1));
	setenv("NO_COLOR", "1", 1);
	assert_false(message_wants_color(MESSAGE_COLOR_AUTO, -1));
	assert_true(message_wants_color(MESSAGE_COLOR_ALWAYS, -1));
	unsetenv("NO_COLOR");
	setenv("CLICOLOR_FORCE", "0", 1);
	assert_false(message_wants_color(MESSAGE_COLOR_AUTO, -1));
	assert_false(message_wants_color(MESSAGE_COLOR_NEVER, -1));
}

static void message_shows_control_characters_instead_of_sending_them(void **state)
{
	(void)state;
	struct message message = {.command = "convert"};
	begin_listening();
	message_note(&message, "event \033[31mred\n%s",
		     "\xc2\x9b"
		     "2J \xc3\xa9");
	message_warning(&message, 602, "bad \x9b\xff", NULL);
	end_listening();
	const char *want = "perfpipe: event \\x1b[31mred\\x0a\\xc2\\x9b2J \xc3\xa9\n";
	assert_memory_equal(said, want, strlen(want));
	assert_non_null(strstr(said, "bad \\x9b\\xff [W602]"));
	assert_null(strchr(said, '\033'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_states_what_why_fix_and_see),
		cmocka_unit_test(message_sends_bad_usage_to_the_help),
		cmocka_unit_test(message_gives_four_fields_as_json),
		cmocka_unit_test(message_keeps_notes_from_the_quiet),
		cmocka_unit_test(message_obeys_no_color_unless_told),
		cmocka_unit_test(message_shows_control_characters_instead_of_sending_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
