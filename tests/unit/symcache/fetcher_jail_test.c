/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker that talks to servers may do, and what not. */
#include "symcache/fetcher_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "symcache/fetcher.h"
#include "tests/support/temp_dir.h"

enum { FILE_LIMIT = 1 << 20, NOT_CONFINED = 100 };

struct fixture {
	struct temp_dir dir;
	char outside[PATH_MAX];
	int folder;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	snprintf(f->outside, sizeof(f->outside), "%s", temp_dir_path(&f->dir, "outside"));
	int fd = open(f->outside, O_CREAT | O_WRONLY, 0644);
	assert_true(fd >= 0);
	close(fd);
	const char *work = temp_dir_path(&f->dir, "work");
	assert_int_equal(mkdir(work, 0700), 0);
	f->folder = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->folder >= 0);
	assert_null(fetcher_own_folder(f->folder));
}

static void end(struct fixture *f)
{
	close(f->folder);
	temp_dir_fini(&f->dir);
}

/* The number that check gives in a confined child; 0 = all is as it should be. */
static int run_confined(struct fixture *f, int (*check)(const struct fixture *f))
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct error *err = fchdir(f->folder) < 0 ? error_new(ERROR_IO, "fchdir") : NULL;
		if (!err)
			err = fetcher_jail_enter();
		if (!err)
			err = fetcher_jail_enter_worker(f->folder, FILE_LIMIT);
		_exit(err ? NOT_CONFINED : check(f));
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define WANT(number, condition)                                                                    \
	do {                                                                                       \
		errno = 0;                                                                         \
		if (!(condition))                                                                  \
			return number;                                                             \
	} while (0)

static int check_denied(const struct fixture *f)
{
	(void)f;
	char *const words[] = {"true", NULL};
	WANT(1, execv("/bin/true", words) < 0 && errno == EPERM);
	WANT(2, ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
	WANT(3, kill(getppid(), 0) < 0 && errno == EPERM);
	WANT(4, syscall(SYS_tkill, getppid(), 0) < 0 && errno == EPERM);
	WANT(5, unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
	WANT(6, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) < 0 && errno == EPERM);
	WANT(7, syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
	WANT(8, syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EPERM);
	WANT(9, syscall(SYS_keyctl, 0, 0, 0, 0, 0) < 0 && errno == EPERM);
	WANT(10, syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0) < 0 && errno == EPERM);
	WANT(11, socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EAFNOSUPPORT);
	WANT(12, socket(AF_VSOCK, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT);
	WANT(13, socket(AF_ALG, SOCK_SEQPACKET, 0) < 0 && errno == EAFNOSUPPORT);
	WANT(14, setuid(0) < 0 || geteuid() != 0);
	WANT(15, syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL) < 0 && errno == EPERM);
	return 0;
}

static int check_allowed(const struct fixture *f)
{
	(void)f;
	int fd = -1;
	WANT(1, (fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	/* Nobody is there, which is the point: the call itself is permitted. */
	WANT(2, connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EPERM);
	WANT(3, listen(fd, 1) < 0 && errno == EPERM);
	WANT(4, socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || errno == EAFNOSUPPORT);
	WANT(5, socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
	WANT(6, socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
	WANT(7, open("/etc/passwd", O_RDONLY) >= 0);
	WANT(8, mkdir("id", 0700) == 0);
	WANT(9, (fd = open("id/file", O_CREAT | O_RDWR, 0600)) >= 0);
	WANT(10, write(fd, "x", 1) == 1);
	WANT(11, rename("id/file", "id/other") == 0 && unlink("id/other") == 0);
	WANT(12, ftruncate(fd, FILE_LIMIT + 1) < 0 && errno == EFBIG);
	struct rlimit limit;
	WANT(13, getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
	pid_t pid;
	WANT(14, (pid = fork()) >= 0);
	if (pid == 0)
		_exit(0);
	WANT(15, waitpid(pid, NULL, 0) == pid);
	return 0;
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* the version */) > 0;
}

static int check_files(const struct fixture *f)
{
	WANT(1, open(f->outside, O_RDONLY) < 0 && errno == EACCES);
	WANT(2, open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
	WANT(3, open("/proc/self/status", O_RDONLY) < 0 && errno == EACCES);
	WANT(4, open("/tmp/perfpipe-fetcher-jail-test", O_CREAT | O_WRONLY, 0600) < 0 &&
			errno == EACCES);
	WANT(5, mkfifo("pipe", 0600) < 0 && errno == EACCES);
	WANT(6, symlink("/etc/passwd", "link") < 0 && errno == EACCES);
	return 0;
}

static void what_a_client_has_no_use_for_is_denied(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_int_equal(run_confined(&f, check_denied), 0);
	end(&f);
}

static void what_a_client_needs_is_allowed(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_int_equal(run_confined(&f, check_allowed), 0);
	end(&f);
}

static void files_outside_its_folder_are_out_of_reach(void **state)
{
	(void)state;
	struct fixture f;
	if (!has_landlock())
		skip();
	begin(&f);
	assert_int_equal(run_confined(&f, check_files), 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_client_has_no_use_for_is_denied),
		cmocka_unit_test(what_a_client_needs_is_allowed),
		cmocka_unit_test(files_outside_its_folder_are_out_of_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
