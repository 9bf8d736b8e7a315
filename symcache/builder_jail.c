/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/builder_jail.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "symcache/confinement.h"

enum { MAX_DESCRIPTORS = 64 };
#define MEMORY_MIN_BYTES ((uint64_t)512 << 20)
#define MEMORY_MAX_BYTES ((uint64_t)4 << 30)
/* Mapped files and room that is reserved for unpacking count as address space, not as memory. */
#define ADDRESS_SPACE_EXTRA_BYTES ((uint64_t)64 << 30)

uint64_t builder_jail_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes / 2
						    : MEMORY_MAX_BYTES;
	if (half < MEMORY_MIN_BYTES)
		return MEMORY_MIN_BYTES;
	return half < MEMORY_MAX_BYTES ? half : MEMORY_MAX_BYTES;
}

static struct error *allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
		if (result < 0)
			return error_errno(-result, "seccomp rule for call %d", calls[i]);
	}
	return NULL;
}

/* Memory, but none that can be executed. */
static struct error *allow_memory(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(brk),
				    SCMP_SYS(madvise)};
	const struct scmp_arg_cmp not_executable = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	struct error *err = allow(filter, calls, ARRAY_LEN(calls));
	if (!err &&
	    (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, not_executable) < 0 ||
	     seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, not_executable) < 0))
		err = error_new(ERROR_UNSUPPORTED, "seccomp rule for mmap");
	return err;
}

/* abort(3), for which memory that runs out is the usual reason. */
static struct error *allow_abort(scmp_filter_ctx filter)
{
	int result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				      SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
	return result < 0 ? error_errno(-result, "seccomp rule for tgkill") : NULL;
}

/*
 * Signals that end a worker at its limits stay as they are: none is caught, ignored or blocked.
 * abort(3) tries, and goes on when it may not.
 */
static struct error *keep_signals(scmp_filter_ctx filter)
{
	/* Their handlers say where a fault was. */
	static const int calls[] = {SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask)};
	if (CONFINEMENT_IS_INSTRUMENTED)
		return allow(filter, calls, ARRAY_LEN(calls));
	const struct scmp_arg_cmp unblocks = SCMP_A0(SCMP_CMP_EQ, SIG_UNBLOCK);
	const struct scmp_arg_cmp changes = SCMP_A0(SCMP_CMP_NE, SIG_UNBLOCK);
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	if (seccomp_rule_add(filter, refuse, SCMP_SYS(rt_sigaction), 0) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(rt_sigprocmask), 1, unblocks) < 0 ||
	    seccomp_rule_add(filter, refuse, SCMP_SYS(rt_sigprocmask), 1, changes) < 0)
		return error_new(ERROR_UNSUPPORTED, "seccomp rules for signals");
	return NULL;
}

/* What both may do. */
static const int shared_calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(lseek),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(ftruncate),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(restart_syscall),
	/* fstat(3) of glibc; other files' names tell nothing that matters here. */
	SCMP_SYS(newfstatat),
	/* Instrumented builds. */
	SCMP_SYS(sigaltstack),
	SCMP_SYS(sched_yield),
};

/* To fork workers, to confine them and to learn of their end. */
static const int process_calls[] = {
	SCMP_SYS(clone),	  SCMP_SYS(clone3),
	SCMP_SYS(fork),		  SCMP_SYS(wait4),
	SCMP_SYS(kill),		  SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(poll),
	SCMP_SYS(ppoll),	  SCMP_SYS(prctl),
	SCMP_SYS(seccomp),	  SCMP_SYS(setrlimit),
	SCMP_SYS(prlimit64),	  SCMP_SYS(alarm),
	SCMP_SYS(setitimer),	  SCMP_SYS(getppid),
	SCMP_SYS(getrlimit),	  SCMP_SYS(rseq),
	SCMP_SYS(fcntl),	  SCMP_SYS(set_robust_list),
};

static struct error *load_filter(bool is_worker)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return error_new(ERROR_UNSUPPORTED, "seccomp_init failed");
	struct error *err = allow(filter, shared_calls, ARRAY_LEN(shared_calls));
	if (!err)
		err = allow_memory(filter);
	if (!err && is_worker)
		err = allow_abort(filter);
	if (!err && is_worker)
		err = keep_signals(filter);
	if (!err && !is_worker) {
		static const int abort_call[] = {SCMP_SYS(tgkill)};
		err = allow(filter, process_calls, ARRAY_LEN(process_calls));
		if (!err)
			err = allow(filter, abort_call, 1);
	}
	if (!err) {
		int result = seccomp_load(filter);
		if (result < 0)
			err = error_errno(-result, "seccomp filter");
	}
	seccomp_release(filter);
	return err;
}

struct error *builder_jail_enter(void)
{
	struct error *err = confinement_drop_rights();
	if (!err)
		err = confinement_set_limit(RLIMIT_NOFILE, MAX_DESCRIPTORS);
	return err ? err : load_filter(false);
}

/* SIGXCPU first: at the hard limit it is SIGKILL, which others send too. */
static struct error *set_cpu_limit(uint32_t seconds)
{
	enum { MORE_S = 5 };
	struct rlimit limit;
	if (getrlimit(RLIMIT_CPU, &limit) < 0)
		return error_errno(errno, "getrlimit");
	if (limit.rlim_max > (rlim_t)seconds + MORE_S)
		limit.rlim_max = (rlim_t)seconds + MORE_S;
	limit.rlim_cur = seconds < limit.rlim_max ? seconds : limit.rlim_max;
	return setrlimit(RLIMIT_CPU, &limit) < 0 ? error_errno(errno, "setrlimit CPU") : NULL;
}

struct error *builder_jail_enter_worker(const struct builder_limits *limits)
{
	struct error *err = set_cpu_limit(limits->cpu_s);
	if (!err)
		err = confinement_set_limit(RLIMIT_FSIZE, limits->file_bytes);
	/* Shadow memory is address space too. */
	if (!err && limits->memory_bytes && !CONFINEMENT_IS_INSTRUMENTED) {
		err = confinement_set_limit(RLIMIT_DATA, limits->memory_bytes);
		if (!err)
			err = confinement_set_limit(RLIMIT_AS, limits->memory_bytes +
								       ADDRESS_SPACE_EXTRA_BYTES);
	}
	if (err)
		return err;
	alarm(limits->wall_s);
	return load_filter(true);
}
