/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool file of any bytes, as it is and with its checksums made right: its index and all requests
 * that it claims to hold are read.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "forwarder/spool_file.h"
#include "tests/support/spool_file_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_requests(int fd, const struct spool_index *index)
{
	struct buf note, message;
	buf_init(&note, SPOOL_FILE_MAX_NOTE + 1);
	buf_init(&message, (size_t)1 << 20);
	assert(index->n && index->n <= SPOOL_FILE_MAX_REQUESTS);
	for (uint32_t i = 0; i < index->n; i++) {
		buf_clear(&note);
		buf_clear(&message);
		struct error *err = spool_file_read(fd, index, i, &note, &message);
		assert(err || message.size == index->entries[i].n_message);
		error_free(err);
	}
	buf_fini(&note);
	buf_fini(&message);
}

static void read_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("spool", MFD_CLOEXEC);
	error_free(file_write(fd, data, size));
	struct spool_index index;
	struct error *err = spool_file_read_index(fd, &index);
	if (!err) {
		read_requests(fd, &index);
		spool_index_fini(&index);
	}
	error_free(err);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_file(data, size);
	uint8_t *sealed = mem_copy(data, size);
	spool_file_seal(sealed, size);
	read_file(sealed, size);
	mem_free(sealed);
	return 0;
}
