/* SPDX-License-Identifier: Apache-2.0 */
/* The records of pipe mode behind a header that is always right; the first byte is the order. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "collector/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Looks at both ends of each record, so that a sanitizer sees bytes that are not there. */
static struct error *touch(void *context, const struct perf_record *records, size_t n)
{
	uint64_t *sum = context;
	for (size_t i = 0; i < n; i++)
		*sum += records[i].bytes[0] + records[i].bytes[records[i].size - 1u];
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const heads[] = {"PERFILE2\x10\0\0\0\0\0\0\0",
					    "2ELIFREP\0\0\0\0\0\0\0\x10"};
	static int fd = -1;
	if (size == 0)
		return 0;
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	error_free(file_write(fd, heads[data[0] & 1], 16));
	error_free(file_write(fd, data + 1, size - 1));
	struct record_source *source;
	struct error *err = replay_open_fd(fd, NULL, &source);
	if (!err) {
		uint64_t sum = 0;
		err = record_source_drain(source, touch, &sum);
		record_source_close(source);
	}
	error_free(err);
	return 0;
}
