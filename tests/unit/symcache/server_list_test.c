/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of servers, and the pauses of those that fail. */
#include "symcache/server_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NS_PER_S ((uint64_t)1000000000)

static void init(struct server_list *list, const char *urls, const struct clock *clock)
{
	struct error *err = server_list_init(list, urls, clock);
	assert_null(err);
}

static void assert_refused(const char *urls, const char *why)
{
	struct server_list list;
	struct error *err = server_list_init(&list, urls, NULL);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	assert_non_null(strstr(error_text(err), why));
	error_free(err);
}

static void urls_are_told_apart_and_closed_by_a_slash(void **state)
{
	(void)state;
	struct server_list list;
	init(&list,
	     "  http://a.example https://b.example/x\thttp://a.example/\n"
	     "HTTPS://b.example/x ",
	     NULL);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.items[0].url, "http://a.example/");
	assert_string_equal(list.items[1].url, "https://b.example/x/");
	assert_string_equal(list.items[2].url, "HTTPS://b.example/x/");
}

static void tags_are_no_servers(void **state)
{
	(void)state;
	struct server_list list;
	init(&list, "ima:enforcing http://a ima:ignore http://b ima:", NULL);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.items[1].url, "http://b/");
	assert_refused("ima:enforcing", "no server");
}

static void other_schemes_and_odd_bytes_are_refused(void **state)
{
	(void)state;
	assert_refused("", "no server");
	assert_refused(" \t", "no server");
	assert_refused("http://a ftp://b", "\"ftp://b\"");
	assert_refused("file:///etc", "\"file:///etc\"");
	assert_refused("debuginfod.example", "\"debuginfod.example\"");
	assert_refused("http://", "\"http://\"");
	assert_refused("http:///x", "\"http:///x\"");
	assert_refused("http://a\x01", "ASCII");
	assert_refused("http://\xc3\xa4", "ASCII");
	char longest[SERVER_URL_BYTES + 1];
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "http://", 7);
	longest[SERVER_URL_BYTES - 2] = 0;
	struct server_list list;
	init(&list, longest, NULL);
	assert_int_equal(strlen(list.items[0].url), SERVER_URL_BYTES - 1);
	longest[SERVER_URL_BYTES - 2] = 'a';
	longest[SERVER_URL_BYTES - 1] = 0;
	assert_refused(longest, "longer");
	assert_refused("http://1 http://2 http://3 http://4 http://5 http://6 http://7 http://8 "
		       "http://9",
		       "more than 8");
}

static void host_is_what_people_know_a_server_by(void **state)
{
	(void)state;
	struct server_list list;
	char host[SERVER_URL_BYTES];
	init(&list, "http://a.example:8002/x/y https://user:secret@b.example", NULL);
	server_list_host(&list, 0, host);
	assert_string_equal(host, "a.example:8002");
	server_list_host(&list, 1, host);
	assert_string_equal(host, "b.example");
}

static void hash_is_of_the_set(void **state)
{
	(void)state;
	struct server_list a, b, c;
	init(&a, "http://a http://b", NULL);
	init(&b, "http://b/ http://a/ http://a", NULL);
	init(&c, "http://a http://c", NULL);
	assert_int_equal(server_list_hash(&a), server_list_hash(&b));
	assert_int_not_equal(server_list_hash(&a), server_list_hash(&c));
}

static void three_failures_in_a_row_pause_for_ten_minutes(void **state)
{
	(void)state;
	struct clock_fake fake = {.now_wall_ns = 1000 * NS_PER_S};
	const struct clock clock = clock_from_fake(&fake);
	struct server_list list;
	init(&list, "http://a http://b", &clock);
	assert_false(server_list_note_failure(&list, 0, "one"));
	assert_false(server_list_note_failure(&list, 0, "two"));
	server_list_note_answer(&list, 0);
	assert_false(server_list_note_failure(&list, 0, "one"));
	assert_false(server_list_note_failure(&list, 0, "two"));
	assert_false(server_list_is_paused(&list, 0));
	assert_true(server_list_note_failure(&list, 0, "did not\nanswer\x1b in 5s"));
	assert_true(server_list_is_paused(&list, 0));
	assert_false(server_list_is_paused(&list, 1));
	assert_false(server_list_are_all_paused(&list));
	assert_string_equal(list.items[0].reason, "did not?answer? in 5s");
	/* Those that were under way fail too; that is no news and prolongs nothing. */
	for (int i = 0; i < 5; i++)
		assert_false(server_list_note_failure(&list, 0, "late"));
	assert_int_equal(server_list_pause_s(&list, 0), 600);
	fake.now_wall_ns += 599 * NS_PER_S;
	assert_int_equal(server_list_pause_s(&list, 0), 1);
	fake.now_wall_ns += NS_PER_S;
	assert_false(server_list_is_paused(&list, 0));
}

static void pauses_pass_to_later_runs(void **state)
{
	(void)state;
	struct clock_fake fake = {.now_wall_ns = 1000 * NS_PER_S};
	const struct clock clock = clock_from_fake(&fake);
	struct server_list list, later;
	struct buf buf;
	init(&list, "http://a http://b/x", &clock);
	for (int i = 0; i < SERVER_MAX_FAILURES; i++)
		(void)server_list_note_failure(&list, 1, "did not answer in 5s");
	buf_init(&buf, 4096);
	assert_null(server_list_format(&list, &buf));
	assert_string_equal(buf_string(&buf), "1600000000000 http://b/x/ did not answer in 5s\n");
	fake.now_wall_ns += 100 * NS_PER_S;
	init(&later, "http://b/x http://c", &clock);
	server_list_parse(&later, buf_string(&buf));
	assert_int_equal(server_list_pause_s(&later, 0), 500);
	assert_string_equal(later.items[0].reason, "did not answer in 5s");
	assert_false(server_list_is_paused(&later, 1));
	buf_fini(&buf);
}

static void damaged_pauses_pause_nobody(void **state)
{
	(void)state;
	struct clock_fake fake = {.now_wall_ns = 1000 * NS_PER_S};
	const struct clock clock = clock_from_fake(&fake);
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"http://a/ x\n",
		"1600000000000\n",
		"1600000000000 http://a/\n",
		"1600000000000http://a/ x\n",
		"99999999999999999999999999 http://a/ x\n",
		/* A clock that was set back. */
		"1600000000001 http://a/ x\n",
		"1000000000000 http://a/ x\n",
		"1600000000000 http://b/ x",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct server_list list;
		init(&list, "http://a", &clock);
		server_list_parse(&list, texts[i]);
		assert_false(server_list_is_paused(&list, 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_told_apart_and_closed_by_a_slash),
		cmocka_unit_test(tags_are_no_servers),
		cmocka_unit_test(other_schemes_and_odd_bytes_are_refused),
		cmocka_unit_test(host_is_what_people_know_a_server_by),
		cmocka_unit_test(hash_is_of_the_set),
		cmocka_unit_test(three_failures_in_a_row_pause_for_ten_minutes),
		cmocka_unit_test(pauses_pass_to_later_runs),
		cmocka_unit_test(damaged_pauses_pause_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
