/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/request_headers.h"

static void check_timeout(uint64_t ns, const char *wanted)
{
	char text[REQUEST_TIMEOUT_BYTES];
	request_headers_put_timeout(ns, text);
	assert_string_equal(text, wanted);
}

static void request_headers_round_timeouts_up(void **state)
{
	(void)state;
	check_timeout(0, "1n");
	check_timeout(1, "1n");
	check_timeout(99999999, "99999999n");
	check_timeout(100000000, "100000u");
	check_timeout(100000001, "100001u");
	check_timeout(10000000000, "10000000u");
	check_timeout(99999999000, "99999999u");
	check_timeout(99999999001, "100000m");
	check_timeout(100000000000000, "100000S");
	check_timeout(UINT64_MAX, "5124096H");
}

static void request_headers_stand_in_the_order_of_the_protocol(void **state)
{
	(void)state;
	struct request_header own = {
		.name = "authorization", .value = "Bearer t", .n_name = 13, .n_value = 8};
	const struct credentials credentials = {&own, 1};
	struct request_headers_options options = {
		.path = "/a.B/C",
		.authority = "h:1",
		.user_agent = "grpc-c-perfpipe/1",
		.is_gzip = true,
		.timeout_ns = 1500000000,
		.n_previous_attempts = 2,
		.credentials = &credentials,
	};
	static const char *const wanted[][2] = {
		{":method", "POST"},
		{":scheme", "https"},
		{":path", "/a.B/C"},
		{":authority", "h:1"},
		{"grpc-timeout", "1500000u"},
		{"te", "trailers"},
		{"content-type", "application/grpc"},
		{"grpc-encoding", "gzip"},
		{"grpc-accept-encoding", "gzip"},
		{"user-agent", "grpc-c-perfpipe/1"},
		{"grpc-previous-rpc-attempts", "2"},
		{"authorization", "Bearer t"},
	};
	struct request_headers texts;
	struct request_header list[REQUEST_HEADERS_OWN + 1];
	assert_int_equal(request_headers_list(&options, &texts, list), 12);
	for (size_t i = 0; i < 12; i++) {
		assert_string_equal(list[i].name, wanted[i][0]);
		assert_string_equal(list[i].value, wanted[i][1]);
		assert_int_equal(list[i].n_name, strlen(wanted[i][0]));
		assert_int_equal(list[i].n_value, strlen(wanted[i][1]));
	}
	options.is_gzip = false;
	options.is_plaintext = true;
	options.n_previous_attempts = 0;
	assert_int_equal(request_headers_list(&options, &texts, list), 10);
	assert_string_equal(list[1].value, "http");
	assert_string_equal(list[7].name, "grpc-accept-encoding");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_headers_round_timeouts_up),
		cmocka_unit_test(request_headers_stand_in_the_order_of_the_protocol),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
