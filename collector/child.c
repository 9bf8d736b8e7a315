/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the child: only async-signal-safe calls. */
static void NORETURN run_child(char *const *argv, int go_fd, int failure_fd)
{
	char go;
	ssize_t n;

	do {
		n = read(go_fd, &go, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 1) {
		execvp(argv[0], argv);
		int errno_value = errno;
		n = write(failure_fd, &errno_value, sizeof(errno_value));
	}
	_exit(127);
}

static struct error *fork_between(char *const *argv, const int go[2], const int failure[2],
				  pid_t *out)
{
	pid_t pid = fork();

	if (pid < 0)
		return error_number(error_errno(errno, "cannot start %s: fork", argv[0]), 117);
	if (pid == 0) {
		/* The parent's end stays open in the parent only, or its closing goes unseen. */
		close(go[1]);
		run_child(argv, go[0], failure[1]);
	}
	*out = pid;
	return NULL;
}

struct error *child_fork(char *const *argv, struct child *out)
{
	int go[2], failure[2];
	pid_t pid = 0;

	/* A socket, because writing to a pipe whose reader was killed would raise SIGPIPE. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
		return error_errno(errno, "socketpair");
	if (pipe2(failure, O_CLOEXEC) < 0) {
		int errno_value = errno;
		close(go[0]);
		close(go[1]);
		return error_errno(errno_value, "pipe");
	}
	struct error *err = fork_between(argv, go, failure, &pid);
	close(go[0]);
	close(failure[1]);
	if (err) {
		close(go[1]);
		close(failure[0]);
		return err;
	}
	*out = (struct child){.pid = pid, .go_fd = go[1], .failure_fd = failure[0]};
	return NULL;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void close_pipes(struct child *child)
{
	if (child->go_fd > 0)
		close(child->go_fd);
	if (child->failure_fd > 0)
		close(child->failure_fd);
	child->go_fd = child->failure_fd = -1;
}

struct error *child_run(struct child *child, const char *name)
{
	int errno_value = 0;
	ssize_t n;

	if (send(child->go_fd, "", 1, MSG_NOSIGNAL) != 1)
		return error_errno(errno, "start %s", name);
	do {
		n = read(child->failure_fd, &errno_value, sizeof(errno_value));
	} while (n < 0 && errno == EINTR);
	close_pipes(child);
	if (n != sizeof(errno_value))
		return NULL;
	reap(child->pid);
	child->pid = 0;
	return error_number(error_errno(errno_value, "%s", name), 111);
}

void child_close(struct child *child)
{
	bool was_waiting = child->pid > 0 && child->go_fd > 0;

	close_pipes(child);
	if (was_waiting)
		reap(child->pid);
	*child = (struct child){0};
}
