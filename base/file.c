/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of functions that get a path begin with it. */
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash_seed.h"
#include "base/mem.h"

enum {
	ERROR_CANNOT_CREATE = 701,
	ERROR_DISK_FULL = 702,
	READ_BYTES = 64 << 10,
	SYMLINKS_MAX = 40, /* as the kernel's own limit */
	NAME_TRIES = 16,
	TEMPORARIES_MAX = 8, /* at a time; no command writes more than two files */
	FD_NAME_BYTES = 32,
};

static struct error *check_regular(int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return error_errno(errno, "fstat");
	if (S_ISDIR(st->st_mode))
		return error_new(ERROR_UNSUPPORTED, "is a directory");
	if (!S_ISREG(st->st_mode))
		return error_new(ERROR_UNSUPPORTED, "not a regular file");
	return NULL;
}

struct error *file_open_regular(const char *path, int *fd_out)
{
	/* Opening a FIFO without O_NONBLOCK would wait for a writer. */
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_errno(errno, "%s", path);
	struct stat st;
	struct error *err = check_regular(fd, &st);
	if (err)
		return error_wrap(err, "%s", path);
	*fd_out = fd;
	fd = -1;
	return NULL;
}

static struct error *read_to_end(int fd, struct buf *buf)
{
	for (;;) {
		size_t room = buf->max_bytes - buf->size;
		if (room > READ_BYTES)
			room = READ_BYTES;
		if (room == 0) {
			/* At the maximum: whole only if nothing follows. */
			uint8_t extra;
			size_t n;
			struct error *err = file_read(fd, &extra, 1, &n);
			return err || n == 0 ? err : buf_reserve(buf, 1);
		}
		struct error *err = buf_reserve(buf, room);
		if (err)
			return err;
		size_t n;
		err = file_read(fd, buf->data + buf->size, room, &n);
		if (err)
			return err;
		buf->size += n;
		if (n < room)
			return NULL;
	}
}

struct error *file_read_all(const char *path, struct buf *buf)
{
	CLEANUP(cleanup_fd) int fd = -1;
	struct error *err = file_open_regular(path, &fd);
	if (err)
		return err;
	size_t old_size = buf->size;
	err = read_to_end(fd, buf);
	if (err)
		buf->size = old_size;
	return error_wrap(err, "%s", path);
}

/*
 * After a failed read or write: NULL when it is worth another try. A descriptor that we inherited
 * may be non-blocking; we wait for it.
 */
static struct error *retry(int fd, short events, const char *what)
{
	if (errno == EINTR)
		return NULL;
	if (errno == EAGAIN) {
		struct pollfd ready = {.fd = fd, .events = events};
		if (poll(&ready, 1, -1) >= 0 || errno == EINTR)
			return NULL;
	}
	int errno_value = errno;
	struct error *err = error_errno(errno_value, "%s", what);
	if (errno_value == ENOSPC || errno_value == EDQUOT)
		err = error_number(err, ERROR_DISK_FULL);
	return err;
}

struct error *file_read(int fd, void *p, size_t n, size_t *n_out)
{
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, (uint8_t *)p + done, n - done);
		if (got == 0)
			break;
		if (got > 0) {
			done += (size_t)got;
			continue;
		}
		struct error *err = retry(fd, POLLIN, "read");
		if (err)
			return err;
	}
	*n_out = done;
	return NULL;
}

struct error *file_read_at(int fd, uint64_t offset, void *p, size_t n, size_t *n_out)
{
	size_t done = 0;
	/* No file reaches behind INT64_MAX, so reading there meets the end. */
	while (done < n && offset + done <= INT64_MAX) {
		ssize_t got = pread(fd, (uint8_t *)p + done, n - done, (off_t)(offset + done));
		if (got == 0)
			break;
		if (got > 0) {
			done += (size_t)got;
			continue;
		}
		struct error *err = retry(fd, POLLIN, "read");
		if (err)
			return error_wrap(err, "at byte %" PRIu64, offset + done);
	}
	*n_out = done;
	return NULL;
}

struct error *file_write(int fd, const void *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t put = write(fd, (const uint8_t *)p + done, n - done);
		if (put >= 0) {
			done += (size_t)put;
			continue;
		}
		struct error *err = retry(fd, POLLOUT, "write");
		if (err)
			return err;
	}
	return NULL;
}

struct error *file_map_fd(int fd, size_t max_bytes, struct file_map *out)
{
	struct stat st;
	struct error *err = check_regular(fd, &st);
	if (err)
		return err;
	if ((uint64_t)st.st_size > max_bytes)
		return error_new(ERROR_LIMIT, "%" PRIu64 " bytes are more than the maximum of %zu",
				 (uint64_t)st.st_size, max_bytes);
	struct file_map map = {.size = (size_t)st.st_size};
	if (map.size) {
		void *data = mmap(NULL, map.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			return error_errno(errno, "mmap");
		map.data = data;
	}
	*out = map;
	return NULL;
}

struct error *file_map_open(const char *path, size_t max_bytes, struct file_map *out)
{
	CLEANUP(cleanup_fd) int fd = -1;
	struct error *err = file_open_regular(path, &fd);
	if (err)
		return err;
	return error_wrap(file_map_fd(fd, max_bytes, out), "%s", path);
}

void file_map_close(struct file_map *map)
{
	if (map->data)
		munmap((void *)map->data, map->size);
	*map = (struct file_map){0};
}

static struct error *cannot_create(int errno_value, const char *path)
{
	struct error *err = error_errno(errno_value, "cannot create %s", path);
	if (error_get_number(err)) /* out of descriptors: the path is not to blame */
		return err;
	return error_number(err, errno_value == ENOSPC || errno_value == EDQUOT
					 ? ERROR_DISK_FULL
					 : ERROR_CANNOT_CREATE);
}

/* The number of a name that stands for an open descriptor of ours, -1 for other names. */
static int descriptor_named(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		size_t n = strlen(folders[i]);
		if (strncmp(path, folders[i], n) != 0)
			continue;
		char *end;
		unsigned long fd = strtoul(path + n, &end, 10);
		if (path[n] >= '0' && path[n] <= '9' && *end == 0 && fd <= INT_MAX)
			return (int)fd;
	}
	return -1;
}

/* Bytes of path up to and with its last slash; 0 when there is none. */
static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) + 1 : 0;
}

/*
 * Replaces *path by what it points to while it is a symlink, so that the file is replaced and not
 * the link. The kernel was asked to follow it before (stat), so a link that fs.protected_symlinks
 * forbids does not get here.
 */
static struct error *follow_symlinks(char **path)
{
	for (int i = 0; i < SYMLINKS_MAX && descriptor_named(*path) < 0; i++) {
		char target[PATH_MAX];
		ssize_t n = readlink(*path, target, sizeof(target));
		if (n < 0)
			return NULL; /* a file, or nothing yet */
		if ((size_t)n == sizeof(target))
			return cannot_create(ENAMETOOLONG, *path);
		size_t n_folder = target[0] == '/' ? 0 : folder_length(*path);
		char *next = mem_format("%.*s%.*s", (int)n_folder, *path, (int)n, target);
		mem_free(*path);
		*path = next;
	}
	return descriptor_named(*path) < 0 ? cannot_create(ELOOP, *path) : NULL;
}

/*
 * Names of temporaries that are there now, for file_writer_discard_all(), which a signal handler
 * calls: a slot is taken and given back by one store each.
 */
static const char *volatile temporaries[TEMPORARIES_MAX];

static void remember_temporary(const char *name)
{
	for (size_t i = 0; i < TEMPORARIES_MAX; i++) {
		if (!temporaries[i]) {
			temporaries[i] = name;
			return;
		}
	}
}

static void forget_temporary(const char *name)
{
	for (size_t i = 0; i < TEMPORARIES_MAX; i++) {
		if (temporaries[i] == name)
			temporaries[i] = NULL;
	}
}

void file_writer_discard_all(void)
{
	for (size_t i = 0; i < TEMPORARIES_MAX; i++) {
		if (temporaries[i])
			unlink(temporaries[i]);
	}
}

static struct error *open_direct(struct file_writer *writer)
{
	writer->is_direct = true;
	int descriptor = descriptor_named(writer->path);
	writer->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
				     : open(writer->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return writer->fd < 0 ? cannot_create(errno, writer->path) : NULL;
}

static char *make_temporary_name(const char *path)
{
	return mem_format("%.*s.perfpipe-%016" PRIx64 ".tmp", (int)folder_length(path), path,
			  hash_seed_make());
}

/*
 * A file without a name, so that nothing is left of a program that was killed. False where the
 * file system has none such, or where /proc is missing, by which it gets its name in the end.
 */
static bool open_nameless(struct file_writer *writer, mode_t mode)
{
	int n_folder = (int)folder_length(writer->path);
	char *folder = n_folder ? mem_format("%.*s", n_folder, writer->path) : mem_copy_string(".");
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	mem_free(folder);
	if (fd < 0)
		return false;
	char name[FD_NAME_BYTES];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	struct stat by_fd, by_name;
	if (fstat(fd, &by_fd) < 0 || stat(name, &by_name) < 0 || by_fd.st_ino != by_name.st_ino) {
		close(fd);
		return false;
	}
	writer->fd = fd;
	return true;
}

static struct error *open_named(struct file_writer *writer, mode_t mode)
{
	for (int i = 0; i < NAME_TRIES; i++) {
		char *name = make_temporary_name(writer->path);
		remember_temporary(name);
		writer->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (writer->fd >= 0) {
			writer->temporary = name;
			return NULL;
		}
		int errno_value = errno;
		forget_temporary(name);
		mem_free(name);
		if (errno_value != EEXIST)
			return cannot_create(errno_value, writer->path);
	}
	return cannot_create(EEXIST, writer->path);
}

static struct error *open_temporary(struct file_writer *writer, mode_t mode)
{
	return open_nameless(writer, mode) ? NULL : open_named(writer, mode);
}

/* The new file gets the old one's owner where we may, and its permissions. */
static struct error *open_replacement(struct file_writer *writer, const struct stat *old)
{
	/* Rename asks for the folder only; a file made read-only was meant to stay. */
	if (faccessat(AT_FDCWD, writer->path, W_OK, AT_EACCESS) < 0)
		return cannot_create(errno, writer->path);
	struct error *err = open_temporary(writer, 0600);
	if (err)
		return err;
	bool is_group_kept = fchown(writer->fd, old->st_uid, old->st_gid) == 0 ||
			     fchown(writer->fd, (uid_t)-1, old->st_gid) == 0;
	/* Without its old group, the group's permissions would go to strangers. */
	mode_t mode = old->st_mode & (is_group_kept ? 0777 : 0707);
	if (fchmod(writer->fd, mode) < 0)
		return cannot_create(errno, writer->path);
	return NULL;
}

static struct error *open_writer(struct file_writer *writer)
{
	if (descriptor_named(writer->path) >= 0)
		return open_direct(writer);
	if (writer->path[0] == 0)
		return cannot_create(ENOENT, "\"\"");
	struct stat st;
	bool is_there = stat(writer->path, &st) == 0;
	if (!is_there && errno != ENOENT)
		return cannot_create(errno, writer->path);
	if (is_there && S_ISDIR(st.st_mode))
		return cannot_create(EISDIR, writer->path);
	if (is_there && !S_ISREG(st.st_mode))
		return open_direct(writer);
	struct error *err = follow_symlinks(&writer->path);
	if (err)
		return err;
	if (descriptor_named(writer->path) >= 0)
		return open_direct(writer);
	return is_there ? open_replacement(writer, &st) : open_temporary(writer, 0666);
}

struct error *file_writer_open(const char *path, struct file_writer *out)
{
	CLEANUP(file_writer_close)
	struct file_writer writer = {.fd = -1, .path = mem_copy_string(path)};
	struct error *err = open_writer(&writer);
	if (err)
		return err;
	*out = writer;
	writer = (struct file_writer){.fd = -1};
	return NULL;
}

/* Copies a nameless file that may not be linked, as some security modules have it. */
static struct error *copy_to_named(struct file_writer *writer)
{
	struct stat st;
	char name[FD_NAME_BYTES];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", writer->fd);
	CLEANUP(cleanup_fd) int from = open(name, O_RDONLY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return cannot_create(errno, writer->path);
	close(writer->fd);
	writer->fd = -1;
	struct error *err = open_named(writer, st.st_mode & 0777);
	if (err)
		return err;
	for (off_t left = st.st_size; left > 0;) {
		ssize_t n = sendfile(writer->fd, from, NULL, (size_t)left);
		if (n <= 0)
			return cannot_create(n ? errno : EIO, writer->path);
		left -= n;
	}
	return NULL;
}

/* A link does not replace, so the file gets a temporary name that rename can move. */
static struct error *give_name(struct file_writer *writer)
{
	char name[FD_NAME_BYTES];
	snprintf(name, sizeof(name), "/proc/self/fd/%d", writer->fd);
	for (int i = 0; i < NAME_TRIES; i++) {
		writer->temporary = make_temporary_name(writer->path);
		remember_temporary(writer->temporary);
		if (linkat(AT_FDCWD, name, AT_FDCWD, writer->temporary, AT_SYMLINK_FOLLOW) == 0)
			return NULL;
		int errno_value = errno;
		forget_temporary(writer->temporary);
		mem_free(TAKE(writer->temporary));
		if (errno_value != EEXIST)
			return copy_to_named(writer);
	}
	return cannot_create(EEXIST, writer->path);
}

void file_writer_set_path(struct file_writer *writer, const char *path)
{
	assert(!writer->is_direct);
	mem_free(writer->path);
	writer->path = mem_copy_string(path);
}

struct error *file_writer_commit(struct file_writer *writer)
{
	if (!writer->is_direct && !writer->temporary) {
		struct error *err = give_name(writer);
		if (err)
			return err;
	}
	/* Some file systems tell only here that the disk is full. */
	int fd = writer->fd;
	writer->fd = -1;
	if (close(fd) < 0 && errno != EINTR)
		return cannot_create(errno, writer->path);
	if (writer->is_direct)
		return NULL;
	if (rename(writer->temporary, writer->path) < 0)
		return cannot_create(errno, writer->path);
	forget_temporary(writer->temporary);
	mem_free(TAKE(writer->temporary));
	return NULL;
}

void file_writer_close(struct file_writer *writer)
{
	if (writer->path && writer->fd >= 0)
		close(writer->fd);
	if (writer->temporary) {
		unlink(writer->temporary);
		forget_temporary(writer->temporary);
	}
	mem_free(writer->temporary);
	mem_free(writer->path);
	*writer = (struct file_writer){.fd = -1};
}
