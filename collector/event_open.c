/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/event_open.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "collector/namespaces.h"

enum { PROC_TEXT_MAX_BYTES = 64 << 10, NOT_A_FLAG = 255 };

/*
 * What a supported kernel (5.8) may not know, newest first: the kernel answers EINVAL to a bit
 * that it does not know, without saying which.
 */
static const struct {
	uint8_t flag;
	uint8_t read_format;
} features[] = {
	{NOT_A_FLAG, PERF_FORMAT_LOST}, /* 6.0 */
	{PERF_ATTR_TEXT_POKE, 0},	/* 5.9 */
	{PERF_ATTR_CGROUP, 0},		/* 5.7 */
	{PERF_ATTR_BPF_EVENT, 0},	/* 5.1 */
	{PERF_ATTR_KSYMBOL, 0},		/* 5.1 */
	{PERF_ATTR_NAMESPACES, 0},	/* 4.12; needs CAP_PERFMON */
};
enum { FEATURE_NAMESPACES = 5 };

static bool has_feature(const struct perf_event_attr *attr, size_t i)
{
	if (features[i].flag == NOT_A_FLAG)
		return attr->read_format & features[i].read_format;
	return perf_attr_has(attr, features[i].flag);
}

static void strip(struct perf_event_attr *attr, const struct event_opener *opener)
{
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		if (!(opener->refused & 1u << i))
			continue;
		if (features[i].flag == NOT_A_FLAG)
			attr->read_format &= ~(uint64_t)features[i].read_format;
		else
			perf_attr_set(attr, features[i].flag, 0);
	}
	if (opener->is_user_only) {
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_KERNEL, 1);
		perf_attr_set(attr, PERF_ATTR_EXCLUDE_HV, 1);
	}
}

/* Refuses the newest feature that attr still asks for; false when none is left. */
static bool refuse_newest(struct event_opener *opener, const struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		if (has_feature(attr, i)) {
			opener->refused |= 1u << i;
			return true;
		}
	}
	return false;
}

/* Asks for less after a refusal; false when there is nothing less to ask for. */
static bool yield_rights(struct event_opener *opener, const struct perf_event_attr *attr)
{
	if (has_feature(attr, FEATURE_NAMESPACES)) {
		opener->refused |= 1u << FEATURE_NAMESPACES;
		return true;
	}
	/* Kernel only and user only together would count nothing. */
	if (opener->is_user_only || perf_attr_has(attr, PERF_ATTR_EXCLUDE_USER) ||
	    perf_attr_has(attr, PERF_ATTR_EXCLUDE_KERNEL))
		return false;
	opener->is_user_only = true;
	return true;
}

int event_open(struct event_opener *opener, struct perf_event_attr *attr, pid_t pid, int cpu,
	       unsigned flags)
{
	struct event_opener before = *opener;

	if (opener->is_user_only && perf_attr_has(attr, PERF_ATTR_EXCLUDE_USER))
		return -EACCES;
	for (;;) {
		struct perf_event_attr tried = *attr;
		strip(&tried, opener);
		long fd = syscall(SYS_perf_event_open, &tried, pid, cpu, -1,
				  flags | PERF_FLAG_FD_CLOEXEC);
		if (fd >= 0) {
			*attr = tried;
			return (int)fd;
		}
		int errno_value = errno;
		/* Only a dummy's EINVAL is certainly about bits and not about the event. */
		bool is_old_kernel = errno_value == EINVAL && tried.type == PERF_TYPE_SOFTWARE &&
				     tried.config == PERF_COUNT_SW_DUMMY;
		bool is_denied = errno_value == EACCES || errno_value == EPERM;
		if ((is_old_kernel && refuse_newest(opener, &tried)) ||
		    (is_denied && yield_rights(opener, &tried)))
			continue;
		*opener = before;
		return -errno_value;
	}
}

bool event_open_has_field(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = offsetof(struct perf_event_attr, config3),
		.sample_type = sample_type,
	};
	/* The least that everybody may open. */
	perf_attr_set(&attr, PERF_ATTR_EXCLUDE_KERNEL, 1);
	perf_attr_set(&attr, PERF_ATTR_EXCLUDE_HV, 1);
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	close((int)fd);
	return true;
}

long event_open_sysctl(const char *name, long fallback)
{
	struct buf text CLEANUP(buf_fini);
	struct buf path CLEANUP(buf_fini);

	buf_init(&text, PROC_TEXT_MAX_BYTES);
	buf_init(&path, 256);
	struct error *err = buf_printf(&path, "/proc/sys/kernel/%s", name);
	if (!err)
		err = file_read_all(buf_string(&path), &text);
	if (err) {
		error_free(err);
		return fallback;
	}
	const char *digits = buf_string(&text);
	char *end;
	long value = strtol(digits, &end, 10);
	return end == digits ? fallback : value;
}

static bool has_perfmon(void)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t perfmon = CAP_CLEAR, admin = CAP_CLEAR;

	if (caps) {
		cap_get_flag(caps, CAP_PERFMON, CAP_EFFECTIVE, &perfmon);
		cap_get_flag(caps, CAP_SYS_ADMIN, CAP_EFFECTIVE, &admin);
		cap_free(caps);
	}
	return perfmon == CAP_SET || admin == CAP_SET;
}

static bool is_seccomp_filtered(void)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, PROC_TEXT_MAX_BYTES);
	struct error *err = file_read_all("/proc/self/status", &text);
	error_free(err);
	return !err && strstr(buf_string(&text), "\nSeccomp:\t2");
}

const char *event_open_describe_perfmon(void)
{
	return namespaces_is_user_nested()
		       ? "the capabilities of a user namespace do not count for the host"
		       : "CAP_PERFMON is missing";
}

struct error *event_open_explain(int errno_value, const char *what)
{
	long paranoid = event_open_sysctl("perf_event_paranoid", -2);
	struct error *err;

	if (errno_value == ENOSYS && !is_seccomp_filtered())
		err = error_new(ERROR_UNSUPPORTED, "%s: this kernel has no perf events", what);
	else if (errno_value == ESRCH)
		err = error_number(error_new(ERROR_NO_ENTRY, "%s: no such process", what), 102);
	else if (errno_value != EACCES && errno_value != EPERM && errno_value != ENOSYS)
		err = error_errno(errno_value, "%s", what);
	else if (is_seccomp_filtered() && (errno_value != EACCES || has_perfmon()))
		err = error_new(ERROR_DENIED,
				"%s: a seccomp filter (container runtime) refuses perf_event_open",
				what);
	else if (has_perfmon() && !namespaces_is_user_nested())
		err = error_new(ERROR_DENIED,
				"%s: refused although CAP_PERFMON is there (%s); a security module "
				"or a kernel lockdown decides",
				what, strerrorname_np(errno_value));
	else
		err = error_new(ERROR_DENIED, "%s: kernel.perf_event_paranoid is %ld and %s", what,
				paranoid, event_open_describe_perfmon());
	return error_get_number(err) ? err : error_number(err, 101);
}
