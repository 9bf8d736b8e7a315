/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/jit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "symcache/symcache.h"

#define LOG_AREA "symcache"
#include "base/log.h"

enum {
	STATUS_MAX_BYTES = 1 << 16,
	STAT_FIELD_STARTED = 22, /* proc(5) */
	/* A pid's record may be read that much earlier than the process's start says, in ns. */
	SEEN_SLACK_NS = 20000000,
	/* Clocks are read one after the other, and file times are coarse. */
	AGE_SLACK_S = 1,
	NS_PER_S = 1000000000,
};

const char *jit_file_state_text(enum jit_file_state state)
{
	switch (state) {
	case JIT_FILE_OK:
		return "read";
	case JIT_FILE_ABSENT:
		return "no such file";
	case JIT_FILE_DENIED:
		return "may not be read";
	case JIT_FILE_LINK:
		return "a link";
	case JIT_FILE_NOT_REGULAR:
		return "not a regular file";
	case JIT_FILE_FOREIGN:
		return "owned by another user than the process";
	case JIT_FILE_MOUNTED:
		return "mounted there from elsewhere";
	case JIT_FILE_WRITABLE:
		return "other users may write to it";
	case JIT_FILE_TOO_LARGE:
		return "too large";
	case JIT_FILE_OLDER:
		return "older than the process";
	case JIT_FILE_REPLACED:
		return "not the file that was mapped";
	case JIT_FILE_OTHER_HOST:
		return "nothing tells that the recording is of this host";
	case JIT_FILE_NO_DESCRIPTOR:
		return "no file descriptor was left to open it";
	case JIT_FILE_STATE_N:
		break;
	}
	return "unknown";
}

bool jit_file_is_refused(enum jit_file_state state)
{
	return state != JIT_FILE_OK && state != JIT_FILE_ABSENT && state != JIT_FILE_OTHER_HOST;
}

static enum jit_file_state state_of_errno(int errno_value)
{
	switch (errno_value) {
	case ENOENT:
	case ENOTDIR:
	case ESRCH:
		return JIT_FILE_ABSENT;
	case ELOOP:
		return JIT_FILE_LINK;
	case EMFILE:
	case ENFILE:
		return JIT_FILE_NO_DESCRIPTOR;
	default:
		return JIT_FILE_DENIED;
	}
}

/* --- the process --- */

static char *read_proc(int32_t pid, const char *name)
{
	char path[64];
	struct buf text;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	buf_init(&text, STATUS_MAX_BYTES);
	struct error *err = file_read_all(path, &text);
	char *out = err ? NULL : mem_copy_string(buf_string(&text));
	error_free(err);
	buf_fini(&text);
	return out;
}

/* The n numbers behind "\nKEY:"; with is_last the last one of as many as there are. */
static bool read_numbers(const char *status, const char *key, unsigned *out, size_t n, bool is_last)
{
	const char *at = strstr(status, key);
	if (!at)
		return false;
	at += strlen(key);
	size_t n_read = 0;
	for (;;) {
		char *end;
		at += strspn(at, "\t ");
		unsigned long value = strtoul(at, &end, 10);
		if (end == at || n_read == n)
			break;
		out[n_read] = (unsigned)value;
		n_read += !is_last;
		at = end;
		if (is_last && (*at == '\n' || !*at))
			return true;
	}
	return !is_last && n_read == n;
}

/* Fields behind the name, which may hold anything. */
static uint64_t read_started_ticks(const char *stat)
{
	const char *at = strrchr(stat, ')');
	for (int field = 2; at && field < STAT_FIELD_STARTED; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec now = {0};
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Whether who has the pid now is who had it then; also when it began. */
static bool read_start(struct jit_place *place, const struct jit_process *process)
{
	char *stat CLEANUP(cleanup_mem) = read_proc(place->pid, "stat");
	if (!stat)
		return false;
	int64_t ticks = (int64_t)read_started_ticks(stat);
	int64_t since_boot = ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
	int64_t age = now_ns(CLOCK_BOOTTIME) - since_boot;
	int64_t began_wall = now_ns(CLOCK_REALTIME) - age;
	place->began_at_s = began_wall / NS_PER_S;
	if (process->seen_ns)
		return now_ns(CLOCK_MONOTONIC) - age <= (int64_t)process->seen_ns + SEEN_SLACK_NS;
	return !process->recorded_at_ns || began_wall <= (int64_t)process->recorded_at_ns;
}

static bool read_user(struct jit_place *place)
{
	char *status CLEANUP(cleanup_mem) = read_proc(place->pid, "status");
	unsigned users[4], groups[4], number = 0;
	if (!status || !read_numbers(status, "\nUid:", users, 4, false) ||
	    !read_numbers(status, "\nGid:", groups, 4, false))
		return false;
	if (!read_numbers(status, "\nNSpid:", &number, 1, true))
		number = (unsigned)place->pid;
	place->users[0] = users[0];
	place->users[1] = users[1];
	place->users[2] = users[3];
	place->group = groups[1];
	place->number = (int32_t)number;
	place->has_user = true;
	return true;
}

/* Links and ".." stay below root; the last part may be no link. */
static int open_below(const char *root, const char *path, uint64_t flags, int *fd_out)
{
	CLEANUP(cleanup_fd)
	int root_fd = open(root && *root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno;
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return errno;
	*fd_out = (int)fd;
	return 0;
}

static bool open_process(struct jit_place *place, const struct jit_process *process)
{
	if (place->pid <= 0 || !read_start(place, process) || !read_user(place))
		return false;
	place->root = mem_format("/proc/%d/root", place->pid);
	int errno_value = open_below(place->root, "/tmp", O_DIRECTORY, &place->tmp);
	if (errno_value == ENOENT && access(place->root, F_OK) < 0)
		return false; /* it has ended, and is still to be waited for */
	/* Its root may not be seen without rights over it: ours, unless it is in a container. */
	if ((errno_value == EACCES || errno_value == EPERM) && place->number == place->pid) {
		mem_free(TAKE(place->root));
		errno_value = open_below(NULL, "/tmp", O_DIRECTORY, &place->tmp);
	}
	if (errno_value && errno_value != ENOENT)
		place->state = state_of_errno(errno_value);
	/* Between the look at the user and this, the pid may have gone to another process. */
	struct jit_place again = {.pid = place->pid};
	place->is_process = read_start(&again, process) && again.began_at_s == place->began_at_s;
	if (!place->is_process)
		jit_place_leave(place);
	return place->is_process;
}

void jit_place_open(struct jit_place *place, const struct symcache_config *config,
		    const struct jit_process *process)
{
	*place = (struct jit_place){
		.pid = process->pid,
		.number = process->pid,
		.trusts_paths = config->trust_paths,
		.tmp = -1,
	};
	bool is_here = config->is_live || (process->is_same_host && !config->sysroot);
	if (is_here && open_process(place, process))
		return;
	mem_free(TAKE(place->root));
	place->has_user = false;
	place->number = process->pid;
	place->state = JIT_FILE_OK;
	if (!is_here && !config->sysroot && !config->trust_paths) {
		place->state = JIT_FILE_OTHER_HOST;
		return;
	}
	/* It was there when it was seen, so its file is not much older. */
	place->began_at_s = 0;
	if (process->seen_ns)
		place->began_at_s = (now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC) +
				     (int64_t)process->seen_ns) /
				    NS_PER_S;
	place->root = config->sysroot ? mem_copy_string(config->sysroot) : NULL;
	int errno_value = open_below(place->root, "/tmp", O_DIRECTORY, &place->tmp);
	if (errno_value && errno_value != ENOENT)
		place->state = state_of_errno(errno_value);
}

void jit_place_leave(struct jit_place *place)
{
	if (place->tmp >= 0)
		close(place->tmp);
	place->tmp = -1;
}

void jit_place_close(struct jit_place *place)
{
	jit_place_leave(place);
	mem_free(place->root);
	*place = (struct jit_place){.tmp = -1, .state = JIT_FILE_ABSENT};
}

/* --- files --- */

static bool is_owner(const struct jit_place *place, uid_t owner)
{
	if (place->trusts_paths)
		return true;
	if (!place->has_user)
		return owner == 0 || owner == geteuid();
	return owner == place->users[0] || owner == place->users[1] || owner == place->users[2];
}

/* Files of one's own group are what a umask of 002 makes. */
static bool is_writable_by_others(const struct jit_place *place, const struct stat *st)
{
	gid_t own = place->has_user ? place->group : getegid();
	return (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != own);
}

static enum jit_file_state judge(const struct jit_place *place, const struct stat *st,
				 uint64_t max_bytes)
{
	if (S_ISLNK(st->st_mode))
		return JIT_FILE_LINK;
	if (!S_ISREG(st->st_mode))
		return JIT_FILE_NOT_REGULAR;
	if (st->st_nlink > 1)
		return JIT_FILE_LINK;
	if (!is_owner(place, st->st_uid))
		return JIT_FILE_FOREIGN;
	if (is_writable_by_others(place, st))
		return JIT_FILE_WRITABLE;
	if ((uint64_t)st->st_size > max_bytes)
		return JIT_FILE_TOO_LARGE;
	if (place->began_at_s && st->st_mtim.tv_sec < place->began_at_s - AGE_SLACK_S)
		return JIT_FILE_OLDER;
	return JIT_FILE_OK;
}

/*
 * A bind mount on the file's name. folder: where the name is, -1 = unknown; before Linux 5.8 there
 * is nothing but its device to go by.
 */
static bool is_mounted(int at, int folder)
{
	struct statx file;
	if (statx(at, "", AT_EMPTY_PATH, 0, &file) == 0 &&
	    (file.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return file.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	struct stat st, folder_st;
	return folder >= 0 && fstat(at, &st) == 0 && fstat(folder, &folder_st) == 0 &&
	       st.st_dev != folder_st.st_dev;
}

/* at: O_PATH, so that nothing was opened yet. */
static enum jit_file_state open_judged(const struct jit_place *place, int at, int folder,
				       uint64_t max_bytes, struct jit_file *out)
{
	struct stat st;
	if (fstat(at, &st) < 0)
		return state_of_errno(errno);
	enum jit_file_state state = judge(place, &st, max_bytes);
	if (state == JIT_FILE_OK && is_mounted(at, folder))
		state = JIT_FILE_MOUNTED;
	if (state != JIT_FILE_OK)
		return state;
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	int fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return state_of_errno(errno);
	*out = (struct jit_file){.fd = fd, .device = st.st_dev, .inode = st.st_ino};
	return JIT_FILE_OK;
}

static void name_map(const struct jit_place *place, char out[64])
{
	snprintf(out, 64, "perf-%d.map", place->number);
}

enum jit_file_state jit_place_open_map(const struct jit_place *place, struct jit_file *out)
{
	char name[64];
	if (place->state != JIT_FILE_OK)
		return place->state;
	if (place->tmp < 0)
		return JIT_FILE_ABSENT;
	name_map(place, name);
	CLEANUP(cleanup_fd) int at = openat(place->tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (at < 0)
		return state_of_errno(errno);
	return open_judged(place, at, place->tmp, JIT_FILE_MAX_MAP_BYTES, out);
}

bool jit_place_has_other_map(const struct jit_place *place, const struct jit_file *file)
{
	char name[64];
	struct stat st;
	if (place->tmp < 0)
		return false;
	name_map(place, name);
	return fstatat(place->tmp, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_ino != file->inode || st.st_dev != file->device);
}

/* What is mapped, also when it was unlinked. */
static int open_mapped(const struct jit_place *place, const struct jit_mapping *mapping)
{
	char path[96];
	if (!place->is_process)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, place->pid,
		 mapping->start, mapping->end);
	return open(path, O_PATH | O_CLOEXEC);
}

enum jit_file_state jit_place_open_dump(const struct jit_place *place,
					const struct jit_mapping *mapping, struct jit_file *out)
{
	if (place->state != JIT_FILE_OK)
		return place->state;
	CLEANUP(cleanup_fd) int at = open_mapped(place, mapping);
	if (at < 0) {
		int errno_value = open_below(place->root, mapping->path, O_NOFOLLOW, &at);
		if (errno_value)
			return state_of_errno(errno_value);
	}
	struct stat st;
	if (fstat(at, &st) < 0)
		return state_of_errno(errno);
	/* The device is another one in records of files on overlay file systems. */
	if (mapping->has_inode && st.st_ino != mapping->inode && !place->trusts_paths &&
	    S_ISREG(st.st_mode))
		return JIT_FILE_REPLACED;
	return open_judged(place, at, -1, JIT_FILE_MAX_DUMP_BYTES, out);
}

uint64_t jit_file_size(const struct jit_file *file)
{
	struct stat st;
	return fstat(file->fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

size_t jit_file_read(const struct jit_file *file, uint64_t offset, void *out, size_t n)
{
	size_t n_read = 0;
	struct error *err = file_read_at(file->fd, offset, out, n, &n_read);
	if (err)
		log_debug("JIT file not read reason=\"%s\"", error_text(err));
	error_free(err);
	return n_read;
}

void jit_file_close(struct jit_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	*file = JIT_FILE_CLOSED;
}
