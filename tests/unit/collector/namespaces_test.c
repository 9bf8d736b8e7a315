/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/namespaces.h"

static void namespaces_counts_the_pids_of_a_task(void **state)
{
	(void)state;
	assert_int_equal(namespaces_count_pids("Name:\tx\nNSpid:\t12\nNSpgid:\t1\t2\n"), 1);
	assert_int_equal(namespaces_count_pids("Name:\tx\nNSpid:\t1234\t5\nNSpgid:\t9\n"), 2);
	assert_int_equal(namespaces_count_pids("Name:\tx\nNSpid:\t1234\t50\t1"), 3);
	assert_int_equal(namespaces_count_pids("Name:\tx\nNSpid:\n1 2\n"), 0);
	assert_int_equal(namespaces_count_pids("Name:\tNSpid:\t1\n"), 0);
	assert_int_equal(namespaces_count_pids(""), 0);
}

static bool mount_proc(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("proc", "/proc", "proc", 0, NULL) == 0;
}

/* What a child in a new PID namespace sees: bit 0 nested, bit 1 before and bit 2 after its mount.
 */
static int look_from_inside(void)
{
	int seen = namespaces_is_pid_nested() | namespaces_is_proc_own() << 1;

	if (!mount_proc())
		return 64;
	return seen | namespaces_is_proc_own() << 2;
}

static void namespaces_knows_whose_proc_it_is(void **state)
{
	(void)state;
	int status;

	if (getuid() != 0)
		skip();
	pid_t outer = fork();
	if (outer == 0) {
		if (!namespaces_is_proc_own() || unshare(CLONE_NEWPID) < 0)
			_exit(64);
		pid_t inner = fork();
		if (inner == 0)
			_exit(look_from_inside());
		waitpid(inner, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	if (WEXITSTATUS(status) == 64)
		skip();
	assert_int_equal(WEXITSTATUS(status), 1 | 1 << 2);
}

static void namespaces_knows_a_user_namespace(void **state)
{
	(void)state;
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(unshare(CLONE_NEWUSER) < 0 ? 64 : namespaces_is_user_nested());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 64)
		skip();
	assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(namespaces_counts_the_pids_of_a_task),
		cmocka_unit_test(namespaces_knows_whose_proc_it_is),
		cmocka_unit_test(namespaces_knows_a_user_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
