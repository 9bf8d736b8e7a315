/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_AREA "spool"
#include "forwarder/spool_move.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "forwarder/spool_progress.h"

void spool_share_format(const char *folder, unsigned number, char out[SPOOL_FOLDER_BYTES])
{
	if (number > 1)
		snprintf(out, SPOOL_FOLDER_BYTES, "%.*s.%u", SPOOL_FOLDER_BYTES - 4, folder,
			 number % 100);
	else
		snprintf(out, SPOOL_FOLDER_BYTES, "%s", folder);
}

struct error *spool_share_lock(int folder_fd, int *fd_out)
{
	CLEANUP(cleanup_fd)
	int fd = openat(folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_errno(errno, "cannot open its lock");
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? error_new(ERROR_UNAVAILABLE, "another perfpipe uses it")
			       : error_errno(errno, "cannot lock");
	*fd_out = fd;
	fd = -1;
	return NULL;
}

struct copy {
	int folder_fd;
	const struct spool_name *name;
	struct error *error; /* the first one */
};

static void copy_entry(void *context, const struct spool_progress *entry)
{
	struct copy *copy = context;
	if (!copy->error)
		copy->error = spool_progress_append(copy->folder_fd, copy->name, entry);
}

/* Entries are bound to the number of their window, so they are written anew. */
static struct error *copy_progress(const struct spool_mover *mover, int from_fd,
				   const struct spool_name *from, const struct spool_name *to)
{
	struct copy copy = {mover->folder_fd, to, NULL};
	struct error *err = spool_progress_read(from_fd, from, copy_entry, &copy);
	if (!err)
		return copy.error;
	error_free(copy.error);
	return err;
}

static void move(const struct spool_mover *mover, int from_fd, const char *suffix,
		 const struct spool_name *from)
{
	char old[SPOOL_NAME_BYTES], new[SPOOL_NAME_BYTES], progress[SPOOL_NAME_BYTES];
	struct spool_name to = *from;
	to.sequence = (*mover->next_sequence)++;
	if (mover->enqueued_ns)
		to.enqueued_ns = mover->enqueued_ns;
	spool_name_format(from, suffix, old);
	spool_name_format(&to, SPOOL_WAITING_SUFFIX, new);
	/* In both places before the file moves: no crash brings delivered requests back. */
	struct error *err = copy_progress(mover, from_fd, from, &to);
	if (!err && renameat(from_fd, old, mover->folder_fd, new) < 0)
		err = error_errno(errno, "cannot move");
	if (err) {
		log_warn("a spooled file stays where it is file=%s err=\"%s\"", old,
			 error_text(err));
		error_free(err);
		spool_name_format(&to, SPOOL_PROGRESS_SUFFIX, progress);
		unlinkat(mover->folder_fd, progress, 0);
		return;
	}
	spool_name_format(from, SPOOL_PROGRESS_SUFFIX, progress);
	unlinkat(from_fd, progress, 0);
	mover->joined(mover->context, &to);
}

void spool_move_in(const struct spool_mover *mover, const char *path, const char *suffix)
{
	DIR *dir = opendir(path);
	if (!dir)
		return;
	struct spool_names names = {0};
	struct spool_name name;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (spool_name_parse(entry->d_name, suffix, &name))
			spool_names_add(&names, &name);
	}
	spool_names_sort(&names);
	for (size_t i = 0; i < names.n; i++)
		move(mover, dirfd(dir), suffix, &names.items[i]);
	spool_names_fini(&names);
	closedir(dir);
}

void spool_share_take_over(const struct spool_mover *mover, const char *path)
{
	CLEANUP(cleanup_fd)
	int folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd < 0)
		return;
	CLEANUP(cleanup_fd) int lock_fd = -1;
	struct error *err = spool_share_lock(folder_fd, &lock_fd);
	if (err) {
		error_free(err); /* it runs, and sends them itself */
		return;
	}
	CLEANUP(cleanup_mem) char *retry = mem_format("%s/retry", path);
	spool_move_in(mover, path, SPOOL_WAITING_SUFFIX);
	spool_move_in(mover, retry, SPOOL_REFUSED_SUFFIX);
}
