/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a recording when somebody sends SIGUSR2: what was taken since the snapshot before
 * goes to OUTPUT.TIME, and the recording goes on. So the parts and the output together are the
 * whole, and memory is bounded by the longest part.
 *
 *   main thread                                     convert thread
 *   snapshots_take ── opens the part's file ──────► part's writer, between two records
 *   snapshots_settle ◄──── pipeline_call is back ── part is committed
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/message.h"
#include "pipeline/output.h"
#include "pipeline/pipeline.h"

/* What lies between two snapshots. */
struct snapshot_part {
	char *path;
	uint64_t begin_wall_ns, duration_ns;
	uint64_t n_samples;
	bool is_written;
};

/*
 * On the convert thread: writes what was taken to spare (see snapshots_open), which stays the
 * caller's, gives it the part's path, and counts the samples.
 */
typedef struct error *(*snapshot_write_fn)(void *context, struct output *spare,
					   struct snapshot_part *part);

struct snapshots {
	const struct message *message;
	struct pipeline *pipeline;
	const struct output *output; /* the recording's own, open */
	snapshot_write_fn write;
	void *context;

	uint64_t begin_wall_ns, begin_ns; /* of the part that is being taken */
	uint64_t n_parts, n_samples;	  /* that were committed */
	bool is_pending;
	struct output spare;
	struct snapshot_part part; /* the convert thread's while it is pending */
};

/* All is borrowed. The first part begins now. */
void snapshots_open(struct snapshots *snapshots, const struct message *message,
		    struct pipeline *pipeline, const struct output *output, snapshot_write_fn write,
		    void *context);
/*
 * Asks the convert thread for the part until now, opening a spare output in the place of the
 * recording's own. False, and a warning, when the output has no place beside it.
 */
bool snapshots_take(struct snapshots *snapshots);
/* The convert thread is done with the part, if one was pending: says so. */
void snapshots_settle(struct snapshots *snapshots);
void snapshots_close(struct snapshots *snapshots);
