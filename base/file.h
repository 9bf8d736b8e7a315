/* SPDX-License-Identifier: Apache-2.0 */
/* Files: reading with caps, and writing beside the target and renaming. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"

/*
 * Errors of functions that get a path begin with it. What fails to create or write an output
 * carries the error number 701, or 702 when the disk is full.
 */

/* Regular files only, O_CLOEXEC|O_NONBLOCK; a FIFO, device or folder is refused. */
struct error *file_open_regular(const char *path, int *fd_out) MUST_USE;
/* Appends the whole file (also of /proc, whose sizes are 0) to buf; ERROR_LIMIT past buf's maximum.
 */
struct error *file_read_all(const char *path, struct buf *buf) MUST_USE;
/* read(2) until n bytes or the end; retries EINTR. */
struct error *file_read(int fd, void *p, size_t n, size_t *n_out) MUST_USE;
/* pread(2), likewise. */
struct error *file_read_at(int fd, uint64_t offset, void *p, size_t n, size_t *n_out) MUST_USE;
struct error *file_write(int fd, const void *p, size_t n) MUST_USE;

/* A file mapped read-only and whole. size 0 gives data NULL. */
struct file_map {
	const uint8_t *data;
	size_t size;
};
struct error *file_map_open(const char *path, size_t max_bytes, struct file_map *out) MUST_USE;
struct error *file_map_fd(int fd, size_t max_bytes, struct file_map *out) MUST_USE;
void file_map_close(struct file_map *map);

/*
 * A file that appears whole or not at all: written without a name (O_TMPFILE), or where the file
 * system has no such files under a temporary name, and put in its place by commit. "-" stands for
 * standard output and is written straight. Devices and pipes
 * (/dev/null, /dev/stdout) are written straight too. The mode of a file that is replaced is kept.
 */
struct file_writer {
	int fd;
	bool is_direct;
	char *path;
	char *temporary; /* NULL while it has no name */
};
struct error *file_writer_open(const char *path, struct file_writer *out) MUST_USE;
struct error *file_writer_commit(struct file_writer *writer) MUST_USE;
/* Lets commit give it another name in the same folder. Not for a direct one. */
void file_writer_set_path(struct file_writer *writer, const char *path);
/* Without commit the temporary goes and the old file stays. */
void file_writer_close(struct file_writer *writer);
/* For a signal handler that ends the program: removes what has a temporary name. */
void file_writer_discard_all(void);
