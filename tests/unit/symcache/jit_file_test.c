/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files with names of JIT code are believed. This process stands for the one that was
 * sampled; its map lies in the real /tmp, under its own pid.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "symcache/symcache.h"
#include "tests/support/temp_dir.h"

enum { OTHER_USER = 12345 };

struct fixture {
	struct temp_dir dir;
	struct symcache_config config;
	struct jit_process process;
	char map[64];
};

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	temp_dir_init(&f->dir);
	umask(022);
	f->config.is_live = true;
	f->process.pid = getpid();
	snprintf(f->map, sizeof(f->map), "/tmp/perf-%d.map", (int)getpid());
	(void)remove(f->map);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	(void)remove(f->map);
	temp_dir_fini(&f->dir);
	mem_free(f);
	return 0;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static enum jit_file_state open_map(const struct fixture *f, char *text, size_t n)
{
	struct jit_place place;
	struct jit_file file = JIT_FILE_CLOSED;
	jit_place_open(&place, &f->config, &f->process);
	enum jit_file_state state = jit_place_open_map(&place, &file);
	if (state == JIT_FILE_OK && text) {
		size_t n_read = jit_file_read(&file, 0, text, n - 1);
		text[n_read] = '\0';
		assert_int_equal(n_read, jit_file_size(&file));
	}
	assert_int_equal(file.fd >= 0, state == JIT_FILE_OK);
	jit_file_close(&file);
	jit_place_close(&place);
	return state;
}

static void check_map(const struct fixture *f, enum jit_file_state wanted)
{
	assert_string_equal(jit_file_state_text(open_map(f, NULL, 0)), jit_file_state_text(wanted));
}

static void jit_file_of_a_process_is_read(void **state)
{
	struct fixture *f = *state;
	char text[64];
	check_map(f, JIT_FILE_ABSENT);
	write_file(f->map, "100 10 name\n");
	assert_int_equal(open_map(f, text, sizeof(text)), JIT_FILE_OK);
	assert_string_equal(text, "100 10 name\n");
}

static void jit_file_link_is_refused(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(symlink("/etc/shadow", f->map), 0);
	check_map(f, JIT_FILE_LINK);
	unlink(f->map);
	const char *other = temp_dir_path(&f->dir, "other");
	write_file(other, "100 10 name\n");
	assert_int_equal(link(other, f->map), 0);
	check_map(f, JIT_FILE_LINK);
}

/* Opening a FIFO would wait for a writer. */
static void jit_file_must_be_regular(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(mkfifo(f->map, 0600), 0);
	check_map(f, JIT_FILE_NOT_REGULAR);
	unlink(f->map);
	assert_int_equal(mkdir(f->map, 0700), 0);
	check_map(f, JIT_FILE_NOT_REGULAR);
}

static void jit_file_others_may_write_to_is_refused(void **state)
{
	struct fixture *f = *state;
	write_file(f->map, "100 10 name\n");
	assert_int_equal(chmod(f->map, 0646), 0);
	check_map(f, JIT_FILE_WRITABLE);
	assert_int_equal(chmod(f->map, 0664), 0); /* its own group: a umask of 002 */
	check_map(f, JIT_FILE_OK);
	if (geteuid() == 0) {
		assert_int_equal(chown(f->map, (uid_t)-1, OTHER_USER), 0);
		check_map(f, JIT_FILE_WRITABLE);
	}
}

static void jit_file_of_another_user_is_refused(void **state)
{
	struct fixture *f = *state;
	if (geteuid() != 0)
		skip();
	write_file(f->map, "100 10 name\n");
	assert_int_equal(chown(f->map, OTHER_USER, (gid_t)-1), 0);
	check_map(f, JIT_FILE_FOREIGN);
	/* Recorded, and believed on request. */
	f->config.is_live = false;
	check_map(f, JIT_FILE_OTHER_HOST);
	f->config.trust_paths = true;
	check_map(f, JIT_FILE_OK);
}

/* A child of another user, which waits. With mounted, that file is bound on its map's name. */
static pid_t start_process(const char *mounted)
{
	int pipe_fds[2];
	char ready = 0;
	assert_int_equal(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char map[64];
		snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
		write_file(map, "100 10 name\n");
		bool is_ok = chown(map, OTHER_USER, OTHER_USER) == 0;
		if (mounted)
			is_ok = is_ok && unshare(CLONE_NEWNS) == 0 &&
				mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				mount(mounted, map, NULL, MS_BIND, NULL) == 0;
		is_ok = is_ok && setresgid(OTHER_USER, OTHER_USER, OTHER_USER) == 0 &&
			setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0;
		ready = is_ok;
		(void)!write(pipe_fds[1], &ready, 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(pipe_fds[0], &ready, 1), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	if (ready)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Root would read for a process what that may not read itself. */
static void jit_file_of_root_is_none_of_a_user_s_process(void **state)
{
	struct fixture *f = *state;
	pid_t pid = geteuid() == 0 ? start_process(NULL) : -1;
	if (pid < 0)
		skip();
	f->process.pid = pid;
	snprintf(f->map, sizeof(f->map), "/tmp/perf-%d.map", (int)pid);
	check_map(f, JIT_FILE_OK);
	assert_int_equal(chown(f->map, 0, 0), 0);
	check_map(f, JIT_FILE_FOREIGN);
	end_process(pid);
}

static void jit_file_that_is_mounted_is_refused(void **state)
{
	struct fixture *f = *state;
	const char *secret = temp_dir_path(&f->dir, "secret");
	write_file(secret, "100 10 secret\n");
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(secret, OTHER_USER, OTHER_USER), 0);
	pid_t pid = start_process(secret);
	if (pid < 0)
		skip();
	f->process.pid = pid;
	snprintf(f->map, sizeof(f->map), "/tmp/perf-%d.map", (int)pid);
	check_map(f, JIT_FILE_MOUNTED);
	assert_int_equal(chown(secret, 0, 0), 0);
	check_map(f, JIT_FILE_FOREIGN);
	end_process(pid);
}

static void jit_file_size_is_bounded(void **state)
{
	struct fixture *f = *state;
	write_file(f->map, "");
	assert_int_equal(truncate(f->map, (off_t)1 << 30), 0);
	check_map(f, JIT_FILE_TOO_LARGE);
}

/* FR-51: what another process of that pid left. */
static void jit_file_older_than_the_process_is_refused(void **state)
{
	struct fixture *f = *state;
	const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	write_file(f->map, "100 10 name\n");
	assert_int_equal(utimensat(AT_FDCWD, f->map, times, 0), 0);
	check_map(f, JIT_FILE_OLDER);
}

static void jit_file_of_who_has_the_pid_since_is_not_taken(void **state)
{
	struct fixture *f = *state;
	struct jit_place place;
	f->process.seen_ns = 1; /* long before this process began */
	jit_place_open(&place, &f->config, &f->process);
	assert_false(place.is_process);
	jit_place_close(&place);
	f->process.seen_ns = UINT64_MAX / 4;
	jit_place_open(&place, &f->config, &f->process);
	assert_true(place.is_process);
	assert_int_equal(place.number, getpid());
	jit_place_close(&place);
	/* Of a file: a process that began when the recording was over. */
	f->process =
		(struct jit_process){.pid = getpid(), .recorded_at_ns = 1000, .is_same_host = true};
	f->config.is_live = false;
	jit_place_open(&place, &f->config, &f->process);
	assert_false(place.is_process);
	jit_place_close(&place);
}

static void jit_file_below_a_sysroot_stays_there(void **state)
{
	struct fixture *f = *state;
	char text[64];
	f->config.is_live = false;
	f->process.pid = 77;
	const char *map = temp_dir_path(&f->dir, "root/private/tmp/perf-77.map");
	write_file(map, "100 10 below\n");
	char *root = mem_format("%s/root", f->dir.path), *tmp = mem_format("%s/tmp", root);
	assert_int_equal(symlink("/private/tmp", tmp), 0);
	f->config.sysroot = root;
	assert_int_equal(open_map(f, text, sizeof(text)), JIT_FILE_OK);
	assert_string_equal(text, "100 10 below\n");
	mem_free(root);
	mem_free(tmp);
}

static void jit_file_of_another_host_is_not_looked_for(void **state)
{
	struct fixture *f = *state;
	write_file(f->map, "100 10 name\n");
	f->config.is_live = false;
	check_map(f, JIT_FILE_OTHER_HOST);
	f->process.is_same_host = true;
	check_map(f, JIT_FILE_OK);
}

static void jit_file_dump_must_be_the_one_that_was_mapped(void **state)
{
	struct fixture *f = *state;
	struct jit_place place;
	struct jit_file file;
	struct stat st;
	const char *path = temp_dir_path(&f->dir, "jit-77.dump");
	write_file(path, "JiTD");
	assert_int_equal(stat(path, &st), 0);
	struct jit_mapping mapping = {.path = path, .inode = st.st_ino, .has_inode = true};
	jit_place_open(&place, &f->config, &f->process);
	assert_int_equal(jit_place_open_dump(&place, &mapping, &file), JIT_FILE_OK);
	assert_int_equal(file.inode, st.st_ino);
	jit_file_close(&file);
	mapping.inode++;
	assert_int_equal(jit_place_open_dump(&place, &mapping, &file), JIT_FILE_REPLACED);
	mapping.path = "/nonexistent/jit-77.dump";
	assert_int_equal(jit_place_open_dump(&place, &mapping, &file), JIT_FILE_ABSENT);
	jit_place_close(&place);
}

/* Its /tmp was opened in time. */
static void jit_file_is_found_when_its_place_is_gone(void **state)
{
	struct fixture *f = *state;
	struct jit_place place;
	struct jit_file file = JIT_FILE_CLOSED;
	f->config.is_live = false;
	f->process.pid = 77;
	write_file(temp_dir_path(&f->dir, "root/tmp/perf-77.map"), "100 10 name\n");
	char *root = mem_format("%s/root", f->dir.path),
	     *moved = mem_format("%s/moved", f->dir.path);
	f->config.sysroot = root;
	jit_place_open(&place, &f->config, &f->process);
	assert_int_equal(rename(root, moved), 0);
	assert_int_equal(jit_place_open_map(&place, &file), JIT_FILE_OK);
	assert_false(jit_place_has_other_map(&place, &file));
	char *map = mem_format("%s/tmp/perf-77.map", moved), *next = mem_format("%s/new", moved);
	write_file(next, "200 10 other\n");
	assert_int_equal(rename(next, map), 0);
	assert_true(jit_place_has_other_map(&place, &file));
	jit_file_close(&file);
	jit_place_close(&place);
	mem_free(map);
	mem_free(next);
	mem_free(root);
	mem_free(moved);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(jit_file_of_a_process_is_read),
		CASE(jit_file_link_is_refused),
		CASE(jit_file_must_be_regular),
		CASE(jit_file_others_may_write_to_is_refused),
		CASE(jit_file_of_another_user_is_refused),
		CASE(jit_file_of_root_is_none_of_a_user_s_process),
		CASE(jit_file_that_is_mounted_is_refused),
		CASE(jit_file_size_is_bounded),
		CASE(jit_file_older_than_the_process_is_refused),
		CASE(jit_file_of_who_has_the_pid_since_is_not_taken),
		CASE(jit_file_below_a_sysroot_stays_there),
		CASE(jit_file_of_another_host_is_not_looked_for),
		CASE(jit_file_dump_must_be_the_one_that_was_mapped),
		CASE(jit_file_is_found_when_its_place_is_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
