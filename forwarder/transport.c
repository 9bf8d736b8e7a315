/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets on libuv's poll handles: sends with MSG_NOSIGNAL, and one code for TCP and files. */
#include "forwarder/transport.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

enum {
	INPUT_BYTES = 64 << 10,
	PLAIN_BYTES = 16 << 10, /* a TLS record */
	MAX_ADDRESSES = 16,
	RACE_DELAY_MS = 250,	 /* RFC 8305 §5 */
	USER_TIMEOUT_MS = 30000, /* unacknowledged bytes: the path is dead */
	READS_PER_WAKE_UP = 16,
	MAX_OUTPUT_BYTES = 4 << 20,
	CONNECT_NUMBER = 305, /* in the table of explained errors */
	PROXY_NUMBER = 305,
};

enum state { RESOLVING, CONNECTING, ASKING_PROXY, SHAKING_HANDS, OPEN, ENDED };

/* One socket, connecting or connected. */
struct connection_try {
	uv_poll_t poll; /* first: freed with it */
	struct transport *transport;
	int fd;
	char address[64];
	struct connection_try *next;
};

struct transport {
	uv_loop_t *loop;
	struct transport_config config;
	const struct transport_events *events;
	void *context;
	enum state state;
	bool is_closed;
	size_t n_handles; /* and requests that libuv still holds */
	uv_timer_t timeout, delay;
	uv_getaddrinfo_t resolve;
	bool is_resolving;
	struct sockaddr_storage addresses[MAX_ADDRESSES];
	socklen_t n_address_bytes[MAX_ADDRESSES];
	size_t n_addresses, next_address;
	struct connection_try *tries; /* under way; only the winner once connected */
	size_t n_tries;
	char last_try[160]; /* why the last one failed */
	struct tls_link *tls;
	struct buf output; /* not taken by the kernel yet; with TLS only before it */
	size_t n_output_sent;
	bool is_polling_write;
	struct buf proxy_answer;
	struct error *late_error; /* told when the delay timer fires */
	enum grpc_failure late_failure;
	uint8_t input[INPUT_BYTES];
	uint8_t plain[PLAIN_BYTES];
};

/* Closing */

static void release(struct transport *transport)
{
	if (--transport->n_handles > 0)
		return;
	if (transport->output.data)
		explicit_bzero(transport->output.data, transport->output.capacity);
	buf_fini(&transport->output);
	buf_fini(&transport->proxy_answer);
	error_free(transport->late_error);
	mem_free(transport);
}

static void on_timer_closed(uv_handle_t *handle)
{
	release(handle->data);
}

static void on_try_closed(uv_handle_t *handle)
{
	struct connection_try *try = (struct connection_try *)handle;
	struct transport *transport = try->transport;
	mem_free(try);
	release(transport);
}

static void drop_try(struct transport *transport, struct connection_try *try)
{
	struct connection_try **at = &transport->tries;
	while (*at != try)
		at = &(*at)->next;
	*at = try->next;
	transport->n_tries--;
	uv_close((uv_handle_t *)&try->poll, on_try_closed);
	close(try->fd);
}

/* Sockets and timers; the memory stays. */
static void stop(struct transport *transport)
{
	while (transport->tries)
		drop_try(transport, transport->tries);
	uv_timer_stop(&transport->timeout);
	uv_timer_stop(&transport->delay);
	tls_close(transport->tls);
	transport->tls = NULL;
}

void transport_close(struct transport *transport)
{
	if (!transport || transport->is_closed)
		return;
	if (transport->tls && transport->state == OPEN) {
		tls_say_goodbye(transport->tls);
		const uint8_t *bytes;
		size_t n = tls_pending(transport->tls, &bytes);
		/* Whether it arrives makes no difference. */
		if (n && transport->tries)
			(void)!send(transport->tries->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	transport->is_closed = true;
	stop(transport);
	if (transport->is_resolving)
		uv_cancel((uv_req_t *)&transport->resolve);
	uv_close((uv_handle_t *)&transport->timeout, on_timer_closed);
	uv_close((uv_handle_t *)&transport->delay, on_timer_closed);
}

/* The last event. err is handed on. */
static void fail(struct transport *transport, enum grpc_failure failure, struct error *err)
{
	transport->state = ENDED;
	stop(transport);
	transport->events->failed(transport->context, failure, err);
}

static void on_delay(uv_timer_t *timer);

/* For errors found where no event may come from. */
static void fail_later(struct transport *transport, enum grpc_failure failure, struct error *err)
{
	if (transport->late_error) {
		error_free(err);
		return;
	}
	transport->late_error = err;
	transport->late_failure = failure;
	uv_timer_start(&transport->delay, on_delay, 0, 0);
}

/* Writing */

static void set_polling(struct transport *transport, bool is_write);

/* Sends until the kernel takes no more. */
static void flush(struct transport *transport)
{
	struct connection_try *socket = transport->tries;
	if (!socket || transport->late_error)
		return;
	while (1) {
		const uint8_t *bytes = transport->output.data + transport->n_output_sent;
		size_t n = transport->output.size - transport->n_output_sent;
		bool is_tls = n == 0 && transport->tls;
		if (is_tls)
			n = tls_pending(transport->tls, &bytes);
		if (n == 0)
			break;
		ssize_t sent = send(socket->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			set_polling(transport, true);
			return;
		}
		if (sent < 0) {
			fail_later(transport, GRPC_FAILURE_LOST,
				   error_errno(errno, "connection to %s",
					       transport->config.endpoint->shown));
			return;
		}
		if (is_tls) {
			tls_take_pending(transport->tls, (size_t)sent);
			continue;
		}
		transport->n_output_sent += (size_t)sent;
		if (transport->n_output_sent == transport->output.size) {
			buf_clear(&transport->output);
			transport->n_output_sent = 0;
		}
	}
	set_polling(transport, false);
}

bool transport_is_blocked(const struct transport *transport)
{
	return transport->state != OPEN || transport->is_polling_write || transport->late_error;
}

static struct error *write_plain(struct transport *transport, const uint8_t *bytes, size_t n)
{
	if (transport->output.size == 0 && transport->tries) {
		ssize_t sent = send(transport->tries->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		/* An error shows again when the rest is sent. */
		size_t taken = sent > 0 ? (size_t)sent : 0;
		bytes += taken;
		n -= taken;
	}
	return n ? buf_append(&transport->output, bytes, n) : NULL;
}

void transport_write(struct transport *transport, const uint8_t *bytes, size_t n)
{
	if (transport->state != OPEN || transport->late_error)
		return;
	struct error *err = transport->tls ? tls_write(transport->tls, bytes, n)
					   : write_plain(transport, bytes, n);
	if (err) {
		fail_later(transport, transport->tls ? GRPC_FAILURE_TLS : GRPC_FAILURE_LOST, err);
		return;
	}
	flush(transport);
}

/* Reading */

static void become_open(struct transport *transport)
{
	uv_timer_stop(&transport->timeout);
	transport->state = OPEN;
	transport->events->opened(transport->context);
}

/* Hands out what TLS has unpacked. false: there is no transport to go on with. */
static bool read_tls(struct transport *transport)
{
	while (!transport->is_closed && transport->state == OPEN) {
		size_t n;
		struct error *err =
			tls_read(transport->tls, transport->plain, sizeof(transport->plain), &n);
		if (err) {
			flush(transport); /* an alert */
			fail(transport, GRPC_FAILURE_TLS, err);
			return false;
		}
		if (n == 0) {
			if (tls_is_at_end(transport->tls)) {
				fail(transport, GRPC_FAILURE_LOST,
				     error_new(ERROR_UNAVAILABLE, "%s closed the connection",
					       transport->config.endpoint->shown));
				return false;
			}
			flush(transport); /* tickets, key updates */
			return true;
		}
		transport->events->received(transport->context, transport->plain, n);
	}
	return false;
}

static bool shake_hands(struct transport *transport)
{
	bool is_done;
	struct error *err = tls_shake_hands(transport->tls, &is_done);
	flush(transport);
	if (err) {
		fail(transport, GRPC_FAILURE_TLS, err);
		return false;
	}
	if (!is_done)
		return true;
	become_open(transport);
	return !transport->is_closed && read_tls(transport);
}

/* See tls_set_sink. An error shows again when the rest is sent. */
static size_t send_now(void *context, const uint8_t *bytes, size_t n)
{
	const struct transport *transport = context;
	if (!transport->tries || transport->late_error || transport->output.size)
		return 0;
	ssize_t sent = send(transport->tries->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent > 0 ? (size_t)sent : 0;
}

static bool begin_tls(struct transport *transport)
{
	if (!transport->config.tls) {
		become_open(transport);
		return !transport->is_closed && transport->state == OPEN;
	}
	transport->state = SHAKING_HANDS;
	struct error *warning = NULL;
	struct error *err = tls_open(transport->config.tls, &warning, &transport->tls);
	if (warning)
		transport->events->warned(transport->context, warning);
	error_free(warning);
	if (err) {
		fail(transport, GRPC_FAILURE_TLS, err);
		return false;
	}
	tls_set_sink(transport->tls, send_now, transport);
	return shake_hands(transport);
}

static bool receive(struct transport *transport, const uint8_t *bytes, size_t n);

static bool receive_from_proxy(struct transport *transport, const uint8_t *bytes, size_t n)
{
	size_t n_answer = 0;
	struct buf *answer = &transport->proxy_answer;
	struct error *err = buf_append(answer, bytes, n);
	if (!err)
		err = proxy_read_answer(transport->config.proxy, transport->config.endpoint->shown,
					answer->data, answer->size, &n_answer);
	if (err) {
		fail(transport, GRPC_FAILURE_PROXY, error_number(err, PROXY_NUMBER));
		return false;
	}
	if (n_answer == 0)
		return true;
	if (!begin_tls(transport))
		return false;
	return n_answer == answer->size ||
	       receive(transport, answer->data + n_answer, answer->size - n_answer);
}

/* false: there is no transport to go on with. */
static bool receive(struct transport *transport, const uint8_t *bytes, size_t n)
{
	if (transport->state == ASKING_PROXY)
		return receive_from_proxy(transport, bytes, n);
	if (!transport->tls) {
		transport->events->received(transport->context, bytes, n);
		return !transport->is_closed && transport->state == OPEN;
	}
	struct error *err = tls_receive(transport->tls, bytes, n);
	if (err) {
		fail(transport, GRPC_FAILURE_TLS, err);
		return false;
	}
	return transport->state == SHAKING_HANDS ? shake_hands(transport) : read_tls(transport);
}

static void end_of_stream(struct transport *transport, int errno_value)
{
	const char *server = transport->config.endpoint->shown;
	if (transport->state == SHAKING_HANDS && errno_value == 0) {
		fail(transport, GRPC_FAILURE_TLS, tls_end_of_stream(transport->tls));
		return;
	}
	if (transport->state == ASKING_PROXY) {
		fail(transport, GRPC_FAILURE_PROXY,
		     error_number(error_new(ERROR_UNAVAILABLE,
					    "proxy %s closed the connection when it was asked for "
					    "a tunnel to %s",
					    transport->config.proxy->authority, server),
				  PROXY_NUMBER));
		return;
	}
	fail(transport, GRPC_FAILURE_LOST,
	     errno_value ? error_errno(errno_value, "connection to %s", server)
			 : error_new(ERROR_UNAVAILABLE, "%s closed the connection", server));
}

/* is_last: no more events will come, so all is read, and then it ends. */
static void on_readable(struct transport *transport, bool is_last)
{
	for (int i = 0; i < READS_PER_WAKE_UP || is_last; i++) {
		ssize_t n = recv(transport->tries->fd, transport->input, sizeof(transport->input),
				 MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && !is_last && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			end_of_stream(transport, n < 0 ? errno : 0);
			return;
		}
		if (!receive(transport, transport->input, (size_t)n) ||
		    (!is_last && (size_t)n < sizeof(transport->input)))
			return;
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct transport *transport = ((struct connection_try *)poll)->transport;
	/* An error stops the handle (POLLERR): the socket tells which. */
	if (status < 0 || (events & UV_READABLE)) {
		on_readable(transport, status < 0);
		if (transport->is_closed || transport->state == ENDED)
			return;
	}
	if ((events & UV_WRITABLE) && transport->is_polling_write) {
		flush(transport);
		if (transport->state == OPEN && !transport->is_polling_write &&
		    !transport->late_error)
			transport->events->drained(transport->context);
	}
}

static void set_polling(struct transport *transport, bool is_write)
{
	if (transport->is_polling_write == is_write)
		return;
	transport->is_polling_write = is_write;
	uv_poll_start(&transport->tries->poll, UV_READABLE | (is_write ? UV_WRITABLE : 0), on_poll);
}

/* Connecting */

static void try_next(struct transport *transport);

static void fail_connect(struct transport *transport)
{
	bool is_proxy = transport->config.proxy->host != NULL;
	fail(transport, is_proxy ? GRPC_FAILURE_PROXY : GRPC_FAILURE_CONNECT,
	     error_number(error_new(ERROR_UNAVAILABLE, "cannot connect to %s%s: %s",
				    is_proxy ? "proxy " : "",
				    is_proxy ? transport->config.proxy->authority
					     : transport->config.endpoint->shown,
				    transport->last_try),
			  is_proxy ? PROXY_NUMBER : CONNECT_NUMBER));
}

static void note_try(struct transport *transport, const char *address, int errno_value)
{
	char reason[64];
	snprintf(transport->last_try, sizeof(transport->last_try), "%s%s%s%s",
		 strerror_r(errno_value, reason, sizeof(reason)), address[0] ? " (" : "", address,
		 address[0] ? ")" : "");
}

/* The connection is there: the others are given up. */
static void win(struct transport *transport, struct connection_try *winner)
{
	for (struct connection_try *try = transport->tries; try;) {
		struct connection_try *next = try->next;
		if (try != winner)
			drop_try(transport, try);
		try = next;
	}
	uv_timer_stop(&transport->delay);
	uv_poll_start(&winner->poll, UV_READABLE, on_poll);
	if (!transport->config.proxy->host) {
		begin_tls(transport);
		return;
	}
	transport->state = ASKING_PROXY;
	struct error *err = proxy_put_request(
		transport->config.proxy, transport->config.endpoint->shown, &transport->output);
	if (err) {
		fail(transport, GRPC_FAILURE_PROXY, error_number(err, PROXY_NUMBER));
		return;
	}
	flush(transport);
}

static void on_connected(uv_poll_t *poll, int status, int events)
{
	(void)events;
	struct connection_try *try = (struct connection_try *)poll;
	struct transport *transport = try->transport;
	int errno_value = 0;
	socklen_t size = sizeof(errno_value);
	if (getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &errno_value, &size) != 0)
		errno_value = errno;
	if (errno_value == 0 && status < 0)
		errno_value = -status;
	if (errno_value == 0) {
		win(transport, try);
		return;
	}
	note_try(transport, try->address, errno_value);
	drop_try(transport, try);
	try_next(transport);
}

/* Begins to connect fd, which is taken. */
static bool begin_try(struct transport *transport, int fd, const struct sockaddr *address,
		      socklen_t n_address, const char *shown)
{
	int result = connect(fd, address, n_address);
	if (result != 0 && errno != EINPROGRESS) {
		note_try(transport, shown, errno);
		close(fd);
		return false;
	}
	struct connection_try *try = mem_zalloc(1, sizeof(*try));
	try->transport = transport;
	try->fd = fd;
	snprintf(try->address, sizeof(try->address), "%s", shown);
	int status = uv_poll_init(transport->loop, &try->poll, fd);
	if (status != 0) {
		note_try(transport, shown, -status);
		close(fd);
		mem_free(try);
		return false;
	}
	transport->n_handles++;
	try->next = transport->tries;
	transport->tries = try;
	transport->n_tries++;
	uv_poll_start(&try->poll, UV_WRITABLE, on_connected);
	return true;
}

static bool try_address(struct transport *transport, size_t index)
{
	const struct sockaddr *address = (const struct sockaddr *)&transport->addresses[index];
	char shown[64] = "";
	if (getnameinfo(address, transport->n_address_bytes[index], shown, sizeof(shown), NULL, 0,
			NI_NUMERICHOST) != 0)
		shown[0] = 0;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		note_try(transport, shown, errno);
		return false;
	}
	/* Without these a connection works too, only less well. */
	int on = 1;
	int user_timeout_ms = USER_TIMEOUT_MS;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms,
			 sizeof(user_timeout_ms));
	return begin_try(transport, fd, address, transport->n_address_bytes[index], shown);
}

/* The next address that can be tried at all; when there is none left and none under way, it ends.
 */
static void try_next(struct transport *transport)
{
	while (transport->next_address < transport->n_addresses)
		if (try_address(transport, transport->next_address++)) {
			if (transport->next_address < transport->n_addresses)
				uv_timer_start(&transport->delay, on_delay, RACE_DELAY_MS, 0);
			return;
		}
	if (transport->n_tries == 0)
		fail_connect(transport);
}

static void connect_file(struct transport *transport)
{
	const char *path = transport->config.endpoint->unix_path;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	memcpy(address.sun_path, path, n);
	socklen_t size = sizeof(address);
	if (path[0] == '@') {
		address.sun_path[0] = 0;
		size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	}
	transport->state = CONNECTING;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		note_try(transport, "", errno);
	if (fd < 0 || !begin_try(transport, fd, (const struct sockaddr *)&address, size, ""))
		fail_connect(transport);
}

/* Families take turns, beginning with that of the first address (RFC 8305 §4). */
static void order_addresses(struct transport *transport, const struct addrinfo *list)
{
	const struct addrinfo *one = list;
	int first = list ? list->ai_family : AF_UNSPEC;
	const struct addrinfo *other = list;
	while (transport->n_addresses < MAX_ADDRESSES) {
		while (one && one->ai_family != first)
			one = one->ai_next;
		while (other && (other->ai_family == first ||
				 (other->ai_family != AF_INET && other->ai_family != AF_INET6)))
			other = other->ai_next;
		bool takes_one = one && (transport->n_addresses % 2 == 0 || !other);
		const struct addrinfo **from = takes_one ? &one : &other;
		if (!*from)
			break;
		memcpy(&transport->addresses[transport->n_addresses], (*from)->ai_addr,
		       (*from)->ai_addrlen);
		transport->n_address_bytes[transport->n_addresses++] = (*from)->ai_addrlen;
		*from = (*from)->ai_next;
	}
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
	struct transport *transport = request->data;
	transport->is_resolving = false;
	if (transport->is_closed || transport->state == ENDED) {
		uv_freeaddrinfo(list);
		release(transport);
		return;
	}
	transport->n_handles--; /* the timers hold it */
	const struct proxy *proxy = transport->config.proxy;
	if (status != 0) {
		fail(transport, proxy->host ? GRPC_FAILURE_PROXY : GRPC_FAILURE_RESOLVE,
		     error_number(
			     error_new(ERROR_UNAVAILABLE, "cannot resolve %s\"%s\": %s",
				       proxy->host ? "proxy " : "",
				       proxy->host ? proxy->host : transport->config.endpoint->host,
				       uv_strerror(status)),
			     proxy->host ? PROXY_NUMBER : CONNECT_NUMBER));
		return;
	}
	order_addresses(transport, list);
	uv_freeaddrinfo(list);
	transport->state = CONNECTING;
	try_next(transport);
}

static void begin(struct transport *transport)
{
	if (transport->config.endpoint->unix_path) {
		connect_file(transport);
		return;
	}
	const struct proxy *proxy = transport->config.proxy;
	const char *host = proxy->host ? proxy->host : transport->config.endpoint->host;
	char port[8];
	snprintf(port, sizeof(port), "%u",
		 proxy->host ? proxy->port : transport->config.endpoint->port);
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};
	struct addrinfo *list = NULL;
	/* An address needs no resolver, and so no thread. */
	if (getaddrinfo(host, port, &hints, &list) == 0) {
		order_addresses(transport, list);
		freeaddrinfo(list);
		transport->state = CONNECTING;
		try_next(transport);
		return;
	}
	hints.ai_flags = AI_NUMERICSERV;
	transport->resolve.data = transport;
	int status = uv_getaddrinfo(transport->loop, &transport->resolve, on_resolved, host, port,
				    &hints);
	if (status != 0) {
		fail(transport, GRPC_FAILURE_RESOLVE,
		     error_number(error_new(ERROR_UNAVAILABLE, "cannot resolve \"%s\": %s", host,
					    uv_strerror(status)),
				  CONNECT_NUMBER));
		return;
	}
	transport->is_resolving = true;
	transport->n_handles++;
}

/* Late errors, the start, and the next address of a race. */
static void on_delay(uv_timer_t *timer)
{
	struct transport *transport = timer->data;
	if (transport->late_error) {
		struct error *err = transport->late_error;
		transport->late_error = NULL;
		fail(transport, transport->late_failure, err);
	} else if (transport->state == RESOLVING && !transport->is_resolving) {
		begin(transport);
	} else if (transport->state == CONNECTING) {
		try_next(transport);
	}
}

const char *transport_waits_for(const struct transport *transport)
{
	switch (transport->state) {
	case RESOLVING:
		return "name resolution";
	case CONNECTING:
		return "the connection";
	case ASKING_PROXY:
		return "the proxy";
	case SHAKING_HANDS:
		return "the TLS handshake";
	default:
		return "the server";
	}
}

static void on_timeout(uv_timer_t *timer)
{
	struct transport *transport = timer->data;
	enum grpc_failure failure = transport->state == RESOLVING	? GRPC_FAILURE_RESOLVE
				    : transport->state == ASKING_PROXY	? GRPC_FAILURE_PROXY
				    : transport->state == SHAKING_HANDS ? GRPC_FAILURE_TLS
									: GRPC_FAILURE_CONNECT;
	fail(transport, failure,
	     error_number(error_new(ERROR_UNAVAILABLE,
				    "cannot connect to %s within %.3g s: waited for %s",
				    transport->config.endpoint->shown,
				    (double)transport->config.connect_timeout_ns / 1e9,
				    transport_waits_for(transport)),
			  CONNECT_NUMBER));
}

struct transport *transport_open(uv_loop_t *loop, const struct transport_config *config,
				 const struct transport_events *events, void *context)
{
	struct transport *transport = mem_zalloc(1, sizeof(*transport));
	transport->loop = loop;
	transport->config = *config;
	transport->events = events;
	transport->context = context;
	buf_init(&transport->output, MAX_OUTPUT_BYTES);
	buf_init(&transport->proxy_answer, PROXY_MAX_ANSWER_BYTES + INPUT_BYTES);
	/* These two cannot fail (uv_timer_init always returns 0). */
	uv_timer_init(loop, &transport->timeout);
	uv_timer_init(loop, &transport->delay);
	transport->timeout.data = transport->delay.data = transport;
	transport->n_handles = 2;
	uv_timer_start(&transport->timeout, on_timeout, config->connect_timeout_ns / 1000000, 0);
	uv_timer_start(&transport->delay, on_delay, 0, 0);
	return transport;
}
