/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/builder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "symcache/builder_wire.h"
#include "symcache/symbol_file.h"

#define LOG_AREA "symcache"
#include "base/log.h"

/* What the builder process may take longer than the deadline before it is taken for hung. */
enum { GRACE_S = 5, MS_PER_S = 1000 };

struct build {
	uint32_t number; /* 0 = free */
	int socket;	 /* to the worker; -1 once it closed its end */
	uint32_t n_wishes;
	bool has_report;
	const char *fault; /* for which it was stopped; NULL = it was not */
	struct error *report;
	int64_t deadline_ms;
	struct builder_order order;
};

struct builder {
	struct builder_config config; /* with the defaults put in */
	int control;		      /* -1 = no process */
	pid_t pid;
	uint32_t last_number, n_running;
	struct build builds[BUILDER_MAX_BUILDS];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / 1000000;
}

static void start_process(struct builder *builder)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		const struct builder_process process = {
			.socket = pair[1],
			.work = builder->config.work,
			.limits = {.memory_bytes = builder->config.memory_bytes,
				   .cpu_s = builder->config.deadline_s,
				   .file_bytes = SYMBOL_FILE_MAX_BYTES},
		};
		builder_process_run(&process);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	builder->control = pair[0];
	builder->pid = pid;
}

/* Its workers go with it. */
static void stop_process(struct builder *builder)
{
	if (builder->control < 0)
		return;
	close(builder->control);
	builder->control = -1;
	/* Closing its socket ends it; one that hangs is killed where that is permitted. */
	if (kill(builder->pid, SIGKILL) == 0 || errno != EPERM)
		(void)waitpid(builder->pid, NULL, 0);
	else
		(void)waitpid(builder->pid, NULL, WNOHANG);
	builder->pid = 0;
}

static uint32_t processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > BUILDER_MAX_BUILDS ? BUILDER_MAX_BUILDS : (uint32_t)n;
}

struct builder *builder_new(const struct builder_config *config)
{
	struct builder *builder = mem_zalloc(1, sizeof(*builder));
	builder->config = *config;
	if (!builder->config.max_builds || builder->config.max_builds > BUILDER_MAX_BUILDS)
		builder->config.max_builds = processors();
	if (!builder->config.deadline_s)
		builder->config.deadline_s = BUILDER_DEADLINE_S;
	if (!builder->config.work)
		builder->config.work = builder_job_run;
	if (!builder->config.memory_bytes)
		builder->config.memory_bytes = builder_jail_memory_bytes();
	builder->control = -1;
	start_process(builder);
	return builder;
}

static void forget_build(struct builder *builder, struct build *build)
{
	if (build->socket >= 0)
		close(build->socket);
	error_free(build->report);
	*build = (struct build){.socket = -1};
	builder->n_running--;
}

void builder_free(struct builder *builder)
{
	if (!builder)
		return;
	stop_process(builder);
	for (uint32_t i = 0; i < BUILDER_MAX_BUILDS; i++) {
		if (builder->builds[i].number)
			forget_build(builder, &builder->builds[i]);
	}
	mem_free(builder);
}

pid_t builder_get_pid(const struct builder *builder)
{
	return builder->pid;
}

/* Takes err. */
static void finish(struct builder *builder, struct build *build, struct error *err)
{
	const struct builder_order order = build->order;
	forget_build(builder, build);
	order.done(order.context, err);
}

static void lose_process(struct builder *builder)
{
	log_debug("builder process lost pid=%d", (int)builder->pid);
	stop_process(builder);
	for (uint32_t i = 0; i < BUILDER_MAX_BUILDS; i++) {
		if (builder->builds[i].number)
			finish(builder, &builder->builds[i],
			       error_new(ERROR_UNAVAILABLE, "the builder process ended"));
	}
}

static struct error *error_of_status(const struct builder *builder, int status)
{
	if (WIFEXITED(status)) {
		int code = WEXITSTATUS(status);
		if (code == BUILDER_EXIT_NOT_CONFINED)
			return error_new(ERROR_UNAVAILABLE,
					 "the builder cannot be confined on this machine");
		return error_new(code == BUILDER_EXIT_SOCKET_GONE ? ERROR_UNAVAILABLE
								  : ERROR_BAD_DATA,
				 "builder: exit status %d", code);
	}
	switch (WTERMSIG(status)) {
	case SIGALRM:
	case SIGXCPU:
		return error_new(ERROR_LIMIT, "builder: not done after %u s",
				 builder->config.deadline_s);
	case SIGABRT:
		return error_new(ERROR_LIMIT, "builder: out of memory");
	case SIGKILL:
		/* By the OOM killer or a person: no limit of the build's sends it. */
		return error_new(ERROR_UNAVAILABLE, "builder: killed");
	case SIGXFSZ:
		return error_new(ERROR_LIMIT, "builder: symbol file too large");
	case SIGSYS:
		return error_new(ERROR_BAD_DATA, "builder: forbidden system call");
	case SIGBUS:
		return error_new(ERROR_BAD_DATA, "builder: the file was cut while it was read");
	default:
		return error_new(ERROR_BAD_DATA, "builder: crashed (%s)",
				 strsignal(WTERMSIG(status)));
	}
}

/* A worker that does not do as it should is not waited for. */
static void stop_build(struct builder *builder, struct build *build, const char *fault)
{
	const struct builder_order_message message = {.number = build->number, .is_stop = true};
	close(build->socket);
	build->socket = -1;
	build->fault = fault;
	/* Without an answer it is the deadline that ends it. */
	(void)builder_wire_send(builder->control, &message, sizeof(message), NULL, 0, false);
}

static void answer_wish(struct builder *builder, struct build *build,
			const struct builder_worker_message *message)
{
	const struct builder_wish wish = {
		.kind = message->code,
		.id = message->id,
		.folder = message->folder,
		.name = message->name,
	};
	bool is_known = wish.kind <= BUILDER_WISH_PACKAGE && wish.id.size <= BUILD_ID_MAX_BYTES;
	if (++build->n_wishes > BUILDER_MAX_WISHES) {
		stop_build(builder, build, "builder: asked for too many files");
		return;
	}
	CLEANUP(cleanup_fd) int fd = -1;
	if (build->order.find && is_known)
		fd = build->order.find(build->order.context, &wish);
	const struct builder_answer_message answer = {.is_found = fd >= 0};
	bool is_sent = builder_wire_send(build->socket, &answer, sizeof(answer), &fd,
					 fd >= 0 ? 1 : 0, false);
	/* A worker that is gone shows in its end; an honest one has no more than one wish open. */
	if (!is_sent && errno == EAGAIN)
		stop_build(builder, build, "builder: does not read its answers");
}

/* The text goes to terminals. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if (*text < 0x20 || *text > 0x7e)
			*text = '?';
	}
}

/* False when there is nothing more to come. */
static bool take_message(struct builder *builder, struct build *build)
{
	struct builder_worker_message message;
	if (!builder_wire_receive(build->socket, &message, sizeof(message), NULL, NULL))
		return false;
	message.folder[sizeof(message.folder) - 1] = 0;
	message.name[sizeof(message.name) - 1] = 0;
	if (message.kind == BUILDER_MESSAGE_WISH) {
		answer_wish(builder, build, &message);
		return build->socket >= 0;
	}
	build->has_report = message.kind == BUILDER_MESSAGE_DONE;
	if (build->has_report && message.code) {
		make_printable(message.name);
		bool is_code = message.code <= ERROR_USAGE && message.code != ERROR_UNAVAILABLE &&
			       message.code != ERROR_AGAIN && message.code != ERROR_NO_ENTRY;
		build->report = error_new(is_code ? (enum error_code)message.code : ERROR_BAD_DATA,
					  "%s", message.name);
	}
	return false;
}

static void hear_worker(struct builder *builder, struct build *build)
{
	if (take_message(builder, build) || build->socket < 0)
		return;
	close(build->socket);
	build->socket = -1;
}

/* The worker is gone; what it said last may still be waiting. */
static void end_build(struct builder *builder, struct build *build, int status)
{
	while (build->socket >= 0)
		hear_worker(builder, build);
	struct error *err = NULL;
	if (build->fault)
		err = error_new(ERROR_BAD_DATA, "%s", build->fault);
	else if (status != 0 || !build->has_report)
		err = error_of_status(builder, status);
	else
		err = TAKE(build->report);
	finish(builder, build, err);
}

static void hear_process(struct builder *builder)
{
	struct builder_end_message message;
	if (!builder_wire_receive(builder->control, &message, sizeof(message), NULL, NULL)) {
		lose_process(builder);
		return;
	}
	for (uint32_t i = 0; i < BUILDER_MAX_BUILDS; i++) {
		if (message.number && builder->builds[i].number == message.number) {
			end_build(builder, &builder->builds[i], message.status);
			return;
		}
	}
}

/* One round of waiting for workers and their ends; false when nothing came. */
static bool step(struct builder *builder, bool may_wait)
{
	struct pollfd fds[BUILDER_MAX_BUILDS + 1];
	struct build *owners[BUILDER_MAX_BUILDS + 1];
	nfds_t n = 0;
	int64_t deadline = INT64_MAX;
	fds[n++] = (struct pollfd){.fd = builder->control, .events = POLLIN};
	for (uint32_t i = 0; i < BUILDER_MAX_BUILDS; i++) {
		struct build *build = &builder->builds[i];
		if (!build->number)
			continue;
		if (build->deadline_ms < deadline)
			deadline = build->deadline_ms;
		if (build->socket < 0)
			continue;
		owners[n] = build;
		fds[n++] = (struct pollfd){.fd = build->socket, .events = POLLIN};
	}
	int64_t left = deadline - now_ms();
	int n_ready = poll(fds, n, left > 0 && may_wait ? (int)left : 0);
	/* Also when there is always something to hear. */
	if (now_ms() >= deadline) {
		lose_process(builder);
		return false;
	}
	if (n_ready <= 0)
		return false;
	for (nfds_t i = 1; i < n; i++) {
		if (fds[i].revents)
			hear_worker(builder, owners[i]);
	}
	if (fds[0].revents)
		hear_process(builder);
	return true;
}

void builder_wait(struct builder *builder)
{
	while (builder->n_running)
		(void)step(builder, true);
}

bool builder_poll(struct builder *builder)
{
	while (builder->n_running && step(builder, false))
		;
	return builder->n_running != 0;
}

static struct build *find_place(struct builder *builder)
{
	while (builder->n_running >= builder->config.max_builds)
		(void)step(builder, true);
	struct build *build = builder->builds;
	while (build->number)
		build++;
	return build;
}

static bool send_order(struct builder *builder, const struct builder_order *order, uint32_t number,
		       int *socket_out)
{
	int pair[2];
	if (builder->control < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	const struct builder_order_message message = {
		.number = number,
		.deadline_s = builder->config.deadline_s,
		.id = order->id,
		.has_debug = order->debug_fd >= 0,
		.no_dwarf = order->no_dwarf,
	};
	const int fds[] = {pair[1], order->binary_fd, order->out_fd, order->debug_fd};
	bool is_sent = builder_wire_send(builder->control, &message, sizeof(message), fds,
					 message.has_debug ? 4 : 3, false);
	close(pair[1]);
	if (is_sent)
		*socket_out = pair[0];
	else
		close(pair[0]);
	return is_sent;
}

void builder_start(struct builder *builder, const struct builder_order *order)
{
	struct build *build = find_place(builder);
	uint32_t number = ++builder->last_number;
	if (!number)
		number = ++builder->last_number;
	int socket = -1;
	if (!send_order(builder, order, number, &socket)) {
		/* A process that ended while nobody waited for it. */
		lose_process(builder);
		start_process(builder);
		build = find_place(builder);
		if (!send_order(builder, order, number, &socket)) {
			order->done(order->context,
				    error_new(ERROR_UNAVAILABLE, "the builder cannot be started"));
			return;
		}
	}
	*build = (struct build){
		.number = number,
		.socket = socket,
		.deadline_ms =
			now_ms() + (int64_t)(builder->config.deadline_s + GRACE_S) * MS_PER_S,
		.order = *order,
	};
	builder->n_running++;
}
