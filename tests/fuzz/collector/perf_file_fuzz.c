/* SPDX-License-Identifier: Apache-2.0 */
/* A whole perf.data of either mode, as it would lie on disk. */
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
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	error_free(file_write(fd, data, size));
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
