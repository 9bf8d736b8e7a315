/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels through HTTP proxies (RFC 9110 §9.3.6). */
#include "forwarder/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/credentials.h"
#include "forwarder/grpc_status.h"
#include "forwarder/text_escape.h"

enum { DEFAULT_PORT = 80, MAX_USER_BYTES = 1024 };

/* user:password of a URL, %XX decoded, as "Basic …". */
static struct error *parse_user(const char *text, size_t n, char **out)
{
	if (n > MAX_USER_BYTES)
		return error_new(ERROR_USAGE, "user and password are longer than %d bytes",
				 MAX_USER_BYTES);
	char *plain = mem_alloc(n + 1);
	const char *colon = memchr(text, ':', n);
	size_t n_user = colon ? (size_t)(colon - text) : n;
	size_t n_plain = grpc_status_percent_decode(text, n_user, plain);
	plain[n_plain] = 0;
	char *password = mem_alloc(n + 1);
	size_t n_password =
		colon ? grpc_status_percent_decode(colon + 1, n - n_user - 1, password) : 0;
	password[n_password] = 0;
	*out = credentials_basic(plain, password);
	credentials_wipe_string(plain);
	credentials_wipe_string(password);
	return NULL;
}

struct error *proxy_parse(const char *text, struct proxy *out)
{
	struct proxy proxy = {.port = DEFAULT_PORT};
	const char *rest = text;
	const char *scheme = strstr(text, "://");
	if (scheme) {
		if (strncasecmp(text, "http://", 7) != 0)
			return error_new(ERROR_USAGE,
					 "proxy: only http:// proxies can be used, not \"%.*s://\"",
					 (int)(scheme - text < 16 ? scheme - text : 16), text);
		rest = scheme + 3;
	}
	size_t n = strcspn(rest, "/");
	if (rest[n] != 0 && strcmp(rest + n, "/") != 0)
		return error_new(ERROR_USAGE, "proxy: a proxy has no path");
	const char *at = memrchr(rest, '@', n);
	struct error *err = NULL;
	if (at) {
		err = parse_user(rest, (size_t)(at - rest), &proxy.authorization);
		n -= (size_t)(at + 1 - rest);
		rest = at + 1;
	}
	if (!err)
		err = endpoint_parse_host(rest, n, &proxy.host, &proxy.port);
	if (err) {
		proxy_fini(&proxy);
		return error_wrap(err, "proxy");
	}
	proxy.authority = strchr(proxy.host, ':') ? mem_format("[%s]:%u", proxy.host, proxy.port)
						  : mem_format("%s:%u", proxy.host, proxy.port);
	*out = proxy;
	return NULL;
}

void proxy_fini(struct proxy *proxy)
{
	mem_free(proxy->host);
	mem_free(proxy->authority);
	credentials_wipe_string(proxy->authorization);
	*proxy = (struct proxy){0};
}

static bool is_in_network(const char *network, const char *slash, const char *host)
{
	char address[INET6_ADDRSTRLEN];
	size_t n = (size_t)(slash - network);
	uint8_t a[16];
	uint8_t b[16];
	if (n >= sizeof(address))
		return false;
	memcpy(address, network, n);
	address[n] = 0;
	int family = memchr(address, ':', n) ? AF_INET6 : AF_INET;
	unsigned max_bits = family == AF_INET ? 32 : 128;
	char *end;
	unsigned long bits = strtoul(slash + 1, &end, 10);
	if (*end || end == slash + 1 || bits > max_bits || inet_pton(family, address, a) != 1 ||
	    inet_pton(family, host, b) != 1)
		return false;
	if (memcmp(a, b, bits / 8) != 0)
		return false;
	uint8_t mask = (uint8_t)(0xff00 >> bits % 8);
	return bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) & mask) == 0;
}

static bool is_same_address(const char *a, const char *b)
{
	uint8_t x[16];
	uint8_t y[16];
	return inet_pton(AF_INET6, a, x) == 1 && inet_pton(AF_INET6, b, y) == 1 &&
	       memcmp(x, y, sizeof(x)) == 0;
}

/* One entry of the list, 0-terminated. */
static bool matches(char *entry, const char *host, uint16_t port)
{
	if (strcmp(entry, "*") == 0)
		return true;
	char *slash = strchr(entry, '/');
	if (slash)
		return is_in_network(entry, slash, host);
	char *name = NULL;
	uint16_t wanted_port = port;
	const char *text = entry[0] == '.' ? entry + 1 : entry;
	struct error *err = endpoint_parse_host(text, strlen(text), &name, &wanted_port);
	if (err) {
		error_free(err);
		return false;
	}
	CLEANUP(cleanup_mem) char *owned = name;
	if (wanted_port != port)
		return false;
	if (endpoint_host_is_address(host))
		return strcasecmp(owned, host) == 0 || is_same_address(owned, host);
	size_t n_host = strlen(host);
	size_t n_name = strlen(owned);
	if (n_name > n_host || strcasecmp(host + (n_host - n_name), owned) != 0)
		return false;
	return n_name == n_host || host[n_host - n_name - 1] == '.';
}

bool proxy_is_exempt(const char *no_proxy, const char *host, uint16_t port)
{
	CLEANUP(cleanup_mem) char *list = mem_copy_string(no_proxy);
	char *save = NULL;
	for (char *entry = strtok_r(list, ", \t", &save); entry;
	     entry = strtok_r(NULL, ", \t", &save))
		if (matches(entry, host, port))
			return true;
	return false;
}

static const char *environment(const char *lower, const char *upper)
{
	const char *value = getenv(lower);
	if (!value || !*value)
		value = getenv(upper);
	return value && *value ? value : NULL;
}

struct error *proxy_choose(const char *setting, const struct endpoint *endpoint, struct proxy *out)
{
	*out = (struct proxy){0};
	if (endpoint->unix_path || (setting && !*setting))
		return NULL;
	if (setting)
		return proxy_parse(setting, out);
	const char *text = environment("https_proxy", "HTTPS_PROXY");
	if (!text || endpoint->is_plaintext)
		return NULL;
	const char *no_proxy = environment("no_proxy", "NO_PROXY");
	if (no_proxy && proxy_is_exempt(no_proxy, endpoint->host, endpoint->port))
		return NULL;
	return error_wrap(proxy_parse(text, out), "https_proxy of the environment");
}

struct error *proxy_put_request(const struct proxy *proxy, const char *authority, struct buf *out)
{
	struct error *err =
		buf_printf(out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", authority, authority);
	if (!err && proxy->authorization)
		err = buf_printf(out, "Proxy-Authorization: %s\r\n", proxy->authorization);
	return err ? err : buf_append(out, "\r\n", 2);
}

struct error *proxy_read_answer(const struct proxy *proxy, const char *authority,
				const uint8_t *bytes, size_t n, size_t *n_out)
{
	*n_out = 0;
	const uint8_t *end = n ? memmem(bytes, n, "\r\n\r\n", 4) : NULL;
	size_t n_begin = n < 7 ? n : 7;
	char shown[96];
	if (n_begin && memcmp(bytes, "HTTP/1.", n_begin) != 0) {
		text_escape(bytes, n < 64 ? n : 64, shown, sizeof(shown));
		return error_new(ERROR_BAD_DATA, "proxy %s does not speak HTTP; it answered \"%s\"",
				 proxy->authority, shown);
	}
	if (!end) {
		if (n >= PROXY_MAX_ANSWER_BYTES)
			return error_new(ERROR_BAD_DATA,
					 "proxy %s: the head of its answer is longer than %d bytes",
					 proxy->authority, PROXY_MAX_ANSWER_BYTES);
		return NULL;
	}
	const uint8_t *line_end = memchr(bytes, '\r', n);
	size_t n_line = (size_t)(line_end - bytes);
	if (n_line >= 12 && bytes[8] == ' ' && bytes[9] == '2') {
		*n_out = (size_t)(end + 4 - bytes);
		return NULL;
	}
	text_escape(bytes, n_line, shown, sizeof(shown));
	bool wants_user = n_line >= 12 && memcmp(bytes + 9, "407", 3) == 0;
	return error_new(ERROR_DENIED, "proxy %s refused a tunnel to %s: \"%s\"%s",
			 proxy->authority, authority, shown,
			 !wants_user		? ""
			 : proxy->authorization ? " (user or password of the proxy are wrong)"
						: " (it wants a user and a password)");
}
