/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder process may do, and what becomes of builds that go wrong. */
#include "symcache/builder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "symcache/builder_wire.h"
#include "symcache/confinement.h"
#include "symcache/symbol_file.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

struct outcome {
	int n_done;
	int code; /* 0 = built */
	char text[256];
};

struct fixture {
	struct builder *builder;
	struct outcome outcome;
	int binary_fd, out_fd;
};

static void done(void *context, struct error *err)
{
	struct outcome *outcome = context;
	outcome->n_done++;
	outcome->code = err ? (int)error_get_code(err) : 0;
	snprintf(outcome->text, sizeof(outcome->text), "%s", err ? error_text(err) : "");
	error_free(err);
}

static void fill_binary(int fd)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(&writer, 0x1000, 0x100);
	elf_writer_symbol(&writer, false, "hot", 0x1000, 8, STB_GLOBAL, STT_FUNC, text);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	assert_int_equal(write(fd, bytes, n), n);
	elf_writer_fini(&writer);
}

static void begin(struct fixture *f, const struct builder_config *config)
{
	*f = (struct fixture){.builder = builder_new(config)};
	f->binary_fd = memfd_create("binary", MFD_CLOEXEC);
	f->out_fd = memfd_create("out", MFD_CLOEXEC);
	assert_true(f->binary_fd >= 0 && f->out_fd >= 0);
	fill_binary(f->binary_fd);
}

static void end(struct fixture *f)
{
	builder_free(f->builder);
	close(f->binary_fd);
	close(f->out_fd);
}

static void start(struct fixture *f)
{
	const struct builder_order order = {
		.id = build_id_make("0123", 4),
		.binary_fd = f->binary_fd,
		.debug_fd = -1,
		.out_fd = f->out_fd,
		.done = done,
		.context = &f->outcome,
	};
	builder_start(f->builder, &order);
}

static void assert_fails(const struct builder_config *config, enum error_code code,
			 const char *text)
{
	struct fixture f;
	begin(&f, config);
	start(&f);
	builder_wait(f.builder);
	assert_int_equal(f.outcome.n_done, 1);
	if (!strstr(f.outcome.text, text))
		fail_msg("\"%s\" instead of \"%s\"", f.outcome.text, text);
	assert_int_equal(f.outcome.code, code);
	/* The next build is not touched by it. */
	start(&f);
	builder_wait(f.builder);
	assert_int_equal(f.outcome.n_done, 2);
	end(&f);
}

static void builder_makes_a_symbol_file(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct builder_config){0});
	start(&f);
	builder_wait(f.builder);
	assert_string_equal(f.outcome.text, "");
	assert_int_equal(f.outcome.n_done, 1);
	struct symbol_file *file;
	assert_null(symbol_file_open_fd(f.out_fd, SYMCACHE_DEMANGLE_NORMAL, &file));
	struct symbol_result result;
	assert_true(symbol_file_lookup(file, 0x1004, &result));
	assert_string_equal(result.frames[0].name, "hot");
	assert_int_equal(symbol_file_get_info(file).build_id.size, 4);
	symbol_file_close(file);
	end(&f);
}

static struct error *crash(const struct builder_job *job)
{
	(void)job;
	/* As an instrumented program would not handle it. */
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return NULL;
}

static void crash_costs_one_build_and_is_told(void **state)
{
	(void)state;
	assert_fails(&(struct builder_config){.work = crash}, ERROR_BAD_DATA, "crashed");
}

static struct error *loop(const struct builder_job *job)
{
	for (volatile int i = job->binary_fd; i >= 0;)
		;
	return NULL;
}

static void build_without_end_is_ended_at_its_deadline(void **state)
{
	(void)state;
	assert_fails(&(struct builder_config){.work = loop, .deadline_s = 1}, ERROR_LIMIT,
		     "not done after 1 s");
}

/* What code that took over a worker can do: it never reads an answer, nor does it end. */
static struct error *flood(const struct builder_job *job)
{
	static struct builder_worker_message wish = {.kind = BUILDER_MESSAGE_WISH,
						     .code = BUILDER_WISH_DWO};
	int socket = *(const int *)job->find_context;
	signal(SIGALRM, SIG_IGN);
	while (builder_wire_send(socket, &wish, sizeof(wish), NULL, 0, true))
		;
	for (volatile bool is_endless = true; is_endless;)
		;
	return NULL;
}

static void worker_that_reads_no_answers_is_ended(void **state)
{
	(void)state;
	time_t began = time(NULL);
	assert_fails(&(struct builder_config){.work = flood, .deadline_s = 60}, ERROR_BAD_DATA,
		     "does not read its answers");
	assert_true(time(NULL) - began < 30);
}

static struct error *ignore_limits(const struct builder_job *job)
{
	(void)job;
	sigset_t all;
	sigfillset(&all);
	bool is_refused = signal(SIGALRM, SIG_IGN) == SIG_ERR &&
			  signal(SIGXCPU, SIG_IGN) == SIG_ERR &&
			  sigprocmask(SIG_BLOCK, &all, NULL) < 0;
	for (volatile bool is_endless = is_refused; is_endless;)
		;
	return error_new(ERROR_BAD_DATA, "signals may be changed");
}

static void worker_may_not_ignore_its_limits(void **state)
{
	(void)state;
	if (CONFINEMENT_IS_INSTRUMENTED)
		skip();
	assert_fails(&(struct builder_config){.work = ignore_limits, .deadline_s = 1}, ERROR_LIMIT,
		     "not done after 1 s");
}

static struct error *be_killed(const struct builder_job *job)
{
	(void)job;
	raise(SIGKILL);
	return NULL;
}

/* As the OOM killer does, or a person: that says nothing of the file. */
static void killed_worker_is_no_verdict(void **state)
{
	(void)state;
	assert_fails(&(struct builder_config){.work = be_killed}, ERROR_UNAVAILABLE, "killed");
}

static struct error *allocate(const struct builder_job *job)
{
	for (size_t n = 1; job; n++)
		memset(mem_alloc(1 << 20), (int)n, 1 << 20);
	return NULL;
}

static void memory_beyond_the_limit_ends_the_build(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	print_message("instrumented memory is not limited\n");
	skip();
#endif
	assert_fails(&(struct builder_config){.work = allocate, .memory_bytes = 64 << 20},
		     ERROR_LIMIT, "out of memory");
}

static struct error *open_file(const struct builder_job *job)
{
	(void)job;
	int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? error_errno(errno, "open") : NULL;
}

static struct error *make_socket(const struct builder_job *job)
{
	(void)job;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	return fd < 0 ? error_errno(errno, "socket") : NULL;
}

static struct error *signal_parent(const struct builder_job *job)
{
	(void)job;
	return kill(getppid(), SIGKILL) < 0 ? error_errno(errno, "kill") : NULL;
}

static struct error *map_code(const struct builder_job *job)
{
	(void)job;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	return p == MAP_FAILED ? error_errno(errno, "mmap") : NULL;
}

static struct error *start_process(const struct builder_job *job)
{
	(void)job;
	return fork() < 0 ? error_errno(errno, "fork") : NULL;
}

static void worker_opens_starts_signals_and_executes_nothing(void **state)
{
	(void)state;
	static const builder_work_fn forbidden[] = {open_file, make_socket, signal_parent, map_code,
						    start_process};
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_fails(&(struct builder_config){.work = forbidden[i]}, ERROR_BAD_DATA,
			     "forbidden system call");
}

static struct error *fail_in_color(const struct builder_job *job)
{
	(void)job;
	return error_new(ERROR_BAD_DATA, "\x1b[31mred\nand more");
}

static void what_a_worker_says_is_made_printable(void **state)
{
	(void)state;
	assert_fails(&(struct builder_config){.work = fail_in_color}, ERROR_BAD_DATA,
		     "?[31mred?and more");
}

static long long status_value(pid_t pid, const char *key, int base)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	long long value = -1;
	size_t n = strlen(key);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, n) == 0 && line[n] == ':')
			value = strtoll(line + n + 1, NULL, base);
	}
	fclose(file);
	return value;
}

static long long file_value(pid_t pid, const char *name)
{
	char path[64], line[64] = "";
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	FILE *file = fopen(path, "r");
	if (!file)
		return -1;
	bool is_read = fgets(line, sizeof(line), file);
	fclose(file);
	return is_read ? strtoll(line, NULL, 10) : -1;
}

static void assert_confined(pid_t pid)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb"};
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		assert_int_equal(status_value(pid, sets[i], 16), 0);
	assert_int_equal(status_value(pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_value(pid, "Seccomp", 10), 2);
	assert_int_equal(file_value(pid, "oom_score_adj"), 1000);
	if (geteuid() == 0) {
		assert_int_equal(status_value(pid, "CapBnd", 16), 0);
		assert_int_equal(status_value(pid, "Uid", 10), 65534);
		assert_int_equal(status_value(pid, "Gid", 10), 65534);
	}
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The process fills its jail after the fork. */
static void await_seccomp(pid_t pid, int n_filters)
{
	for (int i = 0; i < 500 && status_value(pid, "Seccomp_filters", 10) < n_filters; i++)
		pause_ms(10);
	assert_int_equal(status_value(pid, "Seccomp_filters", 10), n_filters);
}

static pid_t await_child(pid_t pid)
{
	char name[64];
	snprintf(name, sizeof(name), "task/%d/children", (int)pid);
	for (int i = 0; i < 500; i++) {
		long long child = file_value(pid, name);
		if (child > 0)
			return (pid_t)child;
		pause_ms(10);
	}
	fail_msg("no worker of process %d", (int)pid);
	return 0;
}

static void process_and_worker_hold_no_rights(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct builder_config){.work = loop, .deadline_s = 2});
	pid_t pid = builder_get_pid(f.builder);
	int n_before = (int)status_value(getpid(), "Seccomp_filters", 10);
	await_seccomp(pid, n_before + 1);
	assert_confined(pid);
	start(&f);
	pid_t worker = await_child(pid);
	await_seccomp(worker, n_before + 2);
	assert_confined(worker);
	end(&f);
}

static void descriptors_of_the_agent_stay_with_it(void **state)
{
	(void)state;
	if (geteuid() != 0) {
		print_message("descriptors of the builder are root's to see\n");
		skip();
	}
	struct fixture f;
	begin(&f, &(struct builder_config){0});
	await_seccomp(builder_get_pid(f.builder),
		      (int)status_value(getpid(), "Seccomp_filters", 10) + 1);
	char path[64], target[256];
	int n_open = 0;
	for (int fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)builder_get_pid(f.builder), fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		n_open++;
		assert_true(strcmp(target, "/dev/null") == 0 || strncmp(target, "socket:", 7) == 0);
	}
	assert_int_equal(n_open, 4);
	end(&f);
}

static void killed_process_is_started_again(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct builder_config){.work = loop, .deadline_s = 30});
	start(&f);
	pid_t pid = builder_get_pid(f.builder);
	pid_t worker = await_child(pid);
	kill(pid, SIGKILL);
	builder_wait(f.builder);
	assert_int_equal(f.outcome.n_done, 1);
	assert_int_equal(f.outcome.code, ERROR_UNAVAILABLE);
	for (int i = 0; i < 500 && kill(worker, 0) == 0 && file_value(worker, "oom_score_adj") >= 0;
	     i++)
		pause_ms(10);
	assert_int_not_equal(file_value(worker, "oom_score_adj"), 1000);
	start(&f);
	assert_true(await_child(builder_get_pid(f.builder)) > 0);
	assert_int_not_equal(builder_get_pid(f.builder), pid);
	end(&f);
}

/* Copies a file that it asked for. */
static struct error *copy_beside(const struct builder_job *job)
{
	const struct builder_wish wish = {.kind = BUILDER_WISH_DWO, .folder = "/f", .name = "n"};
	int fd = job->find(job->find_context, &wish);
	const struct builder_wish missing = {
		.kind = BUILDER_WISH_PACKAGE, .folder = "", .name = "m"};
	if (fd < 0 || job->find(job->find_context, &missing) >= 0)
		return error_new(ERROR_BAD_DATA, "answers are mixed up");
	char bytes[16];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	return file_write(job->out_fd, bytes, n < 0 ? 0 : (size_t)n);
}

static int find_memory_file(void *context, const struct builder_wish *wish)
{
	(void)context;
	if (wish->kind != BUILDER_WISH_DWO || strcmp(wish->folder, "/f") != 0 ||
	    strcmp(wish->name, "n") != 0)
		return -1;
	int fd = memfd_create("beside", MFD_CLOEXEC);
	return write(fd, "beside", 6) == 6 ? fd : -1;
}

static void file_that_is_asked_for_comes_as_descriptor(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct builder_config){.work = copy_beside});
	const struct builder_order order = {
		.binary_fd = f.binary_fd,
		.debug_fd = -1,
		.out_fd = f.out_fd,
		.find = find_memory_file,
		.done = done,
		.context = &f.outcome,
	};
	builder_start(f.builder, &order);
	builder_wait(f.builder);
	assert_string_equal(f.outcome.text, "");
	char bytes[8] = "";
	assert_int_equal(pread(f.out_fd, bytes, 6, 0), 6);
	assert_string_equal(bytes, "beside");
	end(&f);
}

static void many_builds_share_few_places(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct builder_config){.max_builds = 2});
	for (int i = 0; i < 20; i++)
		start(&f);
	builder_wait(f.builder);
	assert_int_equal(f.outcome.n_done, 20);
	assert_int_equal(f.outcome.code, 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builder_makes_a_symbol_file),
		cmocka_unit_test(crash_costs_one_build_and_is_told),
		cmocka_unit_test(build_without_end_is_ended_at_its_deadline),
		cmocka_unit_test(worker_that_reads_no_answers_is_ended),
		cmocka_unit_test(worker_may_not_ignore_its_limits),
		cmocka_unit_test(killed_worker_is_no_verdict),
		cmocka_unit_test(memory_beyond_the_limit_ends_the_build),
		cmocka_unit_test(worker_opens_starts_signals_and_executes_nothing),
		cmocka_unit_test(what_a_worker_says_is_made_printable),
		cmocka_unit_test(process_and_worker_hold_no_rights),
		cmocka_unit_test(descriptors_of_the_agent_stay_with_it),
		cmocka_unit_test(killed_process_is_started_again),
		cmocka_unit_test(file_that_is_asked_for_comes_as_descriptor),
		cmocka_unit_test(many_builds_share_few_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
