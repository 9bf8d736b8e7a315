/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernel has no random bytes yet (early boot), time and address layout have to do. */
#include "base/hash_seed.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/hash_map.h"

uint64_t hash_seed_make(void)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
		return seed;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return hash_mix((uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32) ^
	       hash_mix((uint64_t)(uintptr_t)&now);
}
