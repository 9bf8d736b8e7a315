/* SPDX-License-Identifier: Apache-2.0 */
/* Time as a parameter: code that waits or stamps takes a struct clock, so that tests own time. */
#pragma once

#include <stdint.h>

struct clock {
	uint64_t (*monotonic_ns)(void *context); /* CLOCK_MONOTONIC, the clock of our samples */
	uint64_t (*wall_ns)(void *context);	 /* CLOCK_REALTIME, ns since the epoch */
	void *context;
};

extern const struct clock clock_system;

/* Moves by hand. */
struct clock_fake {
	uint64_t now_monotonic_ns;
	uint64_t now_wall_ns;
};
struct clock clock_from_fake(struct clock_fake *fake);

/*
 * What to add to a CLOCK_MONOTONIC time to get wall time: the middle of the tightest of several
 * paired readings.
 */
int64_t clock_wall_offset_ns(const struct clock *clock);
