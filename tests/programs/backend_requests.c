/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that a backend makes of a pprof file, as files for a look at them:
 *
 *   backend_requests KIND PPROF FOLDER [max_bytes=N] [max_samples=N] [gzip=1] [split=1]
 * [LABEL=VALUE …]
 *
 * KIND: parca, pyroscope, otlp. Writes FOLDER/NNNN.bin and prints "samples profiles" for each; with
 * split=1 each request is split before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "forwarder/backend.h"
#include "proto/pprof_read.h"

enum { MAX_LABELS = 64, MAX_INPUT_BYTES = 1 << 30 };

struct writer {
	const struct backend *backend;
	struct exporter_config config;
	const char *folder;
	unsigned n;
	bool splits;
};

static struct error *write_request(void *context, const uint8_t *message, size_t n,
				   const struct request_summary *summary)
{
	struct writer *writer = context;
	char path[4096];
	snprintf(path, sizeof(path), "%s/%04u.bin", writer->folder, writer->n++);
	struct file_writer file;
	struct error *err = file_writer_open(path, &file);
	if (err)
		return err;
	err = file_write(file.fd, message, n);
	if (!err)
		err = file_writer_commit(&file);
	file_writer_close(&file);
	printf("%llu %u\n", (unsigned long long)summary->n_samples, summary->n_profiles);
	return err;
}

static struct error *split_request(void *context, const uint8_t *message, size_t n,
				   const struct request_summary *summary)
{
	struct writer *writer = context;
	struct error *err =
		writer->backend->split(&writer->config, message, n, write_request, writer);
	if (err && error_get_code(err) == ERROR_LIMIT) {
		error_free(err);
		err = write_request(writer, message, n, summary);
	}
	return err;
}

static const struct backend *find(const char *kind)
{
	for (int i = 0; i < EXPORTER_KIND_N; i++) {
		const struct backend *backend = backend_of_kind((enum exporter_kind)i);
		if (backend && !strcmp(backend->kind, kind))
			return backend;
	}
	return NULL;
}

static struct error *run(struct writer *writer, const char *path, const struct key_value *labels,
			 size_t n_labels)
{
	struct buf input;
	buf_init(&input, MAX_INPUT_BYTES);
	struct profile *profile = NULL;
	struct error *err = file_read_all(path, &input);
	if (!err)
		err = pprof_read(input.data, input.size, NULL, &profile, NULL);
	const struct outgoing_profile outgoing = {
		.profile = profile, .name = "process_cpu", .labels = labels, .n_labels = n_labels};
	if (!err)
		err = writer->backend->encode(&writer->config, &outgoing,
					      writer->splits ? split_request : write_request,
					      writer);
	profile_free(profile);
	buf_fini(&input);
	return err;
}

int main(int argc, char **argv)
{
	struct key_value labels[MAX_LABELS];
	size_t n_labels = 0;
	struct writer writer = {.backend = argc > 3 ? find(argv[1]) : NULL};
	if (!writer.backend) {
		fprintf(stderr, "usage: backend_requests KIND PPROF FOLDER [KEY=VALUE …]\n");
		return 64;
	}
	writer.folder = argv[3];
	for (int i = 4; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value || n_labels == MAX_LABELS)
			return 64;
		*value++ = 0;
		if (!strcmp(argv[i], "max_bytes"))
			writer.config.limits.max_message_bytes = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "max_samples"))
			writer.config.limits.max_samples = (uint32_t)strtoul(value, NULL, 10);
		else if (!strcmp(argv[i], "gzip"))
			writer.config.remote.gzip = *value == '1';
		else if (!strcmp(argv[i], "split"))
			writer.splits = *value == '1';
		else
			labels[n_labels++] = (struct key_value){argv[i], value};
	}
	struct error *err = run(&writer, argv[2], labels, n_labels);
	if (err)
		fprintf(stderr, "%s\n", error_text(err));
	error_free(err);
	return err ? 1 : 0;
}
