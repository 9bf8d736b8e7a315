/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a spool sets aside: requests that a server refused for good (rejected/, each in a file of
 * its own with the reason) and files that are damaged (corrupt/). Both are bounded in bytes, oldest
 * out first; what leaves them was counted as lost when it came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"
#include "forwarder/spool_name.h"

struct spool_aside {
	char *rejected, *corrupt; /* paths of the exporter's folders, made when needed */
	uint64_t max_bytes;	  /* of each */
	uint64_t rejected_bytes;  /* in rejected, once it was looked at */
	bool is_measured;
};

void spool_aside_init(struct spool_aside *aside, const char *directory, const char *folder,
		      uint64_t max_bytes);
void spool_aside_fini(struct spool_aside *aside);
/* Durable once it returns without an error. */
struct error *spool_aside_reject(struct spool_aside *aside, enum exporter_kind kind,
				 const struct spool_name *name, const uint8_t *message, size_t n,
				 const struct request_summary *summary,
				 const char *reason) MUST_USE;
/* Moves a file of the spool's folder to corrupt/; deletes it when that cannot be. */
void spool_aside_quarantine(struct spool_aside *aside, int folder_fd, const char *name);

/* mkdir -p with mode 0700; what was made is fsynced into its parent. */
struct error *spool_make_folder(const char *path) MUST_USE;
