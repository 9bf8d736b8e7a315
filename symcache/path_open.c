/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/path_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

static int open_below(const char *root, const char *path, int *fd_out)
{
	CLEANUP(cleanup_fd) int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return errno;
	*fd_out = (int)fd;
	return 0;
}

int path_open(const char *root, const char *path, int *fd_out)
{
	CLEANUP(cleanup_fd) int place = -1;
	if (root && *root) {
		int errno_value = open_below(root, path, &place);
		if (errno_value)
			return errno_value;
	} else {
		place = open(path, O_PATH | O_CLOEXEC);
		if (place < 0)
			return errno;
	}
	struct stat st;
	if (fstat(place, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return ENODEV;
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	int fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno;
	*fd_out = fd;
	return 0;
}
