/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All changes are made under one lock of the folder, so that comparing with what is there and
 * replacing it is one step, and a ".new" seen under the lock is what a killed process left. Readers
 * take no lock: names lead to whole files only, because they get there by rename.
 */
#include "symcache/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum {
	/* "hash-", hex digits, ".miss" */
	STORE_NAME_BYTES = BUILD_ID_HEX_BYTES + 16,
	STORE_BLOCK_BYTES = 4096, /* what a file takes at least */
	STORE_LOCK_STEP_MS = 1,
	STORE_FOLDER_MODE = 0700,
	STORE_FILE_MODE = 0600,
	STORE_FOREIGN_BITS = S_IWGRP | S_IWOTH,
};

/* A file is marked as used at most that often. */
static const uint64_t touch_interval_ns = UINT64_C(600) * 1000000000;

static const char lock_name[] = "lock", new_name[] = ".new";
static const char file_suffix[] = ".sym", failure_suffix[] = ".miss";

static const char *const kind_prefixes[] = {
	[BUILD_ID_NONE] = "",
	[BUILD_ID_GNU] = "",
	[BUILD_ID_GO] = "go-",
	[BUILD_ID_HASH] = "hash-",
};

struct store {
	struct store_config config;
	char *path;
	int folder;
	uid_t user;
};

/* ---- names ---- */

static void make_name(const struct build_id *id, const char *suffix, char out[STORE_NAME_BYTES])
{
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	snprintf(out, STORE_NAME_BYTES, "%s%s%s", kind_prefixes[id->kind], hex, suffix);
}

/* The build-id that a name stands for; false when it is none of ours. */
static bool parse_name(const char *name, struct build_id *id_out, bool *is_failure_out)
{
	const char *suffix = strrchr(name, '.');
	char hex[BUILD_ID_HEX_BYTES];
	uint8_t kind = BUILD_ID_GNU;
	if (!suffix)
		return false;
	*is_failure_out = strcmp(suffix, failure_suffix) == 0;
	if (!*is_failure_out && strcmp(suffix, file_suffix) != 0)
		return false;
	const char *start = name;
	for (unsigned i = BUILD_ID_GO; i <= BUILD_ID_HASH; i++) {
		size_t n = strlen(kind_prefixes[i]);
		if (strncmp(name, kind_prefixes[i], n) == 0) {
			kind = (uint8_t)i;
			start = name + n;
		}
	}
	size_t n = (size_t)(suffix - start);
	if (start > suffix || n >= sizeof(hex))
		return false;
	memcpy(hex, start, n);
	hex[n] = 0;
	if (!build_id_parse(hex, id_out))
		return false;
	id_out->kind = kind;
	/* One name for one id: no capital letters. */
	char again[STORE_NAME_BYTES];
	make_name(id_out, suffix, again);
	return strcmp(again, name) == 0;
}

static struct error *check_id(const struct build_id *id)
{
	if (!build_id_is_set(id) || id->kind > BUILD_ID_HASH || id->kind == BUILD_ID_NONE)
		return error_new(ERROR_USAGE, "no build-id");
	return NULL;
}

/* ---- folder ---- */

static char *default_path(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (cache && cache[0] == '/')
		return mem_format("%s/perfpipe/symbols", cache);
	if (home && home[0] == '/')
		return mem_format("%s/.cache/perfpipe/symbols", home);
	return NULL;
}

/* The folder and those on the way to it. */
static struct error *make_folders(const char *path)
{
	CLEANUP(cleanup_mem) char *part = mem_copy_string(path);
	for (char *slash = part + 1;; slash++) {
		slash = strchr(slash, '/');
		if (slash)
			*slash = 0;
		if (mkdir(part, STORE_FOLDER_MODE) < 0 && errno != EEXIST)
			return error_errno(errno, "cannot create %s", part);
		if (!slash)
			return NULL;
		*slash = '/';
	}
}

static struct error *check_folder(const struct store *store)
{
	struct stat st;
	if (fstat(store->folder, &st) < 0)
		return error_errno(errno, "%s", store->path);
	if (st.st_uid != store->user)
		return error_new(ERROR_DENIED, "%s belongs to user %u, not to %u", store->path,
				 st.st_uid, store->user);
	if (st.st_mode & STORE_FOREIGN_BITS)
		return error_new(ERROR_DENIED, "%s may be written by others", store->path);
	return NULL;
}

struct error *store_open(const struct store_config *config, struct store **out)
{
	struct store *store = mem_zalloc(1, sizeof(*store));
	store->config = *config;
	store->user = geteuid();
	store->folder = -1;
	store->path = config->path ? mem_copy_string(config->path) : default_path();
	if (!store->config.clock)
		store->config.clock = &clock_system;
	if (!store->config.lock_wait_ms)
		store->config.lock_wait_ms = STORE_DEFAULT_WAIT_MS;
	struct error *err = NULL;
	if (!store->path || !*store->path)
		err = error_new(ERROR_USAGE, "no folder for symbol files: HOME is not set");
	else if (!config->must_exist)
		err = make_folders(store->path);
	if (!err) {
		store->folder = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		err = store->folder < 0 ? error_errno(errno, "%s", store->path)
					: check_folder(store);
	}
	if (err) {
		store_close(store);
		return err;
	}
	*out = store;
	return NULL;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	if (store->folder >= 0)
		close(store->folder);
	mem_free(store->path);
	mem_free(store);
}

const char *store_get_path(const struct store *store)
{
	return store->path;
}

static uint64_t wall_ns(const struct store *store)
{
	return store->config.clock->wall_ns(store->config.clock->context);
}

/* ---- lock ---- */

static void unlock(const int *fd)
{
	if (*fd < 0)
		return;
	/* A child that was forked meanwhile has the same lock open. */
	flock(*fd, LOCK_UN);
	close(*fd);
}

static struct error *lock(const struct store *store, int *fd_out)
{
	int fd = openat(store->folder, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			STORE_FILE_MODE);
	if (fd < 0)
		return error_errno(errno, "%s/%s", store->path, lock_name);
	for (uint32_t waited = 0;; waited += STORE_LOCK_STEP_MS) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			*fd_out = fd;
			return NULL;
		}
		int errno_value = errno;
		if (errno_value != EWOULDBLOCK && errno_value != EINTR) {
			close(fd);
			return error_errno(errno_value, "%s/%s", store->path, lock_name);
		}
		if (waited >= store->config.lock_wait_ms) {
			close(fd);
			return error_new(ERROR_AGAIN, "%s is locked by another process",
					 store->path);
		}
		nanosleep(&(struct timespec){.tv_nsec = STORE_LOCK_STEP_MS * 1000000}, NULL);
	}
}

/* ---- files ---- */

/* Regular, ours, and nobody else's to write. */
static bool is_trusted(const struct store *store, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == store->user &&
	       !(st->st_mode & STORE_FOREIGN_BITS);
}

/* -1 when there is none, or one that is not to be trusted. */
static int open_trusted(const struct store *store, const char *name, struct stat *st)
{
	int fd = openat(store->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) == 0 && is_trusted(store, st))
		return fd;
	close(fd);
	return -1;
}

static uint64_t used_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

static void set_used(const struct store *store, int fd)
{
	uint64_t now = wall_ns(store);
	struct timespec time = {.tv_sec = (time_t)(now / 1000000000),
				.tv_nsec = (long)(now % 1000000000)};
	/* Losing it costs a place in the order of eviction. */
	(void)futimens(fd, (struct timespec[2]){time, time});
}

/* What the header of a file says; false when it is none of this id. */
static bool read_file_entry(const struct store *store, const struct build_id *id,
			    struct store_entry *entry)
{
	char name[STORE_NAME_BYTES];
	struct stat st;
	struct symbol_file_header header;
	make_name(id, file_suffix, name);
	CLEANUP(cleanup_fd) int fd = open_trusted(store, name, &st);
	if (fd < 0)
		return false;
	struct error *err = symbol_file_read_header(fd, &header);
	if (err || !build_id_equal(&header.build_id, id)) {
		error_free(err);
		return false;
	}
	entry->has_file = true;
	entry->quality = header.quality;
	entry->file_bytes = (uint64_t)st.st_size;
	entry->used_ns = used_ns(&st);
	return true;
}

/* A line "WORD NUMBER"; *text moves behind it. */
static bool parse_line(const char **text, const char *word, uint64_t *out)
{
	size_t n = strlen(word);
	if (strncmp(*text, word, n) != 0 || (*text)[n] < '0' || (*text)[n] > '9')
		return false;
	char *end;
	errno = 0;
	*out = strtoull(*text + n, &end, 10);
	if (errno || *end != '\n')
		return false;
	*text = end + 1;
	return true;
}

/* The failure as it is stored, whether its time is over or not. */
static bool parse_failure(const char *text, struct store_entry *entry)
{
	static const char reason[] = "reason ";
	uint64_t version, quality;
	if (!parse_line(&text, "perfpipe failure ", &version) || version != 1 ||
	    !parse_line(&text, "quality ", &quality) || quality >= SYMBOL_QUALITY_N ||
	    !parse_line(&text, "until ", &entry->failure_end_ns) ||
	    strncmp(text, reason, sizeof(reason) - 1) != 0)
		return false;
	text += sizeof(reason) - 1;
	entry->failed_quality = (enum symbol_quality)quality;
	snprintf(entry->reason, sizeof(entry->reason), "%.*s", (int)strcspn(text, "\n"), text);
	return true;
}

static bool read_failure(const struct store *store, const char *name, struct store_entry *entry)
{
	struct stat st;
	char text[2 * STORE_MAX_REASON_BYTES];
	size_t n = 0;
	CLEANUP(cleanup_fd) int fd = open_trusted(store, name, &st);
	if (fd < 0)
		return false;
	struct error *err = file_read(fd, text, sizeof(text) - 1, &n);
	if (err) {
		error_free(err);
		return false;
	}
	text[n] = 0;
	return parse_failure(text, entry);
}

static void read_failure_entry(const struct store *store, const struct build_id *id,
			       struct store_entry *entry)
{
	char name[STORE_NAME_BYTES];
	make_name(id, failure_suffix, name);
	entry->has_failure =
		read_failure(store, name, entry) && entry->failure_end_ns > wall_ns(store);
	if (!entry->has_failure) {
		entry->failed_quality = SYMBOL_QUALITY_NONE;
		entry->failure_end_ns = 0;
		entry->reason[0] = 0;
	}
}

struct error *store_find(struct store *store, const struct build_id *id, struct store_entry *out)
{
	struct error *err = check_id(id);
	if (err)
		return err;
	*out = (struct store_entry){.build_id = *id};
	(void)read_file_entry(store, id, out);
	read_failure_entry(store, id, out);
	return NULL;
}

bool store_wants(const struct store_entry *entry, enum symbol_quality source)
{
	if (entry->has_failure && source <= entry->failed_quality)
		return false;
	return !entry->has_file || source > entry->quality;
}

static struct error *remove_name(const struct store *store, const char *name)
{
	if (unlinkat(store->folder, name, 0) < 0)
		return errno == ENOENT ? error_no_entry
				       : error_errno(errno, "%s/%s", store->path, name);
	return NULL;
}

static struct error *load_file(const struct store *store, const char *name,
			       const struct build_id *id, enum symcache_demangle demangle,
			       struct symbol_file **out)
{
	struct stat st;
	CLEANUP(cleanup_fd) int fd = open_trusted(store, name, &st);
	if (fd < 0)
		return error_no_entry;
	struct error *err = symbol_file_open_fd(fd, demangle, out);
	if (err)
		return err;
	struct symbol_file_info info = symbol_file_get_info(*out);
	if (!build_id_equal(&info.build_id, id)) {
		symbol_file_close(*out);
		return error_new(ERROR_BAD_DATA, "it is of another build-id");
	}
	if (wall_ns(store) - used_ns(&st) >= touch_interval_ns)
		set_used(store, fd);
	return NULL;
}

struct error *store_load(struct store *store, const struct build_id *id,
			 enum symcache_demangle demangle, struct symbol_file **out)
{
	char name[STORE_NAME_BYTES];
	struct error *err = check_id(id);
	if (err)
		return err;
	make_name(id, file_suffix, name);
	err = load_file(store, name, id, demangle, out);
	if (!err ||
	    (error_get_code(err) != ERROR_BAD_DATA && error_get_code(err) != ERROR_UNSUPPORTED))
		return error_wrap(err, "%s/%s", store->path, name);
	error_free(err);
	/* Another process may have replaced it meanwhile, so look again under the lock. */
	CLEANUP(unlock) int lock_fd = -1;
	err = lock(store, &lock_fd);
	if (err)
		return err;
	err = load_file(store, name, id, demangle, out);
	if (!err || error_get_code(err) == ERROR_NO_ENTRY)
		return err;
	error_free(err);
	error_free(remove_name(store, name));
	return error_no_entry;
}

/* ---- writing ---- */

/* Under the lock. Without fsync: what a power cut tears, the checksums tell. */
static struct error *replace_file(const struct store *store, const char *name, const void *bytes,
				  size_t size)
{
	unlinkat(store->folder, new_name, 0);
	CLEANUP(cleanup_fd)
	int fd = openat(store->folder, new_name,
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, STORE_FILE_MODE);
	if (fd < 0)
		return error_errno(errno, "%s/%s", store->path, new_name);
	struct error *err = file_write(fd, bytes, size);
	if (!err) {
		set_used(store, fd);
		if (renameat(store->folder, new_name, store->folder, name) < 0)
			err = error_errno(errno, "rename");
	}
	if (err)
		unlinkat(store->folder, new_name, 0);
	return error_wrap(err, "%s/%s", store->path, name);
}

/* Whole and of that id; its quality. */
static struct error *check_bytes(const struct build_id *id, const void *bytes, size_t size,
				 enum symbol_quality *quality_out)
{
	struct symbol_file *file = NULL;
	struct error *err = symbol_file_open_bytes(bytes, size, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (err)
		return err;
	struct symbol_file_info info = symbol_file_get_info(file);
	if (!build_id_equal(&info.build_id, id) || info.build_id.kind != id->kind)
		err = error_new(ERROR_BAD_DATA, "symbol file of another build-id");
	else
		err = symbol_file_verify(file);
	symbol_file_close(file);
	*quality_out = info.quality;
	return err;
}

static uint64_t disk_bytes(uint64_t size)
{
	return (size + STORE_BLOCK_BYTES - 1) / STORE_BLOCK_BYTES * STORE_BLOCK_BYTES;
}

static struct error *collect(const struct store *store, const char *keep,
			     const struct store_listener *listener, struct store_summary *out);

/* Under the lock. */
static struct error *publish(struct store *store, const struct build_id *id, const void *bytes,
			     size_t size, enum symbol_quality quality)
{
	char name[STORE_NAME_BYTES];
	struct store_entry there = {.build_id = *id};
	struct symbol_file *old = NULL;
	struct error *err = NULL;
	make_name(id, file_suffix, name);
	bool is_better = !read_file_entry(store, id, &there) || there.quality < quality;
	if (!is_better) {
		/* Only a whole file can stay. */
		err = load_file(store, name, id, SYMCACHE_DEMANGLE_NORMAL, &old);
		if (!err)
			symbol_file_close(old);
		is_better = err != NULL;
		error_free(err);
		err = NULL;
	}
	if (is_better)
		err = replace_file(store, name, bytes, size);
	if (err)
		return err;
	read_failure_entry(store, id, &there);
	if (there.has_failure && there.failed_quality <= quality) {
		char failure[STORE_NAME_BYTES];
		make_name(id, failure_suffix, failure);
		error_free(remove_name(store, failure));
	}
	struct store_summary summary;
	return is_better ? collect(store, name, NULL, &summary) : NULL;
}

struct error *store_publish(struct store *store, const struct build_id *id, const void *bytes,
			    size_t size)
{
	enum symbol_quality quality;
	struct error *err = check_id(id);
	if (!err && store->config.max_bytes && disk_bytes(size) > store->config.max_bytes)
		err = error_new(ERROR_LIMIT, "%zu bytes are more than the store may hold", size);
	if (!err)
		err = check_bytes(id, bytes, size, &quality);
	if (err)
		return err;
	CLEANUP(unlock) int lock_fd = -1;
	err = lock(store, &lock_fd);
	return err ? err : publish(store, id, bytes, size, quality);
}

/* One line of what can be shown. */
static void clean_reason(const char *reason, char out[STORE_MAX_REASON_BYTES])
{
	size_t n = 0;
	for (; reason[n] && n + 1 < STORE_MAX_REASON_BYTES; n++)
		out[n] = (unsigned char)reason[n] < ' ' || reason[n] == 0x7f ? ' ' : reason[n];
	out[n] = 0;
}

struct error *store_fail(struct store *store, const struct build_id *id, enum symbol_quality source,
			 uint64_t lifetime_ns, const char *reason)
{
	char name[STORE_NAME_BYTES], line[STORE_MAX_REASON_BYTES];
	char text[2 * STORE_MAX_REASON_BYTES];
	struct store_entry there = {0};
	struct error *err = check_id(id);
	if (err)
		return err;
	CLEANUP(unlock) int lock_fd = -1;
	err = lock(store, &lock_fd);
	if (err)
		return err;
	/* That a poorer source fails too is no news. */
	read_failure_entry(store, id, &there);
	if (there.has_failure && there.failed_quality > source)
		return NULL;
	uint64_t end_ns;
	if (__builtin_add_overflow(wall_ns(store), lifetime_ns, &end_ns))
		end_ns = UINT64_MAX;
	clean_reason(reason, line);
	int n = snprintf(text, sizeof(text),
			 "perfpipe failure 1\nquality %u\nuntil %" PRIu64 "\nreason %s\n",
			 (unsigned)source, end_ns, line);
	make_name(id, failure_suffix, name);
	err = replace_file(store, name, text, (size_t)n);
	struct store_summary summary;
	return err ? err : collect(store, name, NULL, &summary);
}

struct error *store_remove(struct store *store, const struct build_id *id)
{
	char name[STORE_NAME_BYTES], failure[STORE_NAME_BYTES];
	struct error *err = check_id(id);
	if (err)
		return err;
	CLEANUP(unlock) int lock_fd = -1;
	err = lock(store, &lock_fd);
	if (err)
		return err;
	make_name(id, file_suffix, name);
	make_name(id, failure_suffix, failure);
	err = remove_name(store, name);
	struct error *failure_err = remove_name(store, failure);
	if (err && error_get_code(err) == ERROR_NO_ENTRY)
		return failure_err;
	error_free(failure_err && error_get_code(failure_err) != ERROR_NO_ENTRY ? failure_err
										: NULL);
	return err;
}

/* ---- the whole folder ---- */

struct listed {
	char name[STORE_NAME_BYTES];
	struct build_id id;
	bool is_failure, is_ours; /* ours: a name that stands for an id */
	bool is_trusted;
	uint64_t bytes, used_ns;
};

struct listing {
	struct listed *items;
	size_t n, capacity;
};

static void list_name(const struct store *store, struct listing *listing, const char *name)
{
	struct stat st;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, lock_name) == 0)
		return;
	if (strlen(name) >= STORE_NAME_BYTES ||
	    fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	struct listed item = {
		.is_trusted = is_trusted(store, &st),
		.bytes = disk_bytes((uint64_t)st.st_size),
		.used_ns = used_ns(&st),
	};
	item.is_ours = parse_name(name, &item.id, &item.is_failure);
	/* Strangers' files stay, but for what a killed process left. */
	if (!item.is_ours && strcmp(name, new_name) != 0)
		return;
	memcpy(item.name, name, strlen(name) + 1);
	if (listing->n == listing->capacity) {
		listing->capacity = listing->capacity ? 2 * listing->capacity : 64;
		listing->items =
			mem_realloc(listing->items, listing->capacity, sizeof(*listing->items));
	}
	listing->items[listing->n++] = item;
}

static struct error *list_folder(const struct store *store, struct listing *out)
{
	*out = (struct listing){0};
	int fd = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		struct error *err = error_errno(errno, "%s", store->path);
		if (fd >= 0)
			close(fd);
		return err;
	}
	for (const struct dirent *entry; (entry = readdir(folder));)
		list_name(store, out, entry->d_name);
	closedir(folder);
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static int compare_use(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void sort_listing(struct listing *listing, int (*compare)(const void *, const void *))
{
	if (listing->n)
		qsort(listing->items, listing->n, sizeof(*listing->items), compare);
}

struct error *store_walk(struct store *store, store_walk_fn fn, void *context)
{
	struct listing listing;
	struct error *err = list_folder(store, &listing);
	sort_listing(&listing, compare_names);
	const struct build_id *last = NULL;
	for (size_t i = 0; i < listing.n && !err; i++) {
		const struct listed *item = &listing.items[i];
		struct store_entry entry;
		/* ID.miss and ID.sym are neighbours. */
		if (!item->is_ours ||
		    (last && build_id_equal(last, &item->id) && last->kind == item->id.kind))
			continue;
		last = &item->id;
		err = store_find(store, &item->id, &entry);
		if (!err && (entry.has_file || entry.has_failure))
			err = fn(context, &entry);
	}
	mem_free(listing.items);
	return err;
}

static bool is_expired(const struct store *store, const struct listed *item)
{
	struct store_entry entry = {0};
	if (!item->is_failure)
		return false;
	return !read_failure(store, item->name, &entry) || entry.failure_end_ns <= wall_ns(store);
}

/* NULL when it stays. */
static const char *reason_to_go(const struct store *store, const struct listed *item)
{
	if (!item->is_ours)
		return "left over by a process that was killed";
	if (!item->is_trusted)
		return "it is no plain file of this user alone";
	return is_expired(store, item) ? "its time is over" : NULL;
}

static void count_item(struct store_summary *summary, const struct listed *item, int sign)
{
	uint64_t one = (uint64_t)(int64_t)sign;
	*(item->is_failure ? &summary->n_failures : &summary->n_files) += one;
	summary->bytes += one * item->bytes;
}

static void remove_item(const struct store *store, const struct listed *item, const char *reason,
			const struct store_listener *listener, struct store_summary *summary)
{
	struct error *err = remove_name(store, item->name);
	if (err) {
		error_free(err);
		return;
	}
	summary->n_removed++;
	summary->removed_bytes += item->bytes;
	if (listener)
		listener->removed(listener->context, item->name, reason);
}

/* Under the lock. keep: a name that stays, NULL = none. */
static struct error *collect(const struct store *store, const char *keep,
			     const struct store_listener *listener, struct store_summary *out)
{
	struct listing listing;
	struct error *err = list_folder(store, &listing);
	*out = (struct store_summary){0};
	sort_listing(&listing, compare_use);
	for (size_t i = 0; i < listing.n; i++) {
		struct listed *item = &listing.items[i];
		const char *reason = reason_to_go(store, item);
		if (reason) {
			remove_item(store, item, reason, listener, out);
			item->name[0] = 0;
		} else {
			count_item(out, item, 1);
		}
	}
	for (size_t i = 0;
	     i < listing.n && store->config.max_bytes && out->bytes > store->config.max_bytes;
	     i++) {
		const struct listed *item = &listing.items[i];
		if (!item->name[0] || (keep && strcmp(item->name, keep) == 0))
			continue;
		count_item(out, item, -1);
		remove_item(store, item, "the store was over its bound", listener, out);
	}
	mem_free(listing.items);
	return err;
}

struct error *store_collect(struct store *store, const struct store_listener *listener,
			    struct store_summary *out)
{
	CLEANUP(unlock) int lock_fd = -1;
	struct error *err = lock(store, &lock_fd);
	return err ? err : collect(store, NULL, listener, out);
}

/* What is wrong with a symbol file, NULL if nothing. */
static struct error *check_whole(const struct store *store, const struct listed *item)
{
	struct symbol_file *file = NULL;
	struct error *err =
		load_file(store, item->name, &item->id, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (!err) {
		err = symbol_file_verify(file);
		symbol_file_close(file);
	}
	return err;
}

struct error *store_verify(struct store *store, const struct store_listener *listener,
			   struct store_summary *out)
{
	CLEANUP(unlock) int lock_fd = -1;
	struct listing listing;
	struct error *err = lock(store, &lock_fd);
	if (err)
		return err;
	err = list_folder(store, &listing);
	struct store_summary damaged = {0};
	for (size_t i = 0; i < listing.n; i++) {
		const struct listed *item = &listing.items[i];
		if (!item->is_ours || item->is_failure || !item->is_trusted)
			continue;
		struct error *fault = check_whole(store, item);
		if (fault)
			remove_item(store, item, error_text(fault), listener, &damaged);
		error_free(fault);
	}
	mem_free(listing.items);
	if (err)
		return err;
	err = collect(store, NULL, listener, out);
	out->n_removed += damaged.n_removed;
	out->removed_bytes += damaged.removed_bytes;
	return err;
}
