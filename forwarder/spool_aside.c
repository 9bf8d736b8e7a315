/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of refused and of damaged requests. */
#define LOG_AREA "spool"
#include "forwarder/spool_aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash_seed.h"
#include "base/log.h"
#include "base/mem.h"
#include "forwarder/spool_file.h"

void spool_aside_init(struct spool_aside *aside, const char *directory, const char *folder,
		      uint64_t max_bytes)
{
	*aside = (struct spool_aside){
		.rejected = mem_format("%s/rejected/%s", directory, folder),
		.corrupt = mem_format("%s/corrupt/%s", directory, folder),
		.max_bytes = max_bytes,
	};
}

void spool_aside_fini(struct spool_aside *aside)
{
	mem_free(aside->rejected);
	mem_free(aside->corrupt);
	*aside = (struct spool_aside){0};
}

static void sync_folder(const char *path)
{
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
}

struct error *spool_make_folder(const char *path)
{
	CLEANUP(cleanup_mem) char *part = mem_copy_string(path);
	for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = 0;
		if (mkdir(part, 0700) == 0) {
			char *name = strrchr(part, '/');
			if (name && name > part) {
				*name = 0;
				sync_folder(part);
				*name = '/';
			} else {
				sync_folder(name ? "/" : ".");
			}
		} else if (errno != EEXIST && !(slash && errno == EROFS)) {
			return error_errno(errno, "cannot create %s", part);
		}
		if (!slash)
			return NULL;
		*slash = '/';
	}
}

struct file_age {
	char name[NAME_MAX + 1];
	uint64_t bytes;
	struct timespec time;
};

static int older_first(const void *a, const void *b)
{
	const struct file_age *x = a, *y = b;
	if (x->time.tv_sec != y->time.tv_sec)
		return x->time.tv_sec < y->time.tv_sec ? -1 : 1;
	if (x->time.tv_nsec != y->time.tv_nsec)
		return x->time.tv_nsec < y->time.tv_nsec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/*
 * When the folder holds more than max_bytes, removes the oldest files until a tenth is free, so
 * that the next ones need no look at the folder. Returns what it holds.
 */
static uint64_t bound_folder(const char *path, uint64_t max_bytes)
{
	DIR *dir = opendir(path);
	if (!dir)
		return 0;
	struct file_age *files = NULL;
	size_t n = 0, capacity = 0;
	uint64_t total = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat st;
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (n == capacity) {
			capacity = capacity ? capacity * 2 : 16;
			files = mem_realloc(files, capacity, sizeof(*files));
		}
		struct file_age *file = &files[n++];
		snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
		file->bytes = (uint64_t)st.st_size;
		file->time = st.st_mtim;
		total += file->bytes;
	}
	uint64_t goal = total > max_bytes ? max_bytes - max_bytes / 10 : total;
	if (total > goal)
		qsort(files, n, sizeof(*files), older_first);
	for (size_t i = 0; i < n && total > goal; i++) {
		if (unlinkat(dirfd(dir), files[i].name, 0) == 0)
			total -= files[i].bytes;
	}
	mem_free(files);
	closedir(dir);
	return total;
}

static struct error *write_refused(int folder_fd, enum exporter_kind kind,
				   const struct spool_name *name, const uint8_t *message, size_t n,
				   const struct request_summary *summary, const char *reason)
{
	char unfinished[SPOOL_NAME_BYTES], finished[SPOOL_NAME_BYTES];
	spool_name_format(name, SPOOL_UNFINISHED_SUFFIX, unfinished);
	CLEANUP(cleanup_fd)
	int fd = openat(folder_fd, unfinished,
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(errno, "cannot create %s", unfinished);
	CLEANUP(spool_file_writer_fini) struct spool_file_writer writer;
	struct error *err =
		spool_file_begin(&writer, fd, kind, hash_seed_make(), name->enqueued_ns);
	if (!err)
		err = spool_file_append(&writer, message, n, summary, reason);
	if (!err)
		err = spool_file_end(&writer);
	if (!err && fsync(fd) < 0)
		err = error_errno(errno, "fsync");
	struct spool_name whole = *name;
	whole.bytes = writer.offset;
	spool_name_format(&whole, SPOOL_REFUSED_SUFFIX, finished);
	if (!err && renameat(folder_fd, unfinished, folder_fd, finished) < 0)
		err = error_errno(errno, "cannot rename %s", unfinished);
	if (!err && fsync(folder_fd) < 0)
		err = error_errno(errno, "fsync of the folder");
	if (err)
		unlinkat(folder_fd, unfinished, 0);
	return err;
}

struct error *spool_aside_reject(struct spool_aside *aside, enum exporter_kind kind,
				 const struct spool_name *name, const uint8_t *message, size_t n,
				 const struct request_summary *summary, const char *reason)
{
	struct error *err = spool_make_folder(aside->rejected);
	if (err)
		return err;
	CLEANUP(cleanup_fd)
	int fd = open(aside->rejected, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(errno, "%s", aside->rejected);
	if (!aside->is_measured || aside->rejected_bytes + n > aside->max_bytes) {
		uint64_t room = aside->max_bytes > n ? aside->max_bytes - n : 0;
		aside->rejected_bytes = bound_folder(aside->rejected, room);
		aside->is_measured = true;
	}
	err = write_refused(fd, kind, name, message, n, summary, reason);
	if (!err)
		aside->rejected_bytes += n;
	return error_wrap(err, "%s", aside->rejected);
}

void spool_aside_quarantine(struct spool_aside *aside, int folder_fd, const char *name)
{
	struct error *err = spool_make_folder(aside->corrupt);
	if (err) {
		log_warn("damaged spool file deleted file=%s err=\"%s\"", name, error_text(err));
		error_free(err);
		unlinkat(folder_fd, name, 0);
		return;
	}
	CLEANUP(cleanup_mem) char *path = mem_format("%s/%s", aside->corrupt, name);
	if (renameat(folder_fd, name, AT_FDCWD, path) < 0 && errno != ENOENT) {
		log_warn("damaged spool file deleted file=%s err=\"%s\"", name, strerror(errno));
		unlinkat(folder_fd, name, 0);
		return;
	}
	log_warn("damaged spool file set aside file=%s", path);
	bound_folder(aside->corrupt, aside->max_bytes);
}
