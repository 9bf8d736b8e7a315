/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of a spool, read by names. */
#include "forwarder/spool_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "forwarder/spool_aside.h"
#include "forwarder/spool_progress.h"

struct walk {
	enum spool_list_kind kind;
	const char *suffix;
	spool_list_fn found;
	void *context;
};

static void count_over(void *context, const struct spool_progress *progress)
{
	(void)progress;
	++*(uint32_t *)context;
}

static struct error *report(const struct walk *walk, const char *folder, const char *exporter,
			    int folder_fd, const struct spool_name *name)
{
	char text[SPOOL_NAME_BYTES];
	spool_name_format(name, walk->suffix, text);
	if (faccessat(folder_fd, text, F_OK, 0) < 0)
		return NULL;
	CLEANUP(cleanup_mem) char *path = mem_format("%s/%s", folder, text);
	struct spool_list_entry entry = {
		.kind = walk->kind,
		.path = path,
		.folder = folder,
		.name = *name,
	};
	spool_folder_parse(exporter, entry.exporter);
	if (walk->kind == SPOOL_LIST_WAITING)
		error_free(spool_progress_read(folder_fd, name, count_over, &entry.n_over));
	if (entry.n_over > name->n_requests)
		entry.n_over = name->n_requests;
	return walk->found(walk->context, &entry);
}

static struct error *walk_folder(const struct walk *walk, const char *folder, const char *exporter)
{
	DIR *dir = opendir(folder);
	if (!dir)
		return errno == ENOENT ? NULL : error_errno(errno, "%s", folder);
	struct spool_names names = {0};
	struct spool_name name;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (spool_name_parse(entry->d_name, walk->suffix, &name))
			spool_names_add(&names, &name);
	}
	spool_names_sort(&names);
	struct error *err = NULL;
	for (size_t i = 0; i < names.n && !err; i++)
		err = report(walk, folder, exporter, dirfd(dir), &names.items[i]);
	closedir(dir);
	spool_names_fini(&names);
	return err;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct error *walk_exporters(const struct walk *walk, const char *parent, const char *wanted)
{
	DIR *dir = opendir(parent);
	if (!dir)
		return errno == ENOENT ? NULL : error_errno(errno, "%s", parent);
	char **folders = NULL;
	size_t n = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *name = entry->d_name;
		bool is_other = walk->kind == SPOOL_LIST_WAITING &&
				(strcmp(name, "rejected") == 0 || strcmp(name, "corrupt") == 0);
		char exporter[SPOOL_FOLDER_BYTES];
		spool_folder_parse(name, exporter);
		if (name[0] == '.' || is_other || (wanted && strcmp(exporter, wanted) != 0))
			continue;
		folders = mem_realloc(folders, n + 1, sizeof(*folders));
		folders[n++] = mem_copy_string(name);
	}
	closedir(dir);
	if (n)
		qsort(folders, n, sizeof(*folders), by_text);
	struct error *err = NULL;
	for (size_t i = 0; i < n; i++) {
		CLEANUP(cleanup_mem) char *folder = mem_format("%s/%s", parent, folders[i]);
		if (!err)
			err = walk_folder(walk, folder, folders[i]);
		mem_free(folders[i]);
	}
	mem_free(folders);
	return err;
}

struct error *spool_list_walk(const char *directory, const char *exporter, spool_list_fn found,
			      void *context)
{
	if (access(directory, R_OK | X_OK) < 0)
		return error_errno(errno, "spool %s", directory);
	CLEANUP(cleanup_mem) char *rejected = mem_format("%s/rejected", directory);
	CLEANUP(cleanup_mem) char *corrupt = mem_format("%s/corrupt", directory);
	const char *const parents[] = {directory, rejected, corrupt};
	static const char *const suffixes[] = {SPOOL_WAITING_SUFFIX, SPOOL_REFUSED_SUFFIX,
					       SPOOL_WAITING_SUFFIX};
	struct error *err = NULL;
	for (int kind = SPOOL_LIST_WAITING; !err && kind <= SPOOL_LIST_DAMAGED; kind++) {
		const struct walk walk = {(enum spool_list_kind)kind, suffixes[kind], found,
					  context};
		err = walk_exporters(&walk, parents[kind], exporter);
	}
	return err;
}

void spool_list_reason(const char *path, struct buf *reason)
{
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct spool_index index = {0};
	struct buf message;
	buf_init(&message, (size_t)SPOOL_FILE_MAX_MESSAGE);
	size_t before = reason->size;
	struct error *err = fd < 0 ? error_errno(errno, "open") : spool_file_read_index(fd, &index);
	if (!err)
		err = spool_file_read(fd, &index, 0, reason, &message);
	error_free(err);
	if (reason->size == before)
		error_free(buf_append(reason, "", 1));
	spool_index_fini(&index);
	buf_fini(&message);
}

struct error *spool_list_retry(const char *directory, const struct spool_list_entry *entry)
{
	char folder[SPOOL_FOLDER_BYTES], text[SPOOL_NAME_BYTES];
	spool_folder_format(entry->exporter, folder);
	spool_name_format(&entry->name, SPOOL_REFUSED_SUFFIX, text);
	CLEANUP(cleanup_mem) char *retry = mem_format("%s/%s/retry", directory, folder);
	struct error *err = spool_make_folder(retry);
	if (err)
		return err;
	CLEANUP(cleanup_mem) char *to = mem_format("%s/%s", retry, text);
	if (rename(entry->path, to) < 0)
		return error_errno(errno, "%s", entry->path);
	return NULL;
}

struct error *spool_list_drop(const struct spool_list_entry *entry)
{
	if (unlink(entry->path) < 0 && errno != ENOENT)
		return error_errno(errno, "%s", entry->path);
	if (entry->kind != SPOOL_LIST_WAITING)
		return NULL;
	char text[SPOOL_NAME_BYTES];
	spool_name_format(&entry->name, SPOOL_PROGRESS_SUFFIX, text);
	CLEANUP(cleanup_mem) char *progress = mem_format("%s/%s", entry->folder, text);
	unlink(progress);
	return NULL;
}
