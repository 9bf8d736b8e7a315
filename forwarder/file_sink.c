/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/file_sink.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "forwarder/series.h"
#include "forwarder/series_name.h"
#include "proto/pprof_encode.h"

enum {
	GZIP_LEVEL = 6,
	DIRECTORY_MODE = 0750,
	NAME_PART_BYTES = 64, /* of name and service each */
	TIME_BYTES = 32,
	MAX_TWINS = 10000, /* files of one time and name */
	ERROR_DISK_FULL = 702,
	NS_PER_S = 1000000000,
};

static const char suffix[] = ".pb.gz";

struct file_sink {
	const struct exporter_config *config;
	int directory; /* descriptor */
	struct file_sink_counts counts;
};

struct error *file_sink_open(const struct exporter_config *config, struct file_sink **out)
{
	const char *path = config->directory;
	if (mkdir(path, DIRECTORY_MODE) < 0 && errno != EEXIST)
		return error_number(error_errno(errno, "cannot create the folder %s", path), 701);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_number(error_errno(errno, "cannot open the folder %s", path), 701);
	struct file_sink *sink = mem_zalloc(1, sizeof(*sink));
	sink->config = config;
	sink->directory = fd;
	*out = sink;
	return NULL;
}

void file_sink_close(struct file_sink *sink)
{
	if (!sink)
		return;
	close(sink->directory);
	mem_free(sink);
}

const struct file_sink_counts *file_sink_get_counts(const struct file_sink *sink)
{
	return &sink->counts;
}

/* A file of ours. Names have one length up to the end of the time, so they sort by it. */
struct kept_file {
	char *name;
	uint64_t bytes;
};

struct kept_files {
	struct kept_file *items;
	size_t n, capacity;
	uint64_t bytes;
};

static void kept_files_fini(struct kept_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		mem_free(files->items[i].name);
	mem_free(files->items);
}

/* YYYYMMDDTHHMMSS.nnnnnnnnnZ-….pb.gz */
static bool is_ours(const char *name)
{
	static const char shape[] = "dddddddd"
				    "T"
				    "dddddd.ddddddddd"
				    "Z-";
	size_t n = strlen(name);
	if (n < sizeof(shape) - 1 + strlen(suffix) ||
	    strcmp(name + n - strlen(suffix), suffix) != 0)
		return false;
	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		bool is_digit = name[i] >= '0' && name[i] <= '9';
		if (shape[i] == 'd' ? !is_digit : name[i] != shape[i])
			return false;
	}
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct kept_file *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void add_file(struct kept_files *files, const char *name, uint64_t bytes)
{
	if (files->n == files->capacity) {
		files->capacity = files->capacity ? files->capacity * 2 : 64;
		files->items = mem_realloc(files->items, files->capacity, sizeof(*files->items));
	}
	files->items[files->n++] =
		(struct kept_file){.name = mem_copy_string(name), .bytes = bytes};
	files->bytes += bytes;
}

/* The oldest first. */
static struct error *list_files(const struct file_sink *sink, struct kept_files *out)
{
	int fd = openat(sink->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (!directory) {
		struct error *err = error_errno(errno, "%s", sink->config->directory);
		if (fd >= 0)
			close(fd);
		return err;
	}
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		if (!entry)
			break;
		struct stat st;
		if (is_ours(entry->d_name) &&
		    fstatat(sink->directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			add_file(out, entry->d_name, (uint64_t)st.st_size);
	}
	struct error *err = errno ? error_errno(errno, "%s", sink->config->directory) : NULL;
	closedir(directory);
	if (!err)
		qsort(out->items, out->n, sizeof(*out->items), compare_files);
	return err;
}

/*
 * Removes the oldest files until no more than max_bytes are left, but never the one named kept.
 * n_min: that many in any case, as far as there are. Gives the number removed.
 */
static struct error *remove_oldest(struct file_sink *sink, uint64_t max_bytes, size_t n_min,
				   const char *kept, size_t *n_out)
{
	CLEANUP(kept_files_fini) struct kept_files files = {0};
	*n_out = 0;
	struct error *err = list_files(sink, &files);
	for (size_t i = 0; !err && i < files.n; i++) {
		if (files.bytes <= max_bytes && *n_out >= n_min)
			break;
		if (kept && !strcmp(files.items[i].name, kept))
			continue;
		if (unlinkat(sink->directory, files.items[i].name, 0) < 0 && errno != ENOENT)
			err = error_errno(errno, "cannot remove %s/%s", sink->config->directory,
					  files.items[i].name);
		files.bytes -= files.items[i].bytes;
		++*n_out;
		sink->counts.n_removed += !err;
	}
	return err;
}

static void format_time(int64_t time_ns, char out[TIME_BYTES])
{
	int64_t ns = time_ns > 0 ? time_ns : 0;
	time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm tm;
	/* 63 bits of nanoseconds end in the year 2262. */
	gmtime_r(&seconds, &tm);
	size_t n = strftime(out, TIME_BYTES, "%Y%m%dT%H%M%S", &tm);
	snprintf(out + n, TIME_BYTES - n, ".%09dZ", (int)(ns % NS_PER_S));
}

/* Letters, digits and "._-" of a text, so that it is one word of a file name. */
static void make_word(const char *text, char out[NAME_PART_BYTES])
{
	size_t n = 0;
	for (; *text && n + 1 < NAME_PART_BYTES; text++) {
		bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
				(*text >= '0' && *text <= '9') || *text == '_' || *text == '-' ||
				(*text == '.' && n);
		out[n++] = (char)(is_plain ? *text : '_');
	}
	out[n] = 0;
}

/* A name that is free, without the folder; the caller frees it. NULL: there are too many. */
static char *choose_name(const struct file_sink *sink, const struct series *series)
{
	char time[TIME_BYTES], name[NAME_PART_BYTES], service[NAME_PART_BYTES] = "";
	format_time(series->profile->time_nanos, time);
	make_word(series->name, name);
	for (size_t i = 0; i < series->n_labels; i++) {
		if (!strcmp(series->labels[i].key, "service_name"))
			make_word(series->labels[i].value, service);
	}
	for (int twin = 1; twin <= MAX_TWINS; twin++) {
		char number[16] = "";
		if (twin > 1)
			snprintf(number, sizeof(number), "-%d", twin);
		char *path = mem_format("%s-%s%s%s%s%s", time, name, *service ? "-" : "", service,
					number, suffix);
		if (faccessat(sink->directory, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return path;
		mem_free(path);
	}
	return NULL;
}

static struct error *write_file(const struct file_sink *sink, const struct profile *profile,
				const char *name, uint64_t *n_bytes_out)
{
	CLEANUP(cleanup_mem) char *path = mem_format("%s/%s", sink->config->directory, name);
	CLEANUP(file_writer_close) struct file_writer writer = {.fd = -1};
	struct error *err = file_writer_open(path, &writer);
	if (err)
		return err;
	const struct pprof_encode_options options = {.gzip_level = GZIP_LEVEL};
	err = pprof_encode_fd(profile, &options, writer.fd);
	struct stat st = {0};
	if (!err && fstat(writer.fd, &st) < 0)
		err = error_errno(errno, "fstat");
	if (!err)
		err = file_writer_commit(&writer);
	*n_bytes_out = (uint64_t)st.st_size;
	return error_wrap(err, "%s", path);
}

/* By rename, so that "latest" is there at any time. */
static struct error *point_latest(const struct file_sink *sink, const char *name)
{
	static const char link[] = "latest", fresh[] = ".latest.new";
	if (unlinkat(sink->directory, fresh, 0) < 0 && errno != ENOENT)
		return error_errno(errno, "%s/%s", sink->config->directory, fresh);
	if (symlinkat(name, sink->directory, fresh) < 0 ||
	    renameat(sink->directory, fresh, sink->directory, link) < 0)
		return error_errno(errno, "%s/%s", sink->config->directory, link);
	return NULL;
}

/* Tries again with the oldest file gone, then two more, four … while the disk is full. */
static struct error *write_making_room(struct file_sink *sink, const struct profile *profile,
				       const char *name, uint64_t *n_bytes_out)
{
	for (size_t n_gone = 1;; n_gone *= 2) {
		struct error *err = write_file(sink, profile, name, n_bytes_out);
		if (!err || error_get_number(err) != ERROR_DISK_FULL ||
		    !sink->config->max_directory_bytes)
			return err;
		size_t n_removed;
		struct error *remove_err =
			remove_oldest(sink, UINT64_MAX, n_gone, NULL, &n_removed);
		bool is_stuck = remove_err || !n_removed;
		error_free(remove_err);
		if (is_stuck)
			return err;
		error_free(err);
	}
}

struct error *file_sink_put(struct file_sink *sink, const struct outgoing_profile *outgoing)
{
	if (!outgoing->profile->samples.n)
		return NULL;
	struct series_rules rules = series_rules_make(sink->config, NULL, 0);
	rules.keeps_types = true;
	CLEANUP(series_fini) struct series series;
	series_init(&series, &rules, outgoing);
	CLEANUP(cleanup_mem)
	char *text = series_describe(series.name, series.labels, series.n_labels);
	CLEANUP(cleanup_mem) char *comment = mem_format("series: %s", text);
	profile_add_comment(series.profile, comment);
	CLEANUP(cleanup_mem) char *name = choose_name(sink, &series);
	if (!name)
		return error_new(ERROR_LIMIT, "%s: %d profiles have one time and name",
				 sink->config->directory, MAX_TWINS);
	uint64_t n_bytes = 0;
	struct error *err = write_making_room(sink, series.profile, name, &n_bytes);
	if (err)
		return err;
	sink->counts.n_written++;
	sink->counts.n_bytes += n_bytes;
	err = point_latest(sink, name);
	size_t n_removed;
	uint64_t max_bytes = sink->config->max_directory_bytes;
	if (!err && max_bytes)
		err = remove_oldest(sink, max_bytes, 0, name, &n_removed);
	return err;
}
