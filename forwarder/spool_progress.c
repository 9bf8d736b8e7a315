/* SPDX-License-Identifier: Apache-2.0 */
/* The side file of a window: what of it was delivered. */
#include "forwarder/spool_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/file.h"
#include "forwarder/spool_file.h"

enum { ENTRY_BYTES = 32, CHECKED_BYTES = 24 };

/* Index, profiles, samples, 0, sum. The window seeds the sum, so that its entries count for no
 * other one. */
static uint64_t sum(const uint8_t entry[ENTRY_BYTES], const struct spool_name *window)
{
	return XXH3_64bits_withSeed(entry, CHECKED_BYTES, window->sequence ^ window->enqueued_ns);
}

static int open_file(int folder_fd, const struct spool_name *window, int flags)
{
	char name[SPOOL_NAME_BYTES];
	spool_name_format(window, SPOOL_PROGRESS_SUFFIX, name);
	return openat(folder_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

struct error *spool_progress_append(int folder_fd, const struct spool_name *window,
				    const struct spool_progress *progress)
{
	CLEANUP(cleanup_fd) int fd = open_file(folder_fd, window, O_WRONLY | O_APPEND | O_CREAT);
	if (fd < 0)
		return error_errno(errno, "cannot note what was delivered");
	uint8_t entry[ENTRY_BYTES] = {0};
	memcpy(entry, &progress->index, sizeof(progress->index));
	memcpy(entry + 4, &progress->n_profiles, sizeof(progress->n_profiles));
	memcpy(entry + 8, &progress->n_samples, sizeof(progress->n_samples));
	uint64_t check = sum(entry, window);
	memcpy(entry + CHECKED_BYTES, &check, sizeof(check));
	return file_write(fd, entry, sizeof(entry));
}

struct error *spool_progress_read(int folder_fd, const struct spool_name *window,
				  void (*found)(void *context, const struct spool_progress *entry),
				  void *context)
{
	CLEANUP(cleanup_fd) int fd = open_file(folder_fd, window, O_RDONLY);
	if (fd < 0)
		return errno == ENOENT ? NULL
				       : error_errno(errno, "cannot read what was delivered");
	uint64_t offset = 0;
	uint32_t n_max = SPOOL_FILE_MAX_REQUESTS * 2;
	for (uint32_t i = 0; i < n_max;) {
		uint8_t entry[ENTRY_BYTES];
		size_t got;
		struct error *err = file_read_at(fd, offset, entry, sizeof(entry), &got);
		if (err || got < sizeof(entry))
			return err;
		struct cursor c = cursor_make(entry, sizeof(entry), false);
		struct spool_progress progress = {.index = cursor_u32(&c)};
		progress.n_profiles = cursor_u32(&c);
		progress.n_samples = cursor_u64(&c);
		cursor_skip(&c, 8);
		if (cursor_u64(&c) == sum(entry, window)) {
			found(context, &progress);
			offset += ENTRY_BYTES;
		} else {
			offset += 1; /* a torn entry shifts the ones behind it */
		}
		i++;
	}
	return NULL;
}
