/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/remote_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum option_id {
	OPTION_TOKEN_FILE = 200, /* beside those of commands and of conversion.h */
	OPTION_CA_FILE,
	OPTION_CERT,
	OPTION_KEY,
	OPTION_SERVER_NAME,
	OPTION_SKIP_VERIFY,
	OPTION_HEADER,
	OPTION_TENANT,
	OPTION_USER,
	OPTION_PASSWORD_FILE,
	OPTION_ALLOW_TOKEN_IN_CLEAR,
	OPTION_TIMEOUT,
};

const struct cli_option remote_options_table[] = {
	{OPTION_TOKEN_FILE, "token-file", "FILE", "bearer token", 0, true},
	{OPTION_CA_FILE, "ca-file", "FILE", "certificates to trust (default: the system's)", 0,
	 true},
	{OPTION_CERT, "cert", "FILE", "client certificate (mTLS), with --key", 0, false},
	{OPTION_KEY, "key", "FILE", "its private key", 0, false},
	{OPTION_SERVER_NAME, "server-name", "NAME", "name in the server's certificate", 0, false},
	{OPTION_SKIP_VERIFY, "skip-verify", NULL, "take any certificate", 0, false},
	{OPTION_HEADER, "header", "KEY=VALUE", "sent with each request; may be repeated", 0, false},
	{OPTION_TENANT, "tenant", "ID", "X-Scope-OrgID", 0, false},
	{OPTION_USER, "user", "NAME", "basic authentication, with --password-file", 0, false},
	{OPTION_PASSWORD_FILE, "password-file", "FILE", "its password", 0, false},
	{OPTION_ALLOW_TOKEN_IN_CLEAR, "allow-token-in-clear", NULL,
	 "send token or password over plaintext to other\nhosts", 0, false},
	{OPTION_TIMEOUT, "timeout", "SECONDS", "of one request (default 10, for uploads 60)", 0,
	 false},
	{0},
};

bool remote_options_has(int id)
{
	return id >= OPTION_TOKEN_FILE && id <= OPTION_TIMEOUT;
}

struct error *remote_options_add_pair(struct key_value *pairs, size_t *n, size_t max,
				      const char *option, const char *value)
{
	const char *equals = strchr(value, '=');
	if (!equals || equals == value)
		return cli_usage("%s \"%s\" is not KEY=VALUE", option, value);
	if (*n == max)
		return cli_usage("%s can be given %zu times", option, max);
	pairs[(*n)++] = (struct key_value){
		.key = mem_format("%.*s", (int)(equals - value), value),
		.value = equals + 1,
	};
	return NULL;
}

struct error *remote_options_set(struct remote_options *options, int id, const char *value)
{
	struct remote_config *config = &options->config;
	switch ((enum option_id)id) {
	case OPTION_TOKEN_FILE:
		config->bearer_token_file = value;
		break;
	case OPTION_CA_FILE:
		config->tls.ca_file = value;
		break;
	case OPTION_CERT:
		config->tls.cert_file = value;
		break;
	case OPTION_KEY:
		config->tls.key_file = value;
		break;
	case OPTION_SERVER_NAME:
		config->tls.server_name = value;
		break;
	case OPTION_SKIP_VERIFY:
		config->tls.skip_verify = true;
		break;
	case OPTION_HEADER:
		return remote_options_add_pair(options->headers, &options->n_headers,
					       REMOTE_OPTIONS_HEADERS_MAX, "--header", value);
	case OPTION_TENANT:
		config->tenant_id = value;
		break;
	case OPTION_USER:
		config->username = value;
		break;
	case OPTION_PASSWORD_FILE:
		config->password_file = value;
		break;
	case OPTION_ALLOW_TOKEN_IN_CLEAR:
		config->allow_token_in_clear = true;
		break;
	case OPTION_TIMEOUT:
		return cli_parse_duration("--timeout", value, &config->timeout_ns);
	}
	return NULL;
}

void remote_options_apply(const struct remote_options *options, struct remote_config *target)
{
	const char *endpoint = target->endpoint;
	bool is_insecure = target->insecure;
	*target = options->config;
	target->endpoint = endpoint;
	target->insecure = is_insecure;
	target->headers = options->headers;
	target->n_headers = options->n_headers;
	target->gzip = true;
	if (!target->bearer_token_file)
		target->bearer_token = getenv("PERFPIPE_BEARER_TOKEN");
}

void remote_options_fini(struct remote_options *options)
{
	for (size_t i = 0; i < options->n_headers; i++)
		mem_free((void *)options->headers[i].key);
	*options = (struct remote_options){0};
}
