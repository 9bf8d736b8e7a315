/* SPDX-License-Identifier: Apache-2.0 */
/* The live source against this host's kernel; skipped where perf_event_open is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "collector/cgroup_path.h"
#include "collector/session.h"

enum { NOBODY = 65534, MS_NS = 1000000 };

/* --- what a source gave --- */

struct taken {
	struct hash_map period_of_tid, samples_of_tid;
	uint64_t n_samples, n_synthetic, n_kernel_samples;
	uint64_t n_of_type[32];
	uint64_t n_lost; /* LOST and LOST_SAMPLES */
	uint64_t last_time_ns;
	uint64_t n_disorder;
	uint64_t n_no_event;
	uint64_t cpu_mask;
	char exec_comm[16]; /* of the last COMM with the exec bit */
};

static void taken_init(struct taken *taken)
{
	*taken = (struct taken){0};
	hash_map_init(&taken->period_of_tid);
	hash_map_init(&taken->samples_of_tid);
}

static void taken_fini(struct taken *taken)
{
	hash_map_fini(&taken->period_of_tid);
	hash_map_fini(&taken->samples_of_tid);
}

/* header, identifier, ip, pid, tid, time, cpu, period (perf_event_open(2)) */
static void take_sample(struct taken *taken, const struct perf_record *record)
{
	struct cursor c = cursor_make(record->bytes + 8, record->size - 8, false);

	cursor_skip(&c, 16 + 4);
	uint32_t tid = cursor_u32(&c);
	cursor_skip(&c, 8);
	taken->cpu_mask |= 1ull << (cursor_u64(&c) & 63);
	uint64_t period = cursor_u64(&c);
	assert_true(cursor_is_ok(&c));
	*hash_map_put(&taken->period_of_tid, tid, NULL) += period;
	*hash_map_put(&taken->samples_of_tid, tid, NULL) += 1;
	taken->n_samples++;
	taken->n_kernel_samples +=
		(record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	taken->n_no_event += record->event_index == PERF_EVENT_INDEX_NONE;
}

static struct error *take(void *context, const struct perf_record *records, size_t n)
{
	struct taken *taken = context;

	for (size_t i = 0; i < n; i++) {
		const struct perf_record *record = &records[i];
		struct cursor c = cursor_make(record->bytes + 8, record->size - 8, false);
		if (record->type < ARRAY_LEN(taken->n_of_type))
			taken->n_of_type[record->type]++;
		taken->n_synthetic += record->is_synthetic;
		if (record->time_ns) {
			taken->n_disorder += record->time_ns < taken->last_time_ns;
			taken->last_time_ns = record->time_ns;
		}
		if (record->type == PERF_RECORD_SAMPLE)
			take_sample(taken, record);
		if (record->type == PERF_RECORD_LOST)
			cursor_skip(&c, 8);
		if (record->type == PERF_RECORD_LOST || record->type == PERF_RECORD_LOST_SAMPLES)
			taken->n_lost += cursor_u64(&c);
		if (record->type == PERF_RECORD_COMM && record->misc & PERF_RECORD_MISC_COMM_EXEC)
			snprintf(taken->exec_comm, sizeof(taken->exec_comm), "%s",
				 (const char *)record->bytes + 16);
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

/* Drains as a caller does: on wake-ups, and every 50 ms. */
static void drain_for(struct record_source *source, struct taken *taken, uint64_t duration_ns)
{
	uint64_t end_ns = now_ns() + duration_ns;

	while (now_ns() < end_ns) {
		size_t n;
		const int *fds = collector_live_fds(source, &n);
		struct pollfd polls[64];
		assert_in_range(n, 1, 64);
		for (size_t i = 0; i < n; i++)
			polls[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
		poll(polls, n, 50);
		ok(record_source_drain(source, take, taken));
	}
}

static void stop_and_drain(struct record_source *source, struct taken *taken)
{
	ok(collector_live_stop(source));
	ok(record_source_drain(source, take, taken));
	ok(record_source_drain(source, take, taken));
}

static const struct collector_warning *find_warning(struct record_source *source, int number)
{
	const struct collector_live_state *state = collector_live_state(source);

	for (size_t i = 0; i < state->n_warnings; i++) {
		if (state->warnings[i].number == number)
			return &state->warnings[i];
	}
	return NULL;
}

static bool has_warning(struct record_source *source, int number)
{
	return find_warning(source, number) != NULL;
}

/* Runs fn in a child, so that it may give up rights and limits; its asserts end the child. */
static void run_apart(void (*fn)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* In the child of run_apart there is no cmocka to catch a failed assert. */
static void want(bool is_true, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "not so: %s\n", what);
	_exit(1);
}

static void want_ok(struct error *err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, error_text(err));
	_exit(1);
}

/* --- a process with busy threads --- */

enum { N_BUSY = 3 };

struct busy_process {
	_Atomic int n_wanted, n_running;
	_Atomic pid_t tids[N_BUSY];
	_Atomic uint64_t cpu_ns[N_BUSY];
	pid_t pid;
};

struct busy_thread {
	struct busy_process *process;
	int i;
};

static void *spin(void *context)
{
	struct busy_thread *thread = context;
	struct timespec ts;

	thread->process->tids[thread->i] = (pid_t)syscall(SYS_gettid);
	thread->process->n_running++;
	for (;;) {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		thread->process->cpu_ns[thread->i] =
			(uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	}
	return NULL;
}

static void run_busy(struct busy_process *process)
{
	struct busy_thread threads[N_BUSY];
	int n = 0;

	for (;;) {
		for (; n < process->n_wanted; n++) {
			pthread_t made;
			threads[n] = (struct busy_thread){process, n};
			pthread_create(&made, NULL, spin, &threads[n]);
		}
		usleep(1000);
		if (getppid() == 1)
			_exit(0);
	}
}

static struct busy_process *start_busy(int n)
{
	struct busy_process *process = mmap(NULL, sizeof(*process), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(process, MAP_FAILED);
	process->n_wanted = n;
	pid_t pid = fork();
	if (pid == 0)
		run_busy(process);
	process->pid = pid;
	while (process->n_running < n)
		usleep(1000);
	return process;
}

static void end_busy(struct busy_process *process)
{
	kill(process->pid, SIGKILL);
	waitpid(process->pid, NULL, 0);
	munmap(process, sizeof(*process));
}

/* --- cases --- */

/* FR-66: two threads before the attach, one after; weights are their CPU times. */
static void attach_gives_old_and_new_threads_their_weight(void **state)
{
	(void)state;
	struct busy_process *busy = start_busy(2);
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &busy->pid, .n_pids = 1, .frequency_hz = 999};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);
	uint64_t before[N_BUSY], periods[N_BUSY], used[N_BUSY];

	taken_init(&taken);
	ok(collector_open_live(&options, &source));
	ok(collector_live_start(source));
	for (int i = 0; i < N_BUSY; i++)
		before[i] = busy->cpu_ns[i];
	busy->n_wanted = 3;
	drain_for(source, &taken, 2500 * (uint64_t)MS_NS);
	stop_and_drain(source, &taken);
	for (int i = 0; i < N_BUSY; i++) {
		used[i] = busy->cpu_ns[i] - before[i];
		const uint64_t *period =
			hash_map_get(&taken.period_of_tid, (uint32_t)busy->tids[i]);
		periods[i] = period ? *period : 0;
		print_message("thread %d: %llu ms sampled, %llu ms used\n", i,
			      (unsigned long long)periods[i] / MS_NS,
			      (unsigned long long)used[i] / MS_NS);
	}
	for (int i = 0; i < N_BUSY; i++)
		assert_in_range(periods[i], used[i] * 85 / 100, used[i] * 115 / 100);
	assert_int_equal(taken.n_disorder, 0);
	assert_int_equal(taken.n_no_event, 0);
	assert_false(collector_live_is_target_gone(source));
	end_busy(busy);
	assert_true(collector_live_is_target_gone(source));
	record_source_close(source);
}

static void unknown_pid_is_e102(void **state)
{
	(void)state;
	pid_t pid = 4194303;
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &pid, .n_pids = 1};
	struct record_source *source;
	struct error *err = collector_open_live(&options, &source);

	assert_non_null(err);
	assert_int_equal(error_get_number(err), 102);
	error_free(err);
}

static void command_is_sampled_from_its_exec_on(void **state)
{
	(void)state;
	char *command[] = {"/bin/sh", "-c",
			   "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 7", NULL};
	struct collector_live_options options = {
		.scope = COLLECTOR_COMMAND, .command = command, .frequency_hz = 999};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);
	int status = 0;

	taken_init(&taken);
	ok(collector_open_live(&options, &source));
	pid_t pid = collector_live_child(source);
	assert_true(pid > 0);
	ok(collector_live_start(source));
	while (!collector_live_is_target_gone(source))
		drain_for(source, &taken, 20 * (uint64_t)MS_NS);
	stop_and_drain(source, &taken);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	const uint64_t *n = hash_map_get(&taken.samples_of_tid, (uint32_t)pid);
	assert_non_null(n);
	assert_true(*n > 20);
	assert_true(taken.n_of_type[PERF_RECORD_MMAP2] > 0);
	assert_true(taken.n_of_type[PERF_RECORD_EXIT] > 0);
	assert_string_equal(taken.exec_comm, "sh");
	record_source_close(source);
}

static void command_that_cannot_run_is_e111(void **state)
{
	(void)state;
	const struct {
		const char *path;
		enum error_code code;
	} cases[] = {{"/no/such/program", ERROR_NO_ENTRY}, {"/etc/passwd", ERROR_DENIED}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *command[] = {(char *)cases[i].path, NULL};
		struct collector_live_options options = {.scope = COLLECTOR_COMMAND,
							 .command = command};
		struct record_source *source;
		ok(collector_open_live(&options, &source));
		struct error *err = collector_live_start(source);
		assert_non_null(err);
		assert_int_equal(error_get_number(err), 111);
		assert_int_equal(error_get_code(err), cases[i].code);
		error_free(err);
		record_source_close(source);
	}
}

static void command_never_started_is_reaped(void **state)
{
	(void)state;
	char *command[] = {"/bin/true", NULL};
	struct collector_live_options options = {.scope = COLLECTOR_COMMAND, .command = command};
	struct record_source *source;

	ok(collector_open_live(&options, &source));
	pid_t pid = collector_live_child(source);
	record_source_close(source);
	assert_int_equal(kill(pid, 0), -1);
}

static void system_scope_tells_what_runs_already(void **state)
{
	(void)state;
	struct busy_process *busy = start_busy(2);
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .frequency_hz = 499};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);

	taken_init(&taken);
	ok(collector_open_live(&options, &source));
	ok(collector_live_start(source));
	drain_for(source, &taken, 600 * (uint64_t)MS_NS);
	stop_and_drain(source, &taken);
	assert_true(taken.n_synthetic > 10);
	assert_true(taken.n_of_type[PERF_RECORD_NAMESPACES] > 0);
	assert_true(taken.n_of_type[PERF_RECORD_MMAP] > 0);
	assert_non_null(hash_map_get(&taken.samples_of_tid, (uint32_t)busy->tids[0]));
	/* exclude_idle */
	assert_null(hash_map_get(&taken.samples_of_tid, 0));
	assert_int_equal(taken.n_disorder, 0);
	const struct collector_live_state *live = collector_live_state(source);
	assert_int_equal(live->n_rings, live->n_cpus);
	end_busy(busy);
	record_source_close(source);
}

static void excluded_self_gives_no_samples(void **state)
{
	(void)state;
	struct collector_live_options options = {
		.scope = COLLECTOR_SYSTEM, .frequency_hz = 999, .exclude_self = true};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);

	taken_init(&taken);
	ok(collector_open_live(&options, &source));
	ok(collector_live_start(source));
	for (uint64_t end_ns = now_ns() + 200 * (uint64_t)MS_NS; now_ns() < end_ns;)
		;
	stop_and_drain(source, &taken);
	assert_null(hash_map_get(&taken.samples_of_tid, (uint32_t)getpid()));
	record_source_close(source);
}

/* A page of ring at a high rate, not drained: what the kernel lost is told to the last one. */
static void lost_records_are_told_to_the_last(void **state)
{
	(void)state;
	struct busy_process *busy = start_busy(2);
	struct collector_live_options options = {.scope = COLLECTOR_PIDS,
						 .pids = &busy->pid,
						 .n_pids = 1,
						 .events = "cpu-clock",
						 .period = 100000,
						 .ring_bytes = 4096};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);
	uint64_t lost[8] = {0}, n_read = 0;

	taken_init(&taken);
	ok(collector_open_live(&options, &source));
	struct session *session = (struct session *)source;
	assert_int_equal(collector_live_state(source)->ring_bytes, 4096);
	ok(collector_live_start(source));
	for (int i = 0; i < 4; i++) {
		usleep(100000);
		ok(record_source_drain(source, take, &taken));
	}
	usleep(100000);
	stop_and_drain(source, &taken);
	for (uint32_t i = 0; i < session->rings.n_cpus; i++) {
		ring_set_read_lost(&session->rings, session->rings.cpus[i].cpu, lost);
		n_read += lost[0] + lost[1];
	}
	print_message("%llu samples, %llu lost (%llu LOST, %llu LOST_SAMPLES records)\n",
		      (unsigned long long)taken.n_samples, (unsigned long long)taken.n_lost,
		      (unsigned long long)taken.n_of_type[PERF_RECORD_LOST],
		      (unsigned long long)taken.n_of_type[PERF_RECORD_LOST_SAMPLES]);
	assert_true(taken.n_lost > 0);
	if (session->info.events[0].attr.read_format & PERF_FORMAT_LOST)
		assert_int_equal(taken.n_lost, n_read);
	end_busy(busy);
	record_source_close(source);
}

static void drop_to_nobody(void)
{
	want(setgid(NOBODY) == 0 && setuid(NOBODY) == 0, "becomes nobody");
	/* A login as nobody would have ended in an exec, which makes children traceable again. */
	prctl(PR_SET_DUMPABLE, 1);
}

/* FR-117 */
static void sample_as_nobody(void)
{
	struct collector_live_options system = {.scope = COLLECTOR_SYSTEM};
	char *command[] = {"/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
			   NULL};
	struct collector_live_options own = {
		.scope = COLLECTOR_COMMAND, .command = command, .frequency_hz = 999};
	struct record_source *source;
	struct taken taken;

	drop_to_nobody();
	struct error *err = collector_open_live(&system, &source);
	want(err && error_get_number(err) == 101, "the system is E101");
	want(strstr(error_text(err), "perf_event_paranoid is 2"), "paranoid is named");
	want(strstr(error_text(err), "CAP_PERFMON is missing"), "the capability is named");
	fprintf(stderr, "%s\n", error_text(err));
	error_free(err);

	taken_init(&taken);
	want_ok(collector_open_live(&own, &source), "own command");
	want(has_warning(source, 109), "W109");
	want(collector_live_state(source)->is_user_only, "user only");
	want_ok(collector_live_start(source), "start");
	while (!collector_live_is_target_gone(source)) {
		usleep(20000);
		want_ok(record_source_drain(source, take, &taken), "drain");
	}
	want_ok(collector_live_stop(source), "stop");
	want_ok(record_source_drain(source, take, &taken), "drain");
	want(taken.n_samples > 10, "samples");
	want(taken.n_kernel_samples == 0, "no kernel samples");
	record_source_close(source);
	taken_fini(&taken);
}

static void without_rights_the_own_command_is_sampled_user_only(void **state)
{
	(void)state;
	if (geteuid() != 0 || event_open_sysctl("perf_event_paranoid", 0) != 2)
		skip();
	run_apart(sample_as_nobody);
}

/* FR-118 */
static void ask_for_too_much_ring(void)
{
	struct rlimit lock = {64 << 10, 64 << 10};
	pid_t self = getpid();
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &self, .n_pids = 1, .ring_bytes = 32 << 20};
	struct record_source *source;

	want(setrlimit(RLIMIT_MEMLOCK, &lock) == 0, "memlock limit");
	drop_to_nobody();
	want_ok(collector_open_live(&options, &source), "open");
	const struct collector_live_state *state = collector_live_state(source);
	want(state->ring_bytes >= 4096 && state->ring_bytes < 32 << 20, "smaller rings");
	want(has_warning(source, 112), "W112");
	want(!find_warning(source, 112)->why && strstr(find_warning(source, 112)->fix, "mlock_kb"),
	     "a remedy");
	for (size_t i = 0; i < state->n_warnings; i++)
		fprintf(stderr, "W%d %s\n", state->warnings[i].number, state->warnings[i].text);
	record_source_close(source);
}

static void refused_ring_memory_is_halved_and_said(void **state)
{
	(void)state;
	if (geteuid() != 0 || event_open_sysctl("perf_event_paranoid", 0) > 2)
		skip();
	run_apart(ask_for_too_much_ring);
}

/* The first session takes all that the user may lock. */
static void ask_where_nothing_is_left(void)
{
	struct rlimit lock = {0, 0};
	pid_t self = getpid();
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &self, .n_pids = 1, .ring_bytes = 512 << 10};
	struct record_source *first, *second;

	want(setrlimit(RLIMIT_MEMLOCK, &lock) == 0, "memlock limit");
	drop_to_nobody();
	want_ok(collector_open_live(&options, &first), "open");
	struct error *err = collector_open_live(&options, &second);
	want(err && error_get_number(err) == 106, "E106");
	want(strstr(error_text(err), "perf_event_mlock_kb"), "the sysctl is named");
	fprintf(stderr, "%s\n", error_text(err));
	error_free(err);
	record_source_close(first);
}

static void no_ring_memory_at_all_is_e106(void **state)
{
	(void)state;
	if (geteuid() != 0 || event_open_sysctl("perf_event_paranoid", 0) > 2 ||
	    event_open_sysctl("perf_event_mlock_kb", 0) != 516)
		skip();
	run_apart(ask_where_nothing_is_left);
}

static const char six_events[] =
	"cpu-clock,task-clock,page-faults,context-switches,cpu-migrations,minor-faults";

/* FR-119 */
static void open_with_low_soft_limit(void)
{
	struct rlimit files = {20, 4096};
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .events = six_events};
	struct record_source *source;

	want(setrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	want_ok(collector_open_live(&options, &source), "open");
	record_source_close(source);
}

static void open_with_low_hard_limit(void)
{
	/* Enough to look at the host, not for seven events and a ring, be it on one CPU. */
	int lowest_free = dup(0);
	close(lowest_free);
	struct rlimit files = {(rlim_t)lowest_free + 4, (rlim_t)lowest_free + 4};
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM, .events = six_events};
	struct record_source *source;

	want(setrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	struct error *err = collector_open_live(&options, &source);
	want(err && error_get_number(err) == 107, "E107");
	fprintf(stderr, "%s\n", error_text(err));
	error_free(err);
}

static void soft_descriptor_limit_is_raised(void **state)
{
	(void)state;
	run_apart(open_with_low_soft_limit);
}

static void hard_descriptor_limit_is_e107(void **state)
{
	(void)state;
	run_apart(open_with_low_hard_limit);
}

static void missing_cycles_fall_back_to_cpu_clock(void **state)
{
	(void)state;
	struct event_opener opener = {0};
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE, .size = 128};
	int fd CLEANUP(cleanup_fd) = event_open(&opener, &attr, 0, -1, 0);
	pid_t self = getpid();
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &self, .n_pids = 1};
	struct record_source *source;

	ok(collector_open_live(&options, &source));
	assert_int_equal(has_warning(source, 108), fd < 0);
	assert_int_equal(collector_live_state(source)->is_event_fallback, fd < 0);
	assert_string_equal(record_source_info(source)->events[0].name,
			    fd < 0 ? "cpu-clock" : "cycles");
	record_source_close(source);
}

static void unsupported_event_is_e105(void **state)
{
	(void)state;
	pid_t self = getpid();
	struct collector_live_options options = {
		.scope = COLLECTOR_PIDS, .pids = &self, .n_pids = 1, .events = "rffffffffffffffff"};
	struct record_source *source;
	struct error *err = collector_open_live(&options, &source);

	assert_non_null(err);
	assert_int_equal(error_get_number(err), 105);
	error_free(err);
}

static void missing_cgroup_is_e104(void **state)
{
	(void)state;
	struct collector_live_options options = {.scope = COLLECTOR_CGROUP,
						 .cgroup = "/no/such/group"};
	struct record_source *source;
	struct error *err = collector_open_live(&options, &source);

	assert_non_null(err);
	assert_int_equal(error_get_number(err), 104);
	error_free(err);
}

/* A cgroup of the test's own, with one busy process in it and one beside it. */
/* An unset variable of a script, not the whole host. */
static void cgroup_without_a_name_is_refused(void **state)
{
	(void)state;
	struct collector_live_options options = {.scope = COLLECTOR_CGROUP, .cgroup = ""};
	struct record_source *source;
	struct error *err = collector_open_live(&options, &source);

	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	error_free(err);
}

static void remedy_of_a_frequency_is_the_one_asked_for(void **state)
{
	(void)state;
	enum { ASKED_HZ = 900000 };
	struct collector_live_options options = {.scope = COLLECTOR_SYSTEM,
						 .frequency_hz = ASKED_HZ};
	struct record_source *source;

	if (event_open_sysctl("perf_event_max_sample_rate", ASKED_HZ) >= ASKED_HZ)
		skip();
	ok(collector_open_live(&options, &source));
	const struct collector_warning *warning = find_warning(source, 113);
	assert_non_null(warning);
	assert_null(warning->why);
	assert_string_equal(warning->fix, "sudo sysctl kernel.perf_event_max_sample_rate=900000");
	record_source_close(source);
}

static struct error *find_mapping(void *context, const struct perf_record *records, size_t n)
{
	static const char name[] = "bin/sleep";
	bool *is_found = context;

	for (size_t i = 0; i < n; i++) {
		if (records[i].type == PERF_RECORD_MMAP2 && !records[i].is_synthetic &&
		    memmem(records[i].bytes, records[i].size, name, sizeof(name)))
			*is_found = true;
	}
	return NULL;
}

/* The wake-up by its exec is enough; nothing else happens while it sleeps. */
static void mappings_of_a_new_program_come_at_once(void **state)
{
	(void)state;
	char *command[] = {"/bin/sleep", "2", NULL};
	struct collector_live_options options = {
		.scope = COLLECTOR_COMMAND, .command = command, .watch_execs = true};
	struct record_source *source;
	bool is_found = false;

	ok(collector_open_live(&options, &source));
	ok(collector_live_start(source));
	for (int i = 0; !collector_live_state(source)->n_execs_seen && i < 1000; i++) {
		usleep(1000);
		ok(record_source_drain(source, find_mapping, &is_found));
	}
	assert_true(is_found);
	/* What is counted stays known at the end. */
	ok(collector_live_stop(source));
	ok(record_source_drain(source, find_mapping, &is_found));
	assert_int_equal(collector_live_state(source)->n_execs_seen, 1);
	assert_int_equal(collector_live_state(source)->n_execs_argv_record +
				 collector_live_state(source)->n_execs_argv_proc,
			 1);
	record_source_close(source);
}

static void cgroup_is_sampled_without_its_neighbours(void **state)
{
	(void)state;
	char *root CLEANUP(cleanup_mem) = cgroup_path_find_root();
	char *name CLEANUP(cleanup_mem) = mem_format("/perfpipe_test_%d", getpid());
	char *path CLEANUP(cleanup_mem) = mem_format("%s%s", root ? root : "", name);
	char *procs CLEANUP(cleanup_mem) = mem_format("%s/cgroup.procs", path);
	struct collector_live_options options = {
		.scope = COLLECTOR_CGROUP, .cgroup = name, .frequency_hz = 499};
	struct record_source *source;
	struct taken taken CLEANUP(taken_fini);

	taken_init(&taken);
	if (!root || mkdir(path, 0755) != 0)
		skip();
	struct busy_process *inside = start_busy(1);
	struct busy_process *beside = start_busy(1);
	FILE *file = fopen(procs, "w");
	assert_non_null(file);
	fprintf(file, "%d", inside->pid);
	assert_int_equal(fclose(file), 0);
	ok(collector_open_live(&options, &source));
	ok(collector_live_start(source));
	drain_for(source, &taken, 500 * (uint64_t)MS_NS);
	stop_and_drain(source, &taken);
	assert_false(collector_live_is_target_gone(source));
	const uint64_t *n = hash_map_get(&taken.samples_of_tid, (uint32_t)inside->tids[0]);
	assert_non_null(n);
	assert_true(*n > 20);
	assert_null(hash_map_get(&taken.samples_of_tid, (uint32_t)beside->tids[0]));
	assert_true(taken.n_of_type[PERF_RECORD_CGROUP] > 0);
	end_busy(inside);
	end_busy(beside);
	for (int i = 0; i < 100 && rmdir(path) != 0; i++)
		usleep(10000);
	assert_true(collector_live_is_target_gone(source));
	record_source_close(source);
}

/* CPUs come and go as they do at hotplug; the host's own stay untouched. */
static void cpus_that_come_and_go_are_followed(void **state)
{
	(void)state;
	struct busy_process *busy = start_busy(3);
	struct collector_live_options options = {
		.scope = COLLECTOR_SYSTEM, .events = "cpu-clock", .frequency_hz = 499};
	struct record_source *source;
	struct taken first CLEANUP(taken_fini), second CLEANUP(taken_fini);
	struct cpu_set all CLEANUP(cpu_set_fini) = {0}, less CLEANUP(cpu_set_fini) = {0};

	taken_init(&first);
	taken_init(&second);
	ok(cpu_set_read_online(&all));
	ok(cpu_set_parse("0", &less));
	ok(collector_open_live(&options, &source));
	struct session *session = (struct session *)source;
	ok(collector_live_start(source));
	reorder_set_sink(&session->reorder, take, &first);
	ok(session_set_cpus(session, &less));
	session->cpus_checked_ns = UINT64_MAX >> 1; /* no look at the host in between */
	for (int i = 0; i < 5; i++) {
		usleep(50000);
		session->cpus_checked_ns = now_ns();
		ok(record_source_drain(source, take, &first));
	}
	assert_int_equal(collector_live_state(source)->n_rings, 1);
	session->cpus_checked_ns = 0;
	drain_for(source, &second, 300 * (uint64_t)MS_NS);
	assert_int_equal(collector_live_state(source)->n_rings, all.n);
	assert_int_equal(__builtin_popcountll(second.cpu_mask), all.n < 64 ? all.n : 64);
	stop_and_drain(source, &second);
	end_busy(busy);
	record_source_close(source);
}

/* --- perf.data --- */

static struct error *write_and_take(void *context, const struct perf_record *records, size_t n)
{
	return perf_file_writer_add(context, records, n);
}

static void perf_opens_what_is_written(void **state)
{
	(void)state;
	char path[] = "/tmp/perfpipe_session_XXXXXX";
	char command[256], line[1024];
	char *argv[] = {"/bin/sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done", NULL};
	struct collector_live_options options = {.scope = COLLECTOR_COMMAND,
						 .command = argv,
						 .events = "cpu-clock,page-faults",
						 .frequency_hz = 999};
	struct record_source *source;
	struct perf_file_writer *writer;
	int fd CLEANUP(cleanup_fd) = mkstemp(path);
	bool has_comm = false, has_event = false, has_clock = false;
	unsigned n_scripts = 0;

	if (system("perf --version >/dev/null 2>&1") != 0) {
		unlink(path);
		skip();
	}
	ok(collector_open_live(&options, &source));
	ok(perf_file_writer_open(fd, record_source_info(source), &writer));
	ok(collector_live_start(source));
	while (!collector_live_is_target_gone(source)) {
		usleep(20000);
		ok(record_source_drain(source, write_and_take, writer));
	}
	waitpid(collector_live_child(source), NULL, 0);
	ok(collector_live_stop(source));
	ok(record_source_drain(source, write_and_take, writer));
	ok(perf_file_writer_finish(writer));
	perf_file_writer_close(writer);
	record_source_close(source);

	snprintf(command, sizeof(command), "perf report --stdio --header -i %s 2>&1", path);
	FILE *report = popen(command, "r");
	while (fgets(line, sizeof(line), report)) {
		has_comm |= strstr(line, "%") && strstr(line, "sh ");
		has_event |= strstr(line, "of event 'cpu-clock'") != NULL;
		has_clock |= strstr(line, "clockid: monotonic") != NULL;
	}
	assert_int_equal(pclose(report), 0);
	snprintf(command, sizeof(command), "perf script -F comm,tid,time,event,ip -i %s 2>&1",
		 path);
	FILE *script = popen(command, "r");
	while (fgets(line, sizeof(line), script))
		n_scripts += strstr(line, "cpu-clock:") != NULL;
	assert_int_equal(pclose(script), 0);
	unlink(path);
	assert_true(has_comm);
	assert_true(has_event);
	assert_true(has_clock);
	assert_true(n_scripts > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach_gives_old_and_new_threads_their_weight),
		cmocka_unit_test(unknown_pid_is_e102),
		cmocka_unit_test(command_is_sampled_from_its_exec_on),
		cmocka_unit_test(command_that_cannot_run_is_e111),
		cmocka_unit_test(command_never_started_is_reaped),
		cmocka_unit_test(system_scope_tells_what_runs_already),
		cmocka_unit_test(excluded_self_gives_no_samples),
		cmocka_unit_test(lost_records_are_told_to_the_last),
		cmocka_unit_test(without_rights_the_own_command_is_sampled_user_only),
		cmocka_unit_test(refused_ring_memory_is_halved_and_said),
		cmocka_unit_test(no_ring_memory_at_all_is_e106),
		cmocka_unit_test(soft_descriptor_limit_is_raised),
		cmocka_unit_test(hard_descriptor_limit_is_e107),
		cmocka_unit_test(missing_cycles_fall_back_to_cpu_clock),
		cmocka_unit_test(unsupported_event_is_e105),
		cmocka_unit_test(missing_cgroup_is_e104),
		cmocka_unit_test(cgroup_without_a_name_is_refused),
		cmocka_unit_test(remedy_of_a_frequency_is_the_one_asked_for),
		cmocka_unit_test(mappings_of_a_new_program_come_at_once),
		cmocka_unit_test(cgroup_is_sampled_without_its_neighbours),
		cmocka_unit_test(cpus_that_come_and_go_are_followed),
		cmocka_unit_test(perf_opens_what_is_written),
	};
	struct collector_live_options system_wide = {.scope = COLLECTOR_SYSTEM,
						     .events = "cpu-clock"};
	struct record_source *source;
	struct error *err = collector_open_live(&system_wide, &source);

	if (err) {
		printf("skipped: %s\n", error_text(err));
		error_free(err);
		return 77;
	}
	record_source_close(source);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
