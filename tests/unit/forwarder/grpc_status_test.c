/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "forwarder/grpc_status.h"

static const uint64_t second = 1000000000;

static void grpc_status_parses_numbers_as_written_by_the_protocol(void **state)
{
	(void)state;
	enum grpc_code code;
	assert_true(grpc_status_parse("0", 1, &code));
	assert_int_equal(code, GRPC_OK);
	assert_true(grpc_status_parse("16", 2, &code));
	assert_int_equal(code, GRPC_UNAUTHENTICATED);
	static const char *const bad[] = {"", "17", "00", "01", "-1", "a", "1a", " 1", "100"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(grpc_status_parse(bad[i], strlen(bad[i]), &code));
		assert_int_equal(code, GRPC_UNKNOWN);
	}
}

static void grpc_status_maps_http_and_http2(void **state)
{
	(void)state;
	static const struct {
		int http;
		enum grpc_code code;
	} http[] = {{400, GRPC_INTERNAL},	   {401, GRPC_UNAUTHENTICATED},
		    {403, GRPC_PERMISSION_DENIED}, {404, GRPC_UNIMPLEMENTED},
		    {429, GRPC_UNAVAILABLE},	   {431, GRPC_INTERNAL},
		    {500, GRPC_UNKNOWN},	   {502, GRPC_UNAVAILABLE},
		    {503, GRPC_UNAVAILABLE},	   {504, GRPC_UNAVAILABLE},
		    {200, GRPC_UNKNOWN},	   {302, GRPC_UNKNOWN}};
	for (size_t i = 0; i < sizeof(http) / sizeof(http[0]); i++)
		assert_int_equal(grpc_status_of_http(http[i].http), http[i].code);
	static const enum grpc_code h2[] = {
		GRPC_INTERNAL,		GRPC_INTERNAL, GRPC_INTERNAL, GRPC_INTERNAL,
		GRPC_INTERNAL,		GRPC_INTERNAL, GRPC_INTERNAL, GRPC_UNAVAILABLE,
		GRPC_CANCELLED,		GRPC_INTERNAL, GRPC_INTERNAL, GRPC_RESOURCE_EXHAUSTED,
		GRPC_PERMISSION_DENIED, GRPC_INTERNAL, GRPC_INTERNAL};
	for (uint32_t i = 0; i < sizeof(h2) / sizeof(h2[0]); i++)
		assert_int_equal(grpc_status_of_h2(i), h2[i]);
}

static void grpc_status_decodes_percents_and_never_fails(void **state)
{
	(void)state;
	static const struct {
		const char *text, *wanted;
	} cases[] = {{"plain", "plain"}, {"a%20b", "a b"}, {"%E2%98%BA%e2%98%ba", "☺☺"},
		     {"100%", "100%"},	 {"%", "%"},	   {"%4", "%4"},
		     {"%zz%41", "%zzA"}, {"%%41", "%A"},   {"%25%32%35", "%25"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char out[64] = "";
		size_t n = grpc_status_percent_decode(cases[i].text, strlen(cases[i].text), out);
		out[n] = 0;
		assert_string_equal(out, cases[i].wanted);
	}
}

/* google.rpc.Status with a DebugInfo and a RetryInfo of 3.0000005 s. */
static const uint8_t details[] = "\x08\x0e\x12\x05later"
				 "\x1a\x29\x0a\x27type.googleapis.com/google.rpc.DebugInf"
				 "\x1a\x33\x0a\x28type.googleapis.com/google.rpc.RetryInfo"
				 "\x12\x07\x0a\x05\x08\x03\x10\xf4\x03";

static void grpc_status_finds_retry_info_among_details(void **state)
{
	(void)state;
	uint64_t delay = 0;
	assert_true(grpc_status_retry_info(details, sizeof(details) - 1, &delay));
	assert_int_equal(delay, 3 * second + 500);
	/* Cut anywhere, it is not there. */
	for (size_t n = 0; n < sizeof(details) - 1; n++)
		assert_false(grpc_status_retry_info(details, n, &delay));
}

static void check_duration(const char *value, size_t n, bool wanted, uint64_t wanted_ns)
{
	uint8_t status[128] = "\x1a\x00\x0a\x1egoogle.com/google.rpc.RetryInfo";
	size_t at = 4 + 31;
	status[3] = 31;
	status[at++] = 0x12;
	status[at++] = (uint8_t)(n + 2);
	status[at++] = 0x0a;
	status[at++] = (uint8_t)n;
	memcpy(status + at, value, n);
	at += n;
	status[1] = (uint8_t)(at - 2);
	uint64_t delay = 1;
	assert_int_equal(grpc_status_retry_info(status, at, &delay), wanted);
	if (wanted)
		assert_int_equal(delay, wanted_ns);
}

static void grpc_status_bounds_odd_delays(void **state)
{
	(void)state;
	check_duration("", 0, true, 0);
	check_duration("\x08\x05", 2, true, 5 * second);
	check_duration("\x10\x07", 2, true, 7);
	check_duration("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, true, 0); /* -1 s */
	check_duration("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, true,
		       366 * 86400 * second); /* 2^63 - 1 s */
	check_duration("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, true, 0); /* -1 ns */
	check_duration("\x08", 1, false, 0);
}

static void grpc_status_reads_retry_after(void **state)
{
	(void)state;
	/* Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110 §5.6.7, and its obsolete forms. */
	const uint64_t wall = 784111777 * second - 60 * second;
	static const struct {
		const char *text;
		int64_t seconds; /* -1 = cannot be read */
	} cases[] = {{"120", 120},
		     {"0", 0},
		     {"99999999999999999999", 366 * 86400},
		     {"Sun, 06 Nov 1994 08:49:37 GMT", 60},
		     {"Sunday, 06-Nov-94 08:49:37 GMT", 60},
		     {"Sun Nov  6 08:49:37 1994", 60},
		     {"Sun, 06 Nov 1994 08:00:00 GMT", 0},
		     {"", -1},
		     {"soon", -1},
		     {"-5", -1},
		     {"1.5", -1}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t delay = 0;
		bool is_fine =
			grpc_status_retry_after(cases[i].text, strlen(cases[i].text), wall, &delay);
		assert_int_equal(is_fine, cases[i].seconds >= 0);
		if (is_fine)
			assert_int_equal(delay, (uint64_t)cases[i].seconds * second);
	}
}

static void grpc_code_has_names(void **state)
{
	(void)state;
	assert_string_equal(grpc_code_name(GRPC_OK), "OK");
	assert_string_equal(grpc_code_name(GRPC_UNAUTHENTICATED), "UNAUTHENTICATED");
	assert_string_equal(grpc_code_name((enum grpc_code)17), "UNKNOWN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grpc_status_parses_numbers_as_written_by_the_protocol),
		cmocka_unit_test(grpc_status_maps_http_and_http2),
		cmocka_unit_test(grpc_status_decodes_percents_and_never_fails),
		cmocka_unit_test(grpc_status_finds_retry_info_among_details),
		cmocka_unit_test(grpc_status_bounds_odd_delays),
		cmocka_unit_test(grpc_status_reads_retry_after),
		cmocka_unit_test(grpc_code_has_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
