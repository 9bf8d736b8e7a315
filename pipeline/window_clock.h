/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When windows end: at whole multiples of their length on the wall clock, so that the windows of
 * all hosts lie side by side. How long one lasts is measured with the monotonic clock:
 *
 *   wall       :00     :10     :20        step or suspend        :40     :50
 *   windows    |-------|-------|---------|                 |-----|-------|
 *                                        ends at once      begins anew
 *
 * A clock that is set, and a host that sleeps, end the window at once; the next one is aligned
 * again. So no window is longer than one and a twentieth of its length, or negative.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct window_clock {
	const struct clock *clock;
	uint64_t length_ns;
	uint64_t begin_ns, begin_wall_ns; /* of the window that is open */
	uint64_t due_ns;		  /* monotonic */
	int64_t offset_ns;		  /* wall - monotonic when it began */
};

/* Begins a window. clock is borrowed; length_ns is not 0. */
void window_clock_init(struct window_clock *windows, const struct clock *clock, uint64_t length_ns);
/* The window that is open ended; the next one begins now. */
void window_clock_begin(struct window_clock *windows);
/* Nanoseconds until the window ends, 0 = now. */
uint64_t window_clock_wait_ns(const struct window_clock *windows);
