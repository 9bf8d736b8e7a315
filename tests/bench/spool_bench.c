/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool beside the disk: windows committed beside the same write, fsync, rename and fsync of
 * the folder done bare, in turn; and how long, with how much memory, a spool of 1 GiB starts.
 *
 * usage: spool_bench FOLDER (on the disk to be measured; 1 GiB is written)
 */
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "forwarder/spool.h"
#include "forwarder/spool_file.h"
#include "forwarder/spool_name.h"
#include "forwarder/spool_progress.h"

enum {
	ROUNDS = 200,
	DAY_WINDOWS = 8640, /* of 10 s */
	SMALL_BYTES = 16 << 10,
	LARGE_BYTES = 256 << 10,
};
#define NS_PER_S ((uint64_t)1000000000)

static uint64_t now_ns(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

static void need(struct error *err)
{
	if (!err)
		return;
	fprintf(stderr, "spool_bench: %s\n", error_text(err));
	exit(1);
}

static void need_call(bool is_fine, const char *what)
{
	if (is_fine)
		return;
	perror(what);
	exit(1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct spool *open_spool(const char *folder)
{
	static const struct spool_limits limits = {.max_bytes = (uint64_t)4 << 30,
						   .min_free_bytes = 1};
	struct spool *spool;
	need(spool_open(folder, "bench", EXPORTER_PARCA, &limits, &clock_system, &spool));
	return spool;
}

static void write_bare(int folder_fd, const char *name, const uint8_t *message, size_t n)
{
	int fd = openat(folder_fd, "bare.tmp", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	bool is_fine = fd >= 0 && write(fd, message, n) == (ssize_t)n && fsync(fd) == 0 &&
		       close(fd) == 0 && renameat(folder_fd, "bare.tmp", folder_fd, name) == 0 &&
		       fsync(folder_fd) == 0;
	need_call(is_fine, "bare write");
}

static void commit(struct spool *spool, const uint8_t *message, size_t n)
{
	const struct request_summary summary = {.n_samples = 1, .n_profiles = 1};
	struct spool_window *window = spool_begin(spool);
	spool_append(window, message, n, &summary);
	need(spool_commit(window));
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static uint64_t median(uint64_t values[ROUNDS])
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

static void compare_commits(const char *folder, size_t n)
{
	uint8_t *message = mem_alloc(n);
	memset(message, 0x5a, n);
	char *bare = mem_format("%s/bare", folder);
	need_call(mkdir(bare, 0700) == 0, bare);
	int bare_fd = open(bare, O_RDONLY | O_DIRECTORY);
	struct spool *spool = open_spool(folder);
	uint64_t ours[ROUNDS], theirs[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		char name[112];
		snprintf(name, sizeof(name), "%0100d", i); /* as long as the spool's */
		uint64_t begin = now_ns();
		commit(spool, message, n);
		uint64_t middle = now_ns();
		write_bare(bare_fd, name, message, n);
		ours[i] = middle - begin;
		theirs[i] = now_ns() - middle;
	}
	double us = (double)median(ours) / 1e3, them = (double)median(theirs) / 1e3;
	printf("%7zu bytes: commit %6.0f us, bare sequence %6.0f us: %.2f x (aim 0.9)\n", n, us,
	       them, them / us);
	spool_close(spool);
	close(bare_fd);
	mem_free(bare);
	mem_free(message);
	remove_tree(folder);
	need_call(mkdir(folder, 0700) == 0, folder);
}

/* As commits would leave it, without their fsyncs. */
static void fill(const char *folder)
{
	char *path = mem_format("%s/bench", folder);
	need_call(mkdir(path, 0700) == 0, path);
	int folder_fd = open(path, O_RDONLY | O_DIRECTORY);
	size_t n = ((size_t)1 << 30) / DAY_WINDOWS;
	uint8_t *message = mem_zalloc(n, 1);
	uint64_t now = clock_system.wall_ns(clock_system.context);
	const struct request_summary summary = {.n_samples = 1000, .n_profiles = 1};
	for (uint64_t i = 0; i < DAY_WINDOWS; i++) {
		struct spool_name name = {.sequence = i + 1,
					  .enqueued_ns = now - (DAY_WINDOWS - i) * 10 * NS_PER_S,
					  .n_requests = 4,
					  .n_profiles = 4,
					  .n_samples = 4000};
		int fd = openat(folder_fd, "fill", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		need_call(fd >= 0, "fill");
		struct spool_file_writer writer;
		need(spool_file_begin(&writer, fd, EXPORTER_PARCA, i, name.enqueued_ns));
		for (int request = 0; request < 4; request++)
			need(spool_file_append(&writer, message, n / 4, &summary, NULL));
		need(spool_file_end(&writer));
		name.bytes = writer.offset;
		spool_file_writer_fini(&writer);
		close(fd);
		char text[SPOOL_NAME_BYTES];
		spool_name_format(&name, SPOOL_WAITING_SUFFIX, text);
		need_call(renameat(folder_fd, "fill", folder_fd, text) == 0, "rename");
		/* Some were being delivered. */
		const struct spool_progress progress = {0, 1, 1000};
		if (i % 64 == 0)
			need(spool_progress_append(folder_fd, &name, &progress));
	}
	close(folder_fd);
	mem_free(message);
	mem_free(path);
}

/* In a process of its own, for its memory. */
static void start(const char *folder)
{
	uint64_t begin = now_ns();
	struct spool *spool = open_spool(folder);
	double ms = (double)(now_ns() - begin) / 1e6;
	struct spool_counts counts;
	spool_get_counts(spool, &counts);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	need_call(counts.windows == DAY_WINDOWS && counts.requests < 4 * DAY_WINDOWS, "the spool");
	printf("start with %" PRIu64 " windows, %.2f GiB: %.0f ms (aim 100), %.1f MiB (aim 8)\n",
	       counts.windows, (double)counts.bytes / (1 << 30), ms,
	       (double)usage.ru_maxrss / 1024);
	spool_close(spool);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "start") == 0) {
		start(argv[2]);
		return 0;
	}
	if (argc != 2) {
		fprintf(stderr, "usage: spool_bench FOLDER\n");
		return 2;
	}
	char *folder = mem_format("%s/spool", argv[1]);
	mkdir(argv[1], 0700);
	remove_tree(folder);
	need_call(mkdir(folder, 0700) == 0, folder);
	compare_commits(folder, SMALL_BYTES);
	compare_commits(folder, LARGE_BYTES);
	fill(folder);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", argv[0], "start", folder, NULL);
		_exit(127);
	}
	int status = 1;
	waitpid(pid, &status, 0);
	remove_tree(folder);
	mem_free(folder);
	return status != 0;
}
