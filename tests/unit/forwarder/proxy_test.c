/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include <stdlib.h>

#include "forwarder/proxy.h"

static void proxy_parses_what_users_write(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host, *authority, *authorization;
		uint16_t port;
	} cases[] = {
		{"http://proxy.example:3128", "proxy.example", "proxy.example:3128", NULL, 3128},
		{"proxy.example:3128/", "proxy.example", "proxy.example:3128", NULL, 3128},
		{"HTTP://proxy", "proxy", "proxy:80", NULL, 80},
		{"http://[::1]:8", "::1", "[::1]:8", NULL, 8},
		{"http://me:p%40ss@h:1", "h", "h:1", "Basic bWU6cEBzcw==", 1},
		{"http://me@h:1", "h", "h:1", "Basic bWU6", 1},
		{"me:a@b@h:1", "h", "h:1", "Basic bWU6YUBi", 1},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct proxy proxy;
		assert_null(proxy_parse(cases[i].text, &proxy));
		assert_string_equal(proxy.host, cases[i].host);
		assert_string_equal(proxy.authority, cases[i].authority);
		assert_int_equal(proxy.port, cases[i].port);
		if (cases[i].authorization)
			assert_string_equal(proxy.authorization, cases[i].authorization);
		else
			assert_null(proxy.authorization);
		proxy_fini(&proxy);
	}
	static const char *const bad[] = {"socks5://h:1",     "https://h:1",
					  "http://h:1/path",  "",
					  "http://u:S3cret@", "http://u:S3cret@h:x"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct proxy proxy;
		struct error *err = proxy_parse(bad[i], &proxy);
		assert_int_equal(error_get_code(err), ERROR_USAGE);
		assert_null(strstr(error_text(err), "S3cret"));
		error_free(err);
	}
}

static void proxy_exempts_what_no_proxy_names(void **state)
{
	(void)state;
	static const struct {
		const char *list, *host;
		bool is_exempt;
	} cases[] = {
		{"*", "a", true},
		{"example.com", "example.com", true},
		{"example.com", "EXAMPLE.com", true},
		{"example.com", "a.example.com", true},
		{".example.com", "a.example.com", true},
		{".example.com", "example.com", true},
		{"example.com", "badexample.com", false},
		{"a, b c", "c", true},
		{"a,,b", "b", true},
		{"a:443", "a", true},
		{"a:444", "a", false},
		{"10.0.0.0/8", "10.200.3.4", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"192.168.4.0/22", "192.168.7.255", true},
		{"192.168.4.0/22", "192.168.8.0", false},
		{"0.0.0.0/0", "8.8.8.8", true},
		{"10.0.0.0/33", "10.0.0.1", false},
		{"10.0.0.0/", "10.0.0.1", false},
		{"10.0.0.0/8", "ten.example", false},
		{"fd00::/8", "fd12::1", true},
		{"fd00::/8", "fe00::1", false},
		{"[::1]", "::1", true},
		{"::1", "0:0::1", true},
		{"0.0.1", "10.0.0.1", false},
		{"", "a", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(proxy_is_exempt(cases[i].list, cases[i].host, 443),
				 cases[i].is_exempt);
}

static void check_choice(const char *setting, const char *endpoint_text, const char *host)
{
	struct endpoint endpoint;
	struct proxy proxy;
	assert_null(endpoint_parse(endpoint_text, 443, false, &endpoint));
	assert_null(proxy_choose(setting, &endpoint, &proxy));
	if (host)
		assert_string_equal(proxy.host, host);
	else
		assert_null(proxy.host);
	proxy_fini(&proxy);
	endpoint_fini(&endpoint);
}

static void proxy_is_chosen_by_setting_then_environment(void **state)
{
	(void)state;
	unsetenv("https_proxy");
	unsetenv("HTTPS_PROXY");
	unsetenv("no_proxy");
	unsetenv("NO_PROXY");
	check_choice(NULL, "https://a", NULL);
	setenv("HTTPS_PROXY", "http://upper:1", 1);
	check_choice(NULL, "https://a", "upper");
	setenv("https_proxy", "http://lower:1", 1);
	check_choice(NULL, "https://a", "lower");
	check_choice("http://set:1", "https://a", "set");
	check_choice("http://set:1", "http://a", "set");
	check_choice("", "https://a", NULL);
	check_choice(NULL, "http://a", NULL);
	check_choice("http://set:1", "unix:/x", NULL);
	setenv("no_proxy", "b,a", 1);
	check_choice(NULL, "https://a", NULL);
	check_choice("http://set:1", "https://a", "set");
	setenv("https_proxy", "socks5://x", 1);
	setenv("no_proxy", "", 1);
	struct endpoint endpoint;
	struct proxy proxy;
	assert_null(endpoint_parse("https://a", 443, false, &endpoint));
	struct error *err = proxy_choose(NULL, &endpoint, &proxy);
	assert_non_null(strstr(error_text(err), "https_proxy of the environment"));
	error_free(err);
	endpoint_fini(&endpoint);
	unsetenv("https_proxy");
	unsetenv("HTTPS_PROXY");
	unsetenv("no_proxy");
}

static void proxy_asks_for_a_tunnel(void **state)
{
	(void)state;
	struct proxy proxy;
	struct buf request;
	buf_init(&request, 1000);
	assert_null(proxy_parse("http://me:x@p:1", &proxy));
	assert_null(proxy_put_request(&proxy, "h:443", &request));
	assert_string_equal(buf_string(&request), "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n"
						  "Proxy-Authorization: Basic bWU6eA==\r\n\r\n");
	buf_fini(&request);

	static const char answer[] = "HTTP/1.1 200 Fine\r\nVia: x\r\n\r\nrest";
	size_t n_whole = sizeof(answer) - 1 - 4;
	for (size_t n = 0; n <= sizeof(answer) - 1; n++) {
		size_t n_answer;
		assert_null(
			proxy_read_answer(&proxy, "h:443", (const uint8_t *)answer, n, &n_answer));
		assert_int_equal(n_answer, n < n_whole ? 0 : n_whole);
	}
	static const struct {
		const char *text;
		enum error_code code;
		const char *reason;
	} cases[] = {{"HTTP/1.0 403 No\r\n\r\n", ERROR_DENIED, "refused a tunnel to h:443"},
		     {"HTTP/1.1 407 Who\r\n\r\n", ERROR_DENIED, "are wrong"},
		     {"HTTP/1.1 \r\n\r\n", ERROR_DENIED, "refused"},
		     {"HTTQ", ERROR_BAD_DATA, "does not speak HTTP"},
		     {"\x15\x03\x03", ERROR_BAD_DATA, "does not speak HTTP"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n_answer;
		struct error *err =
			proxy_read_answer(&proxy, "h:443", (const uint8_t *)cases[i].text,
					  strlen(cases[i].text), &n_answer);
		assert_int_equal(error_get_code(err), cases[i].code);
		assert_non_null(strstr(error_text(err), cases[i].reason));
		error_free(err);
	}
	proxy_fini(&proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proxy_parses_what_users_write),
		cmocka_unit_test(proxy_exempts_what_no_proxy_names),
		cmocka_unit_test(proxy_is_chosen_by_setting_then_environment),
		cmocka_unit_test(proxy_asks_for_a_tunnel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
