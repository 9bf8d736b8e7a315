/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls wait until the connection is ready and has room, run on it, and end into a list; the work
 * between events happens in one place (work()), from an idle handle, so that what events of one
 * turn of the loop have to send leaves together and callbacks run on a clean stack.
 *
 *   grpc_channel_call ─► waiting ─► running on a connection ─► ended ─► done()
 *                           ▲             │ refused, not looked at
 *                           └─────────────┘
 *
 * A connection that gets GOAWAY keeps its calls; new ones go to its successor.
 */
#include "forwarder/grpc_channel.h"

#include <stdio.h>
#include <string.h>

#include "base/hash_seed.h"
#include "base/mem.h"
#include "forwarder/backoff.h"
#include "forwarder/credentials.h"
#include "forwarder/endpoint.h"
#include "forwarder/grpc_response.h"
#include "forwarder/h2_session.h"
#include "forwarder/proxy.h"
#include "forwarder/request_body.h"
#include "forwarder/request_headers.h"
#include "forwarder/tls.h"
#include "forwarder/transport.h"

#define LOG_AREA "grpc"
#include "base/log.h"

enum {
	DEFAULT_MAX_RESPONSE_BYTES = 4 << 20,
	MAX_TRANSPARENT_RETRIES = 1, /* of a call that the server did not look at (gRFC A6) */
	TEXT_BYTES = 512,
	/* In the table of explained errors. */
	TLS_NUMBER = 301,
	CREDENTIALS_NUMBER = 302,
	CONNECT_NUMBER = 305,
};
static const uint64_t second_ns = 1000000000;
static const uint64_t default_timeout_ns = 10 * 1000000000ULL;
static const uint64_t connect_timeout_ns = 20 * 1000000000ULL;
static const uint64_t min_keepalive_ns = 10 * 1000000000ULL;

struct connection;

struct grpc_call {
	struct grpc_channel *channel;
	struct call_list *list; /* the one it is in */
	struct grpc_call *previous, *next;
	struct connection *connection; /* it runs on; NULL while it waits */
	struct h2_stream *stream;      /* NULL once that has ended */
	struct grpc_request request;
	struct request_body body;
	struct grpc_response response;
	uint64_t timeout_ns, deadline_ns;
	uint64_t sent_ns;
	uint32_t n_refused;
};

struct call_list {
	struct grpc_call *first, *last;
};

struct connection {
	struct grpc_channel *channel;
	struct connection *next;
	struct transport *transport;
	struct h2_session *h2; /* NULL until the transport is open */
	struct call_list calls;
	uint64_t begun_ns;
	bool is_ready;	  /* was, and the calls that waited were told */
	bool is_useful;	  /* an answer came */
	bool is_finished; /* to be closed */
};

/* Why there is no connection. */
struct connect_failure {
	enum grpc_failure failure;
	int error_number;
	char text[TEXT_BYTES];
};

struct grpc_channel {
	uv_loop_t *loop;
	struct clock clock;
	struct remote_config config;
	struct endpoint endpoint;
	struct proxy proxy;
	struct tls_context *tls;
	struct credentials credentials;
	bool are_credentials_stale;
	char *user_agent;
	uint64_t keepalive_ns;
	struct backoff backoff;
	uint64_t next_connect_ns;
	struct connect_failure last_failure; /* GRPC_FAILURE_NONE = none since the last success */
	struct connection *current;	     /* new calls go there; NULL = none */
	struct connection *connections;
	struct call_list waiting, ended;
	uint64_t earliest_deadline_ns; /* of all calls, or earlier */
	uv_idle_t idle;
	uv_timer_t timer;
	uint64_t timer_ns; /* it is set to; UINT64_MAX = not */
	bool is_closed;
	int n_handles;
};

static uint64_t now(const struct grpc_channel *channel)
{
	return channel->clock.monotonic_ns(channel->clock.context);
}

/* Lists */

static void list_remove(struct grpc_call *call)
{
	struct call_list *list = call->list;
	*(call->previous ? &call->previous->next : &list->first) = call->next;
	*(call->next ? &call->next->previous : &list->last) = call->previous;
	call->previous = call->next = NULL;
	call->list = NULL;
}

static void list_append(struct call_list *list, struct grpc_call *call)
{
	call->previous = list->last;
	call->next = NULL;
	*(list->last ? &list->last->next : &list->first) = call;
	list->last = call;
	call->list = list;
}

static void list_move(struct call_list *list, struct grpc_call *call)
{
	list_remove(call);
	list_append(list, call);
}

/* Work to do */

static void work(struct grpc_channel *channel);

static void on_idle(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	work(idle->data);
}

static void wake(struct grpc_channel *channel)
{
	if (!channel->is_closed)
		uv_idle_start(&channel->idle, on_idle);
}

/* Ends of calls */

static void end_call(struct grpc_call *call)
{
	call->stream = NULL;
	call->connection = NULL;
	list_move(&call->channel->ended, call);
	wake(call->channel);
}

static void fail_call(struct grpc_call *call, enum grpc_code code, enum grpc_failure failure,
		      bool is_unprocessed, const char *text)
{
	grpc_response_end_failure(&call->response, code, failure, is_unprocessed, text);
	end_call(call);
}

/* No byte was acted upon: once more, on whatever connection there is then. */
static void refuse_call(struct grpc_call *call, const char *text)
{
	if (call->n_refused >= MAX_TRANSPARENT_RETRIES) {
		fail_call(call, GRPC_UNAVAILABLE, GRPC_FAILURE_LOST, true, text);
		return;
	}
	call->n_refused++;
	call->stream = NULL;
	call->connection = NULL;
	request_body_rewind(&call->body);
	grpc_response_reset(&call->response);
	list_move(&call->channel->waiting, call);
	wake(call->channel);
}

static void free_call(struct grpc_call *call)
{
	request_body_fini(&call->body);
	grpc_response_fini(&call->response);
	mem_free(call);
}

static void tell_call(struct grpc_call *call)
{
	list_remove(call);
	struct grpc_result result;
	grpc_response_result(&call->response, &result);
	if (result.code == GRPC_UNAUTHENTICATED)
		call->channel->are_credentials_stale = true;
	call->request.done(call->request.context, &result);
	free_call(call);
}

/* What streams ask and tell; see struct h2_stream_ops */

static size_t call_available(void *context)
{
	struct grpc_call *call = context;
	return request_body_available(&call->body);
}

static void call_read(void *context, uint8_t *out, size_t n)
{
	struct grpc_call *call = context;
	request_body_read(&call->body, out, n);
}

static void call_header(void *context, const char *name, size_t n_name, const char *value,
			size_t n_value)
{
	struct grpc_call *call = context;
	grpc_response_header(&call->response, name, n_name, value, n_value, &call->channel->clock);
}

static void call_headers_end(void *context)
{
	struct grpc_call *call = context;
	grpc_response_headers_end(&call->response);
}

static bool call_data(void *context, const uint8_t *bytes, size_t n)
{
	struct grpc_call *call = context;
	return grpc_response_data(&call->response, bytes, n);
}

static void call_ended(void *context, enum h2_end end, uint32_t code, const char *text)
{
	struct grpc_call *call = context;
	enum { REFUSED_STREAM = 0x7, CANCEL = 0x8 };
	char shown[TEXT_BYTES];
	switch (end) {
	case H2_END_COMPLETE:
	case H2_END_STOPPED:
		call->connection->is_useful = true;
		grpc_response_end(&call->response);
		break;
	case H2_END_REFUSED:
		snprintf(shown, sizeof(shown), "%s sends new calls away: %s",
			 call->channel->endpoint.shown, text);
		refuse_call(call, shown);
		return;
	case H2_END_RESET:
		if (code == REFUSED_STREAM && !call->response.has_headers) {
			refuse_call(call, "the server refused the stream (REFUSED_STREAM)");
			return;
		}
		if (code == CANCEL && now(call->channel) >= call->deadline_ns)
			grpc_response_end_failure(&call->response, GRPC_DEADLINE_EXCEEDED,
						  GRPC_FAILURE_DEADLINE, false,
						  "the server cancelled the call at its deadline");
		grpc_response_end_reset(&call->response, code, text);
		break;
	case H2_END_BROKEN:
		snprintf(shown, sizeof(shown), "%s broke HTTP/2 in its answer: %s",
			 call->channel->endpoint.shown, text);
		grpc_response_end_failure(&call->response, GRPC_INTERNAL, GRPC_FAILURE_PROTOCOL,
					  false, shown);
		break;
	case H2_END_LOST:
		grpc_response_end_failure(&call->response, GRPC_UNAVAILABLE, GRPC_FAILURE_LOST,
					  false, text);
		break;
	}
	end_call(call);
}

static const struct h2_stream_ops call_ops = {
	.available = call_available,
	.read = call_read,
	.header = call_header,
	.headers_end = call_headers_end,
	.data = call_data,
	.ended = call_ended,
};

/* Connections */

static void note_failure(struct grpc_channel *channel, enum grpc_failure failure,
			 const struct error *err)
{
	struct connect_failure *last = &channel->last_failure;
	last->failure = failure;
	last->error_number = error_get_number(err);
	snprintf(last->text, sizeof(last->text), "%s", error_text(err));
}

static void fail_with_last(struct grpc_call *call, enum grpc_code code)
{
	const struct connect_failure *last = &call->channel->last_failure;
	call->response.error_number = last->error_number;
	fail_call(call, code, last->failure, true, last->text);
}

/* There is no connection, and there will be none before the back-off is over. */
static void fail_waiting(struct grpc_channel *channel)
{
	for (struct grpc_call *call = channel->waiting.first; call;) {
		struct grpc_call *next = call->next;
		if (!call->request.wait_for_ready)
			fail_with_last(call, GRPC_UNAVAILABLE);
		call = next;
	}
}

static void back_off(struct grpc_channel *channel, uint64_t begun_ns)
{
	uint64_t wait_ns = backoff_next(&channel->backoff);
	channel->next_connect_ns = begun_ns + wait_ns;
	log_debug("connecting failed server=%s wait_ms=%llu: %s", channel->endpoint.shown,
		  (unsigned long long)(wait_ns / 1000000), channel->last_failure.text);
}

/* The connection is of no more use; takes err, which names the server. It is closed by work(). */
static void finish_connection(struct connection *connection, enum grpc_failure failure,
			      struct error *err)
{
	struct grpc_channel *channel = connection->channel;
	if (connection->is_finished) {
		error_free(err);
		return;
	}
	connection->is_finished = true;
	char text[TEXT_BYTES];
	const char *goaway = connection->h2 ? h2_session_goaway_text(connection->h2) : "";
	snprintf(text, sizeof(text), "%s%s%s", error_text(err), goaway[0] ? " after " : "", goaway);
	bool is_protocol = failure == GRPC_FAILURE_PROTOCOL;
	for (struct grpc_call *call = connection->calls.first; call; call = call->next) {
		call->response.error_number = error_get_number(err);
		if (is_protocol || failure == GRPC_FAILURE_TLS)
			grpc_response_end_failure(&call->response,
						  is_protocol ? GRPC_INTERNAL : GRPC_UNAVAILABLE,
						  failure, false, text);
	}
	if (connection->h2)
		h2_session_end(connection->h2, text);
	if (connection->h2 && h2_session_has_too_many_pings(connection->h2) &&
	    channel->keepalive_ns) {
		channel->keepalive_ns *= 2;
		log_warn("the server complained about keepalive pings server=%s interval_s=%llu",
			 channel->endpoint.shown,
			 (unsigned long long)(channel->keepalive_ns / second_ns));
	}
	if (channel->current == connection) {
		channel->current = NULL;
		if (!connection->is_useful) {
			struct error *shown = error_number(error_new(ERROR_UNAVAILABLE, "%s", text),
							   error_get_number(err));
			note_failure(channel, failure, shown);
			error_free(shown);
			back_off(channel, connection->begun_ns);
			fail_waiting(channel);
		}
	}
	error_free(err);
	wake(channel);
}

/* The same for errors of the session, which knows no names. */
static void finish_session(struct connection *connection, enum grpc_failure failure,
			   struct error *err)
{
	finish_connection(connection, failure,
			  error_wrap(err, "%s", connection->channel->endpoint.shown));
}

static void on_opened(void *context)
{
	struct connection *connection = context;
	struct grpc_channel *channel = connection->channel;
	const struct h2_session_config config = {
		.keepalive_ns = channel->keepalive_ns,
		.is_plaintext = channel->endpoint.is_plaintext,
	};
	connection->h2 = h2_session_new(&config, now(channel));
	wake(channel);
}

static void on_received(void *context, const uint8_t *bytes, size_t n)
{
	struct connection *connection = context;
	struct error *err = NULL;
	if (connection->is_finished)
		return;
	err = h2_session_receive(connection->h2, bytes, n, now(connection->channel));
	if (err)
		finish_session(connection, GRPC_FAILURE_PROTOCOL, err);
	wake(connection->channel);
}

static void on_drained(void *context)
{
	struct connection *connection = context;
	wake(connection->channel);
}

/* A server that hangs up before it has said anything has two usual reasons. */
static void on_failed(void *context, enum grpc_failure failure, struct error *err)
{
	struct connection *connection = context;
	const struct grpc_channel *channel = connection->channel;
	bool is_mute = failure == GRPC_FAILURE_LOST && connection->h2 &&
		       !h2_session_is_ready(connection->h2);
	if (is_mute && channel->tls) {
		failure = GRPC_FAILURE_TLS;
		err = error_number(
			error_wrap(err, "%s after the TLS handshake, as servers do %s",
				   channel->endpoint.shown,
				   channel->config.tls.cert_file
					   ? "that refuse our client certificate"
					   : "that ask for a client certificate, and none is "
					     "configured"),
			TLS_NUMBER);
	} else if (is_mute) {
		err = error_number(error_wrap(err,
					      "%s said nothing in plaintext; does it expect TLS?",
					      channel->endpoint.shown),
				   CONNECT_NUMBER);
	}
	finish_connection(connection, failure, err);
}

static void on_warned(void *context, const struct error *err)
{
	struct connection *connection = context;
	log_warn("the files in use before stay in use server=%s: %s",
		 connection->channel->endpoint.shown, error_text(err));
}

static const struct transport_events connection_events = {
	.opened = on_opened,
	.received = on_received,
	.drained = on_drained,
	.failed = on_failed,
	.warned = on_warned,
};

static struct error *load_credentials(struct grpc_channel *channel)
{
	struct credentials fresh;
	struct error *err = credentials_load(&channel->config, &fresh);
	if (err)
		return error_number(err, CREDENTIALS_NUMBER);
	credentials_fini(&channel->credentials);
	channel->credentials = fresh;
	channel->are_credentials_stale = false;
	return NULL;
}

static void open_connection(struct grpc_channel *channel)
{
	uint64_t now_ns = now(channel);
	struct error *err = load_credentials(channel);
	if (err) {
		note_failure(channel, GRPC_FAILURE_CREDENTIALS, err);
		error_free(err);
		back_off(channel, now_ns);
		fail_waiting(channel);
		return;
	}
	struct connection *connection = mem_zalloc(1, sizeof(*connection));
	connection->channel = channel;
	connection->begun_ns = now_ns;
	connection->next = channel->connections;
	channel->connections = channel->current = connection;
	const struct transport_config config = {
		.endpoint = &channel->endpoint,
		.proxy = &channel->proxy,
		.tls = channel->tls,
		.connect_timeout_ns = connect_timeout_ns,
	};
	connection->transport =
		transport_open(channel->loop, &config, &connection_events, connection);
}

static void close_connection(struct connection *connection)
{
	struct grpc_channel *channel = connection->channel;
	struct connection **at = &channel->connections;
	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	if (channel->current == connection)
		channel->current = NULL;
	transport_close(connection->transport);
	h2_session_free(connection->h2);
	mem_free(connection);
}

/* Running */

/* Puts a call that waits on the connection. */
static void start_call(struct grpc_call *call, struct connection *connection)
{
	struct grpc_channel *channel = call->channel;
	uint64_t now_ns = now(channel);
	if (channel->are_credentials_stale) {
		struct error *err = load_credentials(channel);
		if (err) {
			call->response.error_number = error_get_number(err);
			fail_call(call, GRPC_UNAUTHENTICATED, GRPC_FAILURE_CREDENTIALS, true,
				  error_text(err));
			error_free(err);
			return;
		}
	}
	const struct request_headers_options options = {
		.path = call->request.path,
		.authority = channel->endpoint.authority,
		.user_agent = channel->user_agent,
		.is_plaintext = channel->endpoint.is_plaintext,
		.is_gzip = channel->config.gzip,
		.timeout_ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 1,
		.credentials = &channel->credentials,
	};
	struct request_headers texts;
	struct request_header *list =
		mem_alloc((REQUEST_HEADERS_OWN + channel->credentials.n) * sizeof(*list));
	size_t n = request_headers_list(&options, &texts, list);
	call->connection = connection;
	call->sent_ns = now_ns;
	list_move(&connection->calls, call);
	call->stream = h2_session_open(connection->h2, list, n, &call_ops, call, now_ns);
	mem_free(list);
	if (!call->stream) {
		/* It never left: back to where it was, for another connection. */
		call->connection = NULL;
		list_move(&channel->waiting, call);
	}
}

static void flush_connection(struct connection *connection)
{
	while (connection->h2 && !connection->is_finished &&
	       !transport_is_blocked(connection->transport)) {
		const uint8_t *bytes;
		size_t n;
		struct error *err = h2_session_output(connection->h2, &bytes, &n);
		if (err) {
			finish_session(connection, GRPC_FAILURE_PROTOCOL, err);
			return;
		}
		if (n == 0)
			return;
		transport_write(connection->transport, bytes, n);
	}
}

static void update_current(struct grpc_channel *channel)
{
	struct connection *current = channel->current;
	if (current && current->h2 && h2_session_is_draining(current->h2)) {
		channel->current = NULL;
		current = NULL;
	}
	if (current && current->h2 && h2_session_is_ready(current->h2) && !current->is_ready) {
		current->is_ready = true;
		channel->last_failure.failure = GRPC_FAILURE_NONE;
		log_debug("connected server=%s", channel->endpoint.shown);
	}
	if (current && current->is_useful)
		backoff_reset(&channel->backoff);
	if (current || !channel->waiting.first)
		return;
	if (now(channel) >= channel->next_connect_ns)
		open_connection(channel);
	else if (channel->last_failure.failure != GRPC_FAILURE_NONE)
		fail_waiting(channel);
}

static void start_waiting(struct grpc_channel *channel)
{
	struct connection *current = channel->current;
	while (current && current->h2 && !current->is_finished && channel->waiting.first &&
	       h2_session_can_open(current->h2))
		start_call(channel->waiting.first, current);
}

/* Closes what is of no more use. */
static void sweep(struct grpc_channel *channel)
{
	for (struct connection *connection = channel->connections; connection;) {
		struct connection *next = connection->next;
		bool is_drained = connection->h2 && !connection->calls.first &&
				  h2_session_is_draining(connection->h2) &&
				  connection != channel->current;
		if (is_drained && !connection->is_finished) {
			h2_session_say_goodbye(connection->h2);
			flush_connection(connection);
		}
		if ((is_drained || connection->is_finished) && !connection->calls.first)
			close_connection(connection);
		connection = next;
	}
}

static void set_timer(struct grpc_channel *channel);

static void advance(struct grpc_channel *channel)
{
	update_current(channel);
	start_waiting(channel);
	for (struct connection *connection = channel->connections; connection;
	     connection = connection->next)
		flush_connection(connection);
	sweep(channel);
}

static void work(struct grpc_channel *channel)
{
	/* A callback may start calls, or close the channel (whose memory stays until later). Those
	 * started in this turn of the loop leave together, in place of what has been answered. */
	while (channel->ended.first && !channel->is_closed)
		tell_call(channel->ended.first);
	if (channel->is_closed)
		return;
	uv_idle_stop(&channel->idle);
	advance(channel);
	if (channel->ended.first)
		wake(channel);
	set_timer(channel);
}

/* Times */

/* What the call has been waiting for, where its deadline found it. */
static void expire_call(struct grpc_call *call)
{
	struct grpc_channel *channel = call->channel;
	struct connection *connection = call->connection;
	char text[TEXT_BYTES];
	const char *what;
	if (connection) {
		what = h2_session_waits_for(connection->h2, call->stream);
		/* Not a byte in all that time: the path may be dead, others take a new one. */
		if (h2_session_last_read_ns(connection->h2) <= call->sent_ns)
			h2_session_drain(connection->h2);
		h2_session_cancel(connection->h2, call->stream);
	} else if (channel->last_failure.failure != GRPC_FAILURE_NONE) {
		fail_with_last(call, GRPC_DEADLINE_EXCEEDED);
		return;
	} else if (channel->current) {
		what = channel->current->h2 ? h2_session_waits_for(channel->current->h2, NULL)
					    : transport_waits_for(channel->current->transport);
	} else {
		what = "a connection";
	}
	snprintf(text, sizeof(text), "no answer from %s within %.3g s: waited for %s",
		 channel->endpoint.shown, (double)call->timeout_ns / 1e9, what);
	fail_call(call, GRPC_DEADLINE_EXCEEDED, GRPC_FAILURE_DEADLINE, !connection, text);
}

static void expire_list(struct grpc_channel *channel, struct call_list *list, uint64_t now_ns)
{
	for (struct grpc_call *call = list->first; call;) {
		struct grpc_call *next = call->next;
		if (call->deadline_ns <= now_ns)
			expire_call(call);
		else if (call->deadline_ns < channel->earliest_deadline_ns)
			channel->earliest_deadline_ns = call->deadline_ns;
		call = next;
	}
}

static void tick_connection(struct connection *connection, uint64_t now_ns)
{
	if (!connection->h2 || connection->is_finished)
		return;
	struct error *err = h2_session_tick(connection->h2, now_ns);
	if (!err && !h2_session_is_ready(connection->h2) &&
	    now_ns - connection->begun_ns >= connect_timeout_ns)
		err = error_new(ERROR_UNAVAILABLE,
				"cannot connect within %.3g s: waited for the server's SETTINGS",
				(double)connect_timeout_ns / 1e9);
	if (err)
		finish_session(connection, GRPC_FAILURE_LOST, err);
}

static void on_timer(uv_timer_t *timer)
{
	struct grpc_channel *channel = timer->data;
	uint64_t now_ns = now(channel);
	channel->timer_ns = UINT64_MAX;
	if (now_ns >= channel->earliest_deadline_ns) {
		channel->earliest_deadline_ns = UINT64_MAX;
		expire_list(channel, &channel->waiting, now_ns);
		for (struct connection *connection = channel->connections; connection;
		     connection = connection->next)
			expire_list(channel, &connection->calls, now_ns);
	}
	for (struct connection *connection = channel->connections; connection;
	     connection = connection->next)
		tick_connection(connection, now_ns);
	wake(channel);
}

static uint64_t next_time(const struct grpc_channel *channel)
{
	uint64_t next = UINT64_MAX;
	if (channel->waiting.first)
		next = channel->earliest_deadline_ns;
	if (channel->waiting.first && !channel->current && channel->next_connect_ns < next)
		next = channel->next_connect_ns;
	for (const struct connection *connection = channel->connections; connection;
	     connection = connection->next) {
		if (connection->calls.first && channel->earliest_deadline_ns < next)
			next = channel->earliest_deadline_ns;
		if (!connection->h2)
			continue;
		uint64_t time = h2_session_is_ready(connection->h2)
					? h2_session_next_time(connection->h2)
					: connection->begun_ns + connect_timeout_ns;
		if (time < next)
			next = time;
	}
	return next;
}

/* A timer that fires early does no harm, so it is only ever set to an earlier time. */
static void set_timer(struct grpc_channel *channel)
{
	uint64_t next_ns = next_time(channel);
	if (next_ns == UINT64_MAX) {
		uv_timer_stop(&channel->timer);
		channel->timer_ns = UINT64_MAX;
		return;
	}
	if (next_ns >= channel->timer_ns)
		return;
	uint64_t now_ns = now(channel);
	uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
	uv_update_time(channel->loop);
	uv_timer_start(&channel->timer, on_timer, (wait_ns + 999999) / 1000000, 0);
	channel->timer_ns = next_ns;
}

/* The door */

static void release(struct grpc_channel *channel)
{
	if (--channel->n_handles > 0)
		return;
	tls_context_free(channel->tls);
	credentials_fini(&channel->credentials);
	proxy_fini(&channel->proxy);
	endpoint_fini(&channel->endpoint);
	remote_config_fini(&channel->config);
	mem_free(channel->user_agent);
	mem_free(channel);
}

static void on_closed(uv_handle_t *handle)
{
	release(handle->data);
}

struct error *grpc_channel_new(uv_loop_t *loop, const struct clock *clock,
			       const struct remote_config *config, struct grpc_channel **out)
{
	struct grpc_channel *channel = mem_zalloc(1, sizeof(*channel));
	channel->n_handles = 1;
	remote_config_copy(config, &channel->config);
	config = &channel->config;
	struct error *err = config->endpoint
				    ? endpoint_parse(config->endpoint, config->default_port,
						     config->insecure, &channel->endpoint)
				    : error_new(ERROR_USAGE, "the endpoint is missing");
	if (!err)
		err = credentials_check(config, &channel->endpoint);
	if (!err)
		err = proxy_choose(config->proxy, &channel->endpoint, &channel->proxy);
	if (!err && !channel->endpoint.is_plaintext)
		err = tls_context_new(&config->tls, channel->endpoint.host, channel->endpoint.shown,
				      "h2", &channel->tls);
	if (err) {
		release(channel);
		return err;
	}
	channel->loop = loop;
	channel->clock = clock ? *clock : clock_system;
	channel->user_agent = mem_copy_string(
		config->user_agent ? config->user_agent : "grpc-c-perfpipe/" PERFPIPE_VERSION);
	channel->keepalive_ns = config->keepalive_ns;
	if (channel->keepalive_ns && channel->keepalive_ns < min_keepalive_ns)
		channel->keepalive_ns = min_keepalive_ns;
	backoff_init(&channel->backoff, 0, 0, hash_seed_make());
	channel->earliest_deadline_ns = channel->timer_ns = UINT64_MAX;
	uv_idle_init(loop, &channel->idle);
	uv_timer_init(loop, &channel->timer);
	channel->idle.data = channel->timer.data = channel;
	channel->n_handles = 2;
	*out = channel;
	return NULL;
}

void grpc_channel_refresh(struct grpc_channel *channel)
{
	struct connection *current = channel->current;
	channel->are_credentials_stale = true;
	if (current && current->h2)
		h2_session_drain(current->h2);
	wake(channel);
}

void grpc_channel_close(struct grpc_channel *channel)
{
	if (!channel || channel->is_closed)
		return;
	channel->is_closed = true;
	while (channel->connections) {
		struct connection *connection = channel->connections;
		while (connection->calls.first) {
			struct grpc_call *call = connection->calls.first;
			h2_session_cancel(connection->h2, call->stream);
			fail_call(call, GRPC_CANCELLED, GRPC_FAILURE_CANCELLED, false,
				  "the channel was closed");
		}
		if (connection->h2 && !connection->is_finished) {
			h2_session_say_goodbye(connection->h2);
			flush_connection(connection);
		}
		close_connection(connection);
	}
	while (channel->waiting.first)
		fail_call(channel->waiting.first, GRPC_CANCELLED, GRPC_FAILURE_CANCELLED, true,
			  "the channel was closed");
	while (channel->ended.first)
		tell_call(channel->ended.first);
	uv_close((uv_handle_t *)&channel->idle, on_closed);
	uv_close((uv_handle_t *)&channel->timer, on_closed);
}

struct grpc_call *grpc_channel_call(struct grpc_channel *channel,
				    const struct grpc_request *request)
{
	struct grpc_call *call = mem_zalloc(1, sizeof(*call));
	call->channel = channel;
	call->request = *request;
	call->timeout_ns = request->timeout_ns		? request->timeout_ns
			   : channel->config.timeout_ns ? channel->config.timeout_ns
							: default_timeout_ns;
	call->deadline_ns = now(channel) + call->timeout_ns;
	request_body_init(&call->body, request->next_message, request->context,
			  channel->config.gzip);
	grpc_response_init(&call->response, request->max_response_bytes
						    ? request->max_response_bytes
						    : DEFAULT_MAX_RESPONSE_BYTES);
	if (call->deadline_ns < channel->earliest_deadline_ns)
		channel->earliest_deadline_ns = call->deadline_ns;
	list_append(&channel->waiting, call);
	wake(channel);
	return call;
}

void grpc_call_cancel(struct grpc_call *call)
{
	struct grpc_channel *channel = call->channel;
	if (call->stream)
		h2_session_cancel(call->connection->h2, call->stream);
	list_remove(call);
	free_call(call);
	wake(channel);
}
