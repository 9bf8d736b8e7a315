/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/cli.h"
#include "proto/pprof_encode.h"

enum { GZIP_LEVEL = 6 };

static bool has_ending(const char *text, const char *ending)
{
	size_t n = strlen(text);
	size_t n_ending = strlen(ending);
	return n > n_ending && strcmp(text + n - n_ending, ending) == 0;
}

enum output_form output_form_of(const char *path)
{
	if (has_ending(path, ".data"))
		return OUTPUT_PERF_DATA;
	return has_ending(path, ".pb") ? OUTPUT_PPROF : OUTPUT_PPROF_GZIP;
}

const char *output_shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* Messages of base name the file that they tried; "-" is none. */
static struct error *open_writer(const char *path, struct file_writer *out)
{
	struct error *err = file_writer_open(path, out);
	if (!err || strcmp(path, "-") != 0)
		return err;
	enum error_code code = error_get_code(err);
	int number = error_get_number(err);
	error_free(err);
	return error_number(error_new(code, "standard output cannot be used: it is closed, or no "
					    "descriptor is left"),
			    number);
}

struct error *output_open(struct output *output, const char *path, bool is_binary)
{
	*output = (struct output){.path = path};
	struct error *err = open_writer(path, &output->writer);
	if (err)
		return err;
	if (is_binary && output->writer.is_direct && isatty(output->writer.fd)) {
		file_writer_close(&output->writer);
		return cli_usage("will not write binary data to a terminal; redirect it, or name a "
				 "file with -o");
	}
	output->is_open = true;
	return NULL;
}

struct error *output_open_in_place(struct output *output, const char *path)
{
	*output = (struct output){.path = path};
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return error_number(error_errno(errno, "cannot write %s", path), 701);
	char name[32];
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	struct error *err = file_writer_open(name, &output->writer);
	close(fd); /* the writer has its own */
	output->is_open = !err;
	return err;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool output_is_standard(const struct output *output)
{
	struct stat own, standard;
	return output->writer.is_direct && fstat(output->writer.fd, &own) == 0 &&
	       fstat(STDOUT_FILENO, &standard) == 0 && is_same_file(&own, &standard) &&
	       (!S_ISCHR(own.st_mode) || isatty(STDOUT_FILENO));
}

/* Of a path to nothing yet. */
static bool is_same_new_path(const char *a, const char *b)
{
	char folder_a[PATH_MAX], folder_b[PATH_MAX];
	const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
	if (strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) != 0)
		return false;
	char *parent_a =
		slash_a ? mem_format("%.*s/", (int)(slash_a - a), a) : mem_copy_string(".");
	char *parent_b =
		slash_b ? mem_format("%.*s/", (int)(slash_b - b), b) : mem_copy_string(".");
	bool is_same = realpath(parent_a, folder_a) && realpath(parent_b, folder_b) &&
		       strcmp(folder_a, folder_b) == 0;
	mem_free(parent_a);
	mem_free(parent_b);
	return is_same;
}

bool output_is_same_path(const char *a, const char *b)
{
	struct stat of_a, of_b;
	bool is_a_dash = strcmp(a, "-") == 0, is_b_dash = strcmp(b, "-") == 0;
	bool is_a = (is_a_dash ? fstat(STDOUT_FILENO, &of_a) : stat(a, &of_a)) == 0;
	bool is_b = (is_b_dash ? fstat(STDOUT_FILENO, &of_b) : stat(b, &of_b)) == 0;
	if (is_a && is_b)
		return is_same_file(&of_a, &of_b) && (!S_ISCHR(of_a.st_mode) || strcmp(a, b) == 0);
	return !is_a && !is_b && !is_a_dash && !is_b_dash && is_same_new_path(a, b);
}

struct error *output_failed(const char *path, struct error *err)
{
	if (!err)
		return NULL;
	int number = error_get_number(err);
	err = error_wrap(err, "cannot write %s", output_shown(path));
	return error_number(err, number ? number : 702);
}

struct error *output_write_profile(struct output *output, const struct profile *profile,
				   bool is_plain)
{
	struct pprof_encode_options options = {.gzip_level = is_plain ? 0 : GZIP_LEVEL};
	return output_failed(output->path, pprof_encode_fd(profile, &options, output->writer.fd));
}

struct error *output_commit(struct output *output)
{
	return output_failed(output->path, file_writer_commit(&output->writer));
}

void output_close(struct output *output)
{
	if (output->is_open)
		file_writer_close(&output->writer);
	output->is_open = false;
}
