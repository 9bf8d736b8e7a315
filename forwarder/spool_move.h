/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of other folders that join a spool: what `spool retry` laid into retry/, and what other
 * processes that sent to the same place left behind. Processes that use one exporter's spool side
 * by side have a folder each: FOLDER, FOLDER.2, FOLDER.3 and so on.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/spool_name.h"

enum { SPOOL_SHARES_MAX = 16 };

/* Where files join. */
struct spool_mover {
	int folder_fd;
	uint64_t *next_sequence;
	uint64_t enqueued_ns; /* wall clock; 0 = as it was */
	void (*joined)(void *context, const struct spool_name *name);
	void *context;
};

/* The folder of process number 1, 2, … */
void spool_share_format(const char *folder, unsigned number, char out[SPOOL_FOLDER_BYTES]);

/* Locks an open folder until *fd_out is closed. ERROR_UNAVAILABLE: another process has it. */
struct error *spool_share_lock(int folder_fd, int *fd_out) MUST_USE;

/* All files with that suffix out of a folder, in their order, with what was delivered of them. */
void spool_move_in(const struct spool_mover *mover, const char *path, const char *suffix);
/* What waits in the folder of another process, unless that process still runs. */
void spool_share_take_over(const struct spool_mover *mover, const char *path);
