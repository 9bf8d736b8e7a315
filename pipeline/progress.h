/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress line on a terminal for what takes over a second: done, rate and time left. On anything
 * else it stays silent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* PROGRESS_TIME: in nanoseconds, of a time that is known beforehand. */
enum progress_unit { PROGRESS_BYTES, PROGRESS_COUNT, PROGRESS_TIME };

struct progress {
	const char *what; /* "reading" */
	enum progress_unit unit;
	bool is_on;
	bool is_shown;
	uint64_t begin_ns, last_ns;
};

/* is_on: what struct cli says. what is borrowed. */
void progress_begin(struct progress *progress, bool is_on, enum progress_unit unit,
		    const char *what);
/* context is the progress; total 0 = unknown. Cheap enough to be called often. */
void progress_update(void *context, uint64_t done, uint64_t total);
/* Removes the line. */
void progress_end(struct progress *progress);
