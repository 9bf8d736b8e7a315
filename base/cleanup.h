/* SPDX-License-Identifier: Apache-2.0 */
/* Scope cleanup: CLEANUP(fn) runs fn(&variable) at the end of its scope, TAKE(p) lets p out. */
#pragma once

#include <unistd.h>

#include "base/mem.h"

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define TAKE(p)                                                                                    \
	({                                                                                         \
		__auto_type take_ = (p);                                                           \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

static inline void cleanup_mem(void *p)
{
	mem_free(*(void **)p);
}

/* For descriptors; -1 is "none". */
static inline void cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
