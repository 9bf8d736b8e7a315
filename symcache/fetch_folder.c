/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash_seed.h"
#include "symcache/fetched_file.h"
#include "symcache/fetcher.h"
#include "symcache/path_open.h"

#define LOG_AREA "symcache"
#include "base/log.h"

#define NS_PER_S ((uint64_t)1000000000)

enum {
	NAME_BYTES = BUILD_ID_HEX_BYTES + 32,
	TEXT_MAX_BYTES = 16 << 10,
	FOLDER_MODE = 0700,
	FILE_MODE = 0600,
	FOREIGN_BITS = S_IWGRP | S_IWOTH,
	TREE_MAX_DEPTH = 8,
	/* What is younger may be between being made and being locked. */
	LEFT_OVER_S = 60,
	COPY_STEP_BYTES = 1 << 30,
};

static const char folder_name[] = "fetched", pauses_name[] = "paused";
static const char work_prefix[] = "work-", new_prefix[] = ".new-",
		  temporary_prefix[] = "perfpipe-fetch-";
static const char absent_suffix[] = ".absent";
static const char *const kind_suffixes[FETCHER_KIND_N] = {".debuginfo", ".executable"};

struct fetch_folder {
	struct fetch_folder_config config;
	char *path;
	int fd;
	bool is_temporary;
	uid_t user;
};

static uint64_t wall_ns(const struct fetch_folder *folder)
{
	return folder->config.clock->wall_ns(folder->config.clock->context);
}

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), n_suffix = strlen(suffix);
	return n >= n_suffix && strcmp(name + n - n_suffix, suffix) == 0;
}

static void make_name(const struct build_id *id, enum fetcher_kind kind, const char *suffix,
		      char out[NAME_BYTES])
{
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	snprintf(out, NAME_BYTES, "%s%s%s", hex, kind_suffixes[kind], suffix);
}

/* prefix and eight random hex digits. */
static void make_random_name(const char *prefix, char *out, size_t n)
{
	snprintf(out, n, "%s%08x", prefix, (uint32_t)hash_seed_make());
}

/* ---- trees ---- */

/* What is in a folder that a worker filled: links are not followed, and depth has a bound. */
static void empty_folder(int fd, int depth)
{
	int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
	if (!list) {
		if (list_fd >= 0)
			close(list_fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(list));) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    unlinkat(fd, name, 0) == 0 || depth == TREE_MAX_DEPTH)
			continue;
		CLEANUP(cleanup_fd)
		int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0)
			empty_folder(inner, depth + 1);
		(void)unlinkat(fd, name, AT_REMOVEDIR);
	}
	closedir(list);
}

static void remove_tree(int parent, const char *name)
{
	CLEANUP(cleanup_fd)
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty_folder(fd, 0);
	if (unlinkat(parent, name, fd >= 0 ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		log_debug("not removed name=%s errno=%d", name, errno);
}

/* Who made it holds its lock for as long as he lives. */
static bool is_left_over(const struct fetch_folder *folder, int parent, const char *name)
{
	struct stat st;
	CLEANUP(cleanup_fd)
	int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	uint64_t changed_s = (uint64_t)st.st_mtim.tv_sec;
	if (changed_s + LEFT_OVER_S > wall_ns(folder) / NS_PER_S)
		return false;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	flock(fd, LOCK_UN);
	return true;
}

/* ---- small files ---- */

/* Regular, ours, and nobody else's to write; -1 for all else. */
static int open_trusted(const struct fetch_folder *folder, const char *name, struct stat *st)
{
	int fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == folder->user &&
	    !(st->st_mode & FOREIGN_BITS))
		return fd;
	close(fd);
	return -1;
}

static bool read_text(const struct fetch_folder *folder, const char *name, char *out, size_t size)
{
	struct stat st;
	size_t n = 0;
	CLEANUP(cleanup_fd) int fd = open_trusted(folder, name, &st);
	if (fd < 0)
		return false;
	struct error *err = file_read(fd, out, size - 1, &n);
	out[n] = 0;
	error_free(err);
	return !err;
}

static int make_new(const struct fetch_folder *folder, char name[NAME_BYTES])
{
	make_random_name(new_prefix, name, NAME_BYTES);
	int fd = openat(folder->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			FILE_MODE);
	if (fd >= 0)
		(void)flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

/* Losing such a file costs a question more. */
static void write_text(const struct fetch_folder *folder, const char *name, const void *text,
		       size_t n)
{
	char new_name[NAME_BYTES];
	CLEANUP(cleanup_fd) int fd = make_new(folder, new_name);
	if (fd < 0)
		return;
	struct error *err = file_write(fd, text, n);
	if (err || renameat(folder->fd, new_name, folder->fd, name) < 0)
		(void)unlinkat(folder->fd, new_name, 0);
	error_free(err);
}

static bool parse_absent(const char *text, uint64_t *until_out, uint64_t *servers_out)
{
	int end = 0;
	return sscanf(text, "perfpipe absent 1\nuntil %" SCNu64 "\nservers %" SCNx64 "\n%n",
		      until_out, servers_out, &end) == 2 &&
	       end > 0;
}

static bool is_expired(const struct fetch_folder *folder, const char *name)
{
	char text[256];
	uint64_t until, servers;
	return !read_text(folder, name, text, sizeof(text)) ||
	       !parse_absent(text, &until, &servers) || until <= wall_ns(folder);
}

/* ---- the whole folder ---- */

struct listed {
	char name[NAME_BYTES];
	uint64_t bytes, used_ns;
	bool is_gone;
};

struct listing {
	struct listed *items;
	size_t n, capacity;
	uint64_t bytes;
	const struct store_listener *listener; /* NULL = none */
	uint64_t n_removed, removed_bytes;
};

static bool is_fetched(const char *name)
{
	return ends(name, kind_suffixes[FETCHER_DEBUGINFO]) ||
	       ends(name, kind_suffixes[FETCHER_EXECUTABLE]);
}

static void list_file(const struct fetch_folder *folder, const char *name, struct listing *listing)
{
	struct stat st;
	if (strlen(name) >= NAME_BYTES || fstatat(folder->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (listing->n == listing->capacity) {
		listing->capacity = listing->capacity ? 2 * listing->capacity : 64;
		listing->items =
			mem_realloc(listing->items, listing->capacity, sizeof(*listing->items));
	}
	struct listed *item = &listing->items[listing->n++];
	*item = (struct listed){
		.bytes = (uint64_t)st.st_blocks * 512,
		.used_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec,
	};
	memcpy(item->name, name, strlen(name) + 1);
	listing->bytes += item->bytes;
}

static int compare_use(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* To be called once a name is gone. */
static void note_removed(struct listing *listing, const char *name, uint64_t bytes,
			 const char *reason)
{
	listing->n_removed++;
	listing->removed_bytes += bytes;
	log_debug("fetched file removed name=%s bytes=%" PRIu64 " reason=\"%s\"", name, bytes,
		  reason);
	if (!listing->listener)
		return;
	char shown[NAME_BYTES + sizeof(folder_name) + 1];
	snprintf(shown, sizeof(shown), "%s/%s", folder_name, name);
	listing->listener->removed(listing->listener->context, shown, reason);
}

/* keep stays (NULL = none). */
static void evict(const struct fetch_folder *folder, struct listing *listing, const char *keep)
{
	if (listing->n)
		qsort(listing->items, listing->n, sizeof(*listing->items), compare_use);
	for (size_t i = 0; i < listing->n && listing->bytes > folder->config.max_bytes; i++) {
		struct listed *item = &listing->items[i];
		if ((keep && strcmp(item->name, keep) == 0) ||
		    unlinkat(folder->fd, item->name, 0) < 0)
			continue;
		item->is_gone = true;
		listing->bytes -= item->bytes;
		note_removed(listing, item->name, item->bytes,
			     "what was fetched was over its bound");
	}
}

static void collect_name(const struct fetch_folder *folder, const char *name,
			 struct listing *listing)
{
	bool is_ours = begins(name, work_prefix) || begins(name, new_prefix);
	if (is_ours && is_left_over(folder, folder->fd, name)) {
		remove_tree(folder->fd, name);
		note_removed(listing, name, 0, "left over by a process that was killed");
	} else if (ends(name, absent_suffix) && is_expired(folder, name)) {
		if (unlinkat(folder->fd, name, 0) == 0)
			note_removed(listing, name, 0, "its time is over");
	} else if (is_fetched(name)) {
		list_file(folder, name, listing);
	}
}

/* Removes what is left over, expired, or over the bound; the items stay the caller's. */
static void collect(const struct fetch_folder *folder, const char *keep, struct listing *listing)
{
	int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(list));)
		collect_name(folder, entry->d_name, listing);
	closedir(list);
	if (folder->config.max_bytes)
		evict(folder, listing, keep);
}

static void tidy(const struct fetch_folder *folder, const char *keep)
{
	struct listing listing = {0};
	collect(folder, keep, &listing);
	mem_free(listing.items);
}

/* ---- opening ---- */

static struct error *open_in_store(struct fetch_folder *folder)
{
	struct stat st;
	folder->path = mem_format("%s/%s", folder->config.store_path, folder_name);
	if (mkdir(folder->path, FOLDER_MODE) < 0 && errno != EEXIST)
		return error_errno(errno, "cannot create %s", folder->path);
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder->fd < 0 || fstat(folder->fd, &st) < 0)
		return error_errno(errno, "%s", folder->path);
	if (st.st_uid != folder->user || (st.st_mode & FOREIGN_BITS))
		return error_new(ERROR_DENIED, "%s is not this user's alone", folder->path);
	return NULL;
}

/* What perfpipe left in the folder of temporary files when it was killed. */
static void sweep_temporary(const struct fetch_folder *folder, const char *parent)
{
	DIR *list = opendir(parent);
	if (!list)
		return;
	for (const struct dirent *entry; (entry = readdir(list));) {
		struct stat st;
		if (begins(entry->d_name, temporary_prefix) &&
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode) && st.st_uid == folder->user &&
		    is_left_over(folder, dirfd(list), entry->d_name))
			remove_tree(dirfd(list), entry->d_name);
	}
	closedir(list);
}

static struct error *open_temporary(struct fetch_folder *folder)
{
	const char *parent = getenv("TMPDIR");
	if (!parent || *parent != '/')
		parent = "/tmp";
	folder->is_temporary = true;
	sweep_temporary(folder, parent);
	folder->path = mem_format("%s/%sXXXXXX", parent, temporary_prefix);
	if (!mkdtemp(folder->path)) {
		struct error *err = error_errno(errno, "cannot create a folder in %s", parent);
		mem_free(TAKE(folder->path));
		return err;
	}
	folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder->fd < 0)
		return error_errno(errno, "%s", folder->path);
	(void)flock(folder->fd, LOCK_EX | LOCK_NB);
	return NULL;
}

static struct error *open_quietly(const struct fetch_folder_config *config,
				  struct fetch_folder **out)
{
	struct fetch_folder *folder = mem_zalloc(1, sizeof(*folder));
	folder->config = *config;
	folder->fd = -1;
	folder->user = geteuid();
	if (!folder->config.clock)
		folder->config.clock = &clock_system;
	struct error *err = config->store_path ? open_in_store(folder) : open_temporary(folder);
	if (err) {
		fetch_folder_close(folder);
		return err;
	}
	*out = folder;
	return NULL;
}

struct error *fetch_folder_open(const struct fetch_folder_config *config, struct fetch_folder **out)
{
	struct error *err = open_quietly(config, out);
	if (!err)
		tidy(*out, NULL);
	return err;
}

void fetch_folder_close(struct fetch_folder *folder)
{
	if (!folder)
		return;
	if (folder->fd >= 0) {
		if (folder->is_temporary)
			empty_folder(folder->fd, 0);
		close(folder->fd);
	}
	if (folder->is_temporary && folder->path)
		(void)rmdir(folder->path);
	mem_free(folder->path);
	mem_free(folder);
}

struct error *fetch_folder_tend(const char *store_path, uint64_t max_bytes,
				const struct store_listener *listener,
				struct store_summary *summary)
{
	const struct fetch_folder_config config = {.store_path = store_path};
	struct fetch_folder *folder;
	struct listing listing = {.listener = listener};
	CLEANUP(cleanup_mem) char *path = mem_format("%s/%s", store_path, folder_name);
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return NULL;
	struct error *err = open_quietly(&config, &folder);
	if (err)
		return err;
	folder->config.max_bytes = max_bytes;
	collect(folder, NULL, &listing);
	fetch_folder_close(folder);
	uint64_t n_evicted = 0;
	for (size_t i = 0; i < listing.n; i++)
		n_evicted += listing.items[i].is_gone;
	summary->n_files += listing.n - n_evicted;
	summary->bytes += listing.bytes;
	summary->n_removed += listing.n_removed;
	summary->removed_bytes += listing.removed_bytes;
	mem_free(listing.items);
	return NULL;
}

/* ---- files ---- */

static struct error *check(int fd, const struct build_id *id, enum fetcher_kind kind,
			   uint64_t stated_bytes)
{
	struct file_map map;
	struct error *err = file_map_fd(fd, SIZE_MAX, &map);
	if (err)
		return err;
	const char *fault = fetched_file_fault(&map, id, kind, stated_bytes);
	file_map_close(&map);
	return fault ? error_new(ERROR_BAD_DATA, "%s", fault) : NULL;
}

int fetch_folder_find(struct fetch_folder *folder, const struct build_id *id,
		      enum fetcher_kind kind, char **path_out)
{
	char name[NAME_BYTES];
	struct stat st;
	make_name(id, kind, "", name);
	CLEANUP(cleanup_fd) int fd = open_trusted(folder, name, &st);
	if (fd < 0)
		return -1;
	/* A power cut may have torn it. */
	struct error *err = check(fd, id, kind, 0);
	if (err) {
		error_free(err);
		(void)unlinkat(folder->fd, name, 0);
		return -1;
	}
	(void)futimens(fd, NULL); /* used now; losing it costs a place in the order of eviction */
	if (path_out)
		*path_out = mem_format("%s/%s", folder->path, name);
	int out = fd;
	fd = -1;
	return out;
}

bool fetch_folder_is_absent(const struct fetch_folder *folder, const struct build_id *id,
			    enum fetcher_kind kind, uint64_t servers)
{
	char name[NAME_BYTES], text[256];
	uint64_t until, of_servers;
	make_name(id, kind, absent_suffix, name);
	return read_text(folder, name, text, sizeof(text)) &&
	       parse_absent(text, &until, &of_servers) && of_servers == servers &&
	       until > wall_ns(folder);
}

void fetch_folder_note_absent(struct fetch_folder *folder, const struct build_id *id,
			      enum fetcher_kind kind, uint64_t servers, uint64_t lifetime_ns)
{
	char name[NAME_BYTES], text[256];
	make_name(id, kind, absent_suffix, name);
	int n = snprintf(text, sizeof(text),
			 "perfpipe absent 1\nuntil %" PRIu64 "\nservers %016" PRIx64 "\n",
			 wall_ns(folder) + lifetime_ns, servers);
	write_text(folder, name, text, (size_t)n);
}

/* ---- workers ---- */

struct error *fetch_folder_begin_work(struct fetch_folder *folder, struct fetch_work *out)
{
	struct fetch_work work = {.fd = -1};
	make_random_name(work_prefix, work.name, sizeof(work.name));
	if (mkdirat(folder->fd, work.name, FOLDER_MODE) < 0)
		return error_errno(errno, "%s/%s", folder->path, work.name);
	work.fd = openat(folder->fd, work.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct error *err = work.fd < 0 ? error_errno(errno, "%s/%s", folder->path, work.name)
					: fetcher_own_folder(work.fd);
	if (err) {
		fetch_folder_end_work(folder, &work);
		return err;
	}
	(void)flock(work.fd, LOCK_EX | LOCK_NB);
	*out = work;
	return NULL;
}

void fetch_folder_end_work(struct fetch_folder *folder, struct fetch_work *work)
{
	if (work->fd >= 0)
		close(work->fd);
	if (work->name[0])
		remove_tree(folder->fd, work->name);
	*work = (struct fetch_work){.fd = -1};
}

static struct error *copy_by_hand(int from, int to)
{
	uint8_t *block = mem_alloc(TEXT_MAX_BYTES);
	struct error *err;
	size_t n;
	do {
		err = file_read(from, block, TEXT_MAX_BYTES, &n);
		if (!err)
			err = file_write(to, block, n);
	} while (!err && n);
	mem_free(block);
	return err;
}

/* In the kernel, sharing blocks where the file system can; by hand where it cannot. */
static struct error *copy(int from, int to)
{
	ssize_t n;
	do {
		n = copy_file_range(from, NULL, to, NULL, COPY_STEP_BYTES, 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0 && errno != EXDEV && errno != ENOSYS && errno != EINVAL && errno != EOPNOTSUPP)
		return error_errno(errno, "copy");
	return n < 0 ? copy_by_hand(from, to) : NULL;
}

static int open_in_work(const struct fetch_work *work, const char *path)
{
	char root[64];
	int fd = -1;
	snprintf(root, sizeof(root), "/proc/self/fd/%d", work->fd);
	return path_open(root, path, &fd) ? -1 : fd;
}

struct error *fetch_folder_take(struct fetch_folder *folder, const struct fetch_work *work,
				const char *path, const struct build_id *id, enum fetcher_kind kind,
				uint64_t stated_bytes)
{
	char name[NAME_BYTES], new_name[NAME_BYTES];
	make_name(id, kind, "", name);
	CLEANUP(cleanup_fd) int from = open_in_work(work, path);
	if (from < 0)
		return error_new(ERROR_IO, "the fetched file is not where it should be");
	CLEANUP(cleanup_fd) int to = make_new(folder, new_name);
	if (to < 0)
		return error_errno(errno, "%s", folder->path);
	struct error *err = copy(from, to);
	if (!err)
		err = check(to, id, kind, stated_bytes);
	if (!err && renameat(folder->fd, new_name, folder->fd, name) < 0)
		err = error_errno(errno, "%s/%s", folder->path, name);
	if (err) {
		(void)unlinkat(folder->fd, new_name, 0);
		return err;
	}
	char absent[NAME_BYTES];
	make_name(id, kind, absent_suffix, absent);
	(void)unlinkat(folder->fd, absent, 0);
	tidy(folder, name);
	return NULL;
}

/* ---- pauses ---- */

void fetch_folder_load_pauses(const struct fetch_folder *folder, struct server_list *list)
{
	char text[TEXT_MAX_BYTES];
	if (read_text(folder, pauses_name, text, sizeof(text)))
		server_list_parse(list, text);
}

void fetch_folder_save_pauses(struct fetch_folder *folder, const struct server_list *list)
{
	struct buf buf;
	buf_init(&buf, TEXT_MAX_BYTES);
	struct error *err = server_list_format(list, &buf);
	if (!err)
		write_text(folder, pauses_name, buf.data, buf.size);
	error_free(err);
	buf_fini(&buf);
}
