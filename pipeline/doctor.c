/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file.h"
#include "base/perf_abi.h"
#include "symcache/symcache.h"

enum {
	FILE_MAX_BYTES = 4096,
	KALLSYMS_LINE_BYTES = 256,
	KALLSYMS_LINES = 2048,
	NEEDED_KERNEL_MAJOR = 5,
	NEEDED_KERNEL_MINOR = 8,
	DEFAULT_FREQUENCY_HZ = 99,
	DESCRIPTORS_PER_CPU = 4,
	DESCRIPTORS_BESIDE = 64,
	MLOCK_ENOUGH_KIB = 512,
};

#define SET_CAPABILITIES(list) "sudo setcap " list "+ep \"$(command -v perfpipe)\""
#define FIX_CAPABILITIES       SET_CAPABILITIES("cap_perfmon,cap_syslog")
/* setcap replaces what was set before, so the lists contain one another. */
#define FIX_TRACEFS SET_CAPABILITIES("cap_perfmon,cap_syslog,cap_dac_read_search")
#define FIX_MISSING                                                                                \
	SET_CAPABILITIES("cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search,"              \
			 "cap_ipc_lock,cap_checkpoint_restore")
#define FIX_PROC "mount -t proc proc /proc"

static void state(struct doctor_result *out, const char *name, enum doctor_status status,
		  const char *fix, const char *fmt, ...) PRINTF_LIKE(5, 6);

static void state(struct doctor_result *out, const char *name, enum doctor_status status,
		  const char *fix, const char *fmt, ...)
{
	if (out->n == DOCTOR_CHECKS_MAX)
		return;
	struct doctor_check *check = &out->checks[out->n++];
	check->name = name;
	check->status = status;
	check->fix = status == DOCTOR_OK ? NULL : fix;
	va_list args;
	va_start(args, fmt);
	vsnprintf(check->text, sizeof(check->text), fmt, args);
	va_end(args);
	if (status > out->worst)
		out->worst = status;
}

/* --- looking --- */

static bool read_number(const char *path, long *out)
{
	struct buf buf;
	buf_init(&buf, FILE_MAX_BYTES);
	struct error *err = file_read_all(path, &buf);
	bool is_read = !err && buf.size > 0;
	if (is_read)
		*out = strtol(buf_string(&buf), NULL, 10);
	error_free(err);
	buf_fini(&buf);
	return is_read;
}

static bool has_capability(cap_value_t capability)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t value = CAP_CLEAR;
	if (caps) {
		cap_get_flag(caps, capability, CAP_EFFECTIVE, &value);
		cap_free(caps);
	}
	return value == CAP_SET;
}

/* 0, or the errno of perf_event_open. */
static int try_event(uint32_t type, uint64_t config, pid_t pid, int cpu, bool has_kernel)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = PERF_ATTR_SIZE_VER0,
		.config = config,
		.sample_period = DEFAULT_FREQUENCY_HZ,
		.sample_type = PERF_SAMPLE_IP,
	};
	perf_attr_set(&attr, PERF_ATTR_DISABLED, 1);
	perf_attr_set(&attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&attr, PERF_ATTR_EXCLUDE_HV, 1);
	perf_attr_set(&attr, PERF_ATTR_EXCLUDE_KERNEL, !has_kernel);
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Any CPU that is online: CPU 0 nearly always is. */
static int try_clock(pid_t pid, int cpu, bool has_kernel)
{
	return try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, pid, cpu, has_kernel);
}

/* --- checks --- */

static void state_unread(struct doctor_result *out, const char *name, const char *setting)
{
	state(out, name, DOCTOR_WARN, FIX_PROC, "%s cannot be read: %s", setting,
	      access("/proc/self", F_OK) < 0 ? "there is no /proc" : "/proc/sys/kernel is hidden");
}

static void check_kernel(struct doctor_result *out)
{
	struct utsname names;
	if (uname(&names) < 0)
		return;
	char *end;
	long major = strtol(names.release, &end, 10);
	long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	bool is_new = major > NEEDED_KERNEL_MAJOR ||
		      (major == NEEDED_KERNEL_MAJOR && minor >= NEEDED_KERNEL_MINOR);
	state(out, "kernel", is_new ? DOCTOR_OK : DOCTOR_WARN, "upgrade to Linux 5.8 or newer",
	      "Linux %s on %s%s", names.release, names.machine,
	      is_new ? "" : ": older than 5.8, CAP_PERFMON and parts of the side band are missing");
}

static const char *gate_text(int errno_value)
{
	switch (errno_value) {
	case EACCES:
	case EPERM:
		return "perf_event_paranoid, a missing capability, or a container's seccomp rules";
	case ENOSYS:
		return "this kernel has no perf events, or seccomp hides them";
	case EMFILE:
		return "no file descriptors left";
	default:
		return strerror(errno_value);
	}
}

static void check_sampling(struct doctor_result *out)
{
	int refused = try_clock(-1, 0, true);
	if (!refused) {
		state(out, "sampling", DOCTOR_OK, NULL,
		      "the whole host can be sampled, kernel included");
		return;
	}
	if (!try_clock(0, -1, true)) {
		state(out, "sampling", DOCTOR_WARN, FIX_CAPABILITIES,
		      "own processes only, kernel included; the whole host: %s",
		      gate_text(refused));
	} else if (!try_clock(0, -1, false)) {
		state(out, "sampling", DOCTOR_WARN, FIX_CAPABILITIES,
		      "own processes and user frames only; the whole host: %s", gate_text(refused));
	} else {
		state(out, "sampling", DOCTOR_FAIL, FIX_CAPABILITIES, "nothing can be sampled: %s",
		      gate_text(refused));
	}
}

static void check_paranoid(struct doctor_result *out)
{
	long level;
	bool is_privileged = has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);
	if (!read_number("/proc/sys/kernel/perf_event_paranoid", &level)) {
		state_unread(out, "paranoid", "kernel.perf_event_paranoid");
		return;
	}
	bool is_ok = is_privileged || level <= -1;
	state(out, "paranoid", is_ok ? DOCTOR_OK : DOCTOR_WARN, FIX_CAPABILITIES,
	      "kernel.perf_event_paranoid is %ld%s", level,
	      is_privileged ? ", which CAP_PERFMON overrides" : "");
}

static void check_capabilities(struct doctor_result *out)
{
	static const struct {
		cap_value_t value;
		const char *name;
	} wanted[] = {
		{CAP_PERFMON, "perfmon"},	{CAP_SYSLOG, "syslog"},
		{CAP_SYS_PTRACE, "sys_ptrace"}, {CAP_DAC_READ_SEARCH, "dac_read_search"},
		{CAP_IPC_LOCK, "ipc_lock"},	{CAP_CHECKPOINT_RESTORE, "checkpoint_restore"},
	};
	char missing[DOCTOR_TEXT_BYTES / 2] = "";
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		size_t used = strlen(missing);
		if (!has_capability(wanted[i].value))
			snprintf(missing + used, sizeof(missing) - used, " %s", wanted[i].name);
	}
	if (missing[0])
		state(out, "capabilities", DOCTOR_WARN, FIX_MISSING,
		      "missing:%s (perfmon samples others, syslog names the kernel)", missing);
	else
		state(out, "capabilities", DOCTOR_OK, NULL, "all that perfpipe can use");
}

/*
 * Addresses in kallsyms read as 0 for those who may not see them; the first ones can be 0 for good
 * (per-CPU data).
 */
static bool has_kernel_addresses(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[KALLSYMS_LINE_BYTES];
	bool has_address = false;
	for (int i = 0; file && i < KALLSYMS_LINES && !has_address; i++) {
		if (!fgets(line, sizeof(line), file))
			break;
		has_address = strspn(line, "0") < strcspn(line, " ");
	}
	if (file)
		fclose(file);
	return has_address;
}

static void check_kernel_names(struct doctor_result *out)
{
	long level;
	if (!read_number("/proc/sys/kernel/kptr_restrict", &level)) {
		state_unread(out, "kernel_names", "kernel.kptr_restrict");
		return;
	}
	if (has_kernel_addresses())
		state(out, "kernel_names", DOCTOR_OK, NULL,
		      "kernel.kptr_restrict is %ld: kernel frames have names", level);
	else if (level > 1)
		state(out, "kernel_names", DOCTOR_WARN,
		      "sudo sysctl kernel.kptr_restrict=1; " FIX_CAPABILITIES,
		      "kernel.kptr_restrict is %ld: kernel names are hidden from everybody", level);
	else
		state(out, "kernel_names", DOCTOR_WARN, FIX_CAPABILITIES,
		      "kernel names are hidden: kernel.kptr_restrict is %ld, which asks for "
		      "CAP_SYSLOG%s",
		      level, level ? "" : " where perf_event_paranoid is above 1");
}

static void check_cycles(struct doctor_result *out)
{
	int refused = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1, false);
	if (!refused)
		state(out, "cycles", DOCTOR_OK, NULL, "the hardware counts cycles");
	else
		state(out, "cycles", DOCTOR_WARN,
		      "none needed; in a virtual machine, pass the PMU through",
		      "no hardware cycles (%s): cpu-clock samples instead", strerror(refused));
}

static void check_mlock(struct doctor_result *out)
{
	long kib = 0;
	struct rlimit limit = {0};
	if (!read_number("/proc/sys/kernel/perf_event_mlock_kb", &kib)) {
		state_unread(out, "mlock", "kernel.perf_event_mlock_kb");
		return;
	}
	getrlimit(RLIMIT_MEMLOCK, &limit);
	bool is_unlimited = has_capability(CAP_IPC_LOCK) || limit.rlim_cur == RLIM_INFINITY;
	if (is_unlimited)
		state(out, "mlock", DOCTOR_OK, NULL,
		      "rings of any size (perf_event_mlock_kb %ld does not bind)", kib);
	else
		state(out, "mlock", kib >= MLOCK_ENOUGH_KIB ? DOCTOR_OK : DOCTOR_WARN,
		      "sudo sysctl kernel.perf_event_mlock_kb=2048",
		      "rings share %ld KiB per CPU and user, and %llu KiB of RLIMIT_MEMLOCK", kib,
		      (unsigned long long)limit.rlim_cur >> 10);
}

static void check_cgroup(struct doctor_result *out)
{
	bool is_v2 = access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0;
	bool has_v2_beside = access("/sys/fs/cgroup/unified/cgroup.procs", R_OK) == 0;
	bool has_v1 = access("/sys/fs/cgroup/perf_event", X_OK) == 0;
	if (is_v2)
		state(out, "cgroup", DOCTOR_OK, NULL, "version 2 on /sys/fs/cgroup");
	else if (has_v2_beside || has_v1)
		state(out, "cgroup", DOCTOR_WARN, "boot with systemd.unified_cgroup_hierarchy=1",
		      "version 1%s: samples carry groups of %s only",
		      has_v2_beside ? " with version 2 beside it" : "",
		      has_v1 ? "the perf_event hierarchy" : "version 2");
	else
		state(out, "cgroup", DOCTOR_WARN, "mount -t cgroup2 none /sys/fs/cgroup",
		      "no cgroup hierarchy is mounted: -G and the cgroup label do not work");
}

static void check_tracefs(struct doctor_result *out)
{
	static const char *const paths[] = {
		"/sys/kernel/tracing/events/sched/sched_process_exec/id",
		"/sys/kernel/debug/tracing/events/sched/sched_process_exec/id",
	};
	long id = 0;
	for (size_t i = 0; i < ARRAY_LEN(paths) && !id; i++) {
		if (read_number(paths[i], &id) &&
		    try_event(PERF_TYPE_TRACEPOINT, (uint64_t)id, -1, 0, true)) {
			state(out, "tracefs", DOCTOR_WARN, FIX_CAPABILITIES,
			      "sched_process_exec may not be used: command lines of very short "
			      "programs are missed");
			return;
		}
	}
	if (id)
		state(out, "tracefs", DOCTOR_OK, NULL,
		      "sched_process_exec can be watched: command lines of short programs too");
	else if (access("/sys/kernel/tracing/events", F_OK) < 0 && errno == ENOENT)
		state(out, "tracefs", DOCTOR_WARN,
		      "sudo mount -t tracefs nodev /sys/kernel/tracing; " FIX_TRACEFS,
		      "tracefs is not mounted: command lines of very short programs are missed");
	else
		state(out, "tracefs", DOCTOR_WARN, FIX_TRACEFS,
		      "tracefs is readable for root alone: command lines of very short programs "
		      "are missed");
}

static void check_rate(struct doctor_result *out)
{
	long hz = 0;
	long percent = 0;
	if (!read_number("/proc/sys/kernel/perf_event_max_sample_rate", &hz)) {
		state_unread(out, "max_rate", "kernel.perf_event_max_sample_rate");
		return;
	}
	read_number("/proc/sys/kernel/perf_cpu_time_max_percent", &percent);
	state(out, "max_rate", hz >= DEFAULT_FREQUENCY_HZ ? DOCTOR_OK : DOCTOR_WARN,
	      "sudo sysctl kernel.perf_event_max_sample_rate=100000",
	      "at most %ld samples per second and CPU; the kernel lowers it above %ld %% of a CPU",
	      hz, percent);
}

static void check_descriptors(struct doctor_result *out)
{
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned long long needed =
		(unsigned long long)(n_cpus > 0 ? n_cpus : 1) * DESCRIPTORS_PER_CPU +
		DESCRIPTORS_BESIDE;
	bool is_enough = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed;
	state(out, "open_files", is_enough ? DOCTOR_OK : DOCTOR_WARN, "ulimit -n 65536",
	      "limit %llu (hard %llu), the whole host takes about %llu",
	      (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max, needed);
}

static void check_debug_files(struct doctor_result *out)
{
	DIR *dir = opendir("/usr/lib/debug/.build-id");
	state(out, "debug_files", dir ? DOCTOR_OK : DOCTOR_WARN,
	      "apt-get install libc6-dbg, and the -dbgsym packages of what is profiled",
	      "/usr/lib/debug %s",
	      dir ? "has debug files"
		  : "has no debug files: stripped binaries show as "
		    "libfoo.so+0x1231");
	if (dir)
		closedir(dir);
}

/* Only when somebody set it: others have no use for it. */
static void check_debuginfod(struct doctor_result *out)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	if (!urls || urls[strspn(urls, " \t")] == 0)
		return;
	struct error *err = symcache_check_urls(urls);
	state(out, "debuginfod", err ? DOCTOR_WARN : DOCTOR_OK,
	      "export DEBUGINFOD_URLS=https://debuginfod.debian.net", "DEBUGINFOD_URLS %s%s",
	      err ? "cannot be used: " : "is set; it is used with --debuginfod only",
	      err ? error_text(err) : "");
	error_free(err);
}

void doctor_examine(struct doctor_result *out)
{
	*out = (struct doctor_result){0};
	check_kernel(out);
	check_sampling(out);
	check_paranoid(out);
	check_capabilities(out);
	check_kernel_names(out);
	check_cycles(out);
	check_mlock(out);
	check_cgroup(out);
	check_tracefs(out);
	check_rate(out);
	check_descriptors(out);
	check_debug_files(out);
	check_debuginfod(out);
}

const char *doctor_status_name(enum doctor_status status)
{
	static const char *const names[] = {"ok", "warn", "fail"};
	return names[status];
}
