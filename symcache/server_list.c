/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/server_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash_map.h"

#define NS_PER_S ((uint64_t)1000000000)

static const char spaces[] = " \t\r\n";

static uint64_t wall_ns(const struct server_list *list)
{
	return list->clock->wall_ns(list->clock->context);
}

/* Bytes of "http://" or "https://", 0 for anything else. */
static size_t scheme_bytes(const char *url)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]);
		if (strncasecmp(url, schemes[i], n) == 0)
			return n;
	}
	return 0;
}

static struct error *add_url(struct server_list *list, const char *token, size_t n)
{
	struct server server = {0};
	if (n + 2 > sizeof(server.url))
		return error_new(ERROR_USAGE, "a URL of %zu bytes is longer than the maximum of %d",
				 n, SERVER_URL_BYTES - 2);
	memcpy(server.url, token, n);
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)token[i] <= ' ' || (unsigned char)token[i] >= 0x7f)
			return error_new(ERROR_USAGE, "a URL may hold printable ASCII only");
	}
	size_t scheme = scheme_bytes(server.url);
	if (!scheme || !server.url[scheme] || server.url[scheme] == '/')
		return error_new(ERROR_USAGE, "\"%s\" is no http:// or https:// URL", server.url);
	if (server.url[n - 1] != '/')
		server.url[n] = '/';
	for (uint32_t i = 0; i < list->n; i++) {
		if (strcmp(list->items[i].url, server.url) == 0)
			return NULL;
	}
	if (list->n == SERVER_LIST_MAX)
		return error_new(ERROR_USAGE, "more than %d servers", SERVER_LIST_MAX);
	list->items[list->n++] = server;
	return NULL;
}

struct error *server_list_init(struct server_list *list, const char *urls,
			       const struct clock *clock)
{
	*list = (struct server_list){.clock = clock ? clock : &clock_system};
	for (const char *next = urls + strspn(urls, spaces); *next;) {
		size_t n = strcspn(next, spaces);
		bool is_tag = strncmp(next, "ima:", 4) == 0;
		struct error *err = is_tag ? NULL : add_url(list, next, n);
		if (err)
			return err;
		next += n;
		next += strspn(next, spaces);
	}
	return list->n ? NULL : error_new(ERROR_USAGE, "no server is named");
}

uint64_t server_list_hash(const struct server_list *list)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < list->n; i++) {
		uint64_t hash = 0xcbf29ce484222325u;
		for (const char *p = list->items[i].url; *p; p++)
			hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
		sum += hash_mix(hash);
	}
	return sum;
}

uint32_t server_list_pause_s(const struct server_list *list, uint32_t index)
{
	uint64_t until = list->items[index].paused_until_ns, now = wall_ns(list);
	return until > now ? (uint32_t)((until - now + NS_PER_S - 1) / NS_PER_S) : 0;
}

bool server_list_is_paused(const struct server_list *list, uint32_t index)
{
	return server_list_pause_s(list, index) != 0;
}

bool server_list_are_all_paused(const struct server_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (!server_list_is_paused(list, i))
			return false;
	}
	return true;
}

void server_list_note_answer(struct server_list *list, uint32_t index)
{
	list->items[index].n_failures = 0;
}

/* What servers say goes to terminals and into a file of lines. */
static void set_reason(struct server *server, const char *reason)
{
	snprintf(server->reason, sizeof(server->reason), "%s", reason);
	for (char *p = server->reason; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
}

bool server_list_note_failure(struct server_list *list, uint32_t index, const char *reason)
{
	struct server *server = &list->items[index];
	set_reason(server, reason);
	server->n_all_failures++;
	if (++server->n_failures < SERVER_MAX_FAILURES || server_list_is_paused(list, index))
		return false;
	server->n_failures = 0;
	server->paused_until_ns = wall_ns(list) + SERVER_PAUSE_S * NS_PER_S;
	return true;
}

void server_list_host(const struct server_list *list, uint32_t index, char out[SERVER_URL_BYTES])
{
	const char *url = list->items[index].url;
	const char *host = url + scheme_bytes(url);
	size_t n = strcspn(host, "/");
	/* A name and password before the host are nobody's business. */
	const char *at = memrchr(host, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	snprintf(out, SERVER_URL_BYTES, "%.*s", (int)n, host);
}

struct error *server_list_format(const struct server_list *list, struct buf *out)
{
	struct error *err = NULL;
	for (uint32_t i = 0; i < list->n && !err; i++) {
		const struct server *server = &list->items[i];
		if (server_list_is_paused(list, i))
			err = buf_printf(out, "%" PRIu64 " %s %s\n", server->paused_until_ns,
					 server->url, server->reason);
	}
	return err;
}

static void parse_line(struct server_list *list, const char *line, size_t n)
{
	char copy[SERVER_URL_BYTES + SERVER_REASON_BYTES + 32];
	if (n >= sizeof(copy))
		return;
	memcpy(copy, line, n);
	copy[n] = 0;
	char *end;
	errno = 0;
	uint64_t until = strtoull(copy, &end, 10);
	char *url = end + 1;
	char *space = *end == ' ' ? strchr(url, ' ') : NULL;
	if (errno || end == copy || !space)
		return;
	*space = 0;
	uint64_t now = wall_ns(list);
	/* A clock that was set back must not pause a server for ever. */
	bool is_sane = until > now && until - now <= SERVER_PAUSE_S * NS_PER_S;
	for (uint32_t i = 0; i < list->n && is_sane; i++) {
		if (strcmp(list->items[i].url, url) != 0)
			continue;
		list->items[i].paused_until_ns = until;
		set_reason(&list->items[i], space + 1);
	}
}

void server_list_parse(struct server_list *list, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		parse_line(list, text, n);
		text += n + (text[n] == '\n');
	}
}
