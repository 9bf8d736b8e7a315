/* SPDX-License-Identifier: Apache-2.0 */
/* Relaxed atomics: a counter orders nothing, it only must not lose an addition. */
#include "base/stats.h"

#include <assert.h>
#include <stdatomic.h>

static _Atomic uint64_t counters[STAT_N];

static const char *const names[STAT_N] = {
#define STATS_NAME(id, name, what) [id] = name,
	STATS_LIST(STATS_NAME)
#undef STATS_NAME
};

void stats_add(enum stats_counter counter, uint64_t n)
{
	assert(counter < STAT_N);
	atomic_fetch_add_explicit(&counters[counter], n, memory_order_relaxed);
}

uint64_t stats_get(enum stats_counter counter)
{
	assert(counter < STAT_N);
	return atomic_load_explicit(&counters[counter], memory_order_relaxed);
}

const char *stats_name(enum stats_counter counter)
{
	assert(counter < STAT_N);
	return names[counter];
}

void stats_reset(void)
{
	for (int i = 0; i < STAT_N; i++)
		atomic_store_explicit(&counters[i], 0, memory_order_relaxed);
}
