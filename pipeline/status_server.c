/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd without threads of its own: one thread polls its epoll descriptor, the box of
 * answers and the box that ends it. A request that needs the agent is suspended until the answer is
 * there or its time is over.
 */
#define LOG_AREA "http"
#include "pipeline/status_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "pipeline/agent_query.h"
#include "pipeline/status_text.h"
#include "pipeline/thread_privileges.h"
#include "proto/pprof_encode.h"

#define NS_PER_S ((uint64_t)1000000000)
/* A thread that does not answer in that time is not well. */
#define STATE_PATIENCE_NS   (2 * NS_PER_S)
#define PROFILE_PATIENCE_NS (60 * NS_PER_S)
enum {
	MAX_CONNECTIONS = 32,
	IDLE_SECONDS = 30,
	MAX_ANSWERS = 64,
	DEFAULT_SECONDS = 30,
	MAX_SECONDS = 600,
	MAX_PROFILE_BYTES = 64 << 20,
	MAX_CMDLINE_BYTES = 1 << 20,
	MAX_POLL_MS = 500,
	GZIP_LEVEL = 1,
	ADDRESS_BYTES = 64,
	CANNOT_LISTEN = 405, /* of explain.c */
};

enum route {
	ROUTE_METRICS,
	ROUTE_HEALTHY,
	ROUTE_READY,
	ROUTE_STATUS,
	ROUTE_PROFILE,
	ROUTE_PPROF_INDEX,
	ROUTE_CMDLINE,
	ROUTE_SYMBOL,
	ROUTE_N,
	ROUTE_NONE = ROUTE_N,
};
static const char *const paths[ROUTE_N] = {
	[ROUTE_METRICS] = "/metrics",
	[ROUTE_HEALTHY] = "/-/healthy",
	[ROUTE_READY] = "/-/ready",
	[ROUTE_STATUS] = "/status",
	[ROUTE_PROFILE] = "/debug/pprof/profile",
	[ROUTE_PPROF_INDEX] = "/debug/pprof/",
	[ROUTE_CMDLINE] = "/debug/pprof/cmdline",
	[ROUTE_SYMBOL] = "/debug/pprof/symbol",
};

/* One that waits for the agent. */
struct request {
	struct request *next;
	struct MHD_Connection *connection;
	uintptr_t id; /* what its query knows it by: it may be gone when the answer comes */
	enum route route;
	int fd; /* of its client */
	uint64_t deadline_ns;
	bool is_over; /* answered, given up, or late */
	struct agent_query *answer;
};

struct status_server {
	struct wake_box *queries, *answers, *end;
	struct MHD_Daemon *daemon;
	int epoll_fd;
	pthread_t thread;
	bool has_thread;
	/* The server's thread. */
	struct request *requests;
	uintptr_t next_id;
};

static uint64_t now_ns(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

/* --- addresses --- */

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} socket;
	bool is_v6, is_loopback;
};

static bool parse_port(const char *text, in_port_t *out)
{
	char *end;
	errno = 0;
	unsigned long port = strtoul(text, &end, 10);
	if (!*text || *end || errno || port < 1 || port > UINT16_MAX)
		return false;
	*out = htons((uint16_t)port);
	return true;
}

static bool parse_host(const char *host, struct address *address)
{
	struct sockaddr_in *v4 = &address->socket.v4;
	struct sockaddr_in6 *v6 = &address->socket.v6;
	size_t n = strlen(host);
	if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
		char inner[ADDRESS_BYTES];
		snprintf(inner, sizeof(inner), "%.*s", (int)(n - 2), host + 1);
		address->is_v6 = true;
		v6->sin6_family = AF_INET6;
		if (inet_pton(AF_INET6, inner, &v6->sin6_addr) != 1)
			return false;
		address->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
		return true;
	}
	v4->sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &v4->sin_addr) != 1)
		return false;
	address->is_loopback = ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return true;
}

static bool parse_address(const char *text, struct address *out)
{
	char host[ADDRESS_BYTES];
	const char *colon = strrchr(text, ':');
	in_port_t port;
	*out = (struct address){0};
	if (!colon || (size_t)(colon - text) >= sizeof(host) || !parse_port(colon + 1, &port))
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (!parse_host(host, out))
		return false;
	if (out->is_v6)
		out->socket.v6.sin6_port = port;
	else
		out->socket.v4.sin_port = port;
	return true;
}

bool status_server_is_address(const char *text)
{
	struct address parsed;
	return parse_address(text, &parsed);
}

/* --- responses --- */

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	(void)MHD_add_response_header(response, name, value);
}

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *type,
			       const void *bytes, size_t n, const char *pprof_header)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(n, (void *)bytes, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	add_header(response, "Content-Type", type);
	add_header(response, "X-Content-Type-Options", "nosniff");
	if (pprof_header)
		add_header(response, pprof_header,
			   status == MHD_HTTP_OK ? "attachment; filename=\"profile\"" : "1");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		add_header(response, "Allow", "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned status,
				    const char *text)
{
	return respond(connection, status, "text/plain; charset=utf-8", text, strlen(text), NULL);
}

/* As Go's net/http/pprof: pprof shows the text to its user. */
static enum MHD_Result refuse_pprof(struct MHD_Connection *connection, unsigned status,
				    const char *text)
{
	return respond(connection, status, "text/plain; charset=utf-8", text, strlen(text),
		       "X-Go-Pprof");
}

static enum MHD_Result respond_profile(struct MHD_Connection *connection,
				       const struct agent_query *answer)
{
	if (!answer)
		return refuse_pprof(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				    "the profile was not made in time\n");
	if (!answer->profile) {
		char *text CLEANUP(cleanup_mem) = mem_format("no profile: %s\n", answer->why);
		return refuse_pprof(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, text);
	}
	struct buf bytes CLEANUP(buf_fini);
	buf_init(&bytes, MAX_PROFILE_BYTES);
	const struct pprof_encode_options options = {.gzip_level = GZIP_LEVEL};
	struct error *err = pprof_encode_buf(answer->profile, &options, &bytes);
	if (err) {
		char *text CLEANUP(cleanup_mem) = mem_format("no profile: %s\n", error_text(err));
		error_free(err);
		return refuse_pprof(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, text);
	}
	return respond(connection, MHD_HTTP_OK, "application/octet-stream", bytes.data, bytes.size,
		       "Content-Disposition");
}

static enum MHD_Result respond_written(struct MHD_Connection *connection, const char *type,
				       void (*write)(FILE *, const struct agent_state *),
				       const struct agent_state *state)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	if (!out)
		return MHD_NO;
	write(out, state);
	fclose(out);
	enum MHD_Result result = respond(connection, MHD_HTTP_OK, type, text, n, NULL);
	free(text);
	return result;
}

static enum MHD_Result respond_ready(struct MHD_Connection *connection,
				     const struct agent_state *state)
{
	if (state->is_sampling)
		return respond_text(connection, MHD_HTTP_OK, "perfpipe is ready\n");
	char *text CLEANUP(cleanup_mem) =
		mem_format("perfpipe waits for its target: %s\n", state->target);
	return respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static enum MHD_Result respond_status(struct MHD_Connection *connection,
				      const struct agent_state *state)
{
	const char *format =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "format");
	if (format && strcmp(format, "text") == 0)
		return respond_written(connection, "text/plain; charset=utf-8",
				       status_text_write_people, state);
	return respond_written(connection, "application/json", status_text_write_json, state);
}

/*
 * pprof asks for the names of addresses that have none. All that could be named is named in the
 * profile, so that there are none to add.
 */
static enum MHD_Result respond_symbol(struct MHD_Connection *connection)
{
	return respond_text(connection, MHD_HTTP_OK, "num_symbols: 1\n");
}

static enum MHD_Result respond_answer(const struct request *request)
{
	struct MHD_Connection *connection = request->connection;
	if (request->route == ROUTE_SYMBOL)
		return respond_symbol(connection);
	if (request->route == ROUTE_PROFILE)
		return respond_profile(connection, request->answer);
	if (!request->answer)
		return respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				    "perfpipe does not answer\n");
	const struct agent_state *state = &request->answer->state;
	switch (request->route) {
	case ROUTE_METRICS:
		return respond_written(connection, "text/plain; version=0.0.4; charset=utf-8",
				       status_text_write_metrics, state);
	case ROUTE_READY:
		return respond_ready(connection, state);
	case ROUTE_STATUS:
		return respond_status(connection, state);
	default:
		return respond_text(connection, MHD_HTTP_OK, "perfpipe is healthy\n");
	}
}

static enum MHD_Result respond_index(struct MHD_Connection *connection)
{
	static const char page[] =
		"<!DOCTYPE html><html lang=\"en\"><head><title>/debug/pprof/</title></head><body>"
		"<h1>/debug/pprof/</h1><p>Profiles of the host, not of perfpipe alone.</p><ul>"
		"<li><a href=\"profile?seconds=30\">profile</a>: what runs in the next seconds</li>"
		"<li><a href=\"cmdline\">cmdline</a>: the command line of perfpipe</li>"
		"</ul></body></html>\n";
	return respond(connection, MHD_HTTP_OK, "text/html; charset=utf-8", page, sizeof(page) - 1,
		       NULL);
}

static enum MHD_Result respond_cmdline(struct MHD_Connection *connection)
{
	struct buf words CLEANUP(buf_fini);
	buf_init(&words, MAX_CMDLINE_BYTES);
	struct error *err = file_read_all("/proc/self/cmdline", &words);
	if (err) {
		error_free(err);
		return refuse_pprof(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "not readable\n");
	}
	size_t n = words.size && !words.data[words.size - 1] ? words.size - 1 : words.size;
	return respond(connection, MHD_HTTP_OK, "text/plain; charset=utf-8", words.data, n, NULL);
}

/* --- requests that wait --- */

static enum MHD_Result refuse_busy(struct MHD_Connection *connection, enum route route)
{
	static const char text[] = "perfpipe is too busy to answer\n";
	return route == ROUTE_PROFILE
		       ? refuse_pprof(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text)
		       : respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static struct request *add_request(struct status_server *server, struct MHD_Connection *connection,
				   enum route route)
{
	struct request *request = mem_zalloc(1, sizeof(*request));
	*request = (struct request){
		.next = server->requests,
		.connection = connection,
		.id = ++server->next_id,
		.route = route,
		.fd = -1,
	};
	server->requests = request;
	return request;
}

/* Its body is of no interest, but has to be read before it is answered. */
static enum MHD_Result await_body(struct status_server *server, struct MHD_Connection *connection,
				  enum route route, void **request_out)
{
	struct request *request = add_request(server, connection, route);
	request->is_over = true;
	*request_out = request;
	return MHD_YES;
}

static enum MHD_Result ask(struct status_server *server, struct MHD_Connection *connection,
			   enum route route, uint64_t seconds, void **request_out)
{
	bool is_profile = route == ROUTE_PROFILE;
	uintptr_t id = server->next_id + 1; /* of the request below */
	struct agent_query *query = agent_query_new(
		is_profile ? AGENT_QUERY_PROFILE : AGENT_QUERY_STATE, server->answers, (void *)id);
	query->duration_ns = seconds * NS_PER_S;
	if (!wake_box_put(server->queries, query)) {
		agent_query_free(query);
		return refuse_busy(connection, route);
	}
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct request *request = add_request(server, connection, route);
	if (is_profile && info)
		request->fd = info->connect_fd;
	request->deadline_ns = now_ns() + (is_profile ? seconds * NS_PER_S + PROFILE_PATIENCE_NS
						      : STATE_PATIENCE_NS);
	*request_out = request;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

static void end_request(struct request *request, struct agent_query *answer)
{
	request->answer = answer;
	request->is_over = true;
	MHD_resume_connection(request->connection);
}

static void take_answer(struct status_server *server, struct agent_query *answer)
{
	for (struct request *request = server->requests; request; request = request->next) {
		if (request->id == (uintptr_t)answer->asker && !request->is_over) {
			end_request(request, answer);
			return;
		}
	}
	agent_query_free(answer); /* too late */
}

static void end_late_requests(struct status_server *server)
{
	uint64_t at_ns = now_ns();
	for (struct request *request = server->requests; request; request = request->next) {
		if (!request->is_over && at_ns >= request->deadline_ns)
			end_request(request, NULL);
	}
}

/* Who asked for a profile and left does not want it. */
static void give_up_profile(struct status_server *server, struct request *request)
{
	struct agent_query *query = agent_query_new(AGENT_QUERY_CANCEL, server->answers, NULL);
	if (!wake_box_put(server->queries, query))
		agent_query_free(query);
	end_request(request, NULL);
}

/* --- the door of libmicrohttpd --- */

/* Seconds of a profile; what Go does not understand is its default. */
static uint64_t read_seconds(struct MHD_Connection *connection)
{
	const char *text =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "seconds");
	char *end = NULL;
	errno = 0;
	long seconds = text ? strtol(text, &end, 10) : 0;
	bool is_number = text && end != text && !*end && !errno;
	return is_number && seconds > 0 ? (uint64_t)seconds : DEFAULT_SECONDS;
}

static enum route find_route(const char *url)
{
	for (int i = 0; i < ROUTE_N; i++) {
		if (strcmp(url, paths[i]) == 0)
			return (enum route)i;
	}
	return ROUTE_NONE;
}

static enum MHD_Result begin_request(struct status_server *server,
				     struct MHD_Connection *connection, const char *url,
				     const char *method, void **request_out)
{
	enum route route = find_route(url);
	if (route == ROUTE_SYMBOL && strcmp(method, "POST") == 0)
		return await_body(server, connection, route, request_out);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				    "only GET is answered here\n");
	switch (route) {
	case ROUTE_NONE:
		if (strncmp(url, paths[ROUTE_PPROF_INDEX], strlen(paths[ROUTE_PPROF_INDEX])) == 0)
			return refuse_pprof(connection, MHD_HTTP_NOT_FOUND, "Unknown profile\n");
		return respond_text(connection, MHD_HTTP_NOT_FOUND, "no such page\n");
	case ROUTE_PPROF_INDEX:
		return respond_index(connection);
	case ROUTE_CMDLINE:
		return respond_cmdline(connection);
	case ROUTE_SYMBOL:
		return respond_symbol(connection);
	case ROUTE_PROFILE: {
		uint64_t seconds = read_seconds(connection);
		if (seconds > MAX_SECONDS)
			return refuse_pprof(connection, MHD_HTTP_BAD_REQUEST,
					    "a profile may take 600 seconds at most\n");
		return ask(server, connection, route, seconds, request_out);
	}
	default:
		return ask(server, connection, route, 0, request_out);
	}
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **request_place)
{
	(void)version;
	(void)body;
	const struct request *request = *request_place;
	if (request && *body_size == 0)
		return respond_answer(request);
	*body_size = 0;
	if (request)
		return MHD_YES;
	return begin_request(context, connection, url, method, request_place);
}

static void completed(void *context, struct MHD_Connection *connection, void **request_place,
		      enum MHD_RequestTerminationCode how)
{
	struct status_server *server = context;
	struct request *request = *request_place;
	(void)connection;
	(void)how;
	if (!request)
		return;
	struct request **at = &server->requests;
	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	agent_query_free(request->answer);
	mem_free(request);
	*request_place = NULL;
}

/* --- the thread --- */

enum { POLL_HTTP, POLL_ANSWERS, POLL_END, POLL_OWN_N };

/* Clients that wait for a profile are watched too: libmicrohttpd does not while they are suspended.
 */
static size_t list_fds(const struct status_server *server, struct pollfd *fds)
{
	fds[POLL_HTTP] = (struct pollfd){.fd = server->epoll_fd, .events = POLLIN};
	fds[POLL_ANSWERS] = (struct pollfd){.fd = wake_box_fd(server->answers), .events = POLLIN};
	fds[POLL_END] = (struct pollfd){.fd = wake_box_fd(server->end), .events = POLLIN};
	size_t n = POLL_OWN_N;
	for (struct request *r = server->requests; r && n < POLL_OWN_N + MAX_CONNECTIONS;
	     r = r->next) {
		if (r->fd >= 0 && !r->is_over)
			fds[n++] = (struct pollfd){.fd = r->fd, .events = POLLRDHUP};
	}
	return n;
}

static void look_for_leavers(struct status_server *server, const struct pollfd *fds, size_t n)
{
	for (size_t i = POLL_OWN_N; i < n; i++) {
		if (!(fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)))
			continue;
		for (struct request *r = server->requests; r; r = r->next) {
			if (r->fd == fds[i].fd && !r->is_over)
				give_up_profile(server, r);
		}
	}
}

static int patience_ms(const struct status_server *server)
{
	MHD_UNSIGNED_LONG_LONG wanted_ms;
	if (MHD_get_timeout(server->daemon, &wanted_ms) == MHD_YES && wanted_ms < MAX_POLL_MS)
		return (int)wanted_ms;
	return MAX_POLL_MS;
}

static void *run(void *context)
{
	struct status_server *server = context;
	struct pollfd fds[POLL_OWN_N + MAX_CONNECTIONS];
	thread_privileges_reduce(THREAD_OTHER);
	do {
		size_t n = list_fds(server, fds);
		if (poll(fds, n, patience_ms(server)) < 0)
			continue;
		look_for_leavers(server, fds, n);
		for (struct agent_query *answer; (answer = wake_box_take(server->answers));)
			take_answer(server, answer);
		end_late_requests(server);
		(void)MHD_run(server->daemon);
	} while (!fds[POLL_END].revents);
	for (struct request *request = server->requests; request; request = request->next) {
		if (!request->is_over)
			end_request(request, NULL);
	}
	(void)MHD_run(server->daemon);
	return NULL;
}

static struct error *start_thread(struct status_server *server)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int rc = pthread_create(&server->thread, NULL, run, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return error_number(error_errno(rc, "cannot start the http thread"), 117);
	server->has_thread = true;
	pthread_setname_np(server->thread, "http");
	return NULL;
}

/* What libmicrohttpd has to say; the rest is in the responses. */
static void log_trouble(void *context, const char *fmt, va_list args)
{
	(void)context;
	char text[256];
	vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	log_debug("libmicrohttpd text=\"%s\"", text);
}

static struct error *start_daemon(struct status_server *server, const char *address)
{
	struct address parsed;
	if (!parse_address(address, &parsed))
		return error_new(ERROR_USAGE, "\"%s\" is no address", address);
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	if (parsed.is_v6)
		flags |= MHD_USE_IPv6;
	errno = 0;
	server->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, log_trouble, NULL,
		MHD_OPTION_SOCK_ADDR, &parsed.socket.any, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_END);
	if (!server->daemon)
		return error_number(
			error_errno(errno ? errno : EIO, "cannot listen on %s", address),
			CANNOT_LISTEN);
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	server->epoll_fd = info ? info->epoll_fd : -1;
	log_info("listening address=%s", address);
	if (!parsed.is_loopback)
		log_warn("others on the network can read profiles and metrics address=%s", address);
	return NULL;
}

struct error *status_server_open(const char *address, struct wake_box *queries,
				 struct status_server **out)
{
	struct status_server *server = mem_zalloc(1, sizeof(*server));
	server->queries = queries;
	struct error *err = wake_box_open(MAX_ANSWERS, &server->answers);
	if (!err)
		err = wake_box_open(1, &server->end);
	if (!err)
		err = start_daemon(server, address);
	if (!err)
		err = start_thread(server);
	if (err) {
		status_server_close(server);
		return err;
	}
	*out = server;
	return NULL;
}

void status_server_close(struct status_server *server)
{
	if (!server)
		return;
	if (server->has_thread) {
		(void)!wake_box_put(server->end, server);
		pthread_join(server->thread, NULL);
	}
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	wake_box_close(server->answers, agent_query_free);
	wake_box_close(server->end, NULL);
	mem_free(server);
}
