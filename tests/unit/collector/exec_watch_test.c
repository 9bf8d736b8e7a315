/* SPDX-License-Identifier: Apache-2.0 */
/* argv from crafted stacks, and from real short processes where the kernel allows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "collector/collector.h"
#include "collector/exec_stack.h"
#include "collector/exec_watch.h"

extern char **environ;

/* --- crafted stacks --- */

enum { SP = 0x7ffc0000 };

struct crafted {
	uint8_t bytes[512];
	struct exec_stack stack;
};

static void put(struct crafted *crafted, size_t at, uint64_t value)
{
	memcpy(crafted->bytes + at, &value, crafted->stack.is_32_bit ? 4 : 8);
}

/* argc, argv, then one environment pointer, and the strings at 256. */
static void craft(struct crafted *crafted, bool is_32_bit, const char *const *words, uint64_t n)
{
	size_t width = is_32_bit ? 4 : 8;
	size_t text = 256;

	memset(crafted, 0, sizeof(*crafted));
	crafted->stack = (struct exec_stack){.bytes = crafted->bytes,
					     .size = sizeof(crafted->bytes),
					     .sp = SP,
					     .is_32_bit = is_32_bit};
	put(crafted, 0, n);
	for (size_t i = 0; i < n; i++) {
		put(crafted, (1 + i) * width, SP + text);
		memcpy(crafted->bytes + text, words[i], strlen(words[i]) + 1);
		text += strlen(words[i]) + 1;
	}
	put(crafted, (2 + n) * width, SP + text);
	memcpy(crafted->bytes + text, "SECRET=1", 9);
}

static const char *const git[] = {"git", "", "cat-file", "--batch"};

static void argv_is_read_from_both_word_sizes(void **state)
{
	(void)state;
	for (int is_32_bit = 0; is_32_bit < 2; is_32_bit++) {
		struct crafted crafted;
		struct buf words CLEANUP(buf_fini);
		buf_init(&words, 4096);
		craft(&crafted, is_32_bit, git, ARRAY_LEN(git));
		assert_true(exec_stack_read_argv(&crafted.stack, &words));
		assert_int_equal(words.size, 4 + 1 + 9 + 8);
		assert_memory_equal(words.data, "git\0\0cat-file\0--batch", words.size);
	}
}

static void argv_beyond_the_copy_is_not_whole(void **state)
{
	(void)state;
	struct crafted crafted;
	struct buf words CLEANUP(buf_fini);

	buf_init(&words, 4096);
	craft(&crafted, false, git, ARRAY_LEN(git));
	crafted.stack.size = 256 + 7; /* ends within "cat-file" */
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	assert_int_equal(words.size, 5);
}

static void absurd_stacks_give_nothing(void **state)
{
	(void)state;
	struct crafted crafted;
	struct buf words CLEANUP(buf_fini);

	buf_init(&words, 4096);
	craft(&crafted, false, git, ARRAY_LEN(git));
	put(&crafted, 0, UINT64_MAX);
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	craft(&crafted, false, git, 0);
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	craft(&crafted, false, git, ARRAY_LEN(git));
	put(&crafted, 8, SP - 1);
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	crafted.stack.size = 3;
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	crafted.stack.size = 0;
	assert_false(exec_stack_read_argv(&crafted.stack, &words));
	assert_int_equal(words.size, 0);
}

static void every_cut_of_a_stack_is_survived(void **state)
{
	(void)state;
	struct crafted crafted;

	craft(&crafted, false, git, ARRAY_LEN(git));
	for (size_t n = 0; n <= sizeof(crafted.bytes); n++) {
		struct buf words CLEANUP(buf_fini);
		uint8_t *exact CLEANUP(cleanup_mem) = mem_copy(crafted.bytes, n);
		struct exec_stack stack = {.bytes = exact, .size = n, .sp = SP};
		buf_init(&words, 4096);
		assert_int_equal(exec_stack_read_argv(&stack, &words), n >= 256 + 22);
	}
}

static void cgroup_that_says_most_is_picked(void **state)
{
	(void)state;
	size_t n;
	const char *path;

	path = exec_watch_pick_cgroup("5:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n", &n);
	assert_int_equal(n, 2);
	assert_memory_equal(path, "/c", 2);
	path = exec_watch_pick_cgroup("5:cpu:/a\n1:name=systemd:/b\n0::/\n", &n);
	assert_memory_equal(path, "/b", 2);
	path = exec_watch_pick_cgroup("0::/\n", &n);
	assert_int_equal(n, 1);
	assert_null(exec_watch_pick_cgroup("nonsense\n", &n));
	assert_int_equal(n, 0);
}

/* --- real processes --- */

enum { N_SPAWNED = 600, INTERVAL_NS = 5000000, MAX_SEEN = 8192 };

/* Shared with the process that spawns. */
struct spawned {
	pid_t pid;
	char word[32];
};

struct seen {
	uint32_t pid;
	uint32_t source;
	char argv[128];
	char exe[64];
};

struct run {
	struct seen seen[MAX_SEEN];
	size_t n_seen;
};

static struct error *take(void *context, const struct perf_record *records, size_t n)
{
	struct run *run = context;

	for (size_t i = 0; i < n; i++) {
		struct perf_record_perfpipe_exec exec;
		if (records[i].type != PERF_RECORD_PERFPIPE_EXEC || run->n_seen == MAX_SEEN)
			continue;
		memcpy(&exec, records[i].bytes, sizeof(exec));
		assert_int_equal(exec.time_ns, records[i].time_ns);
		assert_true(exec.argv_bytes <= records[i].size - sizeof(exec));
		const char *words = (const char *)records[i].bytes + sizeof(exec);
		const char *cgroup = words + exec.argv_bytes;
		struct seen *seen = &run->seen[run->n_seen++];
		seen->pid = exec.pid;
		seen->source = exec.source;
		/* What says of itself that it is cut is no wrong answer, but none. */
		if (!exec.is_argv_cut && exec.argv_bytes < sizeof(seen->argv))
			memcpy(seen->argv, words, exec.argv_bytes);
		snprintf(seen->exe, sizeof(seen->exe), "%s", cgroup + strlen(cgroup) + 1);
	}
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void ok(struct error *err)
{
	if (err)
		print_error("%s\n", error_text(err));
	assert_null(err);
}

static void drain_once(struct record_source *source, struct run *run, int timeout_ms)
{
	size_t n;
	const int *fds = collector_live_fds(source, &n);
	struct pollfd polls[64];

	assert_in_range(n, 1, 64);
	for (size_t i = 0; i < n; i++)
		polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	poll(polls, n, timeout_ms);
	ok(record_source_drain(source, take, run));
}

/* Each lives about 4 ms, as a git command does. */
static void spawn_all(struct spawned *spawned, uint64_t interval_ns)
{
	uint64_t start_ns = now_ns();

	for (unsigned i = 0; i < N_SPAWNED; i++) {
		char *argv[] = {"/usr/bin/sleep", spawned[i].word, NULL};
		snprintf(spawned[i].word, sizeof(spawned[i].word), "0.003%05u", i);
		while (now_ns() < start_ns + i * interval_ns)
			usleep(100);
		int errno_value = posix_spawn(&spawned[i].pid, argv[0], NULL, NULL, argv, environ);
		if (errno_value)
			_exit(errno_value);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	_exit(0);
}

struct score {
	unsigned n_right, n_wrong, n_missed, n_exe;
};

static struct score compare(const struct spawned *spawned, const struct run *run)
{
	struct score score = {0};

	for (int i = 0; i < N_SPAWNED; i++) {
		bool is_found = false;
		for (size_t j = 0; j < run->n_seen && !is_found; j++) {
			const struct seen *seen = &run->seen[j];
			/* The spawner's own exec of the pid is another one. */
			if (seen->pid != (uint32_t)spawned[i].pid || !seen->argv[0])
				continue;
			is_found = true;
			const char *word = seen->argv + strlen(seen->argv) + 1;
			bool is_right = strcmp(seen->argv, "/usr/bin/sleep") == 0 &&
					strcmp(word, spawned[i].word) == 0;
			score.n_right += is_right;
			score.n_wrong += !is_right;
			score.n_exe += strcmp(seen->exe, "/usr/bin/sleep") == 0;
		}
		score.n_missed += !is_found;
	}
	return score;
}

static int warning_numbers[32]; /* of the run that was last */

static struct score run_spawner(const struct collector_live_options *options, uint64_t interval_ns,
				struct collector_live_state *state_out)
{
	size_t bytes = N_SPAWNED * sizeof(struct spawned);
	struct spawned *spawned =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run *run CLEANUP(cleanup_mem) = mem_zalloc(1, sizeof(*run));
	struct record_source *source;
	struct rusage before, after;

	assert_ptr_not_equal(spawned, MAP_FAILED);
	ok(collector_open_live(options, &source));
	ok(collector_live_start(source));
	ok(record_source_drain(source, take, run));
	getrusage(RUSAGE_SELF, &before);
	pid_t spawner = fork();
	if (spawner == 0)
		spawn_all(spawned, interval_ns);
	int status;
	while (waitpid(spawner, &status, WNOHANG) == 0)
		drain_once(source, run, 50);
	if (status != 0)
		print_error("the spawner ended with status 0x%x\n", status);
	assert_int_equal(status, 0);
	getrusage(RUSAGE_SELF, &after);
	ok(collector_live_stop(source));
	ok(record_source_drain(source, take, run));
	*state_out = *collector_live_state(source);
	for (size_t i = 0; i < state_out->n_warnings && i < ARRAY_LEN(warning_numbers); i++)
		warning_numbers[i] = state_out->warnings[i].number;
	struct score score = compare(spawned, run);
	double cpu_us = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
				 after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
				1e6 +
			(double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
				 after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	print_message("%u right, %u wrong, %u missed, %u exe; %llu execs: %llu from the record, "
		      "%llu from /proc, %llu unknown; %.0f us CPU per exec\n",
		      score.n_right, score.n_wrong, score.n_missed, score.n_exe,
		      (unsigned long long)state_out->n_execs_seen,
		      (unsigned long long)state_out->n_execs_argv_record,
		      (unsigned long long)state_out->n_execs_argv_proc,
		      (unsigned long long)state_out->n_execs_argv_none,
		      cpu_us / (double)(state_out->n_execs_seen + !state_out->n_execs_seen));
	record_source_close(source);
	munmap(spawned, bytes);
	return score;
}

/* Other programs of the host, a build say, may bring the execs above the watch's rate. */
static struct score run_while_calm(const struct collector_live_options *options,
				   struct collector_live_state *state_out)
{
	enum { TRIES = 3, CALM_EXECS = N_SPAWNED + N_SPAWNED / 5 };
	struct score score = {0};

	for (int i = 0; i < TRIES; i++) {
		score = run_spawner(options, INTERVAL_NS, state_out);
		if (state_out->n_execs_seen <= CALM_EXECS || score.n_right * 100 >= N_SPAWNED * 95)
			return score;
	}
	print_message("the host execs too much beside the test\n");
	skip();
	return score;
}

static void argv_of_short_processes_is_known(void **state)
{
	(void)state;
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .watch_execs = true};
	struct collector_live_state live;
	struct score score = run_while_calm(&options, &live);

	if (!live.has_exec_watch)
		skip();
	assert_true(score.n_right * 100 >= N_SPAWNED * 95);
	assert_int_equal(score.n_wrong, 0);
	assert_int_equal(live.n_execs_seen, live.n_execs_argv_record + live.n_execs_argv_proc +
						    live.n_execs_argv_none);
}

/* Nobody is woken above 300 execs a second; the stack copies go on. */
static void above_the_rate_the_copies_have_to_do(void **state)
{
	(void)state;
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .watch_execs = true};
	struct collector_live_state live;
	struct score score = run_spawner(&options, INTERVAL_NS / 5, &live);

	if (!live.has_exec_watch)
		skip();
	assert_true(score.n_right * 100 >= N_SPAWNED * 60);
	assert_int_equal(score.n_wrong, 0);
}

/* The children of a watched process inherit the watch. */
static void children_of_a_pid_are_watched(void **state)
{
	(void)state;
	pid_t self = getpid();
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &self, .n_pids = 1, .watch_execs = true};
	struct collector_live_state live;
	struct score score = run_spawner(&options, INTERVAL_NS, &live);

	if (!live.has_exec_watch)
		skip();
	assert_true(score.n_right * 100 >= N_SPAWNED * 95);
	assert_int_equal(score.n_wrong, 0);
}

/* A user without rights gets COMM records, and what /proc shows in time. */
static void without_the_tracepoint_comm_records_help(void **state)
{
	(void)state;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		struct exec_watch watch;
		struct cpu_set cpus = {0};
		const char *why = NULL;
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		struct error *err = cpu_set_read_online(&cpus);
		if (err || (err = exec_watch_open(&watch, &cpus, true, &why)))
			_exit(3);
		_exit(why && !watch.has_tracepoint ? 0 : 4);
	}
	int status;
	waitpid(child, &status, 0);
	if (geteuid() != 0 || event_open_sysctl("perf_event_paranoid", 0) > 2)
		skip();
	assert_int_equal(status, 0);
}

/* The last case: this process keeps a view of the file system without tracefs. */
static void without_tracefs_most_argv_come_from_proc(void **state)
{
	(void)state;
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .watch_execs = true};
	struct collector_live_state live;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		skip();
	while (umount2("/sys/kernel/tracing", MNT_DETACH) == 0)
		;
	while (umount2("/sys/kernel/debug", MNT_DETACH) == 0)
		;
	struct score score = run_while_calm(&options, &live);
	bool is_said = false;
	for (size_t i = 0; i < live.n_warnings; i++)
		is_said |= warning_numbers[i] == 110;
	assert_true(is_said);
	assert_false(live.has_exec_watch);
	assert_true(score.n_right * 100 >= N_SPAWNED * 80);
	assert_int_equal(score.n_wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(argv_is_read_from_both_word_sizes),
		cmocka_unit_test(argv_beyond_the_copy_is_not_whole),
		cmocka_unit_test(absurd_stacks_give_nothing),
		cmocka_unit_test(every_cut_of_a_stack_is_survived),
		cmocka_unit_test(cgroup_that_says_most_is_picked),
		cmocka_unit_test(argv_of_short_processes_is_known),
		cmocka_unit_test(above_the_rate_the_copies_have_to_do),
		cmocka_unit_test(children_of_a_pid_are_watched),
		cmocka_unit_test(without_the_tracepoint_comm_records_help),
		cmocka_unit_test(without_tracefs_most_argv_come_from_proc),
	};
	/* The crafted stacks need no rights; the rest skips by itself. */
	struct collector_live_options system_wide = {.scope = COLLECTOR_SYSTEM,
						     .events = "cpu-clock"};
	struct record_source *source;
	struct error *err = collector_open_live(&system_wide, &source);

	if (err) {
		printf("live cases skipped: %s\n", error_text(err));
		error_free(err);
		return _cmocka_run_group_tests("crafted", tests, 5, NULL, NULL);
	}
	record_source_close(source);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
