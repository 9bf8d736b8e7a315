/* SPDX-License-Identifier: Apache-2.0 */
/* A spool file of any bytes: its index and all requests that it claims to hold are read. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "forwarder/spool_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);
	error_free(file_write(fd, data, size));
	struct spool_index index;
	struct error *err = spool_file_read_index(fd, &index);
	if (err) {
		error_free(err);
		close(fd);
		return 0;
	}
	struct buf note, message;
	buf_init(&note, SPOOL_FILE_MAX_NOTE + 1);
	buf_init(&message, (size_t)1 << 20);
	assert(index.n && index.n <= SPOOL_FILE_MAX_REQUESTS);
	for (uint32_t i = 0; i < index.n; i++) {
		buf_clear(&note);
		buf_clear(&message);
		err = spool_file_read(fd, &index, i, &note, &message);
		assert(err || message.size == index.entries[i].n_message);
		error_free(err);
	}
	buf_fini(&note);
	buf_fini(&message);
	spool_index_fini(&index);
	close(fd);
	return 0;
}
