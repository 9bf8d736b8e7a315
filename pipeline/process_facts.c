/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/process_facts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

enum { STAT_MAX_BYTES = 4096 };

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Fields of /proc/self/stat behind the name, which may hold anything. */
static void read_stat(struct process_facts *out)
{
	struct buf text CLEANUP(buf_fini);
	buf_init(&text, STAT_MAX_BYTES);
	struct error *err = file_read_all("/proc/self/stat", &text);
	const char *fields = err ? NULL : strrchr(buf_string(&text), ')');
	uint64_t start_ticks, virtual_bytes, n_pages;
	error_free(err);
	/* state, 18 numbers, then starttime (22), vsize and rss. */
	if (!fields || sscanf(fields + 1,
			      " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			      "%*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64,
			      &start_ticks, &virtual_bytes, &n_pages) != 3)
		return;
	struct timespec wall, boot;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	double boot_seconds =
		(double)(wall.tv_sec - boot.tv_sec) + (double)(wall.tv_nsec - boot.tv_nsec) / 1e9;
	out->start_seconds = boot_seconds + (double)start_ticks / (double)sysconf(_SC_CLK_TCK);
	out->virtual_bytes = virtual_bytes;
	out->resident_bytes = n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t n = 0;
	if (!folder)
		return 0;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n > 3 ? n - 3 : 0; /* without ".", ".." and the folder's own */
}

void process_facts_read(struct process_facts *out)
{
	struct rusage usage;
	struct rlimit limit;
	*out = (struct process_facts){.n_fds = count_fds()};
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		out->cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		out->max_fds = limit.rlim_cur;
	read_stat(out);
}
