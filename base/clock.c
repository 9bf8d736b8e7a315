/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clocks, and a clock that tests move by hand. */
#include "base/clock.h"

#include <time.h>

enum { OFFSET_READINGS = 8 };

static uint64_t read_clock(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t system_monotonic_ns(void *context)
{
	(void)context;
	return read_clock(CLOCK_MONOTONIC);
}

static uint64_t system_wall_ns(void *context)
{
	(void)context;
	return read_clock(CLOCK_REALTIME);
}

const struct clock clock_system = {
	.monotonic_ns = system_monotonic_ns,
	.wall_ns = system_wall_ns,
};

static uint64_t fake_monotonic_ns(void *context)
{
	return ((const struct clock_fake *)context)->now_monotonic_ns;
}

static uint64_t fake_wall_ns(void *context)
{
	return ((const struct clock_fake *)context)->now_wall_ns;
}

struct clock clock_from_fake(struct clock_fake *fake)
{
	return (struct clock){
		.monotonic_ns = fake_monotonic_ns,
		.wall_ns = fake_wall_ns,
		.context = fake,
	};
}

int64_t clock_wall_offset_ns(const struct clock *clock)
{
	uint64_t tightest_ns = UINT64_MAX;
	int64_t offset_ns = 0;
	for (int i = 0; i < OFFSET_READINGS; i++) {
		uint64_t before_ns = clock->monotonic_ns(clock->context);
		uint64_t wall_ns = clock->wall_ns(clock->context);
		uint64_t took_ns = clock->monotonic_ns(clock->context) - before_ns;
		if (took_ns < tightest_ns) {
			tightest_ns = took_ns;
			offset_ns = (int64_t)(wall_ns - (before_ns + took_ns / 2));
		}
	}
	return offset_ns;
}
