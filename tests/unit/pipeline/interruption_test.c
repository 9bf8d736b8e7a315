/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stats.h"
#include "pipeline/interruption.h"

static int abort_fd;

enum { SAME_WISH_US = 350000, SURVIVED = 7 };

/* What the body does ends its process alone; its wait status. */
static int status_of(void (*body)(void))
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		body();
		_exit(SURVIVED);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void assert_exit(void (*body)(void), int wanted)
{
	int status = status_of(body);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), wanted);
}

static void need(bool is_so)
{
	if (!is_so)
		_exit(1);
}

static bool is_asked(void)
{
	struct pollfd fd = {.fd = interruption_fd(), .events = POLLIN};
	return poll(&fd, 1, 0) == 1;
}

static void ask_twice_at_once(void)
{
	need(!interruption_open() && !is_asked() && !interruption_signal());
	raise(SIGHUP);
	need(is_asked() && interruption_signal() == SIGHUP);
	raise(SIGTERM);
	raise(SIGINT);
	need(interruption_signal() == SIGHUP);
	need(!interruption_is_from_terminal());
}

static void interruption_takes_signals_close_together_for_one(void **state)
{
	(void)state;
	assert_exit(ask_twice_at_once, SURVIVED);
}

static void ask_twice(void)
{
	need(!interruption_open());
	raise(SIGTERM);
	usleep(SAME_WISH_US);
	raise(SIGHUP); /* a terminal that goes is no second wish */
	fclose(stderr);
	raise(SIGINT);
}

static void interruption_ends_at_the_second_wish(void **state)
{
	(void)state;
	assert_exit(ask_twice, 128 + SIGINT);
}

static void send_idle_signals(void)
{
	need(!interruption_open());
	raise(SIGUSR1);
	need(!interruption_signal() && !is_asked() && !interruption_takes_snapshot());
}

static void ask_for_snapshots(void)
{
	need(!interruption_open() && !interruption_takes_snapshot());
	struct pollfd fd = {.fd = interruption_snapshot_fd(), .events = POLLIN};
	raise(SIGUSR2);
	raise(SIGUSR2);
	need(poll(&fd, 1, 0) == 1 && interruption_takes_snapshot());
	need(poll(&fd, 1, 0) == 0 && !interruption_takes_snapshot());
	need(!interruption_signal() && !is_asked());
	interruption_close();
	raise(SIGUSR2);
}

static void interruption_makes_one_wish_of_several_for_a_snapshot(void **state)
{
	(void)state;
	assert_exit(ask_for_snapshots, SURVIVED);
}

static void interruption_passes_over_user_signals(void **state)
{
	(void)state;
	assert_exit(send_idle_signals, SURVIVED);
}

static void close_it(void)
{
	need(!interruption_open());
	interruption_close();
	raise(SIGTERM);
	raise(SIGINT);
}

static void interruption_closed_lets_the_program_end_in_peace(void **state)
{
	(void)state;
	assert_exit(close_it, SURVIVED);
}

static void insist(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	need(!interruption_open());
	raise(SIGHUP);
	raise(SIGINT);
	raise(SIGTERM);
	need(!interruption_signal());
	interruption_insist();
	need(interruption_signal() == SIGTERM); /* it was pending */
	raise(SIGHUP);
}

static void interruption_insists_on_what_was_blocked_or_ignored(void **state)
{
	(void)state;
	assert_exit(insist, SURVIVED);
}

static void ask_in_a_child(void)
{
	need(!interruption_open());
	pid_t child = fork();
	if (child == 0) {
		raise(SIGTERM);
		_exit(0);
	}
	int status;
	need(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	need(WTERMSIG(status) == SIGTERM && !is_asked());
}

static void interruption_leaves_a_command_before_its_exec_to_die(void **state)
{
	(void)state;
	assert_exit(ask_in_a_child, SURVIVED);
}

static void abort_with_command(void)
{
	struct rlimit no_core = {0};
	setrlimit(RLIMIT_CORE, &no_core);
	int fds[2];
	need(pipe(fds) == 0 && !interruption_open());
	pid_t command = fork();
	if (command == 0) {
		signal(SIGQUIT, SIG_IGN); /* so that only TERM can be what ends it */
		need(write(fds[1], "", 1) == 1);
		pause();
		_exit(0);
	}
	char byte;
	need(read(fds[0], &byte, 1) == 1);
	interruption_set_command(command);
	pid_t quitter = fork();
	if (quitter == 0) {
		raise(SIGQUIT);
		_exit(0);
	}
	int status;
	/* A child of ours before its exec neither tells nor ends anything. */
	need(waitpid(quitter, &status, 0) == quitter && WTERMSIG(status) == SIGQUIT);
	need(kill(command, 0) == 0);
	stats_add(STAT_SAMPLES_TAKEN, 4711);
	dup2(abort_fd, STDERR_FILENO);
	raise(SIGQUIT);
}

static void interruption_abort_tells_state_and_ends_the_command(void **state)
{
	(void)state;
	char text[512] = {0};
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	abort_fd = fds[1];
	int status = status_of(abort_with_command);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGQUIT);
	close(fds[1]);
	size_t n = 0;
	/* Ends when the command, which holds the other end too, is gone. */
	for (ssize_t got; (got = read(fds[0], text + n, sizeof(text) - 1 - n)) > 0;)
		n += (size_t)got;
	close(fds[0]);
	assert_non_null(strstr(text, "aborted by SIGQUIT\n"));
	assert_non_null(strstr(text, "  samples_taken=4711\n"));
	assert_non_null(strstr(text, " is told to end\n"));
}

static void discard(void)
{
	interruption_discard_outputs();
	raise(SIGTERM);
}

static void interruption_that_discards_still_kills(void **state)
{
	(void)state;
	int status = status_of(discard);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interruption_takes_signals_close_together_for_one),
		cmocka_unit_test(interruption_ends_at_the_second_wish),
		cmocka_unit_test(interruption_makes_one_wish_of_several_for_a_snapshot),
		cmocka_unit_test(interruption_passes_over_user_signals),
		cmocka_unit_test(interruption_closed_lets_the_program_end_in_peace),
		cmocka_unit_test(interruption_insists_on_what_was_blocked_or_ignored),
		cmocka_unit_test(interruption_leaves_a_command_before_its_exec_to_die),
		cmocka_unit_test(interruption_abort_tells_state_and_ends_the_command),
		cmocka_unit_test(interruption_that_discards_still_kills),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
