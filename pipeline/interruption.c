/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/interruption.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/stats.h"
#include "pipeline/explain.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, SAME_WISH_MS = 300 };

static const int asking[] = {SIGINT, SIGTERM, SIGHUP};

/*
 * Written by the handler, which runs on the main thread alone, and read there. A handler has no
 * other way to know anything.
 */
static struct {
	volatile sig_atomic_t first; /* signal, 0 = none */
	volatile sig_atomic_t is_from_terminal;
	int fd, snapshot_fd, reload_fd;
	pid_t owner, command;
	uint64_t first_ns;
} interruption = {.fd = -1, .snapshot_fd = -1, .reload_fd = -1};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void die(int number)
{
	static const char text[] = "perfpipe: stopped at once, nothing more is written\n";
	file_writer_discard_all();
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)n;
	_exit(EXIT_CODE_SIGNAL + number);
}

/* Async-signal-safe calls only. */
static void ask_for_end(int number, siginfo_t *info, void *context)
{
	(void)context;
	int errno_value = errno;
	if (getpid() != interruption.owner) {
		/* A command's process before its exec: it ends, as it would behind it. */
		signal(number, SIG_DFL);
		raise(number);
	} else if (!interruption.first) {
		interruption.first_ns = now_ns();
		interruption.is_from_terminal = info->si_code == SI_KERNEL;
		interruption.first = number;
		eventfd_write(interruption.fd, 1);
	} else if (number != SIGHUP &&
		   now_ns() - interruption.first_ns >= (uint64_t)SAME_WISH_MS * NS_PER_MS) {
		die(number);
	}
	errno = errno_value;
}

static void say(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));
	(void)n;
}

/* printf may wait for a lock that the interrupted code holds. */
static void say_number(uint64_t number)
{
	char digits[24];
	char *p = digits + sizeof(digits) - 1;
	*p = 0;
	do {
		*--p = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	say(p);
}

static void dump_state(void)
{
	say("perfpipe: aborted by SIGQUIT\n");
	for (int i = 0; i < STAT_N; i++) {
		uint64_t n = stats_get((enum stats_counter)i);
		if (!n)
			continue;
		say("  ");
		say(stats_name((enum stats_counter)i));
		say("=");
		say_number(n);
		say("\n");
	}
	if (interruption.command) {
		say("  command pid=");
		say_number((uint64_t)interruption.command);
		say(" is told to end\n");
	}
}

/*
 * The command does not go on unwatched: it may dump its own state, and then ends also where QUIT is
 * no reason to (the JVM). Async-signal-safe calls only; the handler is gone when it runs.
 */
static void dump_and_abort(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (getpid() == interruption.owner) {
		dump_state();
		file_writer_discard_all();
		if (interruption.command && info->si_code != SI_KERNEL)
			kill(interruption.command, number);
		if (interruption.command)
			kill(interruption.command, SIGTERM);
	}
	raise(number);
}

static void do_nothing(int number)
{
	(void)number;
}

static void ask_for_snapshot(int number)
{
	(void)number;
	int errno_value = errno;
	if (getpid() == interruption.owner)
		eventfd_write(interruption.snapshot_fd, 1);
	errno = errno_value;
}

static void ask_for_reload(int number)
{
	int errno_value = errno;
	if (getpid() == interruption.owner) {
		eventfd_write(interruption.reload_fd, 1);
	} else {
		signal(number, SIG_DFL);
		raise(number);
	}
	errno = errno_value;
}

static void discard_and_die(int number)
{
	file_writer_discard_all();
	signal(number, SIG_DFL);
	raise(number);
}

/* What is ignored stays so, unless it is forced. */
static void handle(int number, const struct sigaction *wanted, bool is_forced)
{
	struct sigaction before;
	if (sigaction(number, NULL, &before) == 0 && (is_forced || before.sa_handler != SIG_IGN))
		sigaction(number, wanted, NULL);
}

static struct sigaction asking_action(void)
{
	struct sigaction action = {.sa_sigaction = ask_for_end,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	for (size_t i = 0; i < ARRAY_LEN(asking); i++)
		sigaddset(&action.sa_mask, asking[i]);
	return action;
}

struct error *interruption_open(void)
{
	interruption.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	interruption.snapshot_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (interruption.fd < 0 || interruption.snapshot_fd < 0)
		return error_number(error_errno(errno, "eventfd"), 107);
	interruption.first = 0;
	interruption.command = 0;
	interruption.owner = getpid();
	const struct sigaction ask = asking_action();
	for (size_t i = 0; i < ARRAY_LEN(asking); i++)
		handle(asking[i], &ask, false);
	const struct sigaction abort_action = {.sa_sigaction = dump_and_abort,
					       .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_NODEFER};
	handle(SIGQUIT, &abort_action, false);
	const struct sigaction nothing = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
	handle(SIGUSR1, &nothing, false);
	const struct sigaction snapshot = {.sa_handler = ask_for_snapshot, .sa_flags = SA_RESTART};
	handle(SIGUSR2, &snapshot, false);
	return NULL;
}

struct error *interruption_open_daemon(void)
{
	interruption.reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (interruption.reload_fd < 0)
		return error_number(error_errno(errno, "eventfd"), 107);
	struct error *err = interruption_open();
	const struct sigaction reload = {.sa_handler = ask_for_reload, .sa_flags = SA_RESTART};
	if (!err)
		handle(SIGHUP, &reload, false);
	return err;
}

void interruption_insist(void)
{
	const struct sigaction ask = asking_action();
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
		if (asking[i] == SIGHUP && interruption.reload_fd >= 0)
			continue;
		handle(asking[i], &ask, asking[i] != SIGHUP); /* nohup is meant */
		sigaddset(&set, asking[i]);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void interruption_close(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	for (size_t i = 0; i < ARRAY_LEN(asking); i++)
		handle(asking[i], &ignore, false);
	handle(SIGUSR2, &ignore, false);
	if (interruption.fd >= 0)
		close(interruption.fd);
	if (interruption.snapshot_fd >= 0)
		close(interruption.snapshot_fd);
	if (interruption.reload_fd >= 0)
		close(interruption.reload_fd);
	interruption.fd = interruption.snapshot_fd = interruption.reload_fd = -1;
}

void interruption_set_command(pid_t pid)
{
	interruption.command = pid;
}

int interruption_fd(void)
{
	return interruption.fd;
}

int interruption_snapshot_fd(void)
{
	return interruption.snapshot_fd;
}

bool interruption_takes_snapshot(void)
{
	eventfd_t n;
	return eventfd_read(interruption.snapshot_fd, &n) == 0;
}

int interruption_reload_fd(void)
{
	return interruption.reload_fd;
}

bool interruption_takes_reload(void)
{
	eventfd_t n;
	return eventfd_read(interruption.reload_fd, &n) == 0;
}

int interruption_signal(void)
{
	return interruption.first;
}

bool interruption_is_from_terminal(void)
{
	return interruption.is_from_terminal;
}

void interruption_discard_outputs(void)
{
	const struct sigaction action = {.sa_handler = discard_and_die};
	for (size_t i = 0; i < ARRAY_LEN(asking); i++)
		handle(asking[i], &action, false);
	handle(SIGQUIT, &action, false);
}
