/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_AREA "test"
#include "base/log.h"

#define TS "^ts=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{9}Z "

static int real_stderr;
static int pipe_fds[2];

static void capture(void)
{
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	real_stderr = dup(STDERR_FILENO);
	dup2(pipe_fds[1], STDERR_FILENO);
}

/* What was logged since capture(), as one string. */
static const char *captured(void)
{
	static char text[16384];
	dup2(real_stderr, STDERR_FILENO);
	close(real_stderr);
	close(pipe_fds[1]);
	ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);
	close(pipe_fds[0]);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t regex;
	assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&regex, text, 0, NULL, 0) != 0)
		fail_msg("%s does not match %s", text, pattern);
	regfree(&regex);
}

static void log_line_is_logfmt_with_a_time(void **state)
{
	(void)state;
	capture();
	log_warn("window sent bytes=%d samples=%d", 10, 3);
	assert_matches(captured(), TS "level=warn component=test msg=\"window sent\" bytes=10 "
				      "samples=3\n$");
}

static void log_line_may_be_an_event_or_keys_alone(void **state)
{
	(void)state;
	capture();
	log_error("ring refused");
	assert_matches(captured(), TS "level=error component=test msg=\"ring refused\"\n$");
	capture();
	log_error("cpu=3");
	assert_matches(captured(), TS "level=error component=test cpu=3\n$");
}

static void log_line_cannot_be_broken_by_a_name(void **state)
{
	(void)state;
	capture();
	log_info("saw \"%s\" comm=%s", "a\\b", "evil\nlevel=error \x1b[31m\x7f");
	assert_matches(captured(), "msg=\"saw \\\\\"a\\\\\\\\b\\\\\"\" "
				   "comm=evil\\\\nlevel=error \\\\x1b\\[31m\\\\x7f\n$");
}

static void log_line_cuts_what_is_too_long_and_ends_the_line(void **state)
{
	(void)state;
	static char name[10000];
	memset(name, '\x01', sizeof(name) - 1);
	capture();
	log_info("long name=%s", name);
	const char *text = captured();
	assert_true(strlen(text) < 9000);
	assert_string_equal(text + strlen(text) - 4, "...\n");
}

static void log_line_is_json_whatever_a_name_holds(void **state)
{
	(void)state;
	log_set_format(LOG_FORMAT_JSON);
	capture();
	log_warn("ring full cpu=%d comm=\"%s\" last=%s", 3, "a \"b\\ \xff\xc3\xa9\n", "x");
	assert_matches(captured(),
		       "^[{]\"ts\":\"20[^\"]*Z\",\"level\":\"warn\",\"component\":\"test\","
		       "\"msg\":\"ring full\",\"cpu\":\"3\","
		       "\"comm\":\"a \\\\\"b\\\\\\\\ \\\\ufffd\xc3\xa9\\\\u000a\","
		       "\"last\":\"x\"[}]\n$");
	capture();
	log_info("flag= lonely empty=\"\"");
	assert_matches(captured(), "\"flag\":\"\",\"lonely\":\"\",\"empty\":\"\"[}]\n$");
	log_set_format(LOG_FORMAT_AUTO);
}

static void log_line_is_text_for_people(void **state)
{
	(void)state;
	log_set_format(LOG_FORMAT_TEXT);
	capture();
	log_error("ring \x1b refused cpu=%d", 3);
	assert_matches(captured(), "^20[^ ]*Z ERROR test: ring \\\\x1b refused cpu=3\n$");
	log_set_format(LOG_FORMAT_AUTO);
}

static void log_level_hides_what_is_below(void **state)
{
	(void)state;
	assert_int_equal(log_get_level(), LOG_LEVEL_INFO);
	capture();
	log_debug("hidden");
	assert_string_equal(captured(), "");
	log_set_level(LOG_LEVEL_DEBUG);
	capture();
	log_debug("shown");
	assert_matches(captured(), "level=debug component=test msg=\"shown\"");
	log_set_level(LOG_LEVEL_ERROR);
	capture();
	log_warn("hidden");
	assert_string_equal(captured(), "");
	log_set_level(LOG_LEVEL_INFO);
}

static void log_line_under_the_journal_has_a_priority_and_no_time(void **state)
{
	(void)state;
	capture();
	struct stat st;
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	char stream[64];
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_error("a");
	log_warn("b");
	log_info("c");
	unsetenv("JOURNAL_STREAM");
	assert_string_equal(captured(), "<3>level=error component=test msg=\"a\"\n"
					"<4>level=warn component=test msg=\"b\"\n"
					"<6>level=info component=test msg=\"c\"\n");
}

static void log_line_ignores_a_journal_that_is_not_its_own(void **state)
{
	(void)state;
	capture();
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_info("a");
	unsetenv("JOURNAL_STREAM");
	assert_matches(captured(), TS);
}

static void log_line_keeps_errno(void **state)
{
	(void)state;
	capture();
	close(STDERR_FILENO);
	errno = ENOENT;
	log_error("nobody hears this");
	int errno_value = errno;
	captured();
	assert_int_equal(errno_value, ENOENT);
}

static void log_every_folds_repeats_within_its_interval(void **state)
{
	(void)state;
	struct log_every every = {.interval_ns = 60};
	uint64_t n_held = 9;
	assert_true(log_every_allows(&every, 1000, &n_held));
	assert_int_equal(n_held, 0);
	assert_false(log_every_allows(&every, 1001, &n_held));
	assert_false(log_every_allows(&every, 1059, &n_held));
	assert_true(log_every_allows(&every, 1060, &n_held));
	assert_int_equal(n_held, 2);
	assert_false(log_every_allows(&every, 1119, NULL));
	assert_true(log_every_allows(&every, 5000, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_line_is_logfmt_with_a_time),
		cmocka_unit_test(log_line_may_be_an_event_or_keys_alone),
		cmocka_unit_test(log_line_cannot_be_broken_by_a_name),
		cmocka_unit_test(log_line_cuts_what_is_too_long_and_ends_the_line),
		cmocka_unit_test(log_line_is_json_whatever_a_name_holds),
		cmocka_unit_test(log_line_is_text_for_people),
		cmocka_unit_test(log_level_hides_what_is_below),
		cmocka_unit_test(log_line_under_the_journal_has_a_priority_and_no_time),
		cmocka_unit_test(log_line_ignores_a_journal_that_is_not_its_own),
		cmocka_unit_test(log_line_keeps_errno),
		cmocka_unit_test(log_every_folds_repeats_within_its_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
