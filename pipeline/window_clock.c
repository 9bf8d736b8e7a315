/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/window_clock.h"

/* What NTP slews stays below; a step above it is somebody's hand, or sleep. */
#define STEP_NS ((int64_t)1000000000)
/* A window that would be shorter than that part of the length is joined to the next one. */
enum { SHORTEST_PART = 20 };

static uint64_t monotonic_ns(const struct window_clock *windows)
{
	return windows->clock->monotonic_ns(windows->clock->context);
}

static uint64_t wall_ns(const struct window_clock *windows)
{
	return windows->clock->wall_ns(windows->clock->context);
}

void window_clock_begin(struct window_clock *windows)
{
	windows->begin_ns = monotonic_ns(windows);
	windows->begin_wall_ns = wall_ns(windows);
	windows->offset_ns = (int64_t)(windows->begin_wall_ns - windows->begin_ns);
	uint64_t length_ns = windows->length_ns;
	uint64_t rest_ns = length_ns - windows->begin_wall_ns % length_ns;
	if (rest_ns < length_ns / SHORTEST_PART)
		rest_ns += length_ns;
	windows->due_ns = windows->begin_ns + rest_ns;
}

void window_clock_init(struct window_clock *windows, const struct clock *clock, uint64_t length_ns)
{
	*windows = (struct window_clock){.clock = clock, .length_ns = length_ns};
	window_clock_begin(windows);
}

static bool has_stepped(const struct window_clock *windows, uint64_t now_ns)
{
	int64_t moved_ns = (int64_t)(wall_ns(windows) - now_ns) - windows->offset_ns;
	return moved_ns > STEP_NS || moved_ns < -STEP_NS;
}

uint64_t window_clock_wait_ns(const struct window_clock *windows)
{
	uint64_t now_ns = monotonic_ns(windows);
	if (now_ns >= windows->due_ns || has_stepped(windows, now_ns))
		return 0;
	return windows->due_ns - now_ns;
}
