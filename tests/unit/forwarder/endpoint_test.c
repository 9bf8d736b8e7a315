/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/mem.h"
#include "forwarder/endpoint.h"

static void check(const char *text, bool insecure, const char *host, uint16_t port,
		  const char *unix_path, bool is_plaintext, const char *authority)
{
	struct endpoint endpoint;
	struct error *err = endpoint_parse(text, 443, insecure, &endpoint);
	assert_null(err);
	if (host)
		assert_string_equal(endpoint.host, host);
	else
		assert_null(endpoint.host);
	assert_int_equal(endpoint.port, port);
	if (unix_path)
		assert_string_equal(endpoint.unix_path, unix_path);
	else
		assert_null(endpoint.unix_path);
	assert_int_equal(endpoint.is_plaintext, is_plaintext);
	assert_string_equal(endpoint.authority, authority);
	endpoint_fini(&endpoint);
	assert_null(endpoint.authority);
}

static void endpoint_parses_what_users_write(void **state)
{
	(void)state;
	check("grpc.example:7070", false, "grpc.example", 7070, NULL, false, "grpc.example:7070");
	check("grpc.example", false, "grpc.example", 443, NULL, false, "grpc.example:443");
	check("grpc.example:80", true, "grpc.example", 80, NULL, true, "grpc.example:80");
	check("https://a_b.c-d:1/", false, "a_b.c-d", 1, NULL, false, "a_b.c-d:1");
	check("HTTP://10.0.0.1:65535", false, "10.0.0.1", 65535, NULL, true, "10.0.0.1:65535");
	check("[::1]:9", false, "::1", 9, NULL, false, "[::1]:9");
	check("[fe80::1%eth0]", false, "fe80::1%eth0", 443, NULL, false, "[fe80::1%eth0]:443");
	check("2001:db8::5", false, "2001:db8::5", 443, NULL, false, "[2001:db8::5]:443");
	check("unix:/run/x.sock", false, NULL, 0, "/run/x.sock", true, "localhost");
	check("unix:///run/x.sock", false, NULL, 0, "/run/x.sock", true, "localhost");
	check("unix:@name", false, NULL, 0, "@name", true, "localhost");
}

static void endpoint_refuses_with_the_reason(void **state)
{
	(void)state;
	static const struct {
		const char *text, *reason;
	} cases[] = {{"", "the host name is missing"},
		     {":443", "the host name is missing"},
		     {"a:", "port \"\""},
		     {"a:0", "port \"0\""},
		     {"a:65536", "port \"65536\""},
		     {"a:4294967376", "port \"4294967376\""},
		     {"a:-1", "port \"-1\""},
		     {"grpc://a", "unknown scheme \"grpc\""},
		     {"https://a/b", "has no path; leave out \"/b\""},
		     {"https://a?b", "leave out \"?b\""},
		     {"http://u:p@a", "do not belong into an endpoint"},
		     {"[::1", "\"[\" without \"]\""},
		     {"[::1]x", "followed by neither"},
		     {"[1.2.3.4]:5", "is not an IPv6 address"},
		     {"::0%eth0]:9", "is not an IPv6 address"},
		     {"[fe80::1%]", "is not an IPv6 address"},
		     {"a b", "is not a host name"},
		     {"h\xc3\xb6st", "is not a host name"},
		     {"unix:", "absolute path or @NAME"},
		     {"unix:@", "name of the socket is missing"},
		     {"unix:x", "absolute path or @NAME"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint endpoint;
		struct error *err = endpoint_parse(cases[i].text, 443, false, &endpoint);
		assert_non_null(err);
		assert_int_equal(error_get_code(err), ERROR_USAGE);
		assert_non_null(strstr(error_text(err), cases[i].reason));
		assert_null(strstr(error_text(err), "u:p"));
		error_free(err);
	}
	struct endpoint endpoint;
	struct error *err = endpoint_parse("https://a", 443, true, &endpoint);
	assert_non_null(strstr(error_text(err), "insecure"));
	error_free(err);
	err = endpoint_parse("a", 0, false, &endpoint);
	assert_non_null(strstr(error_text(err), "the port is missing"));
	error_free(err);
	char long_name[400];
	memset(long_name, 'a', sizeof(long_name));
	long_name[399] = 0;
	err = endpoint_parse(long_name, 443, false, &endpoint);
	assert_non_null(strstr(error_text(err), "longer than 253"));
	error_free(err);
	memcpy(long_name, "unix:/", 6);
	err = endpoint_parse(long_name, 443, false, &endpoint);
	assert_non_null(strstr(error_text(err), "at most 107 bytes"));
	error_free(err);
}

static void endpoint_knows_what_stays_on_this_machine(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is_loopback;
	} cases[] = {
		{"localhost", true},	     {"LocalHost:1", true}, {"127.0.0.1", true},
		{"127.9.9.9:1", true},	     {"[::1]:1", true},	    {"[::ffff:127.0.0.1]", true},
		{"unix:/x", true},	     {"10.0.0.1", false},   {"localhost.example", false},
		{"127.example", false},	     {"[::2]", false},	    {"0.0.0.0", false},
		{"[::ffff:10.0.0.1]", false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct endpoint endpoint;
		assert_null(endpoint_parse(cases[i].text, 443, false, &endpoint));
		assert_int_equal(endpoint_is_loopback(&endpoint), cases[i].is_loopback);
		endpoint_fini(&endpoint);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint_parses_what_users_write),
		cmocka_unit_test(endpoint_refuses_with_the_reason),
		cmocka_unit_test(endpoint_knows_what_stays_on_this_machine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
