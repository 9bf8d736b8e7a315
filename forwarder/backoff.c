/* SPDX-License-Identifier: Apache-2.0 */
/* Waits between tries. The jitter keeps a fleet from coming back in step. */
#include "forwarder/backoff.h"

static const uint64_t second_ns = 1000000000;

void backoff_init(struct backoff *backoff, uint64_t initial_ns, uint64_t max_ns, uint64_t seed)
{
	*backoff = (struct backoff){
		.initial_ns = initial_ns ? initial_ns : second_ns,
		.max_ns = max_ns ? max_ns : 120 * second_ns,
		.random = seed,
	};
	if (backoff->initial_ns > backoff->max_ns)
		backoff->initial_ns = backoff->max_ns;
}

/* SplitMix64 (Steele, Lea, Flood 2014): any seed will do. */
static uint64_t step(struct backoff *backoff)
{
	uint64_t z = backoff->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t backoff_random(struct backoff *backoff, uint64_t bound)
{
	return (uint64_t)((unsigned __int128)step(backoff) * bound >> 64);
}

uint64_t backoff_next(struct backoff *backoff)
{
	uint64_t wait = backoff->current_ns ? backoff->current_ns : backoff->initial_ns;
	uint64_t next = wait / 100 * BACKOFF_FACTOR_PERCENT;
	backoff->current_ns = next < backoff->max_ns && next > wait ? next : backoff->max_ns;
	uint64_t spread = wait / 100 * BACKOFF_JITTER_PERCENT;
	return wait - spread + backoff_random(backoff, 2 * spread + 1);
}

void backoff_reset(struct backoff *backoff)
{
	backoff->current_ns = 0;
}
