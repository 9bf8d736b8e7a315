/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as far as one PUT needs it (RFC 9112). */
#include "forwarder/http_put.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "forwarder/credentials.h"
#include "forwarder/endpoint.h"
#include "forwarder/proxy.h"
#include "forwarder/text_escape.h"
#include "forwarder/tls.h"
#include "forwarder/transport.h"

enum {
	PIECE_BYTES = 64 << 10,
	MAX_URL_BYTES = 8 << 10,
	BODY_SHOWN_BYTES = 512, /* of an answer */
	TEXT_BYTES = 512,
};
static const uint64_t connect_timeout_ns = 20 * 1000000000ULL;
static const uint64_t default_timeout_ns = 60 * 1000000000ULL;
static const struct tls_config system_trust;

struct http_put {
	uv_loop_t *loop;
	struct http_put_request request;
	struct endpoint endpoint;
	struct proxy proxy;
	struct tls_context *tls;
	struct transport *transport;
	char *target;	   /* path and query: secret */
	uint64_t offset;   /* of the request's body */
	struct buf answer; /* its head and the beginning of its body */
	struct http_head head;
	uv_timer_t timer;
	bool is_over;
	uint8_t piece[PIECE_BYTES];
};

struct error *http_put_parse_head(const uint8_t *bytes, size_t n, struct http_head *out)
{
	*out = (struct http_head){.content_length = UINT64_MAX};
	static const char version[] = "HTTP/1.";
	size_t n_version = n < sizeof(version) - 1 ? n : sizeof(version) - 1;
	if (n_version && memcmp(bytes, version, n_version) != 0)
		return error_new(ERROR_BAD_DATA, "the answer is not HTTP/1");
	const uint8_t *end = n ? memmem(bytes, n, "\r\n\r\n", 4) : NULL;
	if (!end)
		return n < HTTP_HEAD_MAX_BYTES
			       ? NULL
			       : error_new(ERROR_LIMIT,
					   "the head of the answer is longer than %d bytes",
					   HTTP_HEAD_MAX_BYTES);
	size_t n_head = (size_t)(end - bytes) + 4;
	/* "HTTP/1.1 200" */
	int status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (n_head < 14 || bytes[8] != ' ' || bytes[i] < '0' || bytes[i] > '9')
			return error_new(ERROR_BAD_DATA, "the answer has no HTTP status");
		status = status * 10 + (bytes[i] - '0');
	}
	static const char name[] = "\r\ncontent-length:";
	size_t n_name = sizeof(name) - 1;
	for (const uint8_t *line = bytes; line && line < end;
	     line = memmem(line + 1, (size_t)(end - line - 1), "\r\n", 2)) {
		if ((size_t)(end - line) <= n_name ||
		    strncasecmp((const char *)line, name, n_name) != 0)
			continue;
		const uint8_t *digit = line + n_name;
		while (digit < end && *digit == ' ')
			digit++;
		uint64_t length = 0;
		for (; digit < end && *digit >= '0' && *digit <= '9' && length < UINT64_MAX / 16;
		     digit++)
			length = length * 10 + (uint64_t)(*digit - '0');
		out->content_length = length;
	}
	out->status = status;
	out->n_head = n_head;
	return NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct http_put *put = handle->data;
	tls_context_free(put->tls);
	proxy_fini(&put->proxy);
	endpoint_fini(&put->endpoint);
	credentials_wipe_string(put->target);
	buf_fini(&put->answer);
	mem_free(put);
}

void http_put_cancel(struct http_put *put)
{
	if (put->is_over)
		return;
	put->is_over = true;
	transport_close(put->transport);
	uv_close((uv_handle_t *)&put->timer, on_timer_closed);
}

static void finish(struct http_put *put, int status, const char *message)
{
	if (put->is_over)
		return;
	const struct http_put_request request = put->request;
	http_put_cancel(put);
	request.done(request.context, status, message);
}

static void finish_with_error(struct http_put *put, struct error *err)
{
	char text[TEXT_BYTES];
	snprintf(text, sizeof(text), "%s", error_text(err));
	error_free(err);
	finish(put, 0, text);
}

static void on_timer(uv_timer_t *timer);

static void restart_timer(struct http_put *put)
{
	uint64_t timeout_ns =
		put->request.timeout_ns ? put->request.timeout_ns : default_timeout_ns;
	uv_timer_start(&put->timer, on_timer, timeout_ns / 1000000, 0);
}

/* Sends until the connection takes no more. */
static void send_on(struct http_put *put)
{
	while (put->offset < put->request.n_bytes && !transport_is_blocked(put->transport)) {
		uint64_t left = put->request.n_bytes - put->offset;
		size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		if (!put->request.read(put->request.context, put->offset, put->piece, n)) {
			finish(put, 0, "what was to be sent cannot be read any more");
			return;
		}
		put->offset += n;
		restart_timer(put);
		transport_write(put->transport, put->piece, n);
	}
}

static void on_opened(void *context)
{
	struct http_put *put = context;
	const struct endpoint *endpoint = &put->endpoint;
	struct buf head;
	buf_init(&head, 2 * MAX_URL_BYTES);
	bool is_default = endpoint->port == (endpoint->is_plaintext ? 80 : 443);
	int n_host = is_default ? (int)(strrchr(endpoint->authority, ':') - endpoint->authority)
				: (int)strlen(endpoint->authority);
	struct error *err = buf_printf(&head,
				       "PUT %s HTTP/1.1\r\nHost: %.*s\r\nContent-Length: %llu\r\n"
				       "User-Agent: perfpipe/%s\r\nConnection: close\r\n\r\n",
				       put->target, n_host, endpoint->authority,
				       (unsigned long long)put->request.n_bytes, PERFPIPE_VERSION);
	if (err) {
		finish_with_error(put, err);
	} else {
		restart_timer(put);
		transport_write(put->transport, head.data, head.size);
		send_on(put);
	}
	if (head.data)
		explicit_bzero(head.data, head.capacity);
	buf_fini(&head);
}

/* The answer is there, with as much of its body as is worth showing. */
static void finish_with_answer(struct http_put *put)
{
	char text[TEXT_BYTES];
	text_escape(put->answer.data + put->head.n_head, put->answer.size - put->head.n_head, text,
		    sizeof(text));
	finish(put, put->head.status, text);
}

static void on_received(void *context, const uint8_t *bytes, size_t n)
{
	struct http_put *put = context;
	if (put->is_over)
		return;
	restart_timer(put);
	while (!put->head.n_head || put->head.status < 200) {
		/* An interim answer (100) is followed by another head. */
		if (put->head.n_head) {
			size_t rest = put->answer.size - put->head.n_head;
			memmove(put->answer.data, put->answer.data + put->head.n_head, rest);
			put->answer.size = rest;
		}
		struct error *err = buf_append(&put->answer, bytes, n);
		n = 0;
		if (!err)
			err = http_put_parse_head(put->answer.data, put->answer.size, &put->head);
		if (err) {
			finish_with_error(put, err);
			return;
		}
		if (!put->head.n_head)
			return;
	}
	size_t n_body = put->answer.size - put->head.n_head;
	size_t room = n_body < BODY_SHOWN_BYTES ? BODY_SHOWN_BYTES - n_body : 0;
	struct error *err = buf_append(&put->answer, bytes, n < room ? n : room);
	if (err) {
		finish_with_error(put, err);
		return;
	}
	n_body = put->answer.size - put->head.n_head;
	if (n_body >= BODY_SHOWN_BYTES || n_body >= put->head.content_length)
		finish_with_answer(put);
}

static void on_drained(void *context)
{
	struct http_put *put = context;
	if (!put->is_over)
		send_on(put);
}

static void on_failed(void *context, enum grpc_failure failure, struct error *err)
{
	struct http_put *put = context;
	(void)failure;
	/* A body without a length ends with the connection. */
	if (put->head.n_head && put->head.status >= 200) {
		error_free(err);
		finish_with_answer(put);
		return;
	}
	finish_with_error(put, err);
}

static void on_warned(void *context, const struct error *err)
{
	(void)context; /* files were read for the first time: there are none to fall back to */
	(void)err;
}

static const struct transport_events events = {
	.opened = on_opened,
	.received = on_received,
	.drained = on_drained,
	.failed = on_failed,
	.warned = on_warned,
};

static void on_timer(uv_timer_t *timer)
{
	struct http_put *put = timer->data;
	char text[TEXT_BYTES];
	snprintf(text, sizeof(text), "%s: nothing moved for too long; %llu of %llu bytes were sent",
		 put->endpoint.shown, (unsigned long long)put->offset,
		 (unsigned long long)put->request.n_bytes);
	finish(put, 0, text);
}

/* Splits the URL; none of it that may be secret stands in an error. */
static struct error *parse_url(const char *url, struct http_put *put)
{
	bool is_https = strncasecmp(url, "https://", 8) == 0;
	if (!is_https && strncasecmp(url, "http://", 7) != 0)
		return error_new(ERROR_USAGE, "the URL is neither https:// nor http://");
	if (strlen(url) > MAX_URL_BYTES)
		return error_new(ERROR_USAGE, "the URL is longer than %d bytes", MAX_URL_BYTES);
	for (const char *c = url; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f)
			return error_new(ERROR_USAGE,
					 "the URL has characters that must be escaped");
	const char *host = strchr(url, ':') + 3;
	size_t n_host = strcspn(host, "/?#");
	char *origin = mem_format("%.*s", (int)(host + n_host - url), url);
	struct error *err = endpoint_parse(origin, is_https ? 443 : 80, false, &put->endpoint);
	mem_free(origin);
	if (err)
		return err;
	size_t n_target = strcspn(host + n_host, "#");
	put->target =
		mem_format("%s%.*s", host[n_host] == '/' ? "" : "/", (int)n_target, host + n_host);
	return NULL;
}

struct error *http_put_start(uv_loop_t *loop, const struct http_put_request *request,
			     struct http_put **out)
{
	struct http_put *put = mem_zalloc(1, sizeof(*put));
	put->loop = loop;
	put->request = *request;
	put->timer.data = put;
	buf_init(&put->answer, HTTP_HEAD_MAX_BYTES + (128 << 10));
	struct error *err = parse_url(request->url, put);
	if (!err)
		err = proxy_choose(request->proxy, &put->endpoint, &put->proxy);
	if (!err && !put->endpoint.is_plaintext)
		err = tls_context_new(request->tls ? request->tls : &system_trust,
				      put->endpoint.host, put->endpoint.shown, "http/1.1",
				      &put->tls);
	if (err) {
		on_timer_closed((uv_handle_t *)&put->timer);
		return err;
	}
	uv_timer_init(loop, &put->timer);
	const struct transport_config config = {
		.endpoint = &put->endpoint,
		.proxy = &put->proxy,
		.tls = put->tls,
		.connect_timeout_ns = connect_timeout_ns,
	};
	put->transport = transport_open(loop, &config, &events, put);
	*out = put;
	return NULL;
}
