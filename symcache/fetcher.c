/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "symcache/builder_wire.h"
#include "symcache/confinement.h"
#include "symcache/fetcher_process.h"

#define LOG_AREA "symcache"
#include "base/log.h"

/* What a worker may take longer than its deadlines before the process is taken for hung. */
enum { GRACE_S = 3, MS_PER_S = 1000 };

struct fetch {
	uint32_t number; /* 0 = free */
	int socket;	 /* to the worker; -1 once it closed its end */
	bool has_report;
	struct fetcher_report_message *report;
	int64_t deadline_ms;
	fetcher_done_fn done;
	void *context;
	uint32_t n_servers;
};

struct fetcher {
	struct fetcher_config config; /* with the defaults put in */
	int control;		      /* -1 = no process */
	pid_t pid;
	uint32_t last_number, n_running;
	struct fetch fetches[FETCHER_MAX_FETCHES];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * MS_PER_S + now.tv_nsec / 1000000;
}

static void start_process(struct fetcher *fetcher)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		fetcher_process_run(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	fetcher->control = pair[0];
	fetcher->pid = pid;
}

/* Its workers go with it. */
static void stop_process(struct fetcher *fetcher)
{
	if (fetcher->control < 0)
		return;
	close(fetcher->control);
	fetcher->control = -1;
	/* Closing its socket ends it; one that hangs is killed where that is permitted. */
	if (kill(fetcher->pid, SIGKILL) == 0 || errno != EPERM)
		(void)waitpid(fetcher->pid, NULL, 0);
	else
		(void)waitpid(fetcher->pid, NULL, WNOHANG);
	fetcher->pid = 0;
}

struct fetcher *fetcher_new(const struct fetcher_config *config)
{
	struct fetcher *fetcher = mem_zalloc(1, sizeof(*fetcher));
	fetcher->config = *config;
	if (!fetcher->config.max_fetches || fetcher->config.max_fetches > FETCHER_MAX_FETCHES)
		fetcher->config.max_fetches = FETCHER_MAX_FETCHES;
	if (!fetcher->config.answer_s)
		fetcher->config.answer_s = FETCHER_ANSWER_S;
	if (!fetcher->config.whole_s)
		fetcher->config.whole_s = FETCHER_WHOLE_S;
	if (!fetcher->config.max_bytes)
		fetcher->config.max_bytes = FETCHER_MAX_FILE_BYTES;
	fetcher->control = -1;
	start_process(fetcher);
	return fetcher;
}

static void forget(struct fetcher *fetcher, struct fetch *fetch)
{
	if (fetch->socket >= 0)
		close(fetch->socket);
	mem_free(fetch->report);
	*fetch = (struct fetch){.socket = -1};
	fetcher->n_running--;
}

void fetcher_free(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	stop_process(fetcher);
	for (uint32_t i = 0; i < FETCHER_MAX_FETCHES; i++) {
		if (fetcher->fetches[i].number)
			forget(fetcher, &fetcher->fetches[i]);
	}
	mem_free(fetcher);
}

bool fetcher_has_place(const struct fetcher *fetcher)
{
	return fetcher->n_running < fetcher->config.max_fetches;
}

uint32_t fetcher_n_running(const struct fetcher *fetcher)
{
	return fetcher->n_running;
}

pid_t fetcher_get_pid(const struct fetcher *fetcher)
{
	return fetcher->pid;
}

struct error *fetcher_own_folder(int folder)
{
	/* EINVAL: a user namespace without that user; the fetcher then stays who we are. */
	if (geteuid() == 0 && fchown(folder, CONFINEMENT_USER, CONFINEMENT_USER) < 0 &&
	    errno != EINVAL)
		return error_errno(errno, "chown");
	return NULL;
}

static void finish(struct fetcher *fetcher, struct fetch *fetch, enum fetcher_verdict verdict)
{
	const fetcher_done_fn done = fetch->done;
	void *context = fetch->context;
	struct fetcher_report_message *report = fetch->report;
	const struct fetcher_result result = {
		.verdict = verdict,
		.report = verdict <= FETCHER_FAILED ? report : NULL,
	};
	fetch->report = NULL;
	forget(fetcher, fetch);
	done(context, &result);
	mem_free(report);
}

static void lose_process(struct fetcher *fetcher)
{
	log_debug("fetcher process lost pid=%d", (int)fetcher->pid);
	stop_process(fetcher);
	for (uint32_t i = 0; i < FETCHER_MAX_FETCHES; i++) {
		struct fetch *fetch = &fetcher->fetches[i];
		if (fetch->number)
			finish(fetcher, fetch, FETCHER_LOST);
	}
}

void fetcher_cancel(struct fetcher *fetcher)
{
	if (fetcher->n_running)
		lose_process(fetcher);
}

/* Every server that was asked has to say that it is not there. */
static bool is_absent(const struct fetch *fetch)
{
	for (uint32_t i = 0; i < fetch->n_servers; i++) {
		if (fetch->report->outcomes[i] != FETCHER_NOT_THERE)
			return false;
	}
	return true;
}

/* A file that was not had has its reason with some server. */
static void state_reason(const struct fetch *fetch)
{
	struct fetcher_report_message *report = fetch->report;
	for (uint32_t i = 0; i < fetch->n_servers; i++) {
		if (report->outcomes[i] != FETCHER_SILENT &&
		    report->outcomes[i] != FETCHER_NOT_THERE)
			return;
	}
	for (uint32_t i = 0; i < fetch->n_servers; i++) {
		if (report->outcomes[i] != FETCHER_SILENT)
			continue;
		report->outcomes[i] = FETCHER_TROUBLE;
		snprintf(report->texts[i], SERVER_REASON_BYTES, "it sent nothing");
	}
}

static enum fetcher_verdict judge(const struct fetch *fetch, int status)
{
	if (status == 0 && fetch->has_report) {
		if (fetch->report->is_found)
			return FETCHER_FOUND;
		if (fetch->report->is_too_large)
			return FETCHER_TOO_LARGE;
		if (is_absent(fetch))
			return FETCHER_ABSENT;
		state_reason(fetch);
		return FETCHER_FAILED;
	}
	if (WIFEXITED(status)) {
		switch (WEXITSTATUS(status)) {
		case FETCHER_EXIT_NO_LIBRARY:
			return FETCHER_NO_LIBRARY;
		case FETCHER_EXIT_NOT_CONFINED:
			return FETCHER_NOT_CONFINED;
		default:
			return FETCHER_LOST;
		}
	}
	if (WTERMSIG(status) == SIGKILL)
		return FETCHER_LOST;
	/* What servers sent made the client crash. */
	snprintf(fetch->report->texts[0], SERVER_REASON_BYTES, "the client crashed: %s",
		 strsignal(WTERMSIG(status)));
	fetch->report->outcomes[0] = FETCHER_TROUBLE;
	return FETCHER_FAILED;
}

static void hear_worker(struct fetch *fetch)
{
	fetch->has_report = builder_wire_receive(fetch->socket, fetch->report,
						 sizeof(*fetch->report), NULL, NULL);
	if (fetch->has_report)
		fetcher_wire_clean(fetch->report);
	else
		*fetch->report = (struct fetcher_report_message){0};
	close(fetch->socket);
	fetch->socket = -1;
}

static void end_fetch(struct fetcher *fetcher, struct fetch *fetch, int status)
{
	if (fetch->socket >= 0)
		hear_worker(fetch);
	finish(fetcher, fetch, judge(fetch, status));
}

static void hear_process(struct fetcher *fetcher)
{
	struct fetcher_end_message message;
	if (!builder_wire_receive(fetcher->control, &message, sizeof(message), NULL, NULL)) {
		lose_process(fetcher);
		return;
	}
	for (uint32_t i = 0; i < FETCHER_MAX_FETCHES; i++) {
		struct fetch *fetch = &fetcher->fetches[i];
		if (message.number && fetch->number == message.number) {
			end_fetch(fetcher, fetch, message.status);
			return;
		}
	}
}

void fetcher_step(struct fetcher *fetcher, uint32_t wait_ms)
{
	struct pollfd fds[FETCHER_MAX_FETCHES + 1];
	struct fetch *owners[FETCHER_MAX_FETCHES + 1];
	nfds_t n = 0;
	int64_t deadline = INT64_MAX;
	if (!fetcher->n_running)
		return;
	fds[n++] = (struct pollfd){.fd = fetcher->control, .events = POLLIN};
	for (uint32_t i = 0; i < FETCHER_MAX_FETCHES; i++) {
		struct fetch *fetch = &fetcher->fetches[i];
		if (!fetch->number)
			continue;
		if (fetch->deadline_ms < deadline)
			deadline = fetch->deadline_ms;
		if (fetch->socket < 0)
			continue;
		owners[n] = fetch;
		fds[n++] = (struct pollfd){.fd = fetch->socket, .events = POLLIN};
	}
	int64_t left = deadline - now_ms();
	if (left < 0)
		left = 0;
	if (left > (int64_t)wait_ms)
		left = wait_ms;
	if (poll(fds, n, (int)left) <= 0) {
		if (now_ms() >= deadline)
			lose_process(fetcher);
		return;
	}
	for (nfds_t i = 1; i < n; i++) {
		if (fds[i].revents)
			hear_worker(owners[i]);
	}
	if (fds[0].revents)
		hear_process(fetcher);
}

static bool send_order(struct fetcher *fetcher, const struct fetcher_order *order, uint32_t number,
		       int *socket_out)
{
	int pair[2];
	struct fetcher_order_message message = {
		.number = number,
		.kind = order->kind,
		.id = order->id,
		.answer_s = fetcher->config.answer_s,
		.whole_s = fetcher->config.whole_s,
		.max_bytes = fetcher->config.max_bytes,
		.n_servers = order->n_servers,
	};
	snprintf(message.urls, sizeof(message.urls), "%s", order->urls);
	if (fetcher->control < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	const int fds[] = {pair[1], order->folder};
	bool is_sent = builder_wire_send(fetcher->control, &message, sizeof(message), fds,
					 ARRAY_LEN(fds), true);
	close(pair[1]);
	if (is_sent)
		*socket_out = pair[0];
	else
		close(pair[0]);
	return is_sent;
}

static struct fetch *find_place(struct fetcher *fetcher)
{
	struct fetch *fetch = fetcher->fetches;
	while (fetch->number)
		fetch++;
	return fetch;
}

void fetcher_start(struct fetcher *fetcher, const struct fetcher_order *order)
{
	int socket = -1;
	uint32_t number = ++fetcher->last_number;
	if (!send_order(fetcher, order, number, &socket)) {
		/* A process that ended while nobody waited for it. */
		lose_process(fetcher);
		start_process(fetcher);
		if (!send_order(fetcher, order, number, &socket)) {
			const struct fetcher_result result = {.verdict = FETCHER_LOST};
			order->done(order->context, &result);
			return;
		}
	}
	struct fetch *fetch = find_place(fetcher);
	*fetch = (struct fetch){
		.number = number,
		.socket = socket,
		.report = mem_zalloc(1, sizeof(*fetch->report)),
		.deadline_ms = now_ms() + (int64_t)(fetcher->config.answer_s +
						    fetcher->config.whole_s + GRACE_S) *
						  MS_PER_S,
		.done = order->done,
		.context = order->context,
		.n_servers = order->n_servers,
	};
	fetcher->n_running++;
}
