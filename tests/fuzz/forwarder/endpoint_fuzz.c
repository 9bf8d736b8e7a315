/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as endpoint, proxy, no_proxy list, header and answer of a proxy. What is accepted as an
 * endpoint is accepted again in the form that it is given.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "forwarder/credentials.h"
#include "forwarder/endpoint.h"
#include "forwarder/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_endpoint(const char *text)
{
	struct endpoint endpoint;
	struct endpoint again;
	struct error *err = endpoint_parse(text, 443, false, &endpoint);
	if (err) {
		if (error_get_code(err) != ERROR_USAGE)
			abort();
		error_free(err);
		return;
	}
	(void)endpoint_is_loopback(&endpoint);
	if (!endpoint.unix_path) {
		/* With the scheme: a host may be called "unix". */
		char *url = mem_format("https://%s", endpoint.authority);
		err = endpoint_parse(url, 1, false, &again);
		mem_free(url);
		if (err || strcmp(again.host, endpoint.host) != 0 || again.port != endpoint.port)
			abort();
		endpoint_fini(&again);
	}
	endpoint_fini(&endpoint);
}

static void try_proxy(const char *text, const uint8_t *data, size_t size)
{
	struct proxy proxy;
	struct error *err = proxy_parse(text, &proxy);
	if (err) {
		error_free(err);
		return;
	}
	size_t n_answer;
	err = proxy_read_answer(&proxy, "h:443", data, size, &n_answer);
	if (!err && n_answer > size)
		abort();
	error_free(err);
	proxy_fini(&proxy);
}

/* "name\nvalue" */
static void try_header(char *text)
{
	char *value = strchr(text, '\n');
	if (!value)
		return;
	*value++ = 0;
	struct endpoint endpoint;
	struct error *err = endpoint_parse("http://example.com", 443, false, &endpoint);
	if (err)
		abort();
	const struct key_value header = {text, value};
	const struct remote_config config = {.headers = &header, .n_headers = 1};
	err = credentials_check(&config, &endpoint);
	if (!err) {
		struct credentials credentials;
		err = credentials_load(&config, &credentials);
		if (err || credentials.n != 1 || credentials.headers[0].is_unindexed)
			abort();
		credentials_fini(&credentials);
	}
	error_free(err);
	endpoint_fini(&endpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = 0;
	try_endpoint(text);
	try_proxy(text, data, size);
	try_proxy("http://me:secret@proxy:1", data, size);
	(void)proxy_is_exempt(text, "host.example", 443);
	(void)proxy_is_exempt(text, "10.1.2.3", 443);
	(void)proxy_is_exempt(text, "fd00::7", 443);
	try_header(text);
	free(text);
	return 0;
}
