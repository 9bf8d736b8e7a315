/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint texts. Mistakes are found here, at the start, not in a resolver's error later. */
#include "forwarder/endpoint.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/mem.h"

enum { MAX_HOST_BYTES = 253 }; /* of a name in DNS */

static char *copy_n(const char *text, size_t n)
{
	char *copy = mem_alloc(n + 1);
	memcpy(copy, text, n);
	copy[n] = 0;
	return copy;
}

bool endpoint_host_is_address(const char *host)
{
	struct in6_addr address;
	return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

static struct error *parse_port(const char *text, size_t n, uint16_t *out)
{
	uint32_t port = 0;
	for (size_t i = 0; i < n && i < 6; i++)
		port = text[i] >= '0' && text[i] <= '9' ? port * 10 + (uint32_t)(text[i] - '0')
							: UINT16_MAX + 1;
	if (n == 0 || n > 5 || port == 0 || port > UINT16_MAX)
		return error_new(ERROR_USAGE, "port \"%.*s\" is not a number from 1 to 65535",
				 (int)(n < 32 ? n : 32), text);
	*out = (uint16_t)port;
	return NULL;
}

static bool is_host_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_';
}

/* Checks n bytes as an IPv6 address (with zone, as in fe80::1%eth0) or as a name. */
static struct error *check_host(const char *text, size_t n, bool is_bracketed)
{
	if (n == 0)
		return error_new(ERROR_USAGE, "the host name is missing");
	if (n > MAX_HOST_BYTES)
		return error_new(ERROR_USAGE, "a host name of %zu bytes is longer than %d", n,
				 MAX_HOST_BYTES);
	if (is_bracketed) {
		/* Behind '%' the name of an interface, as in fe80::1%eth0 (RFC 4007 §11). */
		const char *zone = memchr(text, '%', n);
		for (const char *c = zone ? zone + 1 : text + n; c < text + n; c++)
			if (!is_host_character(*c))
				zone = text;
		if (zone == text || (zone && zone + 1 == text + n))
			return error_new(ERROR_USAGE, "\"%.*s\" is not an IPv6 address", (int)n,
					 text);
		CLEANUP(cleanup_mem) char *address = copy_n(text, zone ? (size_t)(zone - text) : n);
		struct in6_addr ignored;
		if (inet_pton(AF_INET6, address, &ignored) != 1)
			return error_new(ERROR_USAGE, "\"%.*s\" is not an IPv6 address", (int)n,
					 text);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		if (!is_host_character(text[i]))
			return error_new(ERROR_USAGE, "\"%.*s\" is not a host name", (int)n, text);
	return NULL;
}

struct error *endpoint_parse_host(const char *text, size_t n, char **host_out, uint16_t *port_out)
{
	const char *host = text;
	size_t n_host = n;
	const char *port = NULL;
	bool is_ipv6 = false;
	if (n > 0 && text[0] == '[') {
		const char *close = memchr(text, ']', n);
		if (!close)
			return error_new(ERROR_USAGE, "\"[\" without \"]\"");
		host = text + 1;
		n_host = (size_t)(close - host);
		is_ipv6 = true;
		if (close + 1 < text + n) {
			if (close[1] != ':')
				return error_new(ERROR_USAGE, "\"]\" is followed by neither \":\" "
							      "nor the end");
			port = close + 2;
		}
	} else {
		const char *colon = memchr(text, ':', n);
		is_ipv6 = colon && memchr(colon + 1, ':', (size_t)(text + n - colon - 1));
		if (colon && !is_ipv6) {
			n_host = (size_t)(colon - text);
			port = colon + 1;
		}
	}
	struct error *err = check_host(host, n_host, is_ipv6);
	if (err)
		return err;
	if (port) {
		err = parse_port(port, (size_t)(text + n - port), port_out);
		if (err)
			return err;
	}
	*host_out = copy_n(host, n_host);
	return NULL;
}

static struct error *parse_unix(const char *path, struct endpoint *out)
{
	if (strncmp(path, "///", 3) == 0)
		path += 2;
	if (path[0] != '/' && path[0] != '@')
		return error_new(ERROR_USAGE, "unix: takes an absolute path or @NAME");
	if (path[1] == 0)
		return error_new(ERROR_USAGE, "the name of the socket is missing");
	struct sockaddr_un address;
	if (strlen(path) >= sizeof(address.sun_path))
		return error_new(ERROR_USAGE, "the path of a socket is at most %zu bytes long",
				 sizeof(address.sun_path) - 1);
	*out = (struct endpoint){
		.unix_path = mem_copy_string(path),
		.is_plaintext = true,
		.authority = mem_copy_string("localhost"),
		.shown = mem_copy_string(path),
	};
	return NULL;
}

static struct error *parse(const char *text, uint16_t default_port, bool insecure,
			   struct endpoint *out)
{
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, out);
	bool is_plaintext = insecure;
	const char *rest = strstr(text, "://");
	if (!rest) {
		rest = text;
	} else if (strncasecmp(text, "https://", 8) == 0) {
		if (insecure)
			return error_new(ERROR_USAGE, "https:// asks for TLS, insecure for none");
		rest += 3;
	} else if (strncasecmp(text, "http://", 7) == 0) {
		is_plaintext = true;
		rest += 3;
	} else {
		return error_new(ERROR_USAGE,
				 "unknown scheme \"%.*s\"; give HOST:PORT, https://HOST:PORT, "
				 "http://HOST:PORT (plaintext) or unix:/PATH",
				 (int)(rest - text < 32 ? rest - text : 32), text);
	}
	size_t n = strcspn(rest, "/?#");
	if (rest[n] != 0 && strcmp(rest + n, "/") != 0)
		return error_new(ERROR_USAGE, "a gRPC endpoint has no path; leave out \"%.64s\"",
				 rest + n);
	if (memchr(rest, '@', n))
		return error_new(ERROR_USAGE, "user and password do not belong into an endpoint; "
					      "use username and password_file");
	char *host = NULL;
	uint16_t port = default_port;
	struct error *err = endpoint_parse_host(rest, n, &host, &port);
	if (err)
		return err;
	if (port == 0) {
		mem_free(host);
		return error_new(ERROR_USAGE, "the port is missing");
	}
	char *authority = strchr(host, ':') ? mem_format("[%s]:%u", host, port)
					    : mem_format("%s:%u", host, port);
	*out = (struct endpoint){
		.host = host,
		.port = port,
		.is_plaintext = is_plaintext,
		.authority = authority,
		.shown = mem_copy_string(authority),
	};
	return NULL;
}

struct error *endpoint_parse(const char *text, uint16_t default_port, bool insecure,
			     struct endpoint *out)
{
	const char *at = strrchr(text, '@');
	bool has_password = at && strncmp(text, "unix:", 5) != 0;
	/* A password that stands here by mistake stays out of the message. */
	return error_wrap(parse(text, default_port, insecure, out), "endpoint \"%s%.200s\"",
			  has_password ? "…" : "", has_password ? at : text);
}

void endpoint_fini(struct endpoint *endpoint)
{
	mem_free(endpoint->host);
	mem_free(endpoint->unix_path);
	mem_free(endpoint->authority);
	mem_free(endpoint->shown);
	*endpoint = (struct endpoint){0};
}

bool endpoint_is_loopback(const struct endpoint *endpoint)
{
	if (endpoint->unix_path)
		return true;
	struct in_addr four;
	struct in6_addr six;
	if (inet_pton(AF_INET, endpoint->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, endpoint->host, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six) ||
		       (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
	return strcasecmp(endpoint->host, "localhost") == 0;
}
