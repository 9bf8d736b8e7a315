/* SPDX-License-Identifier: Apache-2.0 */
/* Tells pprof from perf.data and reads it. */
#include "pipeline/profile_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "proto/pprof_read.h"

enum { MAGIC_BYTES = 8 };
#define MAX_FILE_BYTES ((size_t)1 << 30)

/* The first bytes of a pipe, without taking them out. */
static size_t peek_pipe(int fd, uint8_t head[MAGIC_BYTES])
{
	int copy[2];
	if (pipe2(copy, O_CLOEXEC) < 0)
		return 0;
	size_t n = 0;
	if (tee(fd, copy[1], MAGIC_BYTES, 0) > 0) {
		ssize_t got = read(copy[0], head, MAGIC_BYTES);
		n = got > 0 ? (size_t)got : 0;
	}
	close(copy[0]);
	close(copy[1]);
	return n;
}

static bool is_perf_data_head(int fd)
{
	uint8_t head[MAGIC_BYTES] = {0};
	struct stat st;
	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISDIR(st.st_mode))
		return true;
	size_t n = 0;
	struct error *err = NULL;
	if (S_ISFIFO(st.st_mode))
		n = peek_pipe(fd, head);
	else
		err = file_read_at(fd, 0, head, sizeof(head), &n);
	error_free(err);
	return n == sizeof(head) && (memcmp(head, "PERFILE2", sizeof(head)) == 0 ||
				     memcmp(head, "2ELIFREP", sizeof(head)) == 0);
}

static struct error *read_stream(int fd, struct buf *buf)
{
	enum { STEP_BYTES = 1 << 16 };
	size_t n = STEP_BYTES;
	struct error *err = NULL;
	while (!err && n == STEP_BYTES) {
		err = buf_reserve(buf, STEP_BYTES);
		if (!err)
			err = file_read(fd, buf->data + buf->size, STEP_BYTES, &n);
		if (!err)
			buf->size += n;
	}
	return err;
}

static struct error *read_pprof(int fd, const char *path, struct profile **out)
{
	struct buf buf;
	buf_init(&buf, MAX_FILE_BYTES);
	struct error *err = read_stream(fd, &buf);
	if (!err)
		err = pprof_read(buf.data, buf.size, NULL, out, NULL);
	buf_fini(&buf);
	return error_wrap(err, "%s", path);
}

struct error *profile_input_read(const struct conversion_options *options, const char *path,
				 const struct cli *cli, struct profile **out)
{
	struct error *err = conversion_options_check(options);
	if (err)
		return err;
	bool is_stdin = strcmp(path, "-") == 0;
	if (is_stdin && isatty(STDIN_FILENO))
		return cli_usage("standard input is a terminal; pipe a profile or perf.data into "
				 "it, or name a file");
	int own CLEANUP(cleanup_fd) = -1;
	if (!is_stdin) {
		own = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (own < 0)
			return error_number(error_errno(errno, "%s", path), 613);
	}
	int fd = is_stdin ? STDIN_FILENO : own;
	if (is_perf_data_head(fd))
		return conversion_read_file(options, path, cli, out);
	const char *first = options->first;
	if (first)
		return cli_usage("--%s is for perf.data; %s is none%s", first,
				 conversion_input_shown(path),
				 strcmp(first, "event") == 0
					 ? ", and --column chooses among a profile's values"
					 : "");
	return read_pprof(fd, conversion_input_shown(path), out);
}
