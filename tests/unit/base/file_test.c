/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

static char folder[] = "/tmp/perfpipe_file_XXXXXX";
static char original_folder[PATH_MAX];

/* Each case works in an empty folder, which is the current one. */
static int set_up(void **state)
{
	(void)state;
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
	return getcwd(original_folder, sizeof(original_folder)) && mkdtemp(folder) ? chdir(folder)
										   : -1;
}

static int tear_down(void **state)
{
	(void)state;
	if (chdir(original_folder) != 0)
		return -1;
	char command[PATH_MAX + 16];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void make(const char *path, const char *content, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void assert_content(const char *path, const char *want)
{
	CLEANUP(buf_fini) struct buf buf;
	buf_init(&buf, 1 << 20);
	assert_null(file_read_all(path, &buf));
	assert_string_equal(buf_string(&buf), want);
}

static int n_files(void)
{
	int n = 0;
	DIR *dir = opendir(".");
	for (const struct dirent *entry; (entry = readdir(dir));)
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return n;
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void assert_error(struct error *err, enum error_code code, int number, const char *part)
{
	assert_non_null(err);
	assert_int_equal(error_get_code(err), code);
	assert_int_equal(error_get_number(err), number);
	if (!strstr(error_text(err), part))
		fail_msg("\"%s\" is not in \"%s\"", part, error_text(err));
	error_free(err);
}

static void file_open_regular_refuses_what_is_no_file(void **state)
{
	(void)state;
	int fd = -7;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_error(file_open_regular("fifo", &fd), ERROR_UNSUPPORTED, 0, "fifo: not a regular");
	assert_error(file_open_regular(".", &fd), ERROR_UNSUPPORTED, 0, "is a directory");
	assert_error(file_open_regular("/dev/null", &fd), ERROR_UNSUPPORTED, 0, "not a regular");
	assert_error(file_open_regular("absent", &fd), ERROR_NO_ENTRY, 0, "absent: ");
	assert_int_equal(fd, -7);
}

static void file_read_all_appends_and_respects_the_maximum(void **state)
{
	(void)state;
	make("f", "12345", 0600);
	CLEANUP(buf_fini) struct buf buf;
	buf_init(&buf, 10);
	assert_null(file_read_all("f", &buf));
	assert_null(file_read_all("f", &buf));
	assert_string_equal(buf_string(&buf), "1234512345");
	assert_error(file_read_all("f", &buf), ERROR_LIMIT, 0, "f: ");
	assert_int_equal(buf.size, 10);
	buf_clear(&buf);
	buf.max_bytes = 4;
	assert_error(file_read_all("f", &buf), ERROR_LIMIT, 0, "maximum of 4 bytes");
	assert_int_equal(buf.size, 0);
}

static void file_read_all_reads_proc_and_large_files(void **state)
{
	(void)state;
	CLEANUP(buf_fini) struct buf buf;
	buf_init(&buf, 4 << 20);
	assert_null(file_read_all("/proc/self/status", &buf));
	assert_non_null(strstr(buf_string(&buf), "VmRSS:"));
	buf_clear(&buf);
	int fd = open("large", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	close(fd);
	assert_null(file_read_all("large", &buf));
	assert_int_equal(buf.size, 1 << 20);
}

static void file_read_at_stops_at_the_end(void **state)
{
	(void)state;
	make("f", "0123456789", 0600);
	CLEANUP(cleanup_fd) int fd = -1;
	assert_null(file_open_regular("f", &fd));
	char text[16];
	size_t n = 99;
	assert_null(file_read_at(fd, 4, text, 3, &n));
	assert_int_equal(n, 3);
	assert_memory_equal(text, "456", 3);
	assert_null(file_read_at(fd, 8, text, 16, &n));
	assert_int_equal(n, 2);
	assert_null(file_read_at(fd, 100, text, 16, &n));
	assert_int_equal(n, 0);
	n = 99;
	assert_null(file_read_at(fd, UINT64_MAX - 3, text, 16, &n));
	assert_int_equal(n, 0);
	assert_error(file_read_at(-1, 0, text, 1, &n), ERROR_IO, 0, "read");
}

/* A slow writer on a pipe that is non-blocking at our end. */
static void file_read_waits_on_a_non_blocking_pipe(void **state)
{
	(void)state;
	int fds[2];
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	pid_t child = fork();
	if (child == 0) {
		usleep(30000);
		if (write(fds[1], "abc", 3) != 3)
			_exit(1);
		usleep(30000);
		_exit(write(fds[1], "def", 3) != 3);
	}
	close(fds[1]);
	char text[16];
	size_t n = 0;
	assert_null(file_read(fds[0], text, sizeof(text), &n));
	assert_int_equal(n, 6);
	assert_memory_equal(text, "abcdef", 6);
	close(fds[0]);
	waitpid(child, NULL, 0);
}

static void file_map_maps_whole_files_up_to_a_maximum(void **state)
{
	(void)state;
	make("f", "0123456789", 0600);
	make("empty", "", 0600);
	struct file_map map;
	assert_null(file_map_open("f", 10, &map));
	assert_int_equal(map.size, 10);
	assert_memory_equal(map.data, "0123456789", 10);
	file_map_close(&map);
	assert_null(map.data);
	file_map_close(&map);
	assert_error(file_map_open("f", 9, &map), ERROR_LIMIT, 0, "f: 10 bytes");
	assert_null(file_map_open("empty", 10, &map));
	assert_null(map.data);
	assert_int_equal(map.size, 0);
	file_map_close(&map);
	assert_error(file_map_open("/dev/zero", 10, &map), ERROR_UNSUPPORTED, 0, "/dev/zero");
}

static void write_and_commit(const char *path, const char *content)
{
	CLEANUP(file_writer_close) struct file_writer writer = {.fd = -1};
	assert_null(file_writer_open(path, &writer));
	assert_null(file_write(writer.fd, content, strlen(content)));
	assert_null(file_writer_commit(&writer));
}

static void file_writer_shows_the_file_only_when_committed(void **state)
{
	(void)state;
	mode_t old_mask = umask(027);
	struct file_writer writer;
	assert_null(file_writer_open("out", &writer));
	assert_null(file_write(writer.fd, "new", 3));
	assert_int_equal(access("out", F_OK), -1);
	assert_null(file_writer_commit(&writer));
	assert_content("out", "new");
	file_writer_close(&writer);
	assert_content("out", "new");
	assert_int_equal(n_files(), 1);
	assert_int_equal(mode_of("out"), 0640);
	umask(old_mask);
}

static void file_writer_without_commit_leaves_the_old_file(void **state)
{
	(void)state;
	make("out", "old", 0604);
	struct file_writer writer;
	assert_null(file_writer_open("out", &writer));
	assert_null(file_write(writer.fd, "new", 3));
	file_writer_close(&writer);
	assert_content("out", "old");
	assert_int_equal(n_files(), 1);
	struct file_writer zeroed = {0};
	file_writer_close(&zeroed);
}

static bool has_nameless_files(void)
{
	int fd = open(".", O_TMPFILE | O_WRONLY, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void file_writer_leaves_nothing_when_the_program_is_killed(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0) {
		struct file_writer writer;
		error_free(file_writer_open("out", &writer));
		file_writer_discard_all();
		kill(getpid(), SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(n_files(), 0);
	if (!has_nameless_files())
		return;
	struct file_writer writer;
	assert_null(file_writer_open("out", &writer));
	assert_int_equal(n_files(), 0);
	assert_null(file_write(writer.fd, "new", 3));
	assert_null(file_writer_commit(&writer));
	assert_int_equal(n_files(), 1);
	file_writer_discard_all();
	assert_content("out", "new");
	file_writer_close(&writer);
}

static void file_writer_keeps_the_mode_of_a_replaced_file(void **state)
{
	(void)state;
	make("out", "old", 0604);
	write_and_commit("out", "new");
	assert_content("out", "new");
	assert_int_equal(mode_of("out"), 0604);
}

static void file_writer_follows_symlinks_to_the_real_file(void **state)
{
	(void)state;
	assert_int_equal(mkdir("real", 0700), 0);
	make("real/file", "old", 0600);
	assert_int_equal(symlink("file", "real/link"), 0);
	assert_int_equal(symlink("real/link", "out"), 0);
	write_and_commit("out", "new");
	assert_content("real/file", "new");
	struct stat st;
	assert_int_equal(lstat("out", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat("real/link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void file_writer_follows_a_symlink_to_nothing_yet(void **state)
{
	(void)state;
	assert_int_equal(mkdir("real", 0700), 0);
	char target[PATH_MAX];
	snprintf(target, sizeof(target), "%s/real/file", folder);
	assert_int_equal(symlink(target, "out"), 0);
	write_and_commit("out", "new");
	assert_content("real/file", "new");
	assert_int_equal(symlink("loop", "loop"), 0);
	struct file_writer writer;
	assert_error(file_writer_open("loop", &writer), ERROR_IO, 701, "cannot create loop");
}

static void file_writer_says_701_when_it_cannot_create(void **state)
{
	(void)state;
	struct file_writer writer;
	assert_error(file_writer_open("absent/out", &writer), ERROR_NO_ENTRY, 701,
		     "cannot create absent/out: ");
	assert_error(file_writer_open(".", &writer), ERROR_IO, 701, "directory");
	assert_error(file_writer_open("", &writer), ERROR_NO_ENTRY, 701, "cannot create");
	assert_int_equal(n_files(), 0);
	if (geteuid() == 0)
		return;
	make("kept", "old", 0400);
	assert_error(file_writer_open("kept", &writer), ERROR_DENIED, 701, "kept");
}

static void file_writer_says_702_when_the_device_is_full(void **state)
{
	(void)state;
	CLEANUP(file_writer_close) struct file_writer writer = {.fd = -1};
	assert_null(file_writer_open("/dev/full", &writer));
	assert_true(writer.is_direct);
	assert_error(file_write(writer.fd, "x", 1), ERROR_IO, 702, "No space");
}

static void file_writer_writes_straight_to_devices_and_pipes(void **state)
{
	(void)state;
	write_and_commit("/dev/null", "gone");
	assert_int_equal(symlink("/dev/null", "link"), 0);
	write_and_commit("link", "gone");
	struct stat st;
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	char name[64], text[8];
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	write_and_commit(name, "piped");
	assert_int_equal(read(fds[0], text, sizeof(text)), 5);
	close(fds[0]);
	close(fds[1]);
}

/* What `perfpipe -o NAME >out` does, where out has content already. */
static void assert_written_to_stdout(const char *name)
{
	make("out", "first ", 0600);
	fflush(stdout);
	int real_stdout = dup(STDOUT_FILENO);
	int fd = open("out", O_WRONLY | O_APPEND);
	dup2(fd, STDOUT_FILENO);
	close(fd);
	write_and_commit(name, "second");
	bool is_still_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
	dup2(real_stdout, STDOUT_FILENO);
	close(real_stdout);
	assert_true(is_still_open);
	assert_content("out", "first second");
	assert_int_equal(unlink("out"), 0);
}

static void file_writer_takes_the_names_of_standard_output(void **state)
{
	(void)state;
	assert_written_to_stdout("-");
	assert_written_to_stdout("/dev/stdout");
	assert_written_to_stdout("/proc/self/fd/1");
	assert_int_equal(symlink("/dev/stdout", "link"), 0);
	assert_written_to_stdout("link");
}

static void file_writer_takes_the_longest_file_name(void **state)
{
	(void)state;
	char name[NAME_MAX + 1];
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = 0;
	write_and_commit(name, "x");
	assert_content(name, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(file_open_regular_refuses_what_is_no_file, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file_read_all_appends_and_respects_the_maximum,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_read_all_reads_proc_and_large_files, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file_read_at_stops_at_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_read_waits_on_a_non_blocking_pipe, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file_map_maps_whole_files_up_to_a_maximum, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file_writer_shows_the_file_only_when_committed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_without_commit_leaves_the_old_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			file_writer_leaves_nothing_when_the_program_is_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_keeps_the_mode_of_a_replaced_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_follows_symlinks_to_the_real_file,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_follows_a_symlink_to_nothing_yet,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_says_701_when_it_cannot_create, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(file_writer_says_702_when_the_device_is_full,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_writes_straight_to_devices_and_pipes,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_takes_the_names_of_standard_output,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(file_writer_takes_the_longest_file_name, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
