/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

struct error *output_open(struct output *output, const char *path)
{
	*output = (struct output){.path = path};
	if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_usage("will not write binary data to a terminal; redirect it, or name a "
				 "file with -o");
	struct error *err = file_writer_open(path, &output->writer);
	if (err)
		return err;
	output->is_open = true;
	return NULL;
}

struct error *output_open_in_place(struct output *output, const char *path)
{
	if (strcmp(path, "-") == 0)
		return output_open(output, path);
	*output = (struct output){.path = path};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return error_number(error_errno(errno, "cannot create %s", path), 701);
	char name[32];
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	struct error *err = file_writer_open(name, &output->writer);
	close(fd); /* the writer has its own */
	output->is_open = !err;
	return err;
}

static struct error *writing_failed(const struct output *output, struct error *err)
{
	if (!err)
		return NULL;
	int number = error_get_number(err);
	err = error_wrap(err, "cannot write %s", output_shown(output->path));
	return error_number(err, number ? number : 702);
}

struct error *output_write_profile(struct output *output, const struct profile *profile,
				   bool is_plain)
{
	struct pprof_encode_options options = {.gzip_level = is_plain ? 0 : GZIP_LEVEL};
	return writing_failed(output, pprof_encode_fd(profile, &options, output->writer.fd));
}

struct error *output_commit(struct output *output)
{
	return writing_failed(output, file_writer_commit(&output->writer));
}

void output_close(struct output *output)
{
	if (output->is_open)
		file_writer_close(&output->writer);
	output->is_open = false;
}
