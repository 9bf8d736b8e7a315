/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of one exporter: which windows wait, and the bounds on them. */
#define LOG_AREA "spool"
#include "forwarder/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash_seed.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "forwarder/spool_aside.h"
#include "forwarder/spool_file.h"
#include "forwarder/spool_move.h"
#include "forwarder/spool_name.h"
#include "forwarder/spool_progress.h"

static_assert(STAT_QUEUE_DROPPED_REMOVED - STAT_QUEUE_DROPPED_FULL == SPOOL_LOSS_REMOVED &&
		      SPOOL_LOSS_REMOVED + 1 == SPOOL_LOSS_N,
	      "counters in the order of the losses");

#define DEFAULT_MAX_BYTES ((uint64_t)1 << 30)
#define NS_PER_S	  ((uint64_t)1000000000)
#define RETRY_SCAN_NS	  (2 * NS_PER_S)
enum { DEFAULT_FREE_PERCENT = 5, REJECTED_SHARE = 10 };

enum request_state { REQUEST_WAITING, REQUEST_TAKEN, REQUEST_OVER };

/* A window that waits. What is over of it is subtracted by over. */
struct window {
	struct spool_name name;
	uint32_t n_over, n_taken;
	uint32_t over_profiles;
	uint64_t over_samples;
	uint8_t *states;	   /* one for each request; NULL = all wait */
	struct spool_index *index; /* NULL until a request is taken */
	bool is_damaged;	   /* goes to corrupt/ in the end */
};

struct spool {
	enum exporter_kind kind;
	struct spool_limits limits;
	const struct clock *clock;
	char *path, *retry_path;
	int folder_fd, lock_fd;
	struct spool_aside aside;
	struct window *windows; /* by sequence; [head, end) */
	size_t head, end, capacity;
	uint64_t bytes;
	uint64_t next_sequence;
	uint64_t retry_scanned_ns; /* monotonic */
	bool has_empty;		   /* a window is over whose file could not be removed */
	struct log_every progress_warning;
	uint64_t lost_requests[SPOOL_LOSS_N], lost_profiles[SPOOL_LOSS_N],
		lost_samples[SPOOL_LOSS_N];
	spool_lost_fn on_lost; /* may be NULL */
	void *context;
};

struct spool_window {
	struct spool *spool;
	uint64_t sequence, enqueued_ns;
	char unfinished[SPOOL_NAME_BYTES];
	int fd;
	bool is_ended; /* index written and fsynced */
	struct spool_file_writer writer;
	struct error *error; /* the first one; all that is appended is lost then */
	struct request_summary lost;
	uint32_t n_lost;
};

const char *spool_loss_name(enum spool_loss loss)
{
	static const char *const names[SPOOL_LOSS_N] = {
		[SPOOL_LOSS_FULL] = "full",	  [SPOOL_LOSS_EXPIRED] = "expired",
		[SPOOL_LOSS_CORRUPT] = "corrupt", [SPOOL_LOSS_REJECTED] = "rejected",
		[SPOOL_LOSS_DISK] = "disk",	  [SPOOL_LOSS_REMOVED] = "removed",
	};
	return names[loss];
}

static void count_loss(struct spool *spool, const struct spool_lost *lost)
{
	spool->lost_requests[lost->loss] += lost->n_requests;
	spool->lost_profiles[lost->loss] += lost->n_profiles;
	spool->lost_samples[lost->loss] += lost->n_samples;
	stats_add((enum stats_counter)(STAT_QUEUE_DROPPED_FULL + lost->loss), lost->n_profiles);
}

/* Of requests that had been acknowledged. */
static void tell_loss(struct spool *spool, const struct spool_lost *lost)
{
	count_loss(spool, lost);
	if (spool->on_lost)
		spool->on_lost(spool->context, lost);
}

static void forget_states(struct window *window)
{
	mem_free(TAKE(window->states));
	if (window->index)
		spool_index_fini(window->index);
	mem_free(TAKE(window->index));
}

static void add_window(struct spool *spool, const struct spool_name *name)
{
	if (spool->end == spool->capacity) {
		size_t n = spool->end - spool->head;
		if (spool->head > n) {
			memmove(spool->windows, spool->windows + spool->head,
				n * sizeof(*spool->windows));
			spool->head = 0;
			spool->end = n;
		} else {
			spool->capacity = spool->capacity ? spool->capacity * 2 : 64;
			spool->windows = mem_realloc(spool->windows, spool->capacity,
						     sizeof(*spool->windows));
		}
	}
	/* Nearly always the last: only windows that were open side by side come out of turn. */
	size_t i = spool->end++;
	for (; i > spool->head && spool->windows[i - 1].name.sequence > name->sequence; i--)
		spool->windows[i] = spool->windows[i - 1];
	spool->windows[i] = (struct window){.name = *name};
	spool->bytes += name->bytes;
}

static struct window *find_window(struct spool *spool, uint64_t sequence)
{
	size_t low = spool->head, high = spool->end;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint64_t at = spool->windows[middle].name.sequence;
		if (at == sequence)
			return &spool->windows[middle];
		if (at < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void forget_window(struct spool *spool, struct window *window)
{
	spool->bytes -= window->name.bytes;
	forget_states(window);
	size_t i = (size_t)(window - spool->windows);
	if (i == spool->head) {
		spool->head++;
	} else {
		memmove(window, window + 1, (spool->end - i - 1) * sizeof(*window));
		spool->end--;
	}
	if (spool->head == spool->end)
		spool->head = spool->end = 0;
}

/* False when the file could not be removed; then the window stays and is tried again. */
static bool remove_files(struct spool *spool, const struct window *window)
{
	char name[SPOOL_NAME_BYTES];
	spool_name_format(&window->name, SPOOL_WAITING_SUFFIX, name);
	if (window->is_damaged)
		spool_aside_quarantine(&spool->aside, spool->folder_fd, name);
	else if (unlinkat(spool->folder_fd, name, 0) < 0 && errno != ENOENT)
		return false;
	/* Last, so that a crash in between cannot bring delivered requests back. */
	spool_name_format(&window->name, SPOOL_PROGRESS_SUFFIX, name);
	unlinkat(spool->folder_fd, name, 0);
	return true;
}

static uint32_t n_left(const struct window *window)
{
	return window->name.n_requests - window->n_over;
}

static void lose_rest(struct spool *spool, const struct window *window, enum spool_loss loss)
{
	const struct spool_lost lost = {
		.sequence = window->name.sequence,
		.loss = loss,
		.n_requests = n_left(window),
		.n_profiles = window->name.n_profiles - window->over_profiles,
		.n_samples = window->name.n_samples - window->over_samples,
	};
	tell_loss(spool, &lost);
}

/* Drops a window whose requests are not under way; false when its file cannot be removed. */
static bool drop_window(struct spool *spool, struct window *window, enum spool_loss loss)
{
	if (!remove_files(spool, window))
		return false;
	lose_rest(spool, window, loss);
	forget_window(spool, window);
	return true;
}

static void mark_over(struct window *window, const struct spool_progress *progress)
{
	if (progress->index >= window->name.n_requests)
		return;
	if (!window->states)
		window->states = mem_zalloc(window->name.n_requests, 1);
	if (window->states[progress->index] == REQUEST_OVER)
		return;
	window->states[progress->index] = REQUEST_OVER;
	window->n_over++;
	window->over_profiles += progress->n_profiles;
	window->over_samples += progress->n_samples;
}

static void found_progress(void *context, const struct spool_progress *progress)
{
	mark_over(context, progress);
}

static void read_progress(struct spool *spool, struct window *window)
{
	struct error *err =
		spool_progress_read(spool->folder_fd, &window->name, found_progress, window);
	if (err)
		log_warn("what was delivered is unknown file_sequence=%" PRIu64
			 " err=\"%s\"; sending again",
			 window->name.sequence, error_text(err));
	error_free(err);
}

/* Starting up. */

struct listing {
	struct spool_names waiting, progress;
};

/* A folder that is read in part only would hand out numbers that are taken. */
static struct error *list_folder(struct spool *spool, DIR *dir, struct listing *listing)
{
	errno = 0;
	for (struct dirent *entry; (entry = readdir(dir)); errno = 0) {
		struct spool_name name;
		size_t n = strlen(entry->d_name), n_suffix = strlen(SPOOL_UNFINISHED_SUFFIX);
		if (spool_name_parse(entry->d_name, SPOOL_WAITING_SUFFIX, &name))
			spool_names_add(&listing->waiting, &name);
		else if (spool_name_parse(entry->d_name, SPOOL_PROGRESS_SUFFIX, &name))
			spool_names_add(&listing->progress, &name);
		else if (n > n_suffix &&
			 strcmp(entry->d_name + n - n_suffix, SPOOL_UNFINISHED_SUFFIX) == 0)
			unlinkat(spool->folder_fd, entry->d_name, 0);
	}
	return errno ? error_errno(errno, "cannot list") : NULL;
}

static void take_in(struct spool *spool, const struct listing *listing)
{
	size_t p = 0;
	for (size_t i = 0; i < listing->waiting.n; i++) {
		struct spool_name name = listing->waiting.items[i];
		if (i && name.sequence == listing->waiting.items[i - 1].sequence)
			continue; /* not ours: a copy made by hand */
		add_window(spool, &name);
		spool->next_sequence = name.sequence + 1;
		for (;
		     p < listing->progress.n && listing->progress.items[p].sequence < name.sequence;
		     p++)
			;
		if (p == listing->progress.n ||
		    listing->progress.items[p].sequence != name.sequence)
			continue;
		read_progress(spool, &spool->windows[spool->end - 1]);
	}
	for (p = 0; p < listing->progress.n; p++) {
		char name[SPOOL_NAME_BYTES];
		spool_name_format(&listing->progress.items[p], SPOOL_PROGRESS_SUFFIX, name);
		if (!find_window(spool, listing->progress.items[p].sequence))
			unlinkat(spool->folder_fd, name, 0);
	}
}

static struct error *read_folder(struct spool *spool)
{
	int fd = openat(spool->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		struct error *err = error_errno(errno, "cannot list");
		if (fd >= 0)
			close(fd);
		return err;
	}
	struct listing listing = {0};
	struct error *err = list_folder(spool, dir, &listing);
	closedir(dir);
	spool_names_sort(&listing.waiting);
	spool_names_sort(&listing.progress);
	if (!err)
		take_in(spool, &listing);
	spool_names_fini(&listing.waiting);
	spool_names_fini(&listing.progress);
	return err;
}

static void close_folder(struct spool *spool)
{
	if (spool->lock_fd >= 0)
		close(spool->lock_fd);
	if (spool->folder_fd >= 0)
		close(spool->folder_fd);
	spool->lock_fd = spool->folder_fd = -1;
}

static struct error *open_folder(struct spool *spool)
{
	struct error *err = spool_make_folder(spool->path);
	if (err)
		return err;
	spool->folder_fd = open(spool->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spool->folder_fd < 0)
		return error_errno(errno, "cannot open");
	return spool_share_lock(spool->folder_fd, &spool->lock_fd);
}

/* The first folder that no other process has, where several may send to one place. */
static struct error *choose_folder(struct spool *spool, const char *directory, const char *folder,
				   unsigned *number_out)
{
	for (unsigned number = 1;; number++) {
		char own[SPOOL_FOLDER_BYTES];
		spool_share_format(folder, number, own);
		spool->path = mem_format("%s/%s", directory, own);
		struct error *err = open_folder(spool);
		bool is_taken = err && error_get_code(err) == ERROR_UNAVAILABLE;
		if (!is_taken || !spool->limits.is_shared || number == SPOOL_SHARES_MAX) {
			spool->retry_path = mem_format("%s/retry", spool->path);
			spool_aside_init(&spool->aside, directory, own,
					 spool->limits.max_rejected_bytes);
			*number_out = number;
			return err;
		}
		error_free(err);
		close_folder(spool);
		mem_free(spool->path);
	}
}

static void joined(void *context, const struct spool_name *name)
{
	struct spool *spool = context;
	add_window(spool, name);
	read_progress(spool, find_window(spool, name->sequence));
}

static struct spool_mover make_mover(struct spool *spool)
{
	return (struct spool_mover){
		.folder_fd = spool->folder_fd,
		.next_sequence = &spool->next_sequence,
		.joined = joined,
		.context = spool,
	};
}

/* What processes that sent to the same place and are gone have left. */
static void take_over(struct spool *spool, const char *directory, const char *folder,
		      unsigned own_number)
{
	const struct spool_mover mover = make_mover(spool);
	for (unsigned number = 1; number <= SPOOL_SHARES_MAX; number++) {
		char other[SPOOL_FOLDER_BYTES];
		spool_share_format(folder, number, other);
		CLEANUP(cleanup_mem) char *path = mem_format("%s/%s", directory, other);
		if (number != own_number)
			spool_share_take_over(&mover, path);
	}
}

struct error *spool_open(const char *directory, const char *exporter, enum exporter_kind kind,
			 const struct spool_limits *limits, const struct clock *clock,
			 struct spool **out)
{
	char folder[SPOOL_FOLDER_BYTES];
	spool_folder_format(exporter, folder);
	struct spool *spool = mem_zalloc(1, sizeof(*spool));
	*spool = (struct spool){
		.kind = kind,
		.limits = *limits,
		.clock = clock,
		.folder_fd = -1,
		.lock_fd = -1,
		.next_sequence = 1,
		.has_empty = true,
		.progress_warning = {.interval_ns = 60 * NS_PER_S},
	};
	if (!spool->limits.max_bytes)
		spool->limits.max_bytes = DEFAULT_MAX_BYTES;
	if (!spool->limits.max_rejected_bytes)
		spool->limits.max_rejected_bytes = spool->limits.max_bytes / REJECTED_SHARE;
	unsigned number;
	struct error *err = choose_folder(spool, directory, folder, &number);
	if (!err)
		err = read_folder(spool);
	if (err) {
		err = error_wrap(err, "spool %s", spool->path);
		spool_close(spool);
		return err;
	}
	if (limits->is_shared)
		take_over(spool, directory, folder, number);
	spool_tend(spool);
	*out = spool;
	return NULL;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (size_t i = spool->head; i < spool->end; i++)
		forget_states(&spool->windows[i]);
	close_folder(spool);
	spool_aside_fini(&spool->aside);
	mem_free(spool->windows);
	mem_free(spool->path);
	mem_free(spool->retry_path);
	mem_free(spool);
}

/* Writing. */

struct spool_window *spool_begin(struct spool *spool)
{
	struct spool_window *window = mem_zalloc(1, sizeof(*window));
	window->spool = spool;
	window->sequence = spool->next_sequence++;
	window->enqueued_ns = spool->clock->wall_ns(spool->clock->context);
	snprintf(window->unfinished, sizeof(window->unfinished), "%016" PRIx64 "%s",
		 window->sequence, SPOOL_UNFINISHED_SUFFIX);
	window->fd = openat(spool->folder_fd, window->unfinished,
			    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (window->fd < 0)
		window->error = error_errno(errno, "cannot create a file");
	else
		window->error = spool_file_begin(&window->writer, window->fd, spool->kind,
						 hash_seed_make(), window->enqueued_ns);
	return window;
}

uint64_t spool_window_sequence(const struct spool_window *window)
{
	return window->sequence;
}

uint32_t spool_window_requests(const struct spool_window *window)
{
	return window->writer.n_requests;
}

static void lose_request(struct spool_window *window, const struct request_summary *summary)
{
	window->n_lost++;
	window->lost.n_profiles += summary->n_profiles;
	window->lost.n_samples += summary->n_samples;
}

void spool_append(struct spool_window *window, const uint8_t *message, size_t n,
		  const struct request_summary *summary)
{
	if (!window->error)
		window->error = spool_file_append(&window->writer, message, n, summary, NULL);
	if (window->error)
		lose_request(window, summary);
}

static void end_window(struct spool_window *window)
{
	if (window->fd >= 0)
		close(window->fd);
	spool_file_writer_fini(&window->writer);
	error_free(window->error);
	mem_free(window);
}

/* Counts all that was appended as lost; commit returns the error. */
static void lose_window(struct spool_window *window, enum spool_loss loss)
{
	const struct request_summary *total = &window->writer.total;
	const struct spool_lost lost = {
		.sequence = window->sequence,
		.loss = loss,
		.n_requests = window->writer.n_requests + window->n_lost,
		.n_profiles = (uint64_t)total->n_profiles + window->lost.n_profiles,
		.n_samples = total->n_samples + window->lost.n_samples,
	};
	count_loss(window->spool, &lost);
}

void spool_abandon(struct spool_window *window)
{
	if (window->fd >= 0)
		unlinkat(window->spool->folder_fd, window->unfinished, 0);
	end_window(window);
}

/* The oldest window that nothing of is under way, NULL if there is none. */
static struct window *oldest_idle(struct spool *spool)
{
	for (size_t i = spool->head; i < spool->end; i++) {
		if (!spool->windows[i].n_taken)
			return &spool->windows[i];
	}
	return NULL;
}

static bool is_disk_low(const struct spool *spool)
{
	struct statvfs fs;
	if (fstatvfs(spool->folder_fd, &fs) < 0)
		return false;
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	uint64_t wanted = spool->limits.min_free_bytes;
	if (!wanted)
		wanted = (uint64_t)fs.f_blocks * fs.f_frsize / 100 * DEFAULT_FREE_PERCENT;
	return free_bytes < wanted;
}

/* Whether the new window fits, after dropping old ones where that is the rule. */
static bool make_room(struct spool *spool, uint64_t bytes)
{
	while (spool->bytes + bytes > spool->limits.max_bytes || is_disk_low(spool)) {
		if (bytes > spool->limits.max_bytes || spool->limits.when_full != SPOOL_DROP_OLDEST)
			return false;
		struct window *oldest = oldest_idle(spool);
		if (!oldest || !drop_window(spool, oldest, SPOOL_LOSS_FULL))
			return false;
	}
	return true;
}

static struct error *finish_file(struct spool_window *window)
{
	if (window->is_ended)
		return NULL;
	struct error *err = spool_file_end(&window->writer);
	if (!err && fsync(window->fd) < 0)
		err = error_errno(errno, "fsync");
	window->is_ended = !err;
	return err;
}

static struct error *publish(struct spool_window *window, const struct spool_name *name)
{
	int folder = window->spool->folder_fd;
	char waiting[SPOOL_NAME_BYTES];
	spool_name_format(name, SPOOL_WAITING_SUFFIX, waiting);
	if (renameat(folder, window->unfinished, folder, waiting) < 0)
		return error_errno(errno, "cannot rename %s", window->unfinished);
	if (fsync(folder) == 0)
		return NULL;
	struct error *err = error_errno(errno, "fsync of the folder");
	/* Not durable, so not acknowledged; it must not come back as if it were. */
	if (unlinkat(folder, waiting, 0) < 0)
		log_warn("a window that counts as lost may be sent file=%s", waiting);
	return err;
}

/* Takes err: NULL so far. Makes the finished file part of the queue, or ends the window. */
static struct error *enqueue(struct spool_window *window, struct error *err, bool is_counted)
{
	struct spool *spool = window->spool;
	const struct spool_name name = {
		.sequence = window->sequence,
		.enqueued_ns = window->enqueued_ns,
		.bytes = window->writer.offset,
		.n_requests = window->writer.n_requests,
		.n_profiles = window->writer.total.n_profiles,
		.n_samples = window->writer.total.n_samples,
	};
	if (!err)
		err = publish(window, &name);
	if (err) {
		if (is_counted)
			lose_window(window, SPOOL_LOSS_DISK);
		spool_abandon(window);
		return error_wrap(err, "spool %s", spool->path);
	}
	add_window(spool, &name);
	end_window(window);
	return NULL;
}

struct error *spool_commit(struct spool_window *window)
{
	struct spool *spool = window->spool;
	struct error *err = TAKE(window->error);
	if (!err && !window->writer.n_requests) {
		spool_abandon(window);
		return NULL;
	}
	if (!err)
		err = finish_file(window);
	if (!err && !make_room(spool, window->writer.offset)) {
		if (spool->limits.when_full == SPOOL_BLOCK &&
		    window->writer.offset <= spool->limits.max_bytes)
			return error_again;
		lose_window(window, SPOOL_LOSS_FULL);
		err = error_new(ERROR_LIMIT, "spool %s: no room for %" PRIu64 " bytes", spool->path,
				window->writer.offset);
		spool_abandon(window);
		return err;
	}
	return enqueue(window, err, true);
}

struct error *spool_commit_parts(struct spool_window *window)
{
	struct error *err = TAKE(window->error);
	if (!err)
		err = finish_file(window);
	return enqueue(window, err, false);
}

/* Delivering. */

static struct error *open_window(const struct spool *spool, const struct window *window,
				 int *fd_out)
{
	char name[SPOOL_NAME_BYTES];
	spool_name_format(&window->name, SPOOL_WAITING_SUFFIX, name);
	int fd = openat(spool->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_errno(errno, "spool %s: %s", spool->path, name);
	*fd_out = fd;
	return NULL;
}

/* The request is over; true when the window went with it. */
static bool end_request(struct spool *spool, struct window *window,
			const struct spool_progress *progress)
{
	if (window->states && window->states[progress->index] == REQUEST_TAKEN)
		window->n_taken--;
	mark_over(window, progress);
	if (!n_left(window)) {
		/* What cannot be removed stays, empty, for spool_tend. */
		if (!remove_files(spool, window)) {
			spool->has_empty = true;
			return false;
		}
		forget_window(spool, window);
		return true;
	}
	struct error *err = spool_progress_append(spool->folder_fd, &window->name, progress);
	if (err) {
		uint64_t n_held, now = spool->clock->monotonic_ns(spool->clock->context);
		if (log_every_allows(&spool->progress_warning, now, &n_held))
			log_warn("what was delivered may be sent again after a restart err=\"%s\" "
				 "repeated=%" PRIu64,
				 error_text(err), n_held);
		error_free(err);
	}
	return false;
}

/* Requests that the index does not know are lost; what they held is what the others did not. */
static bool lose_unknown(struct spool *spool, struct window *window)
{
	const struct spool_index *index = window->index;
	uint64_t n_profiles = window->name.n_profiles, n_samples = window->name.n_samples;
	uint32_t n_unknown = 0;
	for (uint32_t i = 0; i < window->name.n_requests; i++) {
		bool is_known = i < index->n && index->entries[i].is_known;
		if (is_known) {
			n_profiles -= index->entries[i].summary.n_profiles;
			n_samples -= index->entries[i].summary.n_samples;
		} else if (!window->states || window->states[i] != REQUEST_OVER) {
			n_unknown++;
		}
	}
	if (!n_unknown)
		return false;
	const struct spool_lost lost = {window->name.sequence, SPOOL_LOSS_CORRUPT, n_unknown,
					n_profiles, n_samples};
	tell_loss(spool, &lost);
	window->is_damaged = true;
	for (uint32_t i = 0; i < window->name.n_requests; i++) {
		if (i < index->n && index->entries[i].is_known)
			continue;
		/* All of the loss is put to the first of them. */
		struct spool_progress progress = {i, (uint32_t)n_profiles, n_samples};
		if (window->states && window->states[i] == REQUEST_OVER)
			continue;
		n_profiles = n_samples = 0;
		if (end_request(spool, window, &progress))
			return true;
	}
	return false;
}

/*
 * Makes a window's index known. *is_gone_out: the window is no more, as nothing in it can be used.
 */
static struct error *load_index(struct spool *spool, struct window *window, int fd,
				bool *is_gone_out)
{
	if (window->index)
		return NULL;
	struct spool_index index;
	struct error *err = spool_file_read_index(fd, &index);
	enum error_code code = err ? error_get_code(err) : 0;
	if (code == ERROR_BAD_DATA || code == ERROR_UNSUPPORTED) {
		error_free(err);
		window->is_damaged = true;
		*is_gone_out = drop_window(spool, window, SPOOL_LOSS_CORRUPT);
		return *is_gone_out ? NULL : error_new(ERROR_IO, "cannot set a file aside");
	}
	if (err)
		return err;
	window->index = mem_copy(&index, sizeof(index));
	if (!window->states)
		window->states = mem_zalloc(window->name.n_requests, 1);
	window->is_damaged |= index.is_damaged;
	*is_gone_out = lose_unknown(spool, window);
	return NULL;
}

/* The first request that waits in the window; *is_gone_out as above, *i_out = n when none does. */
static struct error *take_from(struct spool *spool, struct window *window, struct buf *message,
			       uint32_t *i_out, bool *is_gone_out)
{
	CLEANUP(cleanup_fd) int fd = -1;
	struct error *err = open_window(spool, window, &fd);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		/* Removed by hand. What is under way may still arrive: the rest is lost after it.
		 */
		if (window->n_taken) {
			*i_out = window->name.n_requests;
			return NULL;
		}
		lose_rest(spool, window, SPOOL_LOSS_REMOVED);
		forget_window(spool, window);
		*is_gone_out = true;
		return NULL;
	}
	if (!err)
		err = load_index(spool, window, fd, is_gone_out);
	if (err || *is_gone_out)
		return err;
	for (uint32_t i = 0; i < window->name.n_requests; i++) {
		if (window->states[i] != REQUEST_WAITING)
			continue;
		err = spool_file_read(fd, window->index, i, NULL, message);
		if (!err) {
			*i_out = i;
			return NULL;
		}
		if (error_get_code(err) != ERROR_BAD_DATA)
			return err;
		log_warn("damaged request set aside sequence=%" PRIu64 " err=\"%s\"",
			 window->name.sequence, error_text(err));
		error_free(err);
		const struct request_summary *summary = &window->index->entries[i].summary;
		const struct spool_lost lost = {window->name.sequence, SPOOL_LOSS_CORRUPT, 1,
						summary->n_profiles, summary->n_samples};
		tell_loss(spool, &lost);
		window->is_damaged = true;
		struct spool_progress progress = {i, summary->n_profiles, summary->n_samples};
		if (end_request(spool, window, &progress)) {
			*is_gone_out = true;
			return NULL;
		}
	}
	*i_out = window->name.n_requests;
	return NULL;
}

struct error *spool_take(struct spool *spool, struct spool_request *out, struct buf *message)
{
	for (size_t w = spool->head; w < spool->end;) {
		struct window *window = &spool->windows[w];
		if (n_left(window) == window->n_taken) {
			w++;
			continue;
		}
		uint64_t sequence = window->name.sequence;
		uint32_t i = 0;
		bool is_gone = false;
		struct error *err = take_from(spool, window, message, &i, &is_gone);
		if (err)
			return err;
		if (is_gone) {
			/* Those before it have stayed where they are, or all have moved up. */
			w = spool->head;
			while (w < spool->end && spool->windows[w].name.sequence <= sequence)
				w++;
			continue;
		}
		if (i == window->name.n_requests) {
			w++;
			continue;
		}
		window->states[i] = REQUEST_TAKEN;
		window->n_taken++;
		*out = (struct spool_request){
			.sequence = sequence,
			.index = i,
			.summary = window->index->entries[i].summary,
			.enqueued_ns = window->name.enqueued_ns,
			.n = (size_t)window->index->entries[i].n_message,
		};
		return NULL;
	}
	return error_no_entry;
}

static struct window *find_taken(struct spool *spool, const struct spool_request *request)
{
	struct window *window = find_window(spool, request->sequence);
	bool is_taken = window && window->states && request->index < window->name.n_requests &&
			window->states[request->index] == REQUEST_TAKEN;
	return is_taken ? window : NULL;
}

static void finish_request(struct spool *spool, struct window *window,
			   const struct spool_request *request)
{
	struct spool_progress progress = {request->index, request->summary.n_profiles,
					  request->summary.n_samples};
	end_request(spool, window, &progress);
}

void spool_delivered(struct spool *spool, const struct spool_request *request)
{
	struct window *window = find_taken(spool, request);
	if (window)
		finish_request(spool, window, request);
}

void spool_put_back(struct spool *spool, const struct spool_request *request)
{
	struct window *window = find_taken(spool, request);
	if (!window)
		return;
	window->states[request->index] = REQUEST_WAITING;
	window->n_taken--;
}

struct error *spool_reject(struct spool *spool, const struct spool_request *request,
			   const uint8_t *message, const char *reason)
{
	struct window *window = find_taken(spool, request);
	if (!window)
		return NULL;
	struct spool_name name = {
		.sequence = spool->next_sequence++,
		.enqueued_ns = request->enqueued_ns,
		.n_requests = 1,
		.n_profiles = request->summary.n_profiles,
		.n_samples = request->summary.n_samples,
	};
	struct error *err = spool_aside_reject(&spool->aside, spool->kind, &name, message,
					       request->n, &request->summary, reason);
	if (err)
		return err;
	const struct spool_lost lost = {request->sequence, SPOOL_LOSS_REJECTED, 1,
					request->summary.n_profiles, request->summary.n_samples};
	tell_loss(spool, &lost);
	finish_request(spool, window, request);
	return NULL;
}

/* Housekeeping. */

static void expire(struct spool *spool)
{
	uint64_t now = spool->clock->wall_ns(spool->clock->context);
	for (size_t i = spool->head; spool->limits.max_age_ns && i < spool->end;) {
		struct window *window = &spool->windows[i];
		uint64_t came = window->name.enqueued_ns;
		bool is_young = now <= came || now - came <= spool->limits.max_age_ns;
		size_t head = spool->head;
		if (is_young || window->n_taken || !drop_window(spool, window, SPOOL_LOSS_EXPIRED))
			i++;
		else if (spool->head != head)
			i = spool->head;
	}
}

static void remove_empty(struct spool *spool)
{
	if (!spool->has_empty)
		return;
	spool->has_empty = false;
	for (size_t i = spool->head; i < spool->end;) {
		struct window *window = &spool->windows[i];
		size_t head = spool->head;
		if (n_left(window) || !remove_files(spool, window)) {
			spool->has_empty |= !n_left(window);
			i++;
			continue;
		}
		forget_window(spool, window);
		if (spool->head != head)
			i = spool->head;
	}
}

/* Files that `spool retry` moved to retry/ join the queue at its end. */
static void take_in_retried(struct spool *spool)
{
	uint64_t now = spool->clock->monotonic_ns(spool->clock->context);
	if (spool->retry_scanned_ns && now - spool->retry_scanned_ns < RETRY_SCAN_NS)
		return;
	spool->retry_scanned_ns = now;
	struct spool_mover mover = make_mover(spool);
	mover.enqueued_ns = spool->clock->wall_ns(spool->clock->context);
	spool_move_in(&mover, spool->retry_path, SPOOL_REFUSED_SUFFIX);
}

void spool_on_lost(struct spool *spool, spool_lost_fn on_lost, void *context)
{
	spool->on_lost = on_lost;
	spool->context = context;
}

void spool_tend(struct spool *spool)
{
	expire(spool);
	remove_empty(spool);
	take_in_retried(spool);
}

uint64_t spool_capacity_bytes(const struct spool *spool)
{
	return spool->limits.max_bytes;
}

void spool_get_counts(const struct spool *spool, struct spool_counts *out)
{
	*out = (struct spool_counts){.bytes = spool->bytes};
	for (size_t i = spool->head; i < spool->end; i++) {
		const struct window *window = &spool->windows[i];
		if (!n_left(window))
			continue;
		if (!out->windows++ || window->name.enqueued_ns < out->oldest_time_ns)
			out->oldest_time_ns = window->name.enqueued_ns;
		out->requests += n_left(window);
		out->profiles += window->name.n_profiles - window->over_profiles;
		out->samples += window->name.n_samples - window->over_samples;
	}
	memcpy(out->lost_requests, spool->lost_requests, sizeof(out->lost_requests));
	memcpy(out->lost_profiles, spool->lost_profiles, sizeof(out->lost_profiles));
	memcpy(out->lost_samples, spool->lost_samples, sizeof(out->lost_samples));
}
