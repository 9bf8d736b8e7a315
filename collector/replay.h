/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded source: one perf.data (file mode, pipe mode or a folder of `perf record --threads`)
 * behind struct record_source. collector.h has its door functions; here is what tests need beside.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "collector/collector.h"

/*
 * As collector_open_file, from a descriptor that is borrowed: a regular file is read from its
 * beginning, anything else from where it stands.
 */
struct error *replay_open_fd(int fd, const struct collector_file_options *options,
			     struct record_source **out) MUST_USE;
