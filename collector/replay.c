/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/replay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "collector/perf_file.h"
#include "collector/perf_stream.h"
#include "collector/reorder.h"

enum {
	/* Two rounds of a large machine; what waits beyond that goes out half by half. */
	WINDOW_BYTES = 48 << 20,
	WINDOW_RECORDS = 1 << 19,
	FOLDER_FILES_MAX = 1024,
	SPOOL_BYTES = 64 << 10,
};

struct replay_part {
	struct perf_stream stream;
	int fd;
	bool is_fd_ours;
	char *name;
};

struct replay {
	struct record_source base; /* first */
	struct perf_file file;
	struct perf_stream_pool pool;
	struct reorder reorder;
	struct collector_file_options options;
	struct replay_part *parts;
	size_t n_parts;
	uint64_t total_bytes; /* 0 = unknown */
	bool is_done;
	bool is_sink_tired; /* the sink returned an error: it is not called again */
	perf_record_sink_fn sink;
	void *sink_context;
};

static void replay_close(struct record_source *source)
{
	struct replay *replay = (struct replay *)source;
	for (size_t i = 0; i < replay->n_parts; i++) {
		struct replay_part *part = &replay->parts[i];
		perf_stream_fini(&part->stream);
		if (part->is_fd_ours)
			close(part->fd);
		mem_free(part->name);
	}
	mem_free(replay->parts);
	reorder_fini(&replay->reorder);
	perf_stream_pool_fini(&replay->pool);
	perf_file_fini(&replay->file);
	mem_free(replay);
}

static struct error *pass_on(void *context, const struct perf_record *records, size_t n)
{
	struct replay *replay = context;
	struct error *err = replay->sink(replay->sink_context, records, n);
	replay->is_sink_tired = err != NULL;
	return err;
}

/* Of several files, the one that lags behind in time. */
static struct replay_part *next_part(struct replay *replay)
{
	struct replay_part *next = NULL;
	for (size_t i = 0; i < replay->n_parts; i++) {
		struct replay_part *part = &replay->parts[i];
		if (part->stream.is_at_end)
			continue;
		if (!next || (!part->stream.is_file_order &&
			      part->stream.last_time_ns < next->stream.last_time_ns))
			next = part;
	}
	return next;
}

static struct error *read_parts(struct replay *replay)
{
	struct replay_part *part;
	while ((part = next_part(replay))) {
		struct error *err = perf_stream_step(&part->stream);
		if (err)
			return err;
		if (replay->options.progress)
			replay->options.progress(replay->options.progress_context,
						 replay->file.format.bytes_read,
						 replay->total_bytes);
	}
	return NULL;
}

/* Damage before the first sample: a warning would leave nobody anything to look at. */
static struct error *refuse_empty(const struct replay *replay)
{
	uint64_t n_samples = 0;
	for (size_t i = 0; i < replay->n_parts; i++)
		n_samples += replay->parts[i].stream.n_samples;
	if (n_samples > 0 || !replay->file.stopped)
		return NULL;
	return error_number(error_new(ERROR_BAD_DATA, "damaged before its first sample: %s",
				      replay->file.stopped),
			    601);
}

static struct error *replay_drain(struct record_source *source, perf_record_sink_fn sink,
				  void *context)
{
	struct replay *replay = (struct replay *)source;
	if (replay->is_done)
		return error_no_entry;
	replay->sink = sink;
	replay->sink_context = context;
	replay->is_sink_tired = false;
	reorder_set_sink(&replay->reorder, pass_on, replay);
	struct error *err = read_parts(replay);
	if (replay->is_sink_tired)
		return err;
	/* Nothing is read into blocks any more: what the sink has taken is given back at once. */
	perf_stream_pool_fini(&replay->pool);
	/* After damage the records before it are still worth having. */
	struct error *flush_err = reorder_flush(&replay->reorder);
	if (flush_err) {
		error_free(err);
		return flush_err;
	}
	reorder_fini(&replay->reorder);
	replay->is_done = true;
	perf_file_warn_skipped(&replay->file);
	if (!err)
		err = refuse_empty(replay);
	return err ? err : error_no_entry;
}

static const struct perf_source_info *replay_info(struct record_source *source)
{
	return &((struct replay *)source)->file.info;
}

static const struct record_source_ops replay_ops = {
	.kind = "recorded",
	.drain = replay_drain,
	.info = replay_info,
	.close = replay_close,
};

static struct replay *make_replay(const struct collector_file_options *options)
{
	struct replay *replay = mem_zalloc(1, sizeof(*replay));
	replay->base.ops = &replay_ops;
	perf_file_init(&replay->file);
	reorder_init(&replay->reorder, WINDOW_BYTES, WINDOW_RECORDS);
	if (options)
		replay->options = *options;
	return replay;
}

/* name is taken and may be NULL. */
static struct perf_stream *add_part(struct replay *replay, int fd, bool is_fd_ours, char *name)
{
	struct replay_part *part = &replay->parts[replay->n_parts++];
	*part = (struct replay_part){.fd = fd, .is_fd_ours = is_fd_ours, .name = name};
	perf_stream_init(&part->stream, &replay->file, &replay->reorder, &replay->pool, fd);
	part->stream.name = name;
	return &part->stream;
}

static void make_parts(struct replay *replay, size_t n)
{
	replay->parts = mem_zalloc(n, sizeof(*replay->parts));
}

/* A file that has no name, for input that cannot seek. */
static struct error *open_spool(int *fd_out)
{
	const char *folder = getenv("TMPDIR");
	if (!folder || !folder[0])
		folder = "/tmp";
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
		char *path CLEANUP(cleanup_mem) = mem_format("%s/perfpipe-XXXXXX", folder);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	if (fd < 0)
		return error_errno(errno, "%s: a temporary file", folder);
	*fd_out = fd;
	return NULL;
}

/*
 * File mode has its features behind the data, and the events' names are among them: a recording in
 * file mode that comes through a pipe goes to a temporary file first.
 */
static struct error *spool(int fd, const uint8_t *head, size_t n_head, int *fd_out)
{
	int to CLEANUP(cleanup_fd) = -1;
	struct error *err = open_spool(&to);
	if (!err)
		err = file_write(to, head, n_head);
	uint8_t *bytes CLEANUP(cleanup_mem) = mem_alloc(SPOOL_BYTES);
	size_t n = SPOOL_BYTES;
	while (!err && n == SPOOL_BYTES) {
		err = file_read(fd, bytes, SPOOL_BYTES, &n);
		if (!err)
			err = file_write(to, bytes, n);
	}
	if (err)
		return error_wrap(err, "keeping file-mode data that comes through a pipe");
	*fd_out = to;
	to = -1;
	return NULL;
}

static struct error *add_file(struct replay *replay, int fd, bool is_fd_ours, char *name)
{
	struct perf_file *file = &replay->file;
	struct perf_stream *stream = add_part(replay, fd, is_fd_ours, name);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_errno(errno, "fstat");
	file->size = (uint64_t)st.st_size;
	replay->total_bytes = file->size;
	struct error *err = perf_file_read_header(file, fd);
	if (err)
		return err;
	stream->is_positional = true;
	stream->is_file_order = !file->events.is_all_timed;
	stream->next_offset = stream->raw.position = file->data_offset;
	stream->end_offset = file->data_end;
	return NULL;
}

static struct error *add_input(struct replay *replay, int fd, bool is_fd_ours, char *name)
{
	struct perf_file *file = &replay->file;
	uint8_t head[PERF_FILE_HEAD_BYTES];
	size_t n = 0;
	struct stat st;
	struct error *err = NULL;
	if (fstat(fd, &st) < 0)
		err = error_errno(errno, "fstat");
	bool is_regular = !err && S_ISREG(st.st_mode);
	if (!err)
		err = is_regular ? file_read_at(fd, 0, head, sizeof(head), &n)
				 : file_read(fd, head, sizeof(head), &n);
	if (!err)
		err = perf_file_read_head(file, head, n);
	if (!err && is_regular)
		file->info.recorded_at_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	int spool_fd = -1;
	if (!err && !is_regular && !file->format.is_pipe)
		err = spool(fd, head, n, &spool_fd);
	if (err) {
		add_part(replay, fd, is_fd_ours, name);
		return err;
	}
	if (spool_fd >= 0) {
		if (is_fd_ours)
			close(fd);
		return add_file(replay, spool_fd, true, name);
	}
	if (!file->format.is_pipe)
		return add_file(replay, fd, is_fd_ours, name);
	struct perf_stream *stream = add_part(replay, fd, is_fd_ours, name);
	stream->is_positional = is_regular;
	stream->next_offset = stream->raw.position = PERF_FILE_HEAD_BYTES;
	if (is_regular) {
		file->size = (uint64_t)st.st_size;
		replay->total_bytes = file->size;
	}
	return NULL;
}

struct error *replay_open_fd(int fd, const struct collector_file_options *options,
			     struct record_source **out)
{
	struct replay *replay = make_replay(options);
	make_parts(replay, 1);
	struct error *err = add_input(replay, fd, false, NULL);
	if (err) {
		replay_close(&replay->base);
		return err;
	}
	*out = &replay->base;
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a;
	unsigned long y = *(const unsigned long *)b;
	return x < y ? -1 : x > y;
}

/* The N of all data.N in a folder, rising. */
static struct error *list_folder(const char *path, unsigned long *numbers, size_t *n_out)
{
	DIR *dir = opendir(path);
	if (!dir)
		return error_errno(errno, "opendir");
	size_t n = 0;
	struct dirent *entry;
	struct error *err = NULL;
	while (!err && (entry = readdir(dir))) {
		static const char prefix[] = "data.";
		const char *digits = entry->d_name + sizeof(prefix) - 1;
		if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) != 0 || !digits[0] ||
		    digits[strspn(digits, "0123456789")] || strlen(digits) > 9)
			continue;
		if (n == FOLDER_FILES_MAX)
			err = error_new(ERROR_LIMIT, "more than %d files data.N", FOLDER_FILES_MAX);
		else
			numbers[n++] = strtoul(digits, NULL, 10);
	}
	closedir(dir);
	qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*n_out = n;
	return err;
}

/* data.N holds records alone; the header for all is in data. */
static struct error *add_thread_file(struct replay *replay, const char *folder,
				     unsigned long number)
{
	char *path CLEANUP(cleanup_mem) = mem_format("%s/data.%lu", folder, number);
	int fd;
	struct error *err = file_open_regular(path, &fd);
	if (err)
		return err;
	struct perf_stream *stream = add_part(replay, fd, true, mem_format("data.%lu", number));
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_errno(errno, "%s", path);
	stream->is_positional = true;
	stream->is_file_order = replay->parts[0].stream.is_file_order;
	replay->total_bytes += (uint64_t)st.st_size;
	if ((uint64_t)st.st_size > replay->file.size)
		replay->file.size = (uint64_t)st.st_size;
	return NULL;
}

static struct error *open_folder(struct replay *replay, const char *folder)
{
	unsigned long numbers[FOLDER_FILES_MAX];
	size_t n = 0;
	struct error *err = list_folder(folder, numbers, &n);
	if (err)
		return err;
	make_parts(replay, n + 1);
	char *path CLEANUP(cleanup_mem) = mem_format("%s/data", folder);
	int fd;
	err = file_open_regular(path, &fd);
	if (err)
		return error_number(error_wrap(err, "no perf.data folder"), 603);
	err = add_input(replay, fd, true, n ? mem_copy_string("data") : NULL);
	replay->file.format.is_directory = true;
	for (size_t i = 0; i < n && !err; i++)
		err = add_thread_file(replay, folder, numbers[i]);
	for (size_t i = 0; i < replay->n_parts && n > 0; i++)
		replay->parts[i].stream.has_rounds = false;
	return err;
}

static struct error *open_path(struct replay *replay, const char *path)
{
	if (strcmp(path, "-") == 0) {
		make_parts(replay, 1);
		return add_input(replay, STDIN_FILENO, false, NULL);
	}
	struct stat st;
	if (stat(path, &st) < 0)
		return error_errno(errno, "open");
	if (S_ISDIR(st.st_mode))
		return open_folder(replay, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(errno, "open");
	make_parts(replay, 1);
	return add_input(replay, fd, true, NULL);
}

struct error *collector_open_file(const char *path, const struct collector_file_options *options,
				  struct record_source **out)
{
	struct replay *replay = make_replay(options);
	struct error *err = open_path(replay, path);
	if (err) {
		replay_close(&replay->base);
		return error_wrap(err, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
	}
	*out = &replay->base;
	return NULL;
}

const struct collector_warning *collector_file_warnings(struct record_source *source, size_t *n_out)
{
	const struct perf_file *file = &((struct replay *)source)->file;
	*n_out = file->n_warnings;
	return file->warnings;
}

const struct collector_file_format *collector_file_format(struct record_source *source)
{
	struct perf_file *file = &((struct replay *)source)->file;
	file->format.attr_size = file->info.n_events ? file->info.events[0].attr_size : 0;
	return &file->format;
}
