/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter that writes pprof files into a folder, one for each profile:
 *
 *   20261201T022121.123456789Z-process_cpu-gitaly.pb.gz    time, name, service_name
 *   latest                                                 symlink to the newest
 *
 * Names sort by time; two profiles of one time and name differ by "-2" and so on. Files appear
 * whole or not at all. The labels of the series, for which pprof has no place, are a comment:
 * 'series: process_cpu{node="a"}'. Only files with such names are counted and removed.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"

struct file_sink;

/* Makes the folder when it is not there. config is borrowed while the sink lives. */
struct error *file_sink_open(const struct exporter_config *config, struct file_sink **out) MUST_USE;
void file_sink_close(struct file_sink *sink);

/*
 * Afterwards the oldest files go until what is left is within max_directory_bytes; so they do when
 * the disk is full and there is such a bound. A profile without samples is not written. Number 702:
 * the disk is full; nothing is left of the file then, and the next call tries anew.
 */
struct error *file_sink_put(struct file_sink *sink,
			    const struct outgoing_profile *outgoing) MUST_USE;

/* For metrics. */
struct file_sink_counts {
	uint64_t n_written, n_bytes; /* since it was opened */
	uint64_t n_removed;
};
const struct file_sink_counts *file_sink_get_counts(const struct file_sink *sink);
