/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to wait before the next try. Pure: randomness is a seed, time is the caller's.
 * Constants of gRPC's connection back-off (doc/connection-backoff.md) unless told otherwise.
 */
#pragma once

#include <stdint.h>

struct backoff {
	uint64_t initial_ns, max_ns;
	uint64_t current_ns; /* of the next wait, before jitter; 0 = from the start */
	uint64_t random;     /* state of the jitter */
};

enum { BACKOFF_FACTOR_PERCENT = 160, BACKOFF_JITTER_PERCENT = 20 };

/* 0 for either time = 1 s and 120 s. */
void backoff_init(struct backoff *backoff, uint64_t initial_ns, uint64_t max_ns, uint64_t seed);
/* The next wait: each 1.6 times the one before up to max_ns, then 20 % more or less at random. */
uint64_t backoff_next(struct backoff *backoff);
/* After a success. */
void backoff_reset(struct backoff *backoff);
/* Uniform in [0, bound), from the same randomness: start-up jitter. bound > 0. */
uint64_t backoff_random(struct backoff *backoff, uint64_t bound);
