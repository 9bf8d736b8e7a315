/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/builder_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symcache/builder_wire.h"
#include "symcache/confinement.h"

enum { MAX_WORKERS = 64 };

struct worker {
	pid_t pid;
	uint32_t number;
};

struct house {
	const struct builder_process *process;
	struct worker workers[MAX_WORKERS];
	uint32_t n;
};

/* An order, unpacked. */
struct order {
	struct builder_order_message message;
	int fds[BUILDER_WIRE_MAX_FDS]; /* socket, binary, output, debug */
	size_t n_fds;
};

/* What ends a worker, also where our caller ignored or caught it. */
static void let_signals_end_workers(void)
{
	static const int ending[] = {SIGALRM, SIGXCPU, SIGXFSZ};
	static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS};
	for (size_t i = 0; i < ARRAY_LEN(ending); i++)
		signal(ending[i], SIG_DFL);
	for (size_t i = 0; i < ARRAY_LEN(faults) && !CONFINEMENT_IS_INSTRUMENTED; i++)
		signal(faults[i], SIG_DFL);
}

static int find_beside(void *context, const struct builder_wish *wish)
{
	int socket = *(const int *)context;
	struct builder_worker_message message = {
		.kind = BUILDER_MESSAGE_WISH, .code = wish->kind, .id = wish->id};
	int folder = snprintf(message.folder, sizeof(message.folder), "%s", wish->folder);
	int name = snprintf(message.name, sizeof(message.name), "%s", wish->name);
	if (folder < 0 || (size_t)folder >= sizeof(message.folder) || name < 0 ||
	    (size_t)name >= sizeof(message.name))
		return -1;
	if (!builder_wire_send(socket, &message, sizeof(message), NULL, 0, true))
		_exit(BUILDER_EXIT_SOCKET_GONE);
	struct builder_answer_message answer;
	int fds[BUILDER_WIRE_MAX_FDS];
	size_t n_fds;
	if (!builder_wire_receive(socket, &answer, sizeof(answer), fds, &n_fds))
		_exit(BUILDER_EXIT_SOCKET_GONE);
	return answer.is_found && n_fds == 1 ? fds[0] : -1;
}

static void report(int socket, struct error *err)
{
	struct builder_worker_message message = {.kind = BUILDER_MESSAGE_DONE};
	if (err) {
		message.code = error_get_code(err);
		snprintf(message.name, sizeof(message.name), "%s", error_text(err));
	}
	if (!builder_wire_send(socket, &message, sizeof(message), NULL, 0, true))
		_exit(BUILDER_EXIT_SOCKET_GONE);
}

_Noreturn static void work(const struct builder_process *process, struct order *order, pid_t parent)
{
	int socket = order->fds[0];
	close(process->socket);
	/* Both orders of events are covered: the parent may be gone before this is asked for. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "perfpipe-build", 0, 0, 0);
	if (getppid() != parent)
		_exit(BUILDER_EXIT_SOCKET_GONE);
	struct builder_limits limits = process->limits;
	limits.wall_s = order->message.deadline_s;
	struct error *err = builder_jail_enter_worker(&limits);
	if (err)
		_exit(BUILDER_EXIT_NOT_CONFINED);
	const struct builder_job job = {
		.id = order->message.id,
		.binary_fd = order->fds[1],
		.out_fd = order->fds[2],
		.debug_fd = order->message.has_debug ? order->fds[3] : -1,
		.no_dwarf = order->message.no_dwarf,
		.find = find_beside,
		.find_context = &socket,
	};
	report(socket, process->work(&job));
	_exit(0);
}

static void send_end(const struct house *house, uint32_t number, int status)
{
	const struct builder_end_message message = {.number = number, .status = status};
	if (!builder_wire_send(house->process->socket, &message, sizeof(message), NULL, 0, true))
		_exit(0);
}

static void start_worker(struct house *house, struct order *order)
{
	pid_t parent = getpid();
	pid_t pid = house->n < MAX_WORKERS ? fork() : -1;
	if (pid == 0)
		work(house->process, order, parent);
	if (pid < 0)
		send_end(house, order->message.number, BUILDER_EXIT_NOT_CONFINED << 8);
	else
		house->workers[house->n++] =
			(struct worker){.pid = pid, .number = order->message.number};
}

/* It is reaped as any other, or was already. */
static void stop_worker(const struct house *house, uint32_t number)
{
	for (uint32_t i = 0; i < house->n; i++) {
		if (house->workers[i].number == number)
			(void)kill(house->workers[i].pid, SIGKILL);
	}
}

static void take_order(struct house *house)
{
	struct order order;
	bool is_whole = builder_wire_receive(house->process->socket, &order.message,
					     sizeof(order.message), order.fds, &order.n_fds);
	if (!is_whole)
		_exit(0);
	if (order.message.is_stop)
		stop_worker(house, order.message.number);
	else if (order.n_fds == 3 + (size_t)order.message.has_debug)
		start_worker(house, &order);
	else
		send_end(house, order.message.number, BUILDER_EXIT_SOCKET_GONE << 8);
	for (size_t i = 0; i < order.n_fds; i++)
		close(order.fds[i]);
}

static void reap(struct house *house)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (uint32_t i = 0; i < house->n; i++) {
			if (house->workers[i].pid != pid)
				continue;
			send_end(house, house->workers[i].number, status);
			house->workers[i] = house->workers[--house->n];
			break;
		}
	}
}

_Noreturn void builder_process_run(const struct builder_process *process)
{
	struct house house = {.process = process};
	sigset_t waiting;
	confinement_set_signals(&waiting);
	let_signals_end_workers();
	confinement_close_descriptors(process->socket);
	(void)prctl(PR_SET_NAME, "perfpipe-build", 0, 0, 0);
	struct error *err = builder_jail_enter();
	if (err)
		_exit(BUILDER_EXIT_NOT_CONFINED);
	for (;;) {
		struct pollfd pollfd = {.fd = process->socket, .events = POLLIN};
		int n = ppoll(&pollfd, 1, NULL, &waiting);
		reap(&house);
		if (n > 0)
			take_order(&house);
	}
}
