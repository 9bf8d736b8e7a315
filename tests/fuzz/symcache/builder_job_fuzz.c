/* SPDX-License-Identifier: Apache-2.0 */
/* A binary from elsewhere, its own debug file too: whatever is built of it reads back whole. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "symcache/builder_job.h"
#include "symcache/symbol_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int find_itself(void *context, const struct builder_wish *wish)
{
	return wish->kind == BUILDER_WISH_ALTERNATE ? -1 : dup(*(const int *)context);
}

static void check(int fd)
{
	struct symbol_file *file;
	struct error *err = symbol_file_open_fd(fd, SYMCACHE_DEMANGLE_NORMAL, &file);
	assert(!err);
	err = symbol_file_verify(file);
	assert(!err);
	symbol_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int binary = memfd_create("binary", MFD_CLOEXEC);
	int out = memfd_create("out", MFD_CLOEXEC);
	struct error *err = file_write(binary, data, size);
	assert(!err);
	const struct builder_job job = {
		.id = build_id_make("fuzz", 4),
		.binary_fd = binary,
		.debug_fd = size % 2 ? binary : -1,
		.out_fd = out,
		.find = find_itself,
		.find_context = &binary,
	};
	err = builder_job_run(&job);
	if (!err)
		check(out);
	error_free(err);
	close(binary);
	close(out);
	return 0;
}
