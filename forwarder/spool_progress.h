/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a window is over, kept beside its file: one entry of 32 bytes for each request that was
 * delivered, refused or set aside, appended and not fsynced. Losing it sends requests twice; an
 * entry that does not check is as if it were not there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/spool_name.h"

struct spool_progress {
	uint32_t index, n_profiles;
	uint64_t n_samples;
};

struct error *spool_progress_append(int folder_fd, const struct spool_name *window,
				    const struct spool_progress *entry) MUST_USE;
/* Calls found for each entry; none when there is no such file. Indices may repeat. */
struct error *spool_progress_read(int folder_fd, const struct spool_name *window,
				  void (*found)(void *context, const struct spool_progress *entry),
				  void *context) MUST_USE;
