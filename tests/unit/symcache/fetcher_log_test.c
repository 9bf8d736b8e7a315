/* SPDX-License-Identifier: Apache-2.0 */
/* What each server answered, out of the client's account. The accounts are those of 0.188. */
#include "symcache/fetcher_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct fetcher_report_message read_log(const char *log, uint32_t n_servers)
{
	struct fetcher_report_message report = {0};
	fetcher_log_read(log, strlen(log), n_servers, &report);
	return report;
}

static void answers_are_each_servers_own(void **state)
{
	(void)state;
	const struct fetcher_report_message report =
		read_log("server urls \"http://a/ http://b/ http://c/\"\n"
			 "init server 0 http://a/buildid\n"
			 "url 0 http://a/buildid/00/debuginfo\n"
			 "url 1 http://b/buildid/00/debuginfo\n"
			 "url 2 https://c/buildid/00/debuginfo\n"
			 "query 3 urls in parallel\n"
			 "header HTTP/1.0 404 Not Found\n"
			 "server response HTTP response code said error\n"
			 "url 0 The requested URL returned error: 404\n"
			 "server response HTTP response code said error\n"
			 "url 1 The requested URL returned error: 503\n"
			 "server response Timeout was reached\n"
			 "url 2 Operation too slow. Less than 102400 bytes/sec transferred the "
			 "last 30 seconds\n"
			 "not found No such file or directory (err=-2)\n",
			 3);
	assert_int_equal(report.outcomes[0], FETCHER_NOT_THERE);
	assert_int_equal(report.outcomes[1], FETCHER_TROUBLE);
	assert_string_equal(report.texts[1], "The requested URL returned error: 503");
	assert_int_equal(report.outcomes[2], FETCHER_LATE);
}

static void only_404_and_410_are_absent(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int outcome;
	} cases[] = {
		{"The requested URL returned error: 404", FETCHER_NOT_THERE},
		{"The requested URL returned error: 404 Not Found", FETCHER_NOT_THERE},
		{"The requested URL returned error: 410", FETCHER_NOT_THERE},
		{"The requested URL returned error: 4040", FETCHER_TROUBLE},
		{"The requested URL returned error: 40", FETCHER_TROUBLE},
		{"The requested URL returned error: ", FETCHER_TROUBLE},
		{"The requested URL returned error: 403", FETCHER_TROUBLE},
		{"The requested URL returned error: 500", FETCHER_TROUBLE},
		{"Could not resolve host: nosuch.invalid", FETCHER_TROUBLE},
		{"Failed to connect to 127.0.0.1 port 1 after 0 ms: Couldn't connect to server",
		 FETCHER_TROUBLE},
		{"transfer closed with 95000 bytes remaining to read", FETCHER_TROUBLE},
		{"Resolving timed out after 5000 milliseconds", FETCHER_LATE},
		{"words of another version: 404", FETCHER_TROUBLE},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char log[256];
		snprintf(log, sizeof(log), "url 0 %s\n", cases[i].text);
		assert_int_equal(read_log(log, 1).outcomes[0], cases[i].outcome);
	}
}

static void servers_words_prove_nothing(void **state)
{
	(void)state;
	const struct fetcher_report_message report =
		read_log("header url 0 The requested URL returned error: 404\n"
			 "header server response x\n"
			 " url 0 The requested URL returned error: 404\n"
			 "found url 0 The requested URL returned error: 404\n",
			 1);
	assert_int_equal(report.outcomes[0], FETCHER_SILENT);
}

static void missing_words_are_taken_from_the_response(void **state)
{
	(void)state;
	const struct fetcher_report_message report =
		read_log("server response Timeout was reached\nurl 0 \nurl 1 \n", 2);
	assert_int_equal(report.outcomes[0], FETCHER_LATE);
	assert_int_equal(report.outcomes[1], FETCHER_SILENT);
}

static void odd_lines_are_skipped(void **state)
{
	(void)state;
	static const char *const logs[] = {
		"",
		"\n",
		"url",
		"url \n",
		"url x 404\n",
		"url 7 The requested URL returned error: 404\n",
		"url 99999999999999999999 The requested URL returned error: 404\n",
		/* Not written whole. */
		"url 0 The requested URL returned error: 404",
	};
	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++)
		assert_int_equal(read_log(logs[i], 1).outcomes[0], FETCHER_SILENT);
}

static void long_words_are_cut(void **state)
{
	(void)state;
	char log[1024] = "url 0 ";
	memset(log + 6, 'x', 900);
	strcpy(log + 906, "\n");
	const struct fetcher_report_message report = read_log(log, 1);
	assert_int_equal(report.outcomes[0], FETCHER_TROUBLE);
	assert_int_equal(strlen(report.texts[0]), SERVER_REASON_BYTES - 1);
}

static void stated_size_is_read_from_headers(void **state)
{
	(void)state;
	assert_int_equal(fetcher_log_stated_bytes(NULL), 0);
	assert_int_equal(fetcher_log_stated_bytes(""), 0);
	assert_int_equal(fetcher_log_stated_bytes("X-DEBUGINFOD-SIZE: 123\n"), 123);
	assert_int_equal(
		fetcher_log_stated_bytes("X-DEBUGINFOD-FILE: /a\r\nx-debuginfod-size:\t9\r\n"), 9);
	assert_int_equal(fetcher_log_stated_bytes("X-DEBUGINFOD-SIZE: -1\n"), 0);
	assert_int_equal(fetcher_log_stated_bytes("X-DEBUGINFOD-SIZE: x\n"), 0);
	assert_int_equal(fetcher_log_stated_bytes("X-DEBUGINFOD-SIZE: 99999999999999999999999\n"),
			 0);
}

static void hostile_report_is_made_harmless(void **state)
{
	(void)state;
	struct fetcher_report_message report;
	memset(&report, 0xff, sizeof(report));
	fetcher_wire_clean(&report);
	assert_true(strnlen(report.path, sizeof(report.path)) < sizeof(report.path));
	assert_int_equal(report.server, 0);
	for (uint32_t i = 0; i < SERVER_LIST_MAX; i++) {
		assert_int_equal(report.outcomes[i], FETCHER_SILENT);
		assert_true(strnlen(report.texts[i], SERVER_REASON_BYTES) < SERVER_REASON_BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_each_servers_own),
		cmocka_unit_test(only_404_and_410_are_absent),
		cmocka_unit_test(servers_words_prove_nothing),
		cmocka_unit_test(missing_words_are_taken_from_the_response),
		cmocka_unit_test(odd_lines_are_skipped),
		cmocka_unit_test(long_words_are_cut),
		cmocka_unit_test(stated_size_is_read_from_headers),
		cmocka_unit_test(hostile_report_is_made_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
