/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/namespaces.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

/* The first namespaces of a kernel have fixed numbers (include/linux/proc_ns.h, since 3.8). */
#define FIRST_PID_NAMESPACE  0xeffffffcu
#define FIRST_USER_NAMESPACE 0xeffffffdu

enum { STATUS_MAX_BYTES = 64 << 10 };

static bool is_other(const char *path, ino_t first)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_ino != first;
}

bool namespaces_is_user_nested(void)
{
	return is_other("/proc/self/ns/user", FIRST_USER_NAMESPACE);
}

bool namespaces_is_pid_nested(void)
{
	return is_other("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
}

unsigned namespaces_count_pids(const char *status)
{
	const char *p = strstr(status, "\nNSpid:");
	unsigned n = 0;

	if (!p)
		return 0;
	p += strlen("\nNSpid:");
	while (*p && *p != '\n') {
		p += strspn(p, " \t");
		size_t n_digits = strspn(p, "0123456789");
		if (n_digits == 0)
			break;
		n++;
		p += n_digits;
	}
	return n;
}

bool namespaces_is_proc_own(void)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, STATUS_MAX_BYTES);
	/* Not there at all when /proc is that of a namespace inside ours. */
	struct error *err = file_read_all("/proc/self/status", &text);
	error_free(err);
	/* From the namespace of /proc down to ours. */
	return !err && namespaces_count_pids(buf_string(&text)) <= 1;
}
