/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/host_file.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/compiler.h"
#include "symcache/path_open.h"

bool host_file_is_trusted_owner(uid_t owner)
{
	return owner == 0 || owner == geteuid();
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool host_file_is_at(int fd, const char *path)
{
	CLEANUP(cleanup_fd) int own = -1;
	struct stat st, own_st;
	return *path == '/' && !path_open(NULL, path, &own) && fstat(fd, &st) == 0 &&
	       fstat(own, &own_st) == 0 && is_same(&st, &own_st);
}

bool host_file_process_shares_root(int32_t pid)
{
	static const char *const names[] = {"ns/mnt", "ns/user", "root"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64], own_path[64];
		struct stat st, own_st;
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
		snprintf(own_path, sizeof(own_path), "/proc/self/%s", names[i]);
		if (stat(path, &st) < 0 || stat(own_path, &own_st) < 0 || !is_same(&st, &own_st))
			return false;
	}
	return true;
}
