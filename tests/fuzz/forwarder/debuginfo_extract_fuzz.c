/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an ELF file: what is extracted is within the limit, can be read to its end, and is
 * an ELF file again. Files are made longer than what is taken whole.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "forwarder/debuginfo_extract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, MAX_INPUT_BYTES = 32 << 10 };

static void check(int fd, const struct build_id *id)
{
	struct debuginfo_image image;
	struct error *err = debuginfo_extract(fd, id, MAX_BYTES, &image);
	if (err) {
		error_free(err);
		return;
	}
	if (image.n_bytes > MAX_BYTES)
		abort();
	uint8_t *bytes = mem_alloc((size_t)image.n_bytes);
	err = debuginfo_image_read(&image, 0, bytes, (size_t)image.n_bytes);
	if (err || memcmp(bytes, "\177ELF", 4) != 0)
		abort();
	mem_free(bytes);
	debuginfo_image_fini(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (size > MAX_INPUT_BYTES)
		return 0;
	if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
	    ftruncate(fd, DEBUGINFO_WHOLE_BYTES + 4096) < 0)
		abort();
	const struct build_id none = {0};
	struct build_id gnu = build_id_make("\x01\x02\x03\x04", 4);
	check(fd, &none);
	check(fd, &gnu);
	return 0;
}
