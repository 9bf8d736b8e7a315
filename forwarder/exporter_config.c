/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of configuration values that outlive their origin. */
#include "forwarder/exporter_config.h"

#include <string.h>

#include "base/mem.h"
#include "forwarder/credentials.h"

static const char *copy(const char *text)
{
	return text ? mem_copy_string(text) : NULL;
}

static void drop(const char **text)
{
	credentials_wipe_string((char *)*text);
	*text = NULL;
}

void remote_config_copy(const struct remote_config *config, struct remote_config *out)
{
	*out = *config;
	out->endpoint = copy(config->endpoint);
	out->tls.ca_file = copy(config->tls.ca_file);
	out->tls.ca_path = copy(config->tls.ca_path);
	out->tls.cert_file = copy(config->tls.cert_file);
	out->tls.key_file = copy(config->tls.key_file);
	out->tls.server_name = copy(config->tls.server_name);
	out->tls.min_version = copy(config->tls.min_version);
	out->bearer_token_file = copy(config->bearer_token_file);
	out->bearer_token = copy(config->bearer_token);
	out->username = copy(config->username);
	out->password = copy(config->password);
	out->password_file = copy(config->password_file);
	struct key_value *headers = mem_zalloc(config->n_headers, sizeof(*headers));
	for (size_t i = 0; i < config->n_headers; i++) {
		headers[i].key = copy(config->headers[i].key);
		headers[i].value = copy(config->headers[i].value);
	}
	out->headers = headers;
	out->tenant_id = copy(config->tenant_id);
	out->proxy = copy(config->proxy);
	out->user_agent = copy(config->user_agent);
}

void remote_config_fini(struct remote_config *config)
{
	drop(&config->endpoint);
	drop(&config->tls.ca_file);
	drop(&config->tls.ca_path);
	drop(&config->tls.cert_file);
	drop(&config->tls.key_file);
	drop(&config->tls.server_name);
	drop(&config->tls.min_version);
	drop(&config->bearer_token_file);
	drop(&config->bearer_token);
	drop(&config->username);
	drop(&config->password);
	drop(&config->password_file);
	for (size_t i = 0; i < config->n_headers; i++) {
		drop((const char **)&config->headers[i].key);
		drop((const char **)&config->headers[i].value);
	}
	mem_free((struct key_value *)config->headers);
	drop(&config->tenant_id);
	drop(&config->proxy);
	drop(&config->user_agent);
	*config = (struct remote_config){0};
}
