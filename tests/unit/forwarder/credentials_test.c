/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/file.h"
#include "forwarder/credentials.h"
#include "tests/support/temp_dir.h"

static struct endpoint parse(const char *text)
{
	struct endpoint endpoint;
	assert_null(endpoint_parse(text, 443, false, &endpoint));
	return endpoint;
}

static void check_refused(const struct remote_config *config, const char *where, const char *reason)
{
	struct endpoint endpoint = parse(where);
	struct error *err = credentials_check(config, &endpoint);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	assert_non_null(strstr(error_text(err), reason));
	assert_null(strstr(error_text(err), "S3cret"));
	error_free(err);
	endpoint_fini(&endpoint);
}

static void check_fine(const struct remote_config *config, const char *where)
{
	struct endpoint endpoint = parse(where);
	assert_null(credentials_check(config, &endpoint));
	endpoint_fini(&endpoint);
}

static void credentials_refuse_secrets_in_clear_to_others(void **state)
{
	(void)state;
	const struct key_value key = {"X-Api-Key", "S3cret"};
	const struct key_value plain = {"X-Region", "eu"};
	const struct remote_config configs[] = {
		{.bearer_token = "S3cret"},
		{.bearer_token_file = "/x"},
		{.username = "u", .password = "S3cret"},
		{.headers = &key, .n_headers = 1},
	};
	for (size_t i = 0; i < 4; i++) {
		check_refused(&configs[i], "http://example.com", "in clear to example.com:443");
		check_fine(&configs[i], "https://example.com");
		check_fine(&configs[i], "http://127.0.0.1");
		check_fine(&configs[i], "unix:/x");
		struct remote_config allowed = configs[i];
		allowed.allow_token_in_clear = true;
		check_fine(&allowed, "http://example.com");
	}
	const struct remote_config harmless = {.headers = &plain, .n_headers = 1, .tenant_id = "t"};
	check_fine(&harmless, "http://example.com");
}

static void credentials_refuse_headers_that_cannot_be_sent(void **state)
{
	(void)state;
	static const struct {
		struct key_value header;
		const char *reason;
	} cases[] = {{{"", "S3cret"}, "1 to 256 bytes"},
		     {{"a b", "S3cret"}, "characters other than"},
		     {{"grpc-status", "S3cret"}, "reserved"},
		     {{"TE", "S3cret"}, "set by the protocol"},
		     {{"x", "S3cret\n"}, "byte 7 of the value"},
		     {{"x", "S3cret "}, "begins or ends with a blank"},
		     {{"x-bin", "S3cret!"}, "is base64"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct remote_config config = {.headers = &cases[i].header, .n_headers = 1};
		check_refused(&config, "https://a", cases[i].reason);
	}
	const struct key_value authorization = {"Authorization", "S3cret"};
	const struct remote_config twice = {
		.headers = &authorization, .n_headers = 1, .bearer_token = "S3cret"};
	check_refused(&twice, "https://a", "give one of");
	const struct remote_config both = {
		.username = "u", .password = "S3cret", .bearer_token = "S3cret"};
	check_refused(&both, "https://a", "give one of");
	const struct remote_config half = {.username = "u"};
	check_refused(&half, "https://a", "needs a password");
	const struct remote_config colon = {.username = "u:v", .password = "S3cret"};
	check_refused(&colon, "https://a", "no colon");
	const struct remote_config tenant = {.tenant_id = "a\x7f"};
	check_refused(&tenant, "https://a", "tenant id");
}

static void check_header(const struct credentials *credentials, size_t index, const char *name,
			 const char *value, bool is_secret)
{
	assert_true(index < credentials->n);
	const struct request_header *header = &credentials->headers[index];
	assert_int_equal(header->n_name, strlen(name));
	assert_int_equal(header->n_value, strlen(value));
	assert_memory_equal(header->name, name, strlen(name));
	assert_memory_equal(header->value, value, strlen(value));
	assert_int_equal(header->is_unindexed, is_secret);
}

static void credentials_become_headers_in_lower_case(void **state)
{
	(void)state;
	const struct key_value headers[] = {
		{"ProjectID", "abc"}, {"X-Trace-Bin", "AQ=="}, {"X-Auth-Token", "t"}};
	const struct remote_config config = {
		.username = "me",
		.password = "pass:word",
		.tenant_id = "team a",
		.headers = headers,
		.n_headers = 3,
	};
	struct credentials credentials;
	assert_null(credentials_load(&config, &credentials));
	assert_int_equal(credentials.n, 5);
	check_header(&credentials, 0, "authorization", "Basic bWU6cGFzczp3b3Jk", true);
	check_header(&credentials, 1, "x-scope-orgid", "team a", false);
	check_header(&credentials, 2, "projectid", "abc", false);
	check_header(&credentials, 3, "x-trace-bin", "AQ", false);
	check_header(&credentials, 4, "x-auth-token", "t", true);
	credentials_fini(&credentials);
	assert_int_equal(credentials.n, 0);
}

static void write_file(const char *path, const char *text, size_t n)
{
	struct file_writer writer;
	assert_null(file_writer_open(path, &writer));
	assert_null(file_write(writer.fd, text, n));
	assert_null(file_writer_commit(&writer));
	file_writer_close(&writer);
}

static void credentials_read_token_files(void **state)
{
	(void)state;
	struct temp_dir folder;
	temp_dir_init(&folder);
	const char *path = temp_dir_path(&folder, "token");
	const struct remote_config config = {.bearer_token_file = path};
	struct credentials first;
	struct credentials second;
	write_file(path, " \tS3cret\r\n\n", 11);
	assert_null(credentials_load(&config, &first));
	check_header(&first, 0, "authorization", "Bearer S3cret", true);
	assert_null(credentials_load(&config, &second));
	assert_true(credentials_are_equal(&first, &second));
	credentials_fini(&second);
	write_file(path, "other", 5);
	assert_null(credentials_load(&config, &second));
	assert_false(credentials_are_equal(&first, &second));
	credentials_fini(&first);
	credentials_fini(&second);

	static const struct {
		const char *text;
		size_t n;
		const char *reason;
	} cases[] = {{"", 0, "empty"},
		     {" \n", 2, "empty"},
		     {"S3cret two", 10, "contains a blank"},
		     {"S3cret\0x", 8, "zero byte"},
		     {"S3cret\nx", 8, "byte 7"},
		     {"\xef\xbb\xbfS3cret", 9, "byte 1"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file(path, cases[i].text, cases[i].n);
		struct error *err = credentials_load(&config, &first);
		assert_non_null(err);
		assert_non_null(strstr(error_text(err), cases[i].reason));
		assert_non_null(strstr(error_text(err), path));
		assert_null(strstr(error_text(err), "S3cret"));
		error_free(err);
	}
	const struct remote_config missing = {.username = "u", .password_file = "/nonexistent/p"};
	struct error *err = credentials_load(&missing, &first);
	assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
	error_free(err);
	temp_dir_fini(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credentials_refuse_secrets_in_clear_to_others),
		cmocka_unit_test(credentials_refuse_headers_that_cannot_be_sent),
		cmocka_unit_test(credentials_become_headers_in_lower_case),
		cmocka_unit_test(credentials_read_token_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
