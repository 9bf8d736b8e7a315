/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void confinement_close_descriptors(int keep)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2 && null >= 0; fd++) {
		if (fd != keep)
			(void)dup2(null, fd);
	}
	if (keep > 3)
		(void)close_range(3, (unsigned)keep - 1, 0);
	(void)close_range(keep > 2 ? (unsigned)keep + 1 : 3, ~0u, 0);
}

/* Offers itself when memory runs out: what it does can be repeated. */
static void offer_to_oom_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = write(fd, "1000", 4);
	(void)n; /* a missing offer costs nothing now */
	close(fd);
}

static struct error *drop_user(void)
{
	if (geteuid() != 0)
		return NULL;
	/*
	 * EINVAL: a user namespace without that user. EPERM: root without CAP_SETUID and
	 * CAP_SETGID, as in containers that keep few capabilities; the rest of the confinement
	 * holds.
	 */
	const uid_t user = CONFINEMENT_USER;
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return error_errno(errno, "setgroups");
	if (setresgid(user, user, user) < 0 && errno != EINVAL && errno != EPERM)
		return error_errno(errno, "setresgid");
	if (setresuid(user, user, user) < 0 && errno != EINVAL && errno != EPERM)
		return error_errno(errno, "setresuid");
	return NULL;
}

static struct error *drop_capabilities(void)
{
	cap_t none = cap_init();
	if (!none)
		return error_errno(errno, "cap_init");
	int result = cap_set_proc(none);
	int errno_value = errno;
	cap_free(none);
	return result < 0 ? error_errno(errno_value, "cap_set_proc") : NULL;
}

/* Before the user goes, which takes the right to do so along. */
static void drop_bounding_set(void)
{
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
		(void)cap_drop_bound(cap);
	(void)cap_reset_ambient();
}

static void on_child(int signal_number)
{
	(void)signal_number; /* its only use is to end ppoll */
}

void confinement_set_signals(sigset_t *waiting_out)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGHUP,	 SIGTERM,
				      SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2};
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	const struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
	sigaction(SIGCHLD, &action, NULL);
	sigset_t blocked;
	sigemptyset(&blocked);
	sigemptyset(waiting_out);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

struct error *confinement_set_limit(int which, uint64_t value)
{
	struct rlimit now;
	if (getrlimit(which, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
		value = now.rlim_max;
	const struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
	return setrlimit(which, &limit) < 0 ? error_errno(errno, "setrlimit %d", which) : NULL;
}

struct error *confinement_drop_rights(void)
{
	offer_to_oom_killer();
	drop_bounding_set();
	struct error *err = drop_user();
	if (!err)
		err = drop_capabilities();
	if (!err)
		err = confinement_set_limit(RLIMIT_CORE, 0);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = error_errno(errno, "no_new_privs");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return err;
}
